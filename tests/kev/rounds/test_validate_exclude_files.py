"""A panel's exclude file, whose hash is registered: what is wrong with it is found before, not when it is read out."""

import hashlib
from pathlib import Path

import pytest
from checkouts import changed, good_spec, write_checkout, write_spec

from kev.document import format_path
from kev.rounds.problems import Severity
from kev.rounds.validate import validate

SPEC = good_spec()


def test_an_exclude_file_with_converted_line_endings_is_refused_by_that_name(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), SPEC)
    excluded = tmp_path / "experiments" / "round201" / "leave-out.json"
    excluded.write_bytes(excluded.read_bytes().replace(b"\n", b"\r\n"))
    (problem,) = validate(path, tmp_path).of(Severity.PROBLEM)
    assert (problem.code, "line endings" in problem.message) == ("changed-file", True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "leave-out.json: empty"),
        (b'{"ids": ["street/9", 7]}', "ids[1]: should be text, not 7"),
        (b'{"ids": ["street/9"], "ids": []}', "'ids' is given twice"),
        (b'{"sources": 0}', "sources: should be a list of names"),
        (b'"street/9"', "holds neither a list"),
        (b"[18446744073709551617]", "[0]: should be text, not 18446744073709551617"),
        (b'{"Ids": ["street/9"]}', None),
        (b"[]", None),
        (b'{"salt": 3, "tasks": ["colour"]}', ""),
    ],
)
def test_an_exclude_file_is_read_before_its_hash_is_registered(
    tmp_path: Path, content: bytes, said: str | None
) -> None:
    path, key = write_checkout(tmp_path), "rule.panels.street.exclude_file.path"
    (tmp_path / "experiments" / "round201" / "leave-out.json").write_bytes(content)
    spec = changed(SPEC, "rule", "panels", "street", "exclude_file", "sha256", to=hashlib.sha256(content).hexdigest())
    result = validate(write_spec(path, spec), tmp_path)
    if said:
        (problem,) = result.of(Severity.PROBLEM)
        assert (problem.code, format_path(problem.where)) == ("damaged-file", key) and said in problem.message
    else:
        assert result.ok
        warned = [finding for finding in result.of(Severity.WARNING) if finding.code == "empty-exclusions"]
        assert [format_path(finding.where) for finding in warned] == ([key] if said is None else [])
