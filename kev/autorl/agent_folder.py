"""An agent is a folder with a `start.sh`, and a `config.yaml` that says what the runner has to know of it."""

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from kev import files
from kev.autorl.workspace import check_name
from kev.errors import DamagedFile, NotFound
from kev.records.base import StrictRecord, parse_record
from kev.spelling import nearest

CONFIG, START = "config.yaml", "start.sh"
SHIPPED = Path(__file__).parent / "agents"
MAX_CONFIG = 64 * 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AgentConfig(StrictRecord):
    """`config.yaml`."""

    description: str = ""
    driver_model: str | None = None
    """The model that drives the agent, for `results.csv`."""
    environment: list[str] = Field(default_factory=list)
    """Names of variables of the caller that the agent needs, such as its own key; it gets no others."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's name, its folder and its configuration."""

    name: str
    directory: Path
    config: AgentConfig


def shipped_agents() -> list[str]:
    """The names of those that come with the bench."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{START}"))


def open_agent(name: str) -> Agent:
    """The agent that is called `name`, or that of the folder `name`. Raises NotFound, DamagedFile or UsageError."""
    directory = SHIPPED / name if name in shipped_agents() else Path(name)
    if not directory.is_dir():
        raise NotFound(f"agent {name!r}: no folder of that name, and no such agent{nearest(name, shipped_agents())}")
    directory = directory.resolve()
    if not (directory / START).is_file():
        raise NotFound(f"{directory / START}: no such file; an agent's folder has one, which bash runs")
    return Agent(check_name(directory.name, "agent"), directory, _config(directory / CONFIG))


def _config(path: Path) -> AgentConfig:
    import yaml

    try:
        value = yaml.safe_load(files.read_bytes(path, limit=MAX_CONFIG))
    except NotFound:
        raise NotFound(f"{path}: no such file; an agent without settings has an empty one") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise DamagedFile(path, "not YAML" if mark is None else f"line {mark.line + 1}: not YAML") from None
    config = parse_record(path, {} if value is None else value, AgentConfig)
    for variable in config.environment:
        if not _VARIABLE.fullmatch(variable):
            raise DamagedFile(path, f"environment: {variable!r:.100} is not the name of a variable")
    return config
