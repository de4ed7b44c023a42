"""Where a round keeps what it found."""

from pathlib import Path

from kev.records.spec import RoundSpec, size_of


def readout_path(spec: RoundSpec, root: Path, out: Path | None = None) -> Path:
    """The read-out of a round: in `out`, by default `runs/r<N>-readout` under the root."""
    return (out or root / "runs" / f"r{spec.round}-readout") / f"round{spec.round}.json"


def verdict_path(spec: RoundSpec, root: Path, stage: str, arm: str, out: Path | None = None) -> Path:
    """The verdict of a stage: in `out`, by default `runs/r<N>-verdict` under the root."""
    return (out or root / "runs" / f"r{spec.round}-verdict") / f"{size_of(arm)}-{stage}.json"
