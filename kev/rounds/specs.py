"""Loading a round's spec, with the root its paths are relative to."""

from dataclasses import dataclass
from pathlib import Path

from kev.document import Document, format_path, read_document
from kev.errors import DamagedFile
from kev.records.base import parse_record
from kev.records.spec import RoundSpec


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A spec that could be read."""

    path: Path
    root: Path
    spec: RoundSpec
    document: Document


def load_spec(path: Path, root: Path | None = None) -> LoadedSpec:
    """The spec in `path`, for commands that use it; `validate` is the one that explains it.

    Raises NotFound, or DamagedFile for text that is not JSON, a repeated key, or a key of the wrong shape.
    """
    document = read_document(path)
    for repeat in document.repeated:
        raise DamagedFile(path, f"{format_path(repeat.where)}: {repeat}")
    spec = parse_record(path, document.value, RoundSpec)
    return LoadedSpec(path, find_root(path) if root is None else root, spec, document)


def find_root(path: Path) -> Path:
    """The checkout a spec belongs to: the directory above its `experiments`, else the working directory."""
    for parent in path.absolute().parents:
        if parent.name == "experiments":
            return parent.parent
    return Path.cwd()
