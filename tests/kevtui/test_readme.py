"""The README tells what the product has: its keys and its panels' numbers."""

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
