"""Which studies belong to a target, and what is known of each beside its own files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kevtui.observe.sources import Sources
from kevtui.observe.study_book import StudyContext
from kevtui.observe.target import Target

if TYPE_CHECKING:
    from kev.records.readout import ReadOut
    from kev.records.spec import RoundSpec
    from kev.session import Session

_SPEC_NAME = re.compile(r"r0*(\d{1,6})\.json")


def studies_in(target: Target, sources: Sources, spec: RoundSpec | None, session: Session | None) -> list[str]:
    """The studies to show, in the order of the spec or the state file, then by name.

    A round's: those of its spec, and every ledger of that round. A session's: those that its state file lists, or all
    where it lists none. A folder's: all.
    """
    listed = [work.name for work in session.studies] if session else []
    registered = list(spec.studies) if spec else []
    if target.round is not None:
        own = _of_round(target.round)
        names = [*registered, *(name for name in sources.ledgers() if own.fullmatch(name))]
    elif target.session is not None and listed:
        names = listed
    else:
        names = [*listed, *sorted({*sources.ledgers(), *sources.studies_on_disk()}, key=natural)]
    return [name for name in dict.fromkeys(names) if _is_known(name, sources, {*listed, *registered})]


def _is_known(name: str, sources: Sources, named: set[str]) -> bool:
    # A ledger that cannot be read may stand for work that costs money: its study has a row too.
    return (
        name in named
        or sources.spawn_damaged(name)
        or bool(sources.spawn(name))
        or any(sources.trial_directories(name))
    )


def contexts_of(
    names: list[str], spec: RoundSpec | None, session: Session | None, readout: ReadOut | None
) -> dict[str, StudyContext]:
    """What the session's state, the spec and the read-out say of each study."""
    listed = {work.name: work for work in session.studies} if session else {}
    planned: dict[str, list[tuple[str, str]]] = {}
    for arm in spec.arms.values() if spec else ():
        if (trial := _trial(arm.trial)) is not None:
            planned.setdefault(trial[0], []).append(trial[1:])
    read_out: dict[str, set[str]] = {}
    for compared in readout.arms.values() if readout else ():
        if compared.panels and (trial := _trial(compared.trial)) is not None:
            read_out.setdefault(trial[0], set()).add(trial[1])
    return {
        name: StudyContext(
            listed=listed.get(name),
            registered=spec.studies.get(name) if spec else None,
            planned=tuple(planned.get(name, ())),
            read_out=frozenset(read_out.get(name, ())),
        )
        for name in names
    }


def _trial(path: str | None) -> tuple[str, str, str] | None:
    """(study, label, directory name) of `runs/<study>/<NN>-<label>`."""
    parts = PurePosixPath(path).parts if path else ()
    if len(parts) != 3 or parts[0] != "runs" or "-" not in parts[2]:
        return None
    return parts[1], parts[2].partition("-")[2], parts[2]


def unreadable_ledgers(target: Target, sources: Sources, names: list[str], session: Session | None) -> int:
    """How many ledgers of the target cannot be believed now; every one of them may stand for running work."""
    damaged = [name for name in sources.ledgers() if sources.spawn_damaged(name)]
    if target.round is not None:
        own = _of_round(target.round)
        damaged = [name for name in damaged if name in names or own.fullmatch(name)]
    elif target.session is not None and session is not None and session.studies:
        damaged = [name for name in damaged if name in names]
    return len(damaged)


def _of_round(number: int) -> re.Pattern[str]:
    return re.compile(rf"r0*{number}(?!\d).*", re.DOTALL)


def is_of_round(number: int, name: str) -> bool:
    """Whether a study or a read in runs/ has the round in its name: `r31-9b-hard` of round 31."""
    return _of_round(number).fullmatch(name) is not None


def newest_spec_for(studies: set[str], sources: Sources) -> str | None:
    """The path of the newest round's spec that has any of `studies`, for a session that names no round."""
    numbered = [(int(match[1]), name) for name in sources.lister.files(sources.specs)
                if (match := _SPEC_NAME.fullmatch(name))]  # fmt: skip
    for _, name in sorted(numbered, reverse=True):
        path = f"{sources.specs}/{name}"
        spec = sources.spec(path)
        if spec is not None and studies & spec.studies.keys():
            return path
    return None


def natural(name: str) -> list[tuple[int, int | str]]:
    """A sort key under which r9 comes before r10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d{1,18})", name)]
