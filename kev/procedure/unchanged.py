"""What a registered round rests on must be what it was: the suites it names, and the files that decide a score.

Both are read from git: a suite counts as frozen by the commit that first held its manifest, an evaluator file by the
commit that registered the round.
"""

import posixpath
from collections.abc import Iterable
from pathlib import Path

from kev.errors import KevError
from kev.evaluators import EVALUATOR_FILES
from kev.git import GitFailed, git
from kev.records.spec import RoundSpec
from kev.rounds.checkout import Checkout

MANIFEST = "manifest.json"


def changes_since_registration(root: Path, spec: RoundSpec, commit: str) -> list[str]:
    """Why a round registered by `commit` may not be launched, read or decided any more; empty if it may."""
    return [*changed_evaluators(root, commit), *changed_suites(root, suites_of(root, spec))]


def changed_evaluators(root: Path, commit: str) -> list[str]:
    """The evaluator files that differ from what they were in `commit`, as lines."""
    try:
        names = git(root, "diff", "--name-only", "--relative", commit, "--", *EVALUATOR_FILES).splitlines()
    except GitFailed as error:
        return [f"whether an evaluator file has changed cannot be told: {error}"]
    return [
        f"{name} decides scores and was changed since the round was registered ({commit[:12]}); draft the round anew "
        "under another number: python -m kev.rounds new"
        for name in names if name.endswith(".py")
    ]  # fmt: skip


def changed_suites(root: Path, paths: Iterable[str]) -> list[str]:
    """The suites that are not as they were frozen, as lines: a manifest that was changed, or a partition added."""
    found = []
    for path in paths:
        manifest = f"{path}/{MANIFEST}"
        try:
            commits = git(root, "log", "--format=%H", "--diff-filter=A", "--", manifest).split()
            if commits and git(root, "diff", "--name-only", commits[-1], "--", manifest).strip():
                found.append(f"{manifest} was changed after it was frozen ({commits[-1][:12]}); a frozen suite never "
                             "changes, and what is better is frozen under a new name")  # fmt: skip
        except GitFailed as error:
            found.append(f"whether {manifest} was changed cannot be told: {error}")
        found += _added(root, path)
    return found


def suites_of(root: Path, spec: RoundSpec) -> list[str]:
    """Every suite that a round trains on or reads, by path; the suites of plans' own data included."""
    paths = [study.suite for study in spec.studies.values()] + [study.transfer for study in spec.studies.values()]
    paths += [path for read in spec.reads.values() for path in (read.suite, read.decision) if path is not None]
    checkout = Checkout(root)
    for study in spec.studies.values():
        try:
            plan = checkout.plan(study.plan)
        except KevError:
            continue  # validation says so
        data = [entry.get("data") for entry in plan if isinstance(entry, dict)] if isinstance(plan, list) else []
        paths += [posixpath.dirname(path) for path in data if isinstance(path, str)]
    return [path for path in dict.fromkeys(paths) if (root / path / MANIFEST).is_file()]


def _added(root: Path, path: str) -> list[str]:
    suite = Checkout(root).suite(path)
    if suite is None or not suite.manifest.files:
        return []
    strangers = sorted({found.name for found in (root / path).glob("*.jsonl")} - set(suite.manifest.files))
    return [f"{path}/{name} is not in the manifest; nothing is added to a frozen suite" for name in strangers]
