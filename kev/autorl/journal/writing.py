"""A round appended to a journal: once, whole or not at all, whoever else writes and whenever the writer is killed.

First its seal is put down, then the section, then the line. The next writer finishes what a kill left between them.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from kev import files
from kev.autorl.journal.checking import check_journal
from kev.autorl.journal.compose import Composed, Order, compose_round
from kev.autorl.journal.correcting import correct_journal
from kev.autorl.journal.facts import Facts, read_facts
from kev.autorl.journal.findings import LINES, SUMMARY, Finding, Language
from kev.autorl.journal.lines import read_lines
from kev.autorl.journal.seals import NAME, Seal, read_seals
from kev.autorl.journal.section import LABELS, TITLE, Section
from kev.autorl.journal.written import Written, read_or_none, read_written
from kev.autorl.metrics import check_reports
from kev.autorl.workspace import Workspace
from kev.clock import Clock
from kev.errors import NotFound, Refused

LOCK = ".journal.lock"


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an order."""

    iteration: int
    changed: bool
    """False where the round was there already."""
    others: list[Finding]
    """Breaches in rounds that were there before."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of a journal that was to be put right."""

    changes: list[str]
    left: list[Finding]
    """Breaches that nothing in the files can put right."""
    kept: list[Path]
    """The files as they were."""


def repair_journal(reports: Path, facts: Facts, *, language: Language = "en", dry_run: bool = False) -> Repaired:
    """Put the journal under `reports` right, and keep what it was beside it. Raises Refused, DamagedFile or OSError."""
    check_links(reports)
    with files.locked(reports / LOCK, wait=True):
        written = read_written(reports)
        if written.summary is None and written.lines is None and not written.seals:
            raise NotFound(f"{reports / SUMMARY}: no such file; the run has no journal")
        if not check_journal(written, facts):
            return Repaired([], [], [])
        done = correct_journal(written, facts, language)
        left = check_journal(done.written, facts)
        kept: list[Path] = []
        if not dry_run:
            kept = [_keep(reports / name) for name in (SUMMARY, LINES, NAME) if (reports / name).exists()]
            seals = b"".join(files.dump_json_line(seal.to_json()) for seal in done.written.seals)
            for name, data in ((SUMMARY, done.written.summary), (LINES, done.written.lines), (NAME, seals)):
                files.write_atomic(reports / name, data or b"")
    return Repaired(done.changes, left, kept)


def _keep(path: Path) -> Path:
    """A copy of a file under a name that nothing has yet."""
    data = files.read_bytes(path)
    for number in range(1, 10_000):
        kept = path.with_name(f"{path.name}.before-repair-{number}")
        with suppress(FileExistsError):
            files.create_exclusive(kept, data)
            return kept
    raise Refused(f"{path}: there are thousands of copies of it; remove some")


def check_links(reports: Path) -> None:
    """Raise Refused where a file of the journal is a link, which could lead anywhere."""
    for path in (reports, reports / SUMMARY, reports / LINES, reports / NAME):
        if path.is_symlink():
            raise Refused(f"{path}: a link; the journal is written into the workspace only")


def append_round(workspace: Workspace, order: Order, clock: Clock, *, language: Language = "en") -> Appended:
    """Append the round that `order` tells of, once, and check it before and after.

    Raises Refused for a round that would breach a rule, that does not follow the last, or whose facts are not there;
    nothing is written then. Raises DamagedFile, and OSError for a full disk.
    """
    check_reports(workspace)
    reports = workspace.reports
    check_links(reports)
    files.make_directory(reports)
    with files.locked(reports / LOCK, wait=True):
        finished = _finish(workspace)
        written = read_written(reports)
        facts = read_facts(workspace, clock)
        sections = written.sections()
        there = _already(order, sections, written.seals, facts, finished)
        if there is not None:
            return Appended(there, there == finished, [])
        iteration = _next(order, sections, written, workspace)
        made = compose_round(order, iteration, sections, written.seals, facts, language)
        seal = _seal(made, order, written)
        others = _check(written, seal, facts)
        files.append(reports / NAME, files.dump_json_line(seal.to_json()), cut_torn=True)
        files.append(workspace.summary, _section_bytes(seal))
        files.append(workspace.summary_lines, seal.line.encode())
        if seal.section.strip("\n") not in read_written(reports).text:
            raise Refused(f"{workspace.summary}: was changed while it was written; run `journal check`")
    return Appended(iteration, True, others)


def _finish(workspace: Workspace) -> int | None:
    """Write what a kill left unwritten of the last round; its number where something was."""
    seals = read_seals(workspace.reports)
    if not seals:
        return None
    last = seals[-1]
    section, line = _section_bytes(last), last.line.encode()
    summary = _complete(workspace.summary, section, last.summary_size)
    if section.strip() not in (read_or_none(workspace.summary) or b""):
        return None  # changed by somebody since: that is for `check` to say
    lines = _complete(workspace.summary_lines, line, last.lines_size)
    return last.iteration if summary or lines else None


def _section_bytes(seal: Seal) -> bytes:
    return (f"{TITLE}\n" if not seal.summary_size else "").encode() + seal.section.encode()


def _complete(path: Path, data: bytes, size: int) -> bool:
    """Finish `data` in a file that had `size` bytes, if all that came since is a beginning of it."""
    found = read_or_none(path) or b""
    lead = b"\n" if size and found[size - 1 : size] != b"\n" else b""
    begun = len(found) - size
    if not 0 <= begun < len(lead + data) or not (lead + data).startswith(found[size:]):
        return False
    torn = len(found) - (found.rfind(b"\n") + 1)
    if begun < torn:
        files.append(path, data)  # the last line is somebody else's; it gets its end
    else:
        files.append(path, (lead + data)[begun - torn :], cut_torn=True)
    return True


def _already(
    order: Order, sections: Sequence[Section], seals: Sequence[Seal], facts: Facts, finished: int | None
) -> int | None:
    """The round that an order asks for again; None for a new one."""
    numbers = {each.iteration for each in sections if len(each.fields) == len(LABELS)}
    if order.iteration is not None:
        return order.iteration if order.iteration in numbers else None
    seals = [seal for seal in seals if seal.iteration in numbers]
    if order.submission is not None:
        return next((seal.iteration for seal in seals if order.submission in seal.submissions), None)
    last = seals[-1] if seals else None
    if last is None or last.request != _request(order):
        return None
    told = {number for seal in seals for number in seal.submissions}
    news = facts.scores is not None and any(each.submission_id not in told for each in facts.scores.entries)
    unchanged = not news and facts.failure([], None, after_line=last.log_line)[1] == last.log_line
    return last.iteration if last.iteration == finished or unchanged else None


def _next(order: Order, sections: Sequence[Section], written: Written, workspace: Workspace) -> int:
    """The number of the new round. Raises Refused where what is there has to be put right first (rule 2)."""
    numbers = [each.iteration for each in sections]
    if numbers != list(range(1, len(numbers) + 1)):
        said = ", ".join(map(str, numbers[:20]))
        raise Refused(f"{workspace.summary}: has the rounds {said}; put them right first, with `journal repair`")
    due = len(numbers) + 1
    text = written.text
    for seal, section in zip(written.seals, sections, strict=False):
        if seal.section.strip("\n") not in text and len(section.fields) < len(LABELS):
            raise Refused(f"{workspace.summary}: Iteration {section.iteration} is cut short; run `journal repair`")
    if order.iteration is not None and order.iteration != due:
        raise Refused(f"{workspace.summary}: the next round is {due}, not {order.iteration}; append the rounds between")
    if any(each.round is not None and each.round.iteration == due for each in read_lines(written.lines or b"")):
        raise Refused(
            f"{workspace.summary_lines}: has a line of round {due}, without its section; run `journal repair`"
        )
    return due


def _seal(made: Composed, order: Order, written: Written) -> Seal:
    return Seal(
        iteration=made.line.iteration,
        section="\n" + made.section,
        line=files.dump_json_line(made.line.to_json()).decode(),
        summary_size=len(written.summary or b""),
        lines_size=len(written.lines or b""),
        submissions=made.submissions,
        log_line=made.log_line,
        request=_request(order),
    )


def _request(order: Order) -> str:
    return hashlib.sha256(json.dumps(asdict(order), sort_keys=True).encode(errors="replace")).hexdigest()


def _check(written: Written, seal: Seal, facts: Facts) -> list[Finding]:
    """What is wrong with the journal besides this round. Raises Refused for what is wrong with the round."""
    before = written.summary if written.summary is not None else f"{TITLE}\n".encode()
    old = Written(before, written.lines if written.lines is not None else b"", written.seals)
    new = Written(
        _joined(before, seal.section.encode()), _joined(old.lines or b"", seal.line.encode()), [*written.seals, seal]
    )
    others = check_journal(old, facts)
    known = [(each.code, each.file, each.line) for each in others]
    for each in check_journal(new, facts):
        if (each.code, each.file, each.line) not in known:
            raise Refused(f"not written, for the round would breach a rule: {each.words()}")
    return others


def _joined(before: bytes, data: bytes) -> bytes:
    return before + (b"" if before.endswith(b"\n") or not before else b"\n") + data
