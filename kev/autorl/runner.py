"""`python -m kev.autorl run`: one agent, one task, one base, a fixed time.

    python -m kev.autorl run --agent example_sft --task arithmetic --model bases/tiny --timeout 600

The workspace is made and the base measured; then the clock starts, and with it the agent. Where the agent ends, or at
the bell, everything that it started is ended, what it submitted is graded, and the run gets its verdict and its row in
`results.csv`. The agent is given nothing of what decides a score: the grader's directory is not in its workspace.
"""

import argparse
import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.agent_folder import Agent, open_agent, shipped_agents
from kev.autorl.agent_process import GRACE, AgentProcess, environment
from kev.autorl.evaluators.problems import write_training_data
from kev.autorl.grader import Grader
from kev.autorl.grading_settings import GradingSettings, add_arguments, settings_of
from kev.autorl.journal.checking import in_words as journal_in_words
from kev.autorl.metrics import compute_metrics, write_metrics
from kev.autorl.metrics_command import read_run
from kev.autorl.outcome import Ending, Outcome, in_words, outcome_of
from kev.autorl.results import append_result
from kev.autorl.run_clock import RunClock
from kev.autorl.run_log import RunLog
from kev.autorl.serve import grader_of, serve
from kev.autorl.tasks import Task, open_task
from kev.autorl.telling import instructions
from kev.autorl.workspace import Workspace, create_workspace, results_path
from kev.clock import Clock, SystemClock
from kev.console import run as run_command
from kev.errors import KevError, NotFound, UsageError
from kev.serve import bind

TRAINING_DATA = ".training_data"
GLANCE = 0.25
"""Seconds between two looks at the clock."""
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Order:
    """What is run."""

    agent: Agent
    task: Task
    base: Path
    root: Path
    settings: GradingSettings
    data: Path | None = None
    port: int = 0
    grace: float = GRACE


def run_agent(order: Order, *, clock: Clock | None = None, say: Say = lambda _: None) -> Outcome:
    """See a run through to its row in `results.csv`. Raises KevError for an order that cannot be carried out.

    A run that ends without a verdict has a row as well, and the outcome says why. SIGINT and SIGTERM end it so.
    """
    clock = clock or SystemClock()
    started = clock.now().astimezone()
    workspace = _workspace(order, started)
    log = RunLog(workspace.run_log, clock)
    log.info(f"run of {order.agent.name} on {order.task.name}, base {order.base.resolve().name}")
    say(f"workspace {workspace.directory}")
    grader = grader_of(workspace, order.base, order.task, order.settings)
    with bind("127.0.0.1", order.port) as listening:
        live = _Live(order, workspace, grader, f"http://127.0.0.1:{listening.getsockname()[1]}", log, say)
        ending = asyncio.run(_see_through(live, lambda: serve(grader, listening, begun=live.begin)))
    found = outcome_of(order.agent, grader, started, ending)
    append_result(results_path(order.root), found.row)
    try:
        write_metrics(workspace, compute_metrics(*read_run(workspace)))
    except (KevError, OSError) as error:
        log.warning(f"no metrics: {error}")  # the agent may have made of the folder what it likes
    kept = f"journal: {journal_in_words(workspace, clock)}"
    log.info(kept)
    say(kept)
    log.info(ending.why or f"the run is over: {in_words(found).splitlines()[-1].strip()}")
    return found


def _workspace(order: Order, started: datetime) -> Workspace:
    """A new workspace, with what the agent is told in it."""
    workspace = create_workspace(
        order.root,
        order.task.name,
        order.agent.name,
        started.replace(tzinfo=None),
        base=order.base,
        data=order.data if order.data is not None else training_data(order.task, order.root),
        port=order.port or None,
    )
    files.write_atomic(workspace.description, f"{order.task.record.description}\n".encode())
    files.write_atomic(
        workspace.instructions, instructions(order.settings.timeout_s, order.settings.submissions).encode()
    )
    return workspace


def training_data(task: Task, root: Path) -> Path | None:
    """What agents of a task train on: the `data/` of its folder, or, for made-up problems, some more of them."""
    if task.directory is not None and (task.directory / "data").is_dir():
        return task.directory / "data"
    if task.record.evaluator != "arithmetic" or "file" in task.settings:
        return None
    directory = root / TRAINING_DATA / task.name
    write_training_data(directory, steps=int(task.settings.get("steps", 1)))
    return directory


class _Live:
    """The agent of a run while it lasts. Its methods belong to the event loop that serves the run."""

    def __init__(self, order: Order, workspace: Workspace, grader: Grader, address: str, log: RunLog, say: Say) -> None:
        self._order = order
        self._workspace = workspace
        self._grader = grader
        self._address = address
        self._log = log
        self._say = say
        self._agent: AgentProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self.exit_code: int | None = None
        """The agent's, 128 + N where signal N ended it; None where it never began."""

    def begin(self, clock: RunClock) -> None:
        """Start the agent: the clock runs."""
        self._watching = asyncio.create_task(self._watch(clock))

    async def end(self) -> None:
        """See that nothing of the agent is left, whatever ended the run."""
        if self._watching is not None:
            if self.exit_code is None and self._agent is not None:
                await self._agent.stop()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self, clock: RunClock) -> None:
        order = self._order
        baseline = self._grader.ledger.baseline_score
        self._log.info("the base has no score yet" if baseline is None else f"baseline {baseline:g}")
        variables = environment(
            order.agent,
            self._workspace,
            order.base,
            task=order.task.name,
            address=self._address,
            timeout_s=order.settings.timeout_s,
        )
        began = clock.elapsed()
        try:
            self._agent = await AgentProcess.start(order.agent, self._workspace, variables, grace=order.grace)
        except OSError as error:
            self._log.error(f"the agent could not be started ({error.strerror or error})")
            await self._finish()
            return
        self._log.info(f"the agent began (process {self._agent.pid}); {clock.remaining():,.0f} s are left")
        self._say(f"the agent began; {clock.remaining():,.0f} s are left")
        waiting = asyncio.create_task(self._agent.wait())
        await self._until_over(clock, waiting)
        in_time = waiting.done()
        if not in_time:
            self._log.warning("timeout: the time is up, the agent is told to end, and killed if it does not")
            self._say("the time is up")
            await self._agent.stop()
        self.exit_code = await waiting
        words = f"the agent ended with exit_code={self.exit_code} after {clock.elapsed() - began:,.0f} s"
        (self._log.info if self.exit_code == 0 or not in_time else self._log.error)(words)
        self._say(words)
        if in_time:
            await self._finish()

    async def _until_over(self, clock: RunClock, waiting: "asyncio.Task[int]") -> None:
        """Return at the bell, or when the agent has ended; give the notices that fall due before."""
        seen = 0.0
        while not clock.is_over and not waiting.done():
            await asyncio.wait({waiting}, timeout=max(0.01, min(GLANCE, clock.remaining())))
            now = clock.elapsed()
            for notice in clock.notices_between(seen, now):
                await asyncio.to_thread(files.append, self._workspace.notices, f"{notice.text}\n".encode())
                self._log.info(notice.text)
                self._say(notice.text)
            seen = now

    async def _finish(self) -> None:
        try:
            await self._grader.finish()
        except KevError as error:
            self._log.error(str(error))  # the server ends the run with the same one


async def _see_through(live: _Live, serving: Callable[[], Awaitable[Mapping[str, Any] | None]]) -> Ending:
    """Serve the run to its end, whatever ends it."""
    # The server takes both signals to end, and raises them again when it has: a second death would leave no record.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    final, why = None, None
    try:
        final = await serving()
        why = "interrupted" if final is None else None
    except KevError as error:
        why = str(error)
    finally:
        await live.end()
        for number, handler in before.items():
            signal.signal(number, handler)
    return Ending(final, why, live.exit_code)


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 where something was graded, else 1, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.autorl run", description="Give an agent a base model, a task and a fixed time."
    )
    parser.add_argument("--agent", required=True, help=f"an agent's folder, or one of {', '.join(shipped_agents())}")
    parser.add_argument("--task", required=True, help="a task's name, or the folder of its task.json")
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="the base model")
    parser.add_argument("--root", type=Path, default=Path("autorl"), metavar="DIR", help="where runs are kept (autorl)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="training data, in place of the task's own")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    add_arguments(parser)
    parser.add_argument("--grace", type=float, default=GRACE, metavar="S", help="from SIGTERM to SIGKILL (10)")
    parser.add_argument("--json", action="store_true", help="the summary as JSON, and nothing else")
    options = parser.parse_args(arguments)
    return run_command(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    if options.grace < 0:
        raise UsageError("--grace is not below 0")
    if not options.model.is_dir():
        raise NotFound(f"{options.model}: no such directory")
    order = Order(
        agent=open_agent(options.agent),
        task=open_task(options.task),
        base=options.model,
        root=options.root,
        settings=settings,
        data=options.data,
        port=options.port,
        grace=options.grace,
    )
    found = run_agent(order, say=(lambda _: None) if options.json else (lambda words: print(words, flush=True)))
    print(files.dump_json(found.to_json()).decode() if options.json else in_words(found), end="")
    if found.why == "interrupted":
        return 128 + signal.SIGINT
    return 0 if found.row.success else 1


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    raise SystemExit(main())
