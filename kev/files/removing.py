"""Taking files away. No finished checkpoint is ever removed, whoever asks."""

from contextlib import suppress
from pathlib import Path

from kev.errors import Refused
from kev.files.flushing import flush_directory

MARKS_OF_CHECKPOINT = frozenset({"training_metrics.json", "snapshot.json"})
"""Written last, by the training: what they lie beside is a checkpoint that can be read, and is kept for good."""


def remove(path: Path) -> None:
    """Remove a file, or a directory with all it holds; what is not there is no error. Links are not followed.

    Raises Refused for a directory that holds a finished checkpoint.
    """
    _check_no_checkpoint(path)
    if path.is_dir() and not path.is_symlink():
        # Here, since it takes milliseconds to load and most processes remove nothing.
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    flush_directory(path.parent)


def remove_at_once(path: Path) -> None:
    """Remove a directory and everything in it, if it is there; no reader ever sees it half there.

    It loses its name first: a kill in between leaves a hidden sibling, which a later call of the same name removes.
    Raises Refused for one that holds a finished checkpoint.
    """
    _check_no_checkpoint(path)
    hidden = path.with_name(f".{path.name}.removed")
    remove_tree(hidden)
    with suppress(FileNotFoundError):
        path.replace(hidden)
        flush_directory(path.parent)
    remove_tree(hidden)


def remove_tree(path: Path) -> None:
    """Remove a temporary directory and all below it, as far as it can be removed. Nothing there is fine.

    Raises Refused for one that holds a finished checkpoint.
    """
    import shutil

    _check_no_checkpoint(path)
    shutil.rmtree(path, ignore_errors=True)


def _check_no_checkpoint(path: Path) -> None:
    # What is hidden is being written, or was shown to be incomplete before it was hidden.
    if path.name.startswith(".") or not path.is_dir() or path.is_symlink():
        return
    for found in path.rglob("*.json"):
        if found.name in MARKS_OF_CHECKPOINT and found.parent.name == "checkpoint":
            raise Refused(f"{path}: holds a finished checkpoint, {found.parent}; no checkpoint is ever deleted")
