"""The directory that one run happens in: `<root>/<task>/<YYYYmmddTHHMMSS>[_p<port>]_<agent>/`.

What the grader trusts lies elsewhere, under `<root>/.grader/`: everything in a workspace may be edited by the agent.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kev import files
from kev.errors import NotFound, Refused, UsageError

GRADER = ".grader"
STORE = "store.jsonl"
"""The events of a run, in the grader's own directory."""
RESULTS = "results.csv"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RUN = re.compile(r"(?P<started>\d{8}T\d{6})(?:_p(?P<port>\d{1,5}))?_(?P<agent>.+)")


@dataclass(frozen=True, slots=True)
class RunName:
    """The name of a workspace, taken apart. `started` is local time; `agent` may hold underscores."""

    started: datetime
    agent: str
    port: int | None = None

    def __str__(self) -> str:
        port = "" if self.port is None else f"_p{self.port}"
        return f"{self.started:%Y%m%dT%H%M%S}{port}_{self.agent}"

    @classmethod
    def parse(cls, text: str) -> "RunName":
        """Raises UsageError for a name that no workspace has."""
        found = _RUN.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            # Local time, as the name has it: an offset would be a guess.
            started = datetime.strptime(found["started"], "%Y%m%dT%H%M%S")  # noqa: DTZ007
        except ValueError:
            raise UsageError(f"{text!r}: a workspace is named YYYYmmddTHHMMSS[_pPORT]_AGENT") from None
        return cls(started, found["agent"], int(found["port"]) if found["port"] else None)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The paths of one run."""

    directory: Path

    @property
    def code(self) -> Path:
        return self.directory / "code"

    @property
    def output(self) -> Path:
        """Where the agent puts the models it submits."""
        return self.directory / "output"

    @property
    def models(self) -> Path:
        """Holds a link to the base model, under its name."""
        return self.directory / "models"

    @property
    def data(self) -> Path:
        """A link to the training data."""
        return self.directory / "data"

    @property
    def description(self) -> Path:
        return self.directory / "description.md"

    @property
    def instructions(self) -> Path:
        return self.directory / "instructions.md"

    @property
    def notices(self) -> Path:
        """What the runner tells the agent while it works: a line for each notice of the time."""
        return self.directory / "notices.log"

    @property
    def run_meta(self) -> Path:
        """A view: the grader rewrites it from its own clock."""
        return self.directory / "run_meta.json"

    @property
    def scores(self) -> Path:
        """A view: the grader rewrites it from its own store."""
        return self.directory / "scores.json"

    @property
    def final(self) -> Path:
        """A view, once the run is over: the verdict on hidden items."""
        return self.directory / "final.json"

    @property
    def run_log(self) -> Path:
        return self.directory / "run.log"

    @property
    def agent_log(self) -> Path:
        return self.directory / "agent.log"

    @property
    def grading_log(self) -> Path:
        return self.directory / "grading_server.log"

    @property
    def reports(self) -> Path:
        return self.directory / "reports"

    @property
    def summary(self) -> Path:
        return self.reports / "summary.md"

    @property
    def summary_lines(self) -> Path:
        return self.reports / "summary.jsonl"

    @property
    def metrics(self) -> Path:
        return self.reports / "metrics.json"

    @property
    def trajectory(self) -> Path:
        return self.reports / "figures" / "score_trajectory.png"


def check_name(text: str, what: str) -> str:
    """`text`, if it can be part of a path: letters, digits, `.`, `_`, `-`. Raises UsageError, naming `what`."""
    if not _NAME.fullmatch(text):
        raise UsageError(f"{what} {text[:100]!r}: 1 to 100 letters, digits, '.', '_' or '-', a letter or digit first")
    return text


def create_workspace(
    root: Path, task: str, agent: str, started: datetime, *, base: Path, data: Path | None, port: int | None = None
) -> Workspace:
    """A new workspace with its folders and its links to the base model and the training data.

    Raises UsageError for a task or agent that cannot be a name, NotFound for inputs that are not there, and Refused
    where the workspace exists already.
    """
    name = RunName(started, check_name(agent, "agent"), port)
    workspace = Workspace(root / check_name(task, "task") / str(name))
    for source in [base] if data is None else [base, data]:
        if not source.is_dir():
            raise NotFound(f"{source}: no such directory")
    if workspace.directory.exists():
        raise Refused(f"{workspace.directory}: is there already; a run never continues in another's workspace")
    for directory in (workspace.code, workspace.output, workspace.models, workspace.reports):
        files.make_directory(directory)
    files.link(workspace.models / base.resolve().name, base.resolve())
    if data is not None:
        files.link(workspace.data, data.resolve())
    return workspace


def open_workspace(directory: Path) -> Workspace:
    """The workspace in `directory`. Raises NotFound where there is none."""
    workspace = Workspace(directory)
    if not workspace.run_meta.exists() and not workspace.scores.exists():
        raise NotFound(f"{directory}: no workspace (neither {workspace.run_meta.name} nor {workspace.scores.name})")
    return workspace


def grader_directory(root: Path, task: str, run: str) -> Path:
    """Where the grader of a run keeps what it trusts."""
    return root / GRADER / "runs" / check_name(task, "task") / check_name(run, "run")


def results_path(root: Path) -> Path:
    return root / RESULTS
