"""What a container finds of its image: environment, files and working directory. Nothing is built and nothing is run:
of the lines of an image, ENV, COPY and WORKDIR count.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from kev.emulator.entities import Image
from kev.emulator.store import Store

DEFAULT_WORKDIR = PurePosixPath("/", "root")
"""Modal's own: its base images begin there, and its client mounts the sources of an app there."""

ENV_LINE = re.compile(r"\s*ENV\s+(.*)", re.IGNORECASE)
WORKDIR_LINE = re.compile(r"\s*WORKDIR\s+(.*)", re.IGNORECASE)


def image_environment(store: Store, image_id: str) -> dict[str, str]:
    """The variables that an image's ENV lines set."""
    values: dict[str, str] = {}
    for _image, line in _lines(store, image_id):
        if found := ENV_LINE.match(line):
            values |= dict(part.partition("=")[::2] for part in shlex.split(found[1]) if "=" in part)
    return values


def image_workdir(store: Store, image_id: str) -> PurePosixPath:
    """The directory in which containers of an image begin."""
    place = DEFAULT_WORKDIR
    for _image, line in _lines(store, image_id):
        place = _moved(place, line)
    return place


def image_files(store: Store, image_id: str) -> dict[str, str]:
    """Files that an image's COPY lines bring along from this machine: path in the container to the content's hash."""
    entries: dict[str, str] = {}
    place = DEFAULT_WORKDIR
    for image, line in _lines(store, image_id):
        place = _moved(place, line)
        mount = store.mounts.get(image.definition.context_mount_id)
        words = shlex.split(line) if mount is not None else []
        if mount is None or len(words) != 3 or words[0].upper() != "COPY":
            continue
        source, target = PurePosixPath("/", words[1]), place / words[2]
        for name, digest in mount.files.items():
            path = PurePosixPath("/", name)
            if path == source:
                entries[str(target / path.name if words[2].endswith("/") else target)] = digest
            elif path.is_relative_to(source):
                entries[str(target / path.relative_to(source))] = digest
    return entries


def _lines(store: Store, image_id: str) -> Iterator[tuple[Image, str]]:
    """The lines of an image and of those it is built on, the lowest first, each with the image it is of."""
    if (image := store.images.get(image_id)) is not None:
        for base in image.definition.base_images:
            yield from _lines(store, base.image_id)
        for line in image.definition.dockerfile_commands:
            yield image, line


def _moved(place: PurePosixPath, line: str) -> PurePosixPath:
    """Where the next line of an image begins: a relative WORKDIR goes on from the one before."""
    found = WORKDIR_LINE.match(line)
    return place.joinpath(*shlex.split(found[1])) if found else place
