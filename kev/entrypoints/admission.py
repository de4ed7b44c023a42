"""Everything that is checked before a study is launched, cheapest first; what passes is what is launched."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from kev import budget
from kev.document import read_value
from kev.entrypoints.names import check_directory_is_unused
from kev.errors import DamagedFile, NotFound, Refused, UsageError
from kev.git import GitFailed, git
from kev.procedure.corpora import check_corpus
from kev.records.plan import is_full_weight, plan_problems
from kev.records.spec import STUDY_NAME
from kev.rounds.checks.studies import FIRST_RESUME_POINT, leaves_points_by_step
from kev.suite import Suite, open_suite, read_suite


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    suite: str
    plan: str
    name: str
    gpu: str
    transfer: str = ""
    existing: str = ""
    budget: float = 20.0
    timeout: int = 1800


@dataclass(frozen=True, slots=True)
class Admission:
    """A study that may be launched, as far as this machine can tell."""

    name: str
    gpu: str
    timeout: int
    bound: Decimal
    full_weight: bool
    suite: str
    transfer: str | None
    configs: list[dict[str, Any]]
    """The plan's trials, as written, and then {"existing": path} for each checkpoint that is only scored."""

    def numbered(self) -> list[tuple[int | None, dict[str, Any]]]:
        """Each of `configs`, with its number among the checkpoints that are only scored, or None."""
        trained = sum("existing" not in config for config in self.configs)
        return [
            (index - trained if "existing" in config else None, config) for index, config in enumerate(self.configs)
        ]


def admit(request: Request, root: Path) -> Admission:
    """Hold `request` against every rule that needs no network. Raises Refused, NotFound, DamagedFile or UsageError."""
    name = request.name
    if not STUDY_NAME.fullmatch(name):
        raise UsageError(
            f"study {name!r:.100}: a name is 1 to 80 letters, digits, _ or -, and begins with a letter or digit"
        )
    check_directory_is_unused(root / "runs", name)
    existing = [{"existing": path} for path in existing_checkpoints(request.existing)]
    suite = open_inside(root, request.suite, "--suite")
    plan = read_plan(root, request.plan, suite)
    full_weight = is_full_weight(plan)
    bound = budget.check_study(
        name, request.gpu, request.timeout, _dollars(request.budget), len(plan) + len(existing), full_weight=full_weight
    )
    check_corpora(root, suite, plan)
    check_partitions(suite, ("train", "calibration", "development"))
    if request.transfer:
        check_partitions(open_inside(root, request.transfer, "--transfer"), ("development",))
    return Admission(
        name,
        request.gpu,
        request.timeout,
        bound,
        full_weight,
        request.suite,
        request.transfer or None,
        [*plan, *existing],
    )


def warnings(admission: Admission) -> list[str]:
    """What may be meant and is often regretted."""
    if not admission.full_weight:
        return []
    found = [f"{admission.name}: after a timeout a full-weight trial goes on only where someone resumes it"]
    if admission.timeout <= FIRST_RESUME_POINT:
        by_steps = all(leaves_points_by_step(config) for config in admission.configs if config.get("full_ft") == 1)
        none = "a continuation starts from zero; set save_every_steps, to less than the steps of the run"
        only = "only save_every_steps leaves one" if by_steps else none
        found.append(
            f"{admission.name}: {admission.timeout} s end before the first timed resume point, after "
            f"{FIRST_RESUME_POINT} s: {only}"
        )
    return found


def read_plan(root: Path, path: str, suite: Suite) -> list[dict[str, Any]]:
    """The trials of a plan that `suite` admits. Raises NotFound, or DamagedFile with the first thing wrong."""
    place = root / path
    value = read_value(place)
    manifest = suite.manifest
    if manifest.eval_only:
        raise Refused(f"--suite {suite.directory}: is for evaluation only, and is not trained on")
    for problem in plan_problems(value, manifest.base_revisions, manifest.training_sources()):
        raise DamagedFile(place, str(problem))
    for number, config in enumerate(value):
        data = config.get("data")
        if data is not None and not (root / data).is_file():
            raise Refused(f"{path}: trial {number}: data {data} is not in this checkout")
    return list(value)


def open_inside(root: Path, path: str, flag: str) -> Suite:
    """The suite at `path` in the checkout. Raises Refused for one elsewhere or removed, NotFound or DamagedFile."""
    if not path or Path(path).is_absolute() or ".." in Path(path).parts:
        raise Refused(
            f"{flag} {path!r:.100}: write the path of a suite inside this checkout, such as evals/decision-v1"
        )
    if not (root / path).is_dir():
        raise Refused(f"{flag} {path}: there is no such suite in this checkout")
    return open_suite(root / path)


def existing_checkpoints(paths: str) -> list[str]:
    """The checkpoints of a comma-separated list. Raises UsageError for one that is not on the runs volume."""
    found = [part.strip() for part in paths.split(",") if part.strip()]
    for path in found:
        if not path.startswith("/runs/") or ".." in Path(path).parts:
            raise UsageError(f"--existing {path!r:.100}: write a checkpoint under /runs/")
    return found


def check_corpora(root: Path, suite: Suite, plan: list[dict[str, Any]]) -> None:
    """Raises Refused if anything that the plan trains on holds a closed model's output."""
    check_corpus(root, suite.directory, suite.manifest)
    for data in dict.fromkeys(entry["data"] for entry in plan if entry.get("data")):
        try:
            corpus = read_suite((root / data).parent)
        except NotFound:
            continue  # a file without a manifest says nothing of itself
        check_corpus(root, corpus.directory, corpus.manifest)


def check_partitions(suite: Suite, splits: tuple[str, ...]) -> None:
    """Raises what reading them raises, unless every partition is here and as it was frozen."""
    for split in splits:
        suite.read_partition(split)


def uncommitted(root: Path) -> list[str]:
    """Changed files under kev/ and evals/ that no commit holds; [] where git cannot be asked."""
    try:
        changed = git(root, "status", "--porcelain", "--", "kev", "evals")
    except (GitFailed, NotFound):
        return []
    return [line[3:] for line in changed.splitlines()]


def _dollars(amount: float) -> Decimal:
    try:
        return Decimal(str(amount))
    except InvalidOperation:
        raise UsageError(f"--budget {amount!r:.40}: write an amount of US dollars") from None
