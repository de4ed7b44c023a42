"""Copies of complete checkpoints in another place: a private repository of the Hub, or a directory of a volume."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kev import files
from kev.checkpoint import HEAD, read_head
from kev.errors import NotFound, Refused
from kev.publish import LEFT_OUT, REPOSITORY, HubFailed
from kev.worker.container import Container
from kev.worker.orders import MirrorOrder
from kev.worker.sources import check_sources

RECEIPT = "hub.json"
"""Beside a checkpoint's files, what says where a copy of it is."""

COMPLETE = ("checkpoint/training_metrics.json", "checkpoint/snapshot.json", "interpolation.json")
"""Any of these, in the directory that holds `checkpoint/`, makes it complete."""


class Destination(Protocol):
    """Where copies go."""

    def put(self, checkpoint: Path, name: str) -> str:
        """Copy a checkpoint there as `name`; returns what the copy is known by. Raises Refused or HubFailed."""
        ...


class PrivateRepository:
    """A repository of the Hub that nobody else reads."""

    def __init__(self, repo: str) -> None:
        if not REPOSITORY.fullmatch(repo):
            raise Refused(f"--repo {repo!r:.100}: a repository is owner/name")
        self._repo = repo

    def put(self, checkpoint: Path, name: str) -> str:
        from huggingface_hub import HfApi

        api = HfApi()
        try:
            api.create_repo(self._repo, private=True, exist_ok=True)
            is_private = api.repo_info(self._repo).private
        except Exception as error:  # the client's own errors, which are many and change between its versions
            raise HubFailed(f"{self._repo}: not mirrored ({type(error).__name__})") from error
        if not is_private:
            raise Refused(f"{self._repo}: is public; checkpoints are mirrored to private repositories only")
        try:
            done = api.upload_folder(
                repo_id=self._repo, folder_path=checkpoint, path_in_repo=name, commit_message=f"Mirror {name}",
                ignore_patterns=list(LEFT_OUT),
            )  # fmt: skip
        except Exception as error:  # as above
            raise HubFailed(f"{self._repo}: {name} was not mirrored ({type(error).__name__})") from error
        return str(done.oid)


class Directory:
    """A directory of a volume."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def put(self, checkpoint: Path, name: str) -> str:
        """See `Destination`. The head comes last: where it lies, everything else does."""
        names = sorted(
            (path.relative_to(checkpoint) for path in checkpoint.rglob("*") if path.is_file()),
            key=lambda path: path.name == HEAD,
        )
        for each in names:
            if each.name != RECEIPT and "resume" not in each.parts:
                source = checkpoint / each
                files.write_through(self._place / name / each, partial(shutil.copyfile, source))
        return "copied"


def run_mirror(order: MirrorOrder, container: Container, show: Callable[[str], None]) -> dict[str, Any]:
    """Copy the checkpoints that `order` names, each with a receipt beside it, and commit.

    What has a receipt of the same place is left alone, unless `force`. Returns {copied, there}. Raises Refused for an
    incomplete checkpoint before anything is copied, and for a public repository; HubFailed; or for other sources than
    the launcher's.
    """
    check_sources(order, container)
    container.runs.reload()
    places = {name: container.place(name) for name in order.checkpoints}
    for name, place in places.items():
        check_complete(name, place)
    destination = _destination(order)
    copied, there = [], []
    for name, place in places.items():
        target = name.removeprefix("/runs/").strip("/").removesuffix("/checkpoint")
        if not order.force and _receipt(place).get("repo") == order.repo:
            there.append(name)
            continue
        known_by = destination.put(place, target)
        if container.hub is not None:
            container.hub.commit()  # before a receipt says that the copy is there
        files.write_atomic(place / RECEIPT, files.dump_json({"repo": order.repo, "path": target, "commit": known_by}))
        container.runs.commit()
        show(f"[mirror] {name} -> {order.repo}/{target}")
        copied.append(name)
    return {"copied": copied, "there": there}


def check_complete(name: str, checkpoint: Path) -> None:
    """Raises Refused for a checkpoint that is not whole."""
    from kev.model.layout import find_layout

    trial = checkpoint.parent
    if checkpoint.name != "checkpoint" or not any((trial / each).exists() for each in COMPLETE):
        raise Refused(f"{name}: is not complete, so it is not mirrored")
    find_layout(checkpoint, read_head(checkpoint))


def _destination(order: MirrorOrder) -> Destination:
    from kev.model.places import mounted

    if not order.repo.startswith("/"):
        return PrivateRepository(order.repo)
    place = mounted(order.repo)
    if not order.repo.startswith("/hf/") or ".." in place.parts:
        raise Refused(f"--repo {order.repo!r:.100}: write owner/name, or a directory under /hf/")
    return Directory(place)


def _receipt(checkpoint: Path) -> dict[str, Any]:
    try:
        found = files.read_json(checkpoint / RECEIPT)
    except NotFound:
        return {}
    return found if isinstance(found, dict) else {}
