"""What a dialog says is drawn with the colours of the theme."""

import pytest

from kevtui import themes
from kevtui.screens.action_text import body
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Role


@pytest.mark.parametrize("theme", ["default", "deuteranopia"])
def test_a_check_that_is_met_and_one_that_is_not_differ_as_they_do_in_every_panel(theme: str) -> None:
    ink = Ink(themes.load(theme))
    checks = [{"text": "it is here", "met": True, "detail": ""}, {"text": "it is new", "met": False, "detail": ""}]
    styled = {span.style for span in body({"checks": checks}, ink).spans}
    assert styled == {ink.styles[Role.GOOD], ink.styles[Role.BAD]}
