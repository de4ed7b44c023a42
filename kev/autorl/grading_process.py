"""Gradings in fresh processes: one a grading, with a clean environment, a time limit, and nothing of the agent's.

What decides a score (the task's files, the evaluators' own code) is hashed when the grader starts, and again before
every grading: a grader whose source was changed under it grades no more.
"""

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import kev
from kev import files
from kev.autorl.evaluation import Asked, Evaluation
from kev.autorl.tasks import Task, sha256_of
from kev.errors import DamagedFile, NotFound, Refused
from kev.records.base import parse_record
from kev.text import visible_bytes

PACKAGE = Path(kev.__file__).parent if kev.__file__ else Path()
SOURCES = ("autorl/evaluators", "autorl/engines", "autorl/tasks.py", "autorl/evaluation.py")
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "OMP_NUM_THREADS", "VIRTUAL_ENV")
"""Variables that a grading process keeps; keys and proxies are not among them."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
"""What libraries that load models are told, in gradings and in agents."""
MAX_RESULT = 16 * 1024 * 1024
TAIL = 2000


class ProcessEvaluator:
    """Grades a task's models, each in a process that ends with it."""

    def __init__(
        self,
        task: Task,
        base: Path,
        secret: bytes,
        scratch: Path,
        *,
        engine: str = "auto",
        seconds: float = 1800.0,
        log: Path | None = None,
    ) -> None:
        self._task = task
        self._base = base
        self._secret = secret
        self._scratch = scratch
        self._engine = engine
        self._seconds = seconds
        self._log = log
        self._sources = self._hash()
        season = hashlib.sha256(b"season" + secret).hexdigest()
        self.identity = hashlib.sha256(f"{self._sources}|{engine}|{season}".encode()).hexdigest()

    async def evaluate(self, asked: Asked) -> Evaluation:
        """One grading. Raises Refused where what decides a score was changed, or the process failed."""
        if await asyncio.to_thread(self._hash) != self._sources:
            raise Refused("the evaluator or the task was changed while the grader ran; nothing is graded any more")
        scratch = await asyncio.to_thread(files.make_scratch, self._scratch)
        try:
            return await self._run(asked, scratch)
        finally:
            await asyncio.to_thread(files.remove_tree, scratch)

    async def _run(self, asked: Asked, scratch: Path) -> Evaluation:
        result = scratch / "result.json"
        order = {
            "task": self._task.record.to_json(),
            "files": None if self._task.directory is None else str(self._task.directory.resolve()),
            "model": str(asked.model.resolve()),
            "base": str(self._base.resolve()),
            "split": asked.split,
            "seed": asked.seed,
            "secret": self._secret.hex(),
            "engine": self._engine,
            "scratch": str(scratch.resolve()),
            "result": str(result.resolve()),
        }
        output = scratch / "output"
        with files.open_log(output) as descriptor:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-s", "-m", "kev.autorl.evaluators",
                stdin=asyncio.subprocess.PIPE, stdout=descriptor, stderr=descriptor, cwd=scratch,
                env=environment(asked.gpus), start_new_session=True,
            )  # fmt: skip
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order).encode() + b"\n")
            with suppress(ConnectionError):
                await process.stdin.drain()
            code = await asyncio.wait_for(process.wait(), self._seconds)
        except TimeoutError:
            raise Refused(f"the grading took more than {self._seconds:,.0f} s") from None
        finally:
            # Whatever the grading started goes with it, and so does a grading that is not wanted any more.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await asyncio.to_thread(self._keep, output)
        if code != 0:
            raise Refused(f"the grading process ended with {_ended(code)}; it last said: {_last_line(output)}")
        return _read(result)

    def _keep(self, output: Path) -> None:
        if self._log is not None:
            with suppress(NotFound, DamagedFile):
                data = files.read_bytes(output)[-65_536:]
                if data.strip():
                    files.append(self._log, data if data.endswith(b"\n") else data + b"\n")

    def _hash(self) -> str:
        digest = hashlib.sha256(sha256_of(self._task).encode())
        for source in SOURCES:
            path = PACKAGE / source
            for each in sorted(path.glob("*.py")) if path.is_dir() else [path]:
                digest.update(each.name.encode() + hashlib.sha256(files.read_bytes(each)).digest())
        return digest.hexdigest()


def environment(gpus: Sequence[str], inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a grading process finds in its environment."""
    kept = {name: inherited[name] for name in KEPT if name in inherited}
    own = {
        "PYTHONPATH": str(PACKAGE.parent),
        "TRANSFORMERS_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return kept | OFFLINE | own | ({"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {})


def _read(path: Path) -> Evaluation:
    try:
        value = files.read_json(path, limit=MAX_RESULT)
        return parse_record(path, value, Evaluation)
    except (NotFound, DamagedFile) as error:
        raise Refused(f"the grading process left no result that can be believed ({error})") from None


def _ended(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _last_line(path: Path) -> str:
    try:
        lines = files.read_bytes(path)[-TAIL:].split(b"\n")
    except (NotFound, DamagedFile):
        return "nothing"
    return next((visible_bytes(line.strip()) for line in reversed(lines) if line.strip()), "nothing")
