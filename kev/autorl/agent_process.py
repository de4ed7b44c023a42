"""An agent at work: its environment, its process, and its end with everything that it started."""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kev import files
from kev.autorl.agent_folder import START, Agent
from kev.autorl.grading_process import KEPT, OFFLINE, PACKAGE
from kev.autorl.process_tree import marked, stop
from kev.autorl.workspace import Workspace

MARK = "KEV_AUTORL_RUN"
GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""
KEEPER_SECONDS = 20.0
"""What the keeper may take beyond the grace, until it is taken to be stuck."""


def environment(
    agent: Agent,
    workspace: Workspace,
    base: Path,
    *,
    task: str,
    address: str,
    timeout_s: float,
    inherited: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """What the agent finds in its environment: nothing of the caller's but what every program needs, and its own keys.

    The variables in capitals are the bench's since its first version; docs/autorl.md lists them.
    """
    kept = {name: inherited[name] for name in (*KEPT, *agent.config.environment) if name in inherited}
    directory = workspace.directory.resolve()
    programs = f"{Path(sys.executable).parent}{os.pathsep}{inherited.get('PATH', os.defpath)}"
    own = {
        "PATH": programs,
        "PYTHONPATH": str(PACKAGE.parent),
        "PYTHONUNBUFFERED": "1",
        "TASK": task,
        "BASE_MODEL": base.resolve().name,
        "WORKSPACE": str(directory),
        "MODEL_PATH": str(directory / workspace.models.name / base.resolve().name),
        "DATA_PATH": str(directory / workspace.data.name),
        "OUTPUT_DIR": str(directory / workspace.output.name),
        "AGENT_DIR": str(agent.directory),
        "NOTICES": str(directory / workspace.notices.name),
        "GRADING_SERVER_URL": address,
        "TIMEOUT_S": f"{timeout_s:.0f}",
    }
    if "CUDA_VISIBLE_DEVICES" in inherited:
        own["CUDA_VISIBLE_DEVICES"] = inherited["CUDA_VISIBLE_DEVICES"]
    return kept | OFFLINE | own


class AgentProcess:
    """One agent, started by `start`. It ends by itself or by `stop`, and nothing of it is left after either."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str, grace: float) -> None:
        self._process = process
        self._mark = mark
        self._grace = grace

    @classmethod
    async def start(
        cls, agent: Agent, workspace: Workspace, variables: Mapping[str, str], *, grace: float = GRACE
    ) -> "AgentProcess":
        """`bash start.sh` in the workspace, its output in `agent.log`. Raises OSError."""
        mark = secrets.token_hex(16)
        with files.open_log(workspace.agent_log) as descriptor:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-s", "-m", "kev.autorl.keeper", str(grace), "bash", str(agent.directory / START),
                stdin=asyncio.subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, cwd=workspace.directory,
                env={**variables, MARK: mark}, start_new_session=True,
            )  # fmt: skip
        return cls(process, mark, grace)

    @property
    def pid(self) -> int:
        """Of the process above the agent."""
        return self._process.pid

    async def wait(self) -> int:
        """The agent's exit code, 128 + N for signal N, once all that it started is gone."""
        code = await self._process.wait()
        # The keeper left nothing, unless the agent killed it first: then the mark still tells what is the agent's.
        await asyncio.to_thread(stop, lambda: marked(MARK, self._mark), 0.0 if code < 0 else self._grace)
        return code if code >= 0 else 128 - code

    async def stop(self) -> int:
        """SIGTERM, then SIGKILL, to all that the agent started; its exit code."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), self._grace + KEEPER_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        return await self.wait()
