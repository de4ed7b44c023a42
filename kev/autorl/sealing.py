"""A submission is copied and hashed before it is graded, so that what is graded is what was submitted.

Only files that a loader of weights reads are copied, by name; the rest (pickled optimizer states, code, results) is
left where it is. A copy is kept under the hash of what it holds, so the same content is kept, and graded, once.
"""

import errno
import hashlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.autorl.model_files import TOKENIZER_CONFIG, put_right
from kev.autorl.opening import inside, opened, opened_file
from kev.autorl.rejection import Rejected
from kev.autorl.weights import Weights, find_weights, without_weights
from kev.errors import KevError
from kev.model.layout import ADAPTER_CONFIG, CONFIG, INDEX, WEIGHTS
from kev.records.autorl import SealedManifest

SMALL = {
    CONFIG, INDEX, TOKENIZER_CONFIG, ADAPTER_CONFIG, "tokenizer.json", "tokenizer.model", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
}  # fmt: skip
_WEIGHTS = re.compile(r"(?!adapter_)[A-Za-z0-9._-]+\.safetensors")
MANIFEST = "manifest.json"
MAX_FILES = 2000
MAX_BYTES = 256 * 1024**3
PIECE = 1 << 20
SETTLED_NS = 2_000_000_000
"""A file that changed more recently is read again: time stamps are too coarse to show a second change."""

_Key = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed copy."""

    directory: Path
    sha256: str
    remarks: tuple[str, ...]

    def weights(self) -> Weights:
        return find_weights(self.directory)


class Sealer:
    """Seals submissions of one workspace under `vault`. May be used from several threads."""

    def __init__(self, workspace: Path, vault: Path, *, extra: frozenset[str] = frozenset()) -> None:
        self._workspace = workspace
        self._vault = vault
        self._extra = extra
        """Further names that the task's evaluator reads."""
        self._hashes: dict[_Key, str] = {}

    def seal(self, model_path: str) -> Sealed:
        """The sealed copy of a directory of the workspace. Raises Rejected, or OSError for a vault that is full."""
        with opened(self._workspace, inside(self._workspace, model_path)) as directory:
            chosen, left_out = self._choose(directory)
            known = self._known(directory, chosen)
            if known is not None:
                return known
            return self._copy(directory, chosen, left_out)

    def open(self, sha256: str) -> Sealed:
        """A copy that was sealed before. Raises KevError where it is not as it was."""
        directory = self._vault / sha256
        manifest = SealedManifest.model_validate(files.read_json(directory / MANIFEST))
        return Sealed(directory / "model", manifest.sha256, tuple(manifest.remarks))

    def _choose(self, directory: int) -> tuple[list[str], list[str]]:
        chosen: list[str] = []
        left_out: list[str] = []
        for name in sorted(os.listdir(directory)):
            wanted = name in SMALL or name in self._extra or _WEIGHTS.fullmatch(name)
            (chosen if wanted else left_out).append(name)
        if len(chosen) > MAX_FILES:
            raise Rejected("model_too_large", f"{len(chosen):,} files; a model has at most {MAX_FILES:,}")
        if not chosen:
            raise without_weights(left_out)
        return chosen, left_out

    def _known(self, directory: int, names: list[str]) -> Sealed | None:
        """The copy of these very files, if each was hashed before and has not been touched since."""
        hashes = {}
        for name in names:
            with opened_file(directory, name) as descriptor:
                found = self._hashes.get(_key(os.fstat(descriptor)))
            if found is None:
                return None
            hashes[name] = found
        try:
            return self.open(_digest(hashes))
        except KevError:
            return None

    def _copy(self, directory: int, names: list[str], left_out: list[str]) -> Sealed:
        scratch = files.make_scratch(self._vault)
        try:
            hashes, size = {}, 0
            for name in names:
                with opened_file(directory, name) as descriptor:
                    size += os.fstat(descriptor).st_size
                    if size > MAX_BYTES:
                        raise Rejected("model_too_large", f"more than {MAX_BYTES // 1024**3} GiB")
                    hashes[name] = self._copy_file(descriptor, name, scratch / "model" / name)
            return self._finish(scratch, hashes, left_out)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Rejected("disk_full", "the grader's disk is full; nothing was accepted") from None
            raise
        finally:
            files.remove_tree(scratch)

    def _finish(self, scratch: Path, hashes: dict[str, str], left_out: list[str]) -> Sealed:
        model = scratch / "model"
        weights = find_weights(model, left_out)
        for name in hashes:
            if name == ADAPTER_CONFIG or (name.endswith(".safetensors") and name not in weights.names):
                files.remove(model / name)
        if INDEX in hashes and weights.names == (WEIGHTS,):
            files.remove(model / INDEX)
        remarks = [*weights.remarks, *put_right(model)]
        digest = _digest(hashes)
        manifest = SealedManifest(sha256=digest, files=hashes, left_out=left_out[:200], remarks=remarks)
        files.write_atomic(scratch / MANIFEST, files.dump_json(manifest.to_json()))
        target = self._vault / digest
        if not (target / MANIFEST).exists():
            files.seal(scratch, target)
        return self.open(digest)

    def _copy_file(self, descriptor: int, name: str, target: Path) -> str:
        """Copy one file; its hash. What is hashed is what was written, whatever happens to the source meanwhile."""
        before = os.fstat(descriptor)
        digest = hashlib.sha256()
        copy = files.IncomingFile(target)
        try:
            left = before.st_size + 1  # a file that grows as fast as it is read must come to an end too
            while left and (piece := os.read(descriptor, min(PIECE, left))):
                digest.update(piece)
                copy.write(piece)
                left -= len(piece)
            copy.finish(modified=int(before.st_mtime))
        except BaseException:
            copy.abandon()
            raise
        after = os.fstat(descriptor)
        if _key(before) != _key(after):
            raise Rejected("changed_while_read", f"{name}: changed while it was read; submit when it is written")
        if time.time_ns() - after.st_ctime_ns > SETTLED_NS:
            self._hashes[_key(after)] = digest.hexdigest()
        return digest.hexdigest()


def _key(status: os.stat_result) -> _Key:
    # The time of the last change of the inode cannot be set back, unlike that of the last modification.
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _digest(hashes: dict[str, str]) -> str:
    return hashlib.sha256("\n".join(f"{name}:{hashes[name]}" for name in sorted(hashes)).encode()).hexdigest()
