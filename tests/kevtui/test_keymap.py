"""One table of keys feeds the screen, the footer, the palette, the help and the README."""

import re

import pytest
import sample_snapshots as samples
from shown_app import shown

from kevtui.actions.verbs import VERBS, Weight
from kevtui.cli import build_parser
from kevtui.keymap import BINDINGS, BadKeymap, check, looking, markdown, remap
from kevtui.screens.palette import commands, matching


def test_no_key_and_no_id_is_there_twice() -> None:
    assert check(BINDINGS) is BINDINGS
    assert len({binding.id for binding in BINDINGS}) == len(BINDINGS)


ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""Each row of the keyboard stands half a key to the right of the one above."""


def beside(one: str, other: str) -> bool:
    """Whether two letters touch on a keyboard."""
    places = {key: (row, 2 * column + row) for row, keys in enumerate(ROWS) for column, key in enumerate(keys)}
    (row, at), (other_row, other_at) = places[one.lower()], places[other.lower()]
    return abs(row - other_row) <= 1 and abs(at - other_at) <= 2


def test_what_spends_or_destroys_is_on_capitals_that_no_slip_can_confuse() -> None:
    dangerous = [key for binding in BINDINGS if binding.danger for key in binding.keys]
    assert {"L", "R", "X"} <= set(dangerous)
    for binding in BINDINGS:
        for key in binding.keys:
            assert (len(key) == 1 and key.isupper()) == binding.danger, binding.id
    assert [(a, b) for a in dangerous for b in dangerous if a < b and beside(a, b)] == []


def test_no_verb_is_on_the_plain_letter_of_one_that_spends() -> None:
    dangerous = {key.lower() for binding in BINDINGS if binding.danger for key in binding.keys}
    assert not dangerous & {key for binding in BINDINGS if binding.acts for key in binding.keys}


def test_every_key_that_acts_has_a_twin_without_a_screen() -> None:
    twins = [re.fullmatch(r"screen\.act\('(\w+)'\)", binding.action) for binding in BINDINGS if binding.acts]
    verbs = {"reads" if match[1] == "stage_reads" else match[1] for match in twins if match}
    assert verbs == set(VERBS)
    for binding in BINDINGS:
        if binding.danger:
            verb = binding.id.replace("stage_reads", "reads")
            assert VERBS[verb].weight is not Weight.SAFE, binding.id


def test_every_key_that_acknowledges_has_a_twin_without_a_screen() -> None:
    parser = build_parser()
    for binding, rest in (("acknowledge", ["--alert", "x:y"]), ("acknowledge_all", ["--alert", "all"]),
                          ("unacknowledge", ["--alert", "all", "--withdraw"])):  # fmt: skip
        assert binding in {known.id for known in BINDINGS}
        assert parser.parse_args(["act", "acknowledge", "r41", *rest, "--json"]).verb == "acknowledge"
    acknowledging = {binding.id for binding in BINDINGS if "acknowledge" in binding.action}
    assert acknowledging == {"acknowledge", "acknowledge_all", "unacknowledge"}
    assert not any(binding.acts for binding in BINDINGS if binding.id in acknowledging), "who only looks has them too"


def test_without_hands_only_what_looks_is_left() -> None:
    left = looking(BINDINGS)
    assert not any(binding.acts or binding.danger for binding in left)
    assert all(binding in left for binding in BINDINGS if not binding.acts)


def test_keys_that_multiplexers_and_terminals_take_are_not_used() -> None:
    used = {key for binding in BINDINGS for key in binding.keys}
    assert not used & {"ctrl+j", "ctrl+s", "ctrl+q", "ctrl+b", "ctrl+a", "ctrl+z", "ctrl+c", "ctrl+m"}


async def test_every_action_of_the_table_exists() -> None:
    async with shown(samples.night(), (80, 24)) as it:
        for binding in BINDINGS:
            where, _, call = binding.action.partition(".")
            name = f"action_{call.partition('(')[0]}"
            assert hasattr({"app": it.app, "screen": it.screen}[where], name), binding.id


def test_a_key_can_be_another_one() -> None:
    table = {binding.id: binding.keys for binding in remap({"zoom": "f5, x", "sort": ["ctrl+t"]})}
    assert table["zoom"] == ("f5", "x")
    assert table["sort"] == ("ctrl+t",)
    assert table["log"] == ("l",)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"zom": "x"}, ("zom", "zoom")),
        ({"zoom": "l"}, ("zoom", "log", "l")),
        ({"zoom": " , "}, ("zoom", "at least one")),
    ],
)
def test_a_remapping_that_cannot_be_meant_is_refused_in_one_line(
    overrides: dict[str, str], words: tuple[str, ...]
) -> None:
    with pytest.raises(BadKeymap) as caught:
        remap(overrides)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words)


def test_two_ids_may_swap_their_keys() -> None:
    table = {binding.id: binding.keys for binding in remap({"zoom": "l", "log": "z"})}
    assert (table["zoom"], table["log"]) == (("l",), ("z",))


def test_the_readme_table_has_every_binding() -> None:
    table = markdown()
    assert table.count("\n") == len(BINDINGS) + 2
    assert "| `?` | All keys |" in table


async def test_the_footer_keeps_help_and_quit_to_the_last() -> None:
    async with shown(samples.night(), (160, 50)) as it:
        for width in (160, 80, 40, 20):
            await it.pilot.resize_terminal(width, 24)
            await it.pilot.pause()
            assert "? help" in it.lines()[-1]
            assert "q quit" in it.lines()[-1]


def test_the_palette_finds_commands_by_words_and_prefers_their_beginning() -> None:
    offered = commands(BINDINGS, ["default", "light"])
    assert matching(offered, "the light")[0].title == "theme light"
    assert matching(offered, "quit")[0].title == "quit"
    assert matching(offered, "no such thing") == []
