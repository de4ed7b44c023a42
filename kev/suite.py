"""Frozen suites under evals/: a manifest, and partitions that must still be what the manifest says they are.

    python -m kev.suite check DIR...    compare every partition with its manifest
    python -m kev.suite fetch DIR...    download the partitions that are not here

A suite is never repaired in place: a partition that differs from its manifest is refused, whatever the reason.
"""

import argparse
import hashlib
import posixpath
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from kev import files
from kev.console import run, say_aside
from kev.errors import DamagedFile, DamagedLine, KevError, NotFound, Refused, UsageError
from kev.records.base import parse_record
from kev.records.suite import SPLITS, Manifest, PartitionEntry
from kev.text import visible

PUBLIC_DATASET = "jaredpalmer/kev-suites"
PUBLIC_REVISION = "cc4bac803e73112689ec327ffa481c519cbc7a05"
"""Where a partition that git does not hold comes from, when its manifest names no mirror of its own."""

MANIFEST = "manifest.json"
MAX_PARTITION_BYTES = 8 * 1024**3
"""The largest known partition has 2.4 GB."""


class RemovedSuite(TypedDict):
    """A suite that no later round may name."""

    removed: str
    last_round: int
    reason: str
    record: str


def _removed(date: str, last_round: int) -> RemovedSuite:
    return {
        "removed": date,
        "last_round": last_round,
        "reason": "unsound as a measure; removed and not patched, so that earlier verdicts keep their meaning",
        "record": f"last read in round {last_round}, removed on {date}",
    }


REMOVED_SUITES: dict[str, RemovedSuite] = {
    "evals/external/scienthoon-v1": _removed("2026-09-27", 22),
    "evals/external/typesafe-v1": _removed("2026-09-30", 26),
    "evals/external/wanli-v1": _removed("2026-09-30", 5),
    "evals/external/wanli-v2": _removed("2026-09-30", 26),
}


def find_removed(path: str) -> str | None:
    """The removed suite that `path` is or lies in, in any spelling of it; None for every other path."""
    parts = PurePosixPath(posixpath.normpath(path.replace("\\", "/").casefold())).parts
    for name in REMOVED_SUITES:
        wanted = PurePosixPath(name).parts
        if any(parts[start : start + len(wanted)] == wanted for start in range(len(parts))):
            return name
    return None


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite on disk."""

    directory: Path
    manifest: Manifest
    sha256: str
    """Of the manifest's bytes: what reports call `suite_sha256`."""

    def partition_path(self, split: str) -> Path:
        return self.directory / f"{split}.jsonl"

    def entry(self, split: str) -> PartitionEntry:
        """What the manifest says of a partition. Raises NotFound when it names none of that split."""
        entry = self.manifest.files.get(f"{split}.jsonl")
        if entry is None:
            there = ", ".join(sorted(self.manifest.files)) or "no partition at all"
            raise NotFound(f"{self.directory / MANIFEST}: has no {split}.jsonl; it names {there}")
        return entry

    def read_partition(self, split: str, *, allow_test: bool = False) -> list[dict[str, Any]]:
        """The records of a partition, after comparing it with the manifest.

        Raises Refused for the test split without `allow_test`, NotFound with how to fetch a partition that is not
        here, and DamagedFile or DamagedLine for one that is not what was frozen.
        """
        if split not in SPLITS:
            raise UsageError(f"there is no split {split!r}; a suite has {', '.join(SPLITS)}")
        if split == "test" and not allow_test:
            raise Refused(f"{self.partition_path(split)}: the test split is read only where that is asked for in words")
        data = self._verified_bytes(split)
        path = self.partition_path(split)
        records = []
        for line in files.parse_json_lines(data):
            if line.damage is not None:
                raise DamagedLine(path, line.number, line.damage)
            if not isinstance(line.value, dict) or not isinstance(line.value.get("questions"), dict):
                raise DamagedLine(path, line.number, "a record is an object with questions")
            records.append(line.value)
        self._compare_counts(split, records)
        return records

    def _verified_bytes(self, split: str) -> bytes:
        path, entry = self.partition_path(split), self.entry(split)
        if not path.exists():
            raise NotFound(f"{path}: not here; {self.how_to_fetch()}")
        data = files.read_bytes(path, limit=MAX_PARTITION_BYTES)
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise DamagedFile(path, f"is not the partition that was frozen{explain_difference(data, entry.sha256)}")
        return data

    def _compare_counts(self, split: str, records: list[dict[str, Any]]) -> None:
        path, entry = self.partition_path(split), self.entry(split)
        questions = sum(len(record["questions"]) for record in records)
        for what, expected, found in (
            ("records", entry.records, len(records)),
            ("questions", entry.questions, questions),
        ):
            if expected is not None and expected != found:
                raise DamagedFile(path, f"holds {found:,} {what}; its manifest says {expected:,}")

    def how_to_fetch(self) -> str:
        """Where the suite's partitions come from, as the end of a message."""
        mirror = self.manifest.mirror
        kind = "the private dataset" if mirror else "the dataset"
        dataset, revision = self.source()
        access = " (it needs a token with access)" if mirror else ""
        return (
            f"fetch it from {kind} {dataset} at {revision[:12]}{access} with "
            f"`python -m kev.suite fetch {self.directory}`"
        )

    def source(self) -> tuple[str, str]:
        """The dataset and revision that hold the partitions."""
        mirror = self.manifest.mirror
        return (mirror.dataset, mirror.revision) if mirror else (PUBLIC_DATASET, PUBLIC_REVISION)


def open_suite(directory: Path) -> Suite:
    """The suite in `directory`. Raises NotFound, Refused for a removed suite, or DamagedFile: also for a manifest that
    a checkout or an editor converted, since reports know a suite by the hash of its bytes.
    """
    removed = find_removed(directory.as_posix())
    if removed is not None:
        entry = REMOVED_SUITES[removed]
        raise Refused(f"{directory}: removed on {entry['removed']}: {entry['reason']}; {entry['record']}")
    path = directory / MANIFEST
    data = files.read_bytes(path)
    if data.startswith(files.UTF8_BOM):
        raise DamagedFile(path, f"begins with a byte order mark, with which it is another suite; {UNDO}")
    if b"\r" in data:
        raise DamagedFile(path, f"its line endings were converted, with which it is another suite; {UNDO}")
    return _suite(directory, data)


def read_suite(directory: Path) -> Suite:
    """The suite in `directory`, removed or not: for looking at what it says. Raises NotFound or DamagedFile."""
    return _suite(directory, files.read_bytes(directory / MANIFEST))


def _suite(directory: Path, data: bytes) -> Suite:
    path = directory / MANIFEST
    try:
        value = files.parse_json_file(data)
    except ValueError as error:
        raise DamagedFile(path, str(error)) from None
    return Suite(directory, parse_record(path, value, Manifest), hashlib.sha256(data).hexdigest())


def check_suite(suite: Suite) -> list[str]:
    """Every difference between a suite's partitions and its manifest, a line each; [] when it is as frozen."""
    found = []
    for name in suite.manifest.files:
        try:
            suite.read_partition(name.removesuffix(".jsonl"), allow_test=True)
        except UsageError:
            found.append(f"{suite.directory / name}: no partition has that name")
        except KevError as error:
            found.append(str(error))
    strangers = {path.name for path in suite.directory.glob("*.jsonl")} - set(suite.manifest.files)
    found += [f"{suite.directory / name}: not in the manifest" for name in sorted(strangers)]
    return found


def fetch_partition(suite: Suite, split: str, root: Path) -> Path:
    """Download one partition to its place under `root`, if it is what the manifest says.

    Raises UsageError without the library that talks to the Hub, Refused for other bytes than the frozen ones, and
    NotFound when the dataset does not have the file.
    """
    try:
        from huggingface_hub import hf_hub_download  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UsageError("fetching needs the Hub's client: install the extra, `pip install 'kevtui[hub]'`") from None
    path, entry = suite.partition_path(split), suite.entry(split)
    try:
        name = path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise UsageError(f"{suite.directory}: not under {root}; name the checkout with --root") from None
    dataset, revision = suite.source()
    try:
        cached = Path(hf_hub_download(dataset, name, repo_type="dataset", revision=revision))
    except Exception as error:  # the client's own errors, which are many and change between its versions
        raise NotFound(f"{dataset}@{revision[:12]}: {name} could not be fetched ({type(error).__name__})") from error
    data = files.read_bytes(cached, limit=MAX_PARTITION_BYTES)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise Refused(f"{dataset}@{revision[:12]}: {name} is not the partition that {suite.directory} froze")
    files.write_atomic(path, data)
    return path


UNDO = "turn that off (git config core.autocrlf false, or `* -text` in .gitattributes) and check the file out again"


def explain_difference(data: bytes, sha256: str) -> str:
    """The end of a message about `data` with another hash than `sha256`: what a checkout or an editor did to it.

    It never says how to make the hash fit: what was registered by its bytes is refused whatever changed them.
    """
    if not data:
        return ": it is empty"
    if data.startswith(files.LFS_POINTER):
        return f": it is {files.LFS_REASON}"
    text = _utf8(data)
    plain = text.removeprefix(files.UTF8_BOM)
    unix = plain.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for restored in (plain, unix, unix.replace(b"\n", b"\r\n"), unix.removesuffix(b"\n"), unix + b"\n"):
        if hashlib.sha256(restored).hexdigest() == sha256:
            causes = ["its encoding, UTF-16"] if text != data else []
            causes += ["a byte order mark that an editor put at its start"] if plain != text else []
            causes += ["its line endings, which a checkout converted"] if _converted(plain, restored) else []
            causes += ["the newline at its end"] if restored.count(b"\n") != unix.count(b"\n") else []
            return f": it differs only in {' and '.join(causes)}; {UNDO}"
    return " (other bytes than those of its sha256)"


def _converted(plain: bytes, restored: bytes) -> bool:
    return plain.count(b"\r") != restored.count(b"\r")


def _utf8(data: bytes) -> bytes:
    """`data`, in UTF-8 if it is text in UTF-16."""
    if data.startswith(files.UTF16_BOMS):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-16").encode()
    return data


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 as frozen, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m kev.suite", description="Check or fetch frozen suites.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("check", "compare partitions with the manifest"), ("fetch", "download what is not here")):
        command = commands.add_parser(name, help=words)
        command.add_argument("directories", nargs="+", type=Path, metavar="DIR")
        if name == "fetch":
            command.add_argument("--root", type=Path, default=Path(), help="the checkout (here)")
    options = parser.parse_args(arguments)
    return run(lambda: _run(options.command, options.directories, getattr(options, "root", Path())))


def _run(command: str, directories: list[Path], root: Path) -> int:
    code = 0
    for directory in directories:
        try:
            suite = open_suite(directory)
            for split in _absent(suite) if command == "fetch" else ():
                print(f"fetched {fetch_partition(suite, split, root)}")
            differences = check_suite(suite)
        except KevError as error:
            differences = [str(error)]
        for line in differences:
            say_aside(line)
            code = 1
        if not differences:
            print(f"{visible(str(directory))}: as frozen ({len(suite.manifest.files)} partitions)")
    return code


def _absent(suite: Suite) -> list[str]:
    splits = [name.removesuffix(".jsonl") for name in suite.manifest.files]
    return [split for split in splits if not suite.partition_path(split).exists()]


if __name__ == "__main__":
    raise SystemExit(main())
