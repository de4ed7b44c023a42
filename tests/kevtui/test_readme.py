"""The README tells what the product has: its keys, its panels' numbers, and files that exist."""

import re
from pathlib import Path

from kevtui.keymap import BINDINGS, markdown

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()


def test_the_table_of_keys_is_the_one_the_product_uses() -> None:
    found = re.search(r"<!-- keys:[^\n]*-->\n(.*?)<!-- /keys -->", README, re.DOTALL)
    assert found is not None
    assert found[1] == markdown(), "paste what the comment's command prints"


def test_every_numbered_panel_is_explained_under_its_number() -> None:
    numbers = {key for binding in BINDINGS for key in binding.keys if key.isdigit()}
    assert set(re.findall(r"^\| (\d) [A-Z]", README, re.MULTILINE)) == numbers


def test_every_page_that_a_page_refers_to_exists() -> None:
    for page in [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]:
        for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} refers to {link}"
