"""A bundle that a stranger made is read within bounds, in memory, and refused in one line where it is bent."""

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from stat import S_IFLNK
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kev.errors import DamagedFile
from kevtui import exit_codes
from kevtui.cli import main
from kevtui.observe.target import Target
from kevtui.record import manifest as limits
from kevtui.record.manifest import hash_of
from kevtui.record.opening import open_bundle
from kevtui.record.packing import pack
from kevtui.record.redaction import Identity
from kevtui.replay.kinds import Kind
from kevtui.replay.night import HeldFile, Night

STATE = "runs/n1-state.json"
CONTENT = b'{"session": "n1", "authorization_usd": 100, "opened_at": "2026-03-01T20:00:00Z"}\n'


def good() -> bytes:
    target = Target(Path("/session"), "n1", None, None, "n1", None)
    held = HeldFile(STATE, Kind.STATE, 1_772_000_000_000_000_000, CONTENT)
    return pack(Night(target, (held,), STATE), Identity()).data


GOOD = good()


def parts() -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the files of a good bundle, to be bent."""
    with zipfile.ZipFile(io.BytesIO(GOOD)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(contents.pop("manifest.json")), contents


def zipped(manifest: dict[str, Any], contents: dict[str, bytes], **changes: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", changes.pop("method", zipfile.ZIP_DEFLATED)) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = archive.compression
            for key, value in changes.items():
                setattr(entry, key, value)
            archive.writestr(entry, data)
    return buffer.getvalue()


def refused(tmp_path: Path, data: bytes, *words: str) -> None:
    place = tmp_path / "night.zip"
    place.write_bytes(data)
    with pytest.raises(DamagedFile) as caught:
        open_bundle(place)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert sorted(tmp_path.iterdir()) == [place], "nothing is ever unpacked to the disk"


def test_a_good_one_opens(tmp_path: Path) -> None:
    (tmp_path / "night.zip").write_bytes(GOOD)
    night = open_bundle(tmp_path / "night.zip")
    assert [(held.path, json.loads(held.data or b"")) for held in night.files] == [(STATE, json.loads(CONTENT))]


@pytest.mark.parametrize(
    "path",
    ["/runs/n1-state.json", "../n1-state.json", "runs/../n1-state.json", "runs/./n1-state.json", "runs//n1-state.json",
     "runs\\n1-state.json", "C:/runs/n1-state.json", "runs/n1-state.json/", "n1-state.json", "runs/.ssh-state.json",
     "runs/x\x1b[2J-state.json", "runs/" + "x" * 2000 + "-state.json", "runs/r5-a/00-trial-0/checkpoint/model.pt"],
    ids=range(13),
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    manifest, contents = parts()
    manifest["files"][0]["path"] = manifest["state"] = path
    refused(tmp_path, zipped(manifest, {path: contents[STATE]}))


def test_a_link_is_refused(tmp_path: Path) -> None:
    manifest, contents = parts()
    refused(tmp_path, zipped(manifest, contents, external_attr=(S_IFLNK | 0o777) << 16), STATE, "link")


def test_what_unpacks_to_more_than_it_says_is_not_unpacked(tmp_path: Path) -> None:
    manifest, _ = parts()
    data = zipped(manifest, {STATE: bytes(200_000_000)})
    tracemalloc.start()
    refused(tmp_path, data, "unpacks to more than")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda m: m["files"][0].update(bytes=10**12), "are allowed"),
        (lambda m: m["files"][0].update(bytes=-1), "are allowed"),
        (lambda m: m["files"][0].update(sha256="0" * 64), "hash"),
        (lambda m: m["files"][0].update(sha256=None), "length without a hash"),
        (lambda m: m["files"][0].update(kind="log"), "is no"),
        (lambda m: m["files"][0].update(kind="\x1b[2J"), "is no"),
        (lambda m: m["files"][0].update(changed_ns=2**70), "changed_ns"),
        (lambda m: m["files"].append(dict(m["files"][0])), "twice"),
        (lambda m: m.update(state="runs/other-state.json"), "does not list"),
        (lambda m: m.update(format="a photo album"), "no recorded night"),
        (lambda m: m.update(version=2), "version 2"),
        (lambda m: m.update(files="none"), "files"),
        (lambda m: m.pop("title"), "title"),
    ],
    ids=range(13),
)
def test_a_manifest_that_cannot_be_true_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], word: str
) -> None:
    manifest, contents = parts()
    change(manifest)
    refused(tmp_path, zipped(manifest, contents), word)


def test_files_that_the_manifest_does_not_list_and_those_it_misses_are_refused(tmp_path: Path) -> None:
    manifest, contents = parts()
    refused(tmp_path, zipped(manifest, contents | {"runs/x.sh": b"rm"}), "runs/x.sh", "not in both")
    refused(tmp_path, zipped(manifest, {}), STATE, "not in both")


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    manifest, contents = parts()
    buffer = io.BytesIO(zipped(manifest, contents))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(STATE, b"{}")
    refused(tmp_path, buffer.getvalue(), "twice")


def test_other_ways_of_packing_and_encryption_are_refused(tmp_path: Path) -> None:
    manifest, contents = parts()
    refused(tmp_path, zipped(manifest, contents, method=zipfile.ZIP_BZIP2), "packed in a way")
    encrypted = bytearray(GOOD)
    at = encrypted.rindex(b"PK\x01\x02")
    encrypted[at + 8] |= 1
    refused(tmp_path, bytes(encrypted), "encrypted")


def test_more_entries_than_a_night_may_have_are_not_even_listed(tmp_path: Path) -> None:
    many = bytearray(GOOD)
    many[-14:-10] = (limits.MAX_FILES + 2).to_bytes(2, "little") * 2
    refused(tmp_path, bytes(many), "entries")


def test_hashes_and_sizes_of_all_files_are_bounded_together(tmp_path: Path) -> None:
    manifest, contents = parts()
    one = manifest["files"][0] | {"bytes": limits.MAX_FILE_BYTES, "sha256": hash_of(b"")}
    paths = [f"runs/r{number}-events.jsonl" for number in range(limits.MAX_BYTES // limits.MAX_FILE_BYTES + 1)]
    manifest["files"] += [one | {"path": path, "kind": "journal"} for path in paths]
    refused(tmp_path, zipped(manifest, contents), "bytes a night may have")


def test_a_manifest_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", "[" * 200_000)
    refused(tmp_path, buffer.getvalue(), "manifest.json")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(GOOD) - 1))
def test_one_that_is_cut_short_is_refused(tmp_path_factory: Any, length: int) -> None:
    place = tmp_path_factory.getbasetemp() / "short.zip"
    place.write_bytes(GOOD[:length])
    with pytest.raises(DamagedFile):
        open_bundle(place)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_changes_nothing(tmp_path_factory: Any, at: int, change: int) -> None:
    bent = bytearray(GOOD)
    bent[at] ^= change
    place = tmp_path_factory.getbasetemp() / "bent.zip"
    place.write_bytes(bent)
    try:
        night = open_bundle(place)
    except DamagedFile:
        return
    assert [held.path for held in night.files] == [STATE]
    assert hash_of(night.files[0].data or b"") == parts()[0]["files"][0]["sha256"]


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_behind_the_signature_are_refused(tmp_path_factory: Any, data: bytes) -> None:
    place = tmp_path_factory.getbasetemp() / "any.zip"
    place.write_bytes(b"PK\x03\x04" + data)
    with pytest.raises(DamagedFile):
        open_bundle(place)


def test_a_command_says_it_in_one_line(tmp_path: Path, capsys: Any) -> None:
    place = tmp_path / "night.zip"
    place.write_bytes(GOOD[:-5])
    for command in (["session", str(place), "--once"], ["replay", str(place), "--json"]):
        assert main(command) == exit_codes.NOTHING
        assert capsys.readouterr().err.count("\n") == 1
