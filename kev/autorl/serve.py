"""`python -m kev.autorl serve`: the grading server of one run.

    python -m kev.autorl serve --workspace W --base MODEL --task arithmetic

It prints its address, then that the clock runs, and at the end the verdict as JSON.
It listens on this machine only; wider only with a token in KEV_AUTORL_TOKEN, which callers send as
`Authorization: Bearer`. The base is measured, then the run's clock starts. When the time is up, what was accepted is
graded, the verdict is given, and the server ends. A server that was killed is started again with the same command.
"""

import argparse
import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.grader import Grader
from kev.autorl.grading_process import ProcessEvaluator
from kev.autorl.grading_settings import GradingSettings, add_arguments, settings_of
from kev.autorl.measuring import GRADED
from kev.autorl.run import Run, available_gpus
from kev.autorl.run_clock import RunClock
from kev.autorl.store import derive, grader_key
from kev.autorl.tasks import Task, freeze, open_task
from kev.autorl.workspace import GRADER, Workspace, grader_directory
from kev.console import run as run_command
from kev.errors import NotFound, Refused
from kev.serve import LEAST_TOKEN, bind, is_loopback

TOKEN_VARIABLE = "KEV_AUTORL_TOKEN"


def grader_of(workspace: Workspace, base: Path, task: Task, settings: GradingSettings) -> Grader:
    """The grader of the run in `workspace`, which lies in `<root>/<task>/<run>/`. Raises KevError."""
    directory = workspace.directory.resolve()
    root = directory.parents[1]
    home, shared = grader_directory(root, directory.parent.name, directory.name), root / GRADER
    files.make_directory(shared, private=True)
    own = freeze(task, home / "task")
    # One secret for all runs of a task, so that they are graded on the same items and share their baselines.
    secret = derive(grader_key(shared), "items", task.name)
    evaluator = ProcessEvaluator(
        own,
        base,
        secret,
        home / "scratch",
        engine=settings.engine,
        seconds=settings.grading_seconds,
        log=home / "gradings.log",
    )
    run = Run(
        workspace=Workspace(directory),
        home=home,
        shared=shared,
        task=task.name,
        base=base,
        timeout_s=settings.timeout_s,
        rules=settings.rules,
        most_submissions=settings.submissions,
        gpus=available_gpus(),
        known=settings.known,
        extra_files=task.extra_files,
    )
    return Grader(run, evaluator)


async def serve(
    grader: Grader,
    listening: socket.socket,
    *,
    token: str | None = None,
    begun: Callable[[RunClock], object] | None = None,
) -> Mapping[str, Any] | None:
    """Serve a run to its end; the final result. None where it was interrupted: it goes on when it is served again.

    `begun` is called with the run's clock when it runs; a runner starts its agent then.
    """
    import uvicorn

    from kev.autorl.server import build_app

    app = build_app(grader, token=token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    ending = asyncio.create_task(_to_the_end(grader, begun))
    try:
        await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        return ending.result() if ending.done() else None
    finally:
        ending.cancel()
        server.should_exit = True
        await asyncio.gather(serving, ending, return_exceptions=True)


async def _to_the_end(grader: Grader, begun: Callable[[RunClock], object] | None) -> Mapping[str, Any]:
    from kev.autorl.server import until_over

    await grader.started.wait()
    try:
        await grader.measure_base()
    except Refused as error:
        # Submissions are graded all the same, and the base is measured again with the first of them.
        logging.getLogger(__name__).warning("%s", error)
    clock = await grader.start_clock()
    if begun is not None:
        begun(clock)
    await until_over(grader)
    return await grader.finish()


def check_token(host: str, token: str | None) -> None:
    """Raise Refused for an address beyond this machine without a token that could not be guessed."""
    if token is not None and len(token) < LEAST_TOKEN:
        raise Refused(f"{TOKEN_VARIABLE} has {len(token)} characters; a token has at least {LEAST_TOKEN}")
    if token is None and not is_loopback(host):
        raise Refused(f"--host {host} is reached from other machines; set {TOKEN_VARIABLE} to serve there")


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 where something was graded, else 1, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.autorl serve", description="Grade one run: serve it to its end, and print the verdict."
    )
    parser.add_argument("--workspace", type=Path, required=True, metavar="DIR", help="<root>/<task>/<run>")
    parser.add_argument("--base", type=Path, required=True, metavar="DIR", help="the base model")
    parser.add_argument("--task", required=True, help="a task's name, or the folder of its task.json")
    parser.add_argument("--known", type=Path, action="append", default=[], metavar="DIR", help="a published model")
    add_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one and prints it")
    options = parser.parse_args(arguments)
    return run_command(lambda: _serve(options))


def _serve(options: argparse.Namespace) -> int:
    token = os.environ.get(TOKEN_VARIABLE) or None
    check_token(options.host, token)
    settings = settings_of(options, known=tuple(options.known))
    if not options.workspace.is_dir():
        raise NotFound(f"{options.workspace}: no such directory")
    workspace, task = Workspace(options.workspace), open_task(options.task)
    logging.basicConfig(
        filename=workspace.grading_log, format="%(asctime)s | %(levelname)s | %(message)s", level=logging.INFO
    )
    grader = grader_of(workspace, options.base, task, settings)
    listening = bind(options.host, options.port)
    host, port = listening.getsockname()[:2]
    print(f"http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)
    try:
        final = asyncio.run(serve(grader, listening, token=token, begun=_say_begun))
    finally:
        listening.close()
    if final is None:
        return 128 + signal.SIGINT
    print(files.dump_json(dict(final)).decode(), end="")
    return 0 if final["verdict"] in GRADED else 1


def _say_begun(clock: RunClock) -> None:
    print(f"the clock runs: {clock.remaining():,.0f} of {clock.timeout_s:,.0f} s are left", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
