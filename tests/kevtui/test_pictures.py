"""The pictures in docs/images: one of every screen and dialog, each drawn by a script and shown on a page."""

import importlib
import pkgutil
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kevtui
from kevtui.screens.over import OverScreen
from kevtui.screens.panels import PanelsScreen

REPOSITORY = Path(__file__).parents[2]
IMAGES = REPOSITORY / "docs" / "images"
SCRIPTS = ("make_screenshots.py", "make_dialog_pictures.py", "make_bench_pictures.py")


@pytest.fixture(scope="module")
def pictures() -> list[Any]:
    """Every picture that a script draws."""
    path = list(sys.path)
    try:
        return [each for script in SCRIPTS for each in runpy.run_path(str(REPOSITORY / "scripts" / script))["PICTURES"]]
    finally:
        sys.path[:] = path


def kinds_of(base: type) -> Iterator[type]:
    """Every class below `base` that is not itself a base."""
    below = base.__subclasses__()
    if not below:
        yield base
    for each in below:
        yield from kinds_of(each)


def test_every_screen_and_every_dialog_has_a_picture(pictures: list[Any]) -> None:
    for module in pkgutil.walk_packages(kevtui.__path__, "kevtui."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    shown = {kind.__name__ for base in (OverScreen, PanelsScreen) for kind in kinds_of(base) if is_ours(kind)}
    assert {"ActionDialog", "WatchScreen"} < shown
    assert shown - {picture.shows for picture in pictures} == set()


def is_ours(kind: type) -> bool:
    return kind.__module__.startswith("kevtui.")


def test_every_picture_is_drawn_by_a_script_and_shown_on_a_page(pictures: list[Any]) -> None:
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
    on_pages = {name for page in pages for name in re.findall(r"images/([\w-]+)\.svg\)", page.read_text())}
    drawn = {picture.name for picture in pictures}
    assert {path.stem for path in IMAGES.iterdir()} == drawn == on_pages
    assert len(drawn) == len(pictures)
