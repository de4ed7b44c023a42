"""Lines from what containers print, however it arrives."""

from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kev.compute.logs import MAX_LINE, MAX_OPEN_LINES, LineAssembler
from kev.text import visible

from .conftest import Place

AT = datetime(2027, 1, 1, tzinfo=UTC)


def entry(message: str, *ids: str, source: str = "stdout") -> Any:
    return SimpleNamespace(message=message, timestamp=AT, source=source, context_ids=list(ids))


def texts(pieces: list[str]) -> list[str]:
    assembler = LineAssembler()
    lines = [line.text for piece in pieces for line in assembler.add(entry(piece, "fc-1"))]
    return lines + [line.text for line in assembler.flush()]


@given(st.text(alphabet=st.sampled_from("ab\n\r\x1b[é\u2028"), max_size=60), st.lists(st.integers(0, 60)))
def test_where_the_pieces_are_cut_makes_no_difference(text: str, cuts: list[int]) -> None:
    marks = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(marks)]
    whole = text.split("\n")
    # The end of a text without a newline is a line too, whose carriage return belongs to no newline.
    expected = [visible(line.removesuffix("\r")) for line in whole[:-1]] + [visible(whole[-1])] * bool(whole[-1])
    assert texts(pieces) == expected


@given(st.text(max_size=200))
def test_no_line_can_act_on_a_terminal(text: str) -> None:
    assert not any(character in line for line in texts([text]) for character in "\n\r\x1b\x9b\x07\u202e")


def test_an_endless_line_is_handed_on_in_bounded_pieces_and_nothing_of_it_is_lost() -> None:
    assembler, seen, most_open = LineAssembler(), 0, 0
    for _ in range(500):
        seen += sum(len(line.text) for line in assembler.add(entry("#" * 1000, "fc-1")))
        most_open = max(most_open, sum(len(rest) for _, rest in assembler._open.values()))
    seen += sum(len(line.text) for line in assembler.flush())
    assert seen == 500_000
    assert most_open <= MAX_LINE


def test_pieces_of_several_calls_and_of_both_outputs_are_not_mixed() -> None:
    assembler = LineAssembler()
    arrived = [
        ("fc-1", "stdout", "one "), ("fc-2", "stdout", "two "), ("fc-1", "stderr", "err "),
        ("fc-1", "stdout", "more\n"), ("fc-2", "stdout", "again\n"), ("fc-1", "stderr", "or\n"),
    ]  # fmt: skip
    lines = [line for call, source, text in arrived for line in assembler.add(entry(text, call, source=source))]
    assert [(line.call_id, line.source, line.text) for line in lines] == [
        ("fc-1", "stdout", "one more"), ("fc-2", "stdout", "two again"), ("fc-1", "stderr", "err or"),
    ]  # fmt: skip


def test_a_line_knows_where_it_comes_from_by_the_prefix_of_each_id() -> None:
    (line,) = LineAssembler().add(entry("x\n", "fu-a", "in-b", "ta-c", "zz-d", "fc-\x1be"))
    assert (line.function_id, line.input_id, line.container_id, line.call_id) == ("fu-a", "in-b", "ta-c", "fc-\\x1be")


def test_the_sources_whose_line_is_open_are_bounded() -> None:
    assembler = LineAssembler()
    handed = [line for number in range(MAX_OPEN_LINES + 10) for line in assembler.add(entry("x", f"fc-{number}"))]
    assert len(handed) == 10
    assert len(list(assembler.flush())) == MAX_OPEN_LINES


async def test_the_stream_of_the_app_tells_its_calls_apart_and_the_tail_shows_one(place: Place) -> None:
    one = await place.start("write_log", {"pieces": ["first ", "half\n", "\x1b[2Jclear\r\n"]})
    two = await place.start("echo", {"say": "from another"})
    await place.end_of(one)
    await place.end_of(two)
    await place.printed(two, "from another")
    tail = await place.compute.log_tail(one, 10)
    assert [line.text for line in tail if line.source == "stdout"] == ["first half", "\\x1b[2Jclear"]
    assert {line.call_id for line in tail} == {one.id}
    assert (await place.printed(one, "clear")).text == "\\x1b[2Jclear"
    assert len(await place.compute.log_tail(one, 1)) == 1
