"""Bringing a study home: its files as last committed, weights only where asked for, and its results.jsonl anew."""

from kev import files
from kev.entrypoints.by_hand import open_gate
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.units import look_at_study
from kev.errors import NotFound, UsageError


async def pull_study(place: Place, study: str, *, weights: bool) -> int:
    """Bring `/<study>` to `runs/<study>`; what is here and unchanged is not fetched again.

    Returns 0. Raises LockHeld if another pull of the study runs, NotFound if there is nothing on the volume.
    """
    from kev.trial.ranking import rank_again  # loads numpy, which launchers do without until then

    if not study or "/" in study or study.startswith("."):
        raise UsageError(f"--name {study!r:.100}: write the name of a study")
    with files.locked(place.runs / f".pull-{study}.lock"):
        try:
            report = await place.compute.pull(RUNS_VOLUME, f"/{study}", place.runs / study, weights=weights)
        except NotFound:
            raise NotFound(f"study {study}: nothing of it has been committed to the volume {RUNS_VOLUME} yet") from None
        withheld = f", {len(report.withheld)} of weights left there (--weights brings them)" if report.withheld else ""
        place.say(
            f"{study}: {len(report.fetched)} files fetched ({report.bytes_fetched:,} bytes), {len(report.kept)} were "
            f"here, {len(report.verified)} verified{withheld}"
        )
        trials = len(rank_again(place.runs / study).lines)
    place.say(f"{study}: {trials} trials -> runs/{study}/results.jsonl")
    await look_at_study(place, open_gate(place), study)
    return 0
