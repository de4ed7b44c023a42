"""One attempt at a read: the lock, the journal, the loop, and the files at its end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import Refused
from kev.evaluators import evaluator_digest
from kev.metrics import look_alikes
from kev.predictors.prediction import Predictor
from kev.predictors.purse import Purse
from kev.predictors.rotations import RotationAveraged
from kev.reads.assembly import write_failure, write_read
from kev.reads.journal import Journal
from kev.reads.read import Reading, Say, check_covered
from kev.reads.records import Selection

SHOWN = 5
"""Pairs of ids that look alike which are named."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a read depends on beside its predictor and its records."""

    date_facts: bool = False
    rotations: int = 1


def read(
    predictor: Predictor,
    selection: Selection,
    out: Path,
    say: Say,
    *,
    options: Options | None = None,
    purse: Purse | None = None,
) -> dict[str, Any]:
    """Read `selection` with `predictor` into `out`, or go on with that read, and return the report.

    Raises Refused for a finished read, for an unfinished one of something else, and where nothing was answered;
    LockHeld where another process is at it; RecordFailed and what the predictor raises, after failure.json is written.
    """
    refuse_finished(out)
    options = options or Options()
    asked = RotationAveraged(predictor, options.rotations) if options.rotations > 1 else predictor
    with files.locked(out.parent / f".read-{out.name}.lock"):
        journal = Journal(out)
        journal.open(identity_of(asked, selection, options))
        _say_look_alikes(selection, say)
        reading = Reading(asked, selection, journal, say, date_facts=options.date_facts)
        try:
            progress = reading.run()
            check_covered(progress)
            about = {"date_facts": options.date_facts, "rotations": options.rotations, **asked.describe()}
            return write_read(out, selection, progress, about, attempt=journal.attempt)
        except BaseException as error:
            write_failure(out, selection, reading.progress, error)
            raise
        finally:
            if purse is not None:
                purse.save()


def identity_of(predictor: Predictor, selection: Selection, options: Options) -> dict[str, Any]:
    """Everything the rows of a read depend on."""
    return {
        **predictor.identity(),
        "suite_sha256": selection.sha256,
        "split": selection.split,
        "records": len(selection.records),
        "date_facts": options.date_facts,
        "rotations": options.rotations,
        "evaluator_sha256": evaluator_digest(),
    }


def refuse_finished(out: Path) -> None:
    """Asked before a model is loaded for it."""
    if (out / "report.json").exists():
        raise Refused(f"{out}: is there already; a read never replaces another")


def _say_look_alikes(selection: Selection, say: Say) -> None:
    pairs = look_alikes(record.meta.id for record in selection.records)
    for one, other in pairs[:SHOWN]:
        # Written with escapes: printed as they are, the two would be the same text.
        say(f"!!! ids {one!a} and {other!a} look alike and are two records")
    if len(pairs) > SHOWN:
        say(f"!!! and {len(pairs) - SHOWN} more pairs of ids that look alike")
