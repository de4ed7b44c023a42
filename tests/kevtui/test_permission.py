"""Whoever may not act is told why, and a folder in which locks mean nothing is one in which nobody may."""

from pathlib import Path

import pytest

from kevtui.permission import why_read_only


@pytest.mark.parametrize(("kind", "may_act"), [("", True), ("nfs4", True), ("fuse.sshfs", False), ("fuse.s3fs", False)])
def test_nothing_is_changed_where_no_lock_reaches_the_other_machine(tmp_path: Path, kind: str, may_act: bool) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    asked: list[Path] = []

    def shared_kind(path: Path) -> str:
        asked.append(path)
        return kind

    why = why_read_only(tmp_path, asked=False, environment={}, shared_kind=shared_kind)
    assert (why == "") is may_act
    assert may_act or (str(runs) in why and kind in why and "lock" in why)
    assert asked == [runs], "it is runs/ that is written, wherever a link leads to"
