"""A record's tokens: where everything lies, what text cannot do, and what is too long."""

import json
from pathlib import Path

import numpy as np
import pytest
from asking import LEVEL, ONE, STATE, TEAM, URGENT, Question, questions, records
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kev.data.record import DataRecord
from kev.errors import DamagedFile, NotFound, Refused
from kev.model.context import Context, ContextOverflow
from kev.model.delimiters import FAMILIES, Delimiters, neutralise
from kev.model.encoding import DECIDE, Encoder, Encoding

Names = tuple[str, str, str, str, str]

DELIMITERS = st.sampled_from([name for family in FAMILIES for name in family] + ["<|endoftext|>", "<|im_start|>"])
hostile = st.lists(
    DELIMITERS | st.sampled_from(["<", "|", ">", "<|", "|>", "\ud83d", "fim_prefix"]) | st.text(max_size=5)
)
hostile_text = hostile.map("".join)


def decoded(encoder: Encoder, encoding: Encoding, place: slice) -> str:
    return str(encoder.tokenizer.decode(encoding.ids[place].tolist(), skip_special_tokens=False))


def test_a_record_is_its_state_and_then_a_branch_for_each_question(encoder: Encoder) -> None:
    encoding = encoder.encode(STATE, [TEAM, URGENT])
    assert decoded(encoder, encoding, slice(0, encoding.state_length)) == (
        "<|fim_prefix|>subject: Charged twice\nlines:\n  - two charges\n  - one order\npaid: True"
    )
    assert [decoded(encoder, encoding, branch) for branch in encoding.branches] == [
        "<|fim_middle|>Which team takes it?<|box_start|>billing: payments<|box_end|><|box_start|>shipping<|box_end|>"
        "<|box_start|>access<|box_end|><|fim_suffix|>",
        "<|fim_middle|>ask: Is it urgent?\nnot: loud<|box_start|>no<|box_end|>"
        "<|box_start|>yes<|box_end|><|fim_suffix|>",
    ]


@given(record=records)
def test_every_place_is_that_of_its_token(encoder: Encoder, record: tuple[str, list[Question]]) -> None:
    state, asked = record
    encoding = encoder.within(Context(10_000, 20_000, 40_000)).encode(state, asked)
    length, roles = encoding.state_length, encoder.delimiters
    assert len(encoding) == len(encoding.seg) == len(encoding.pos) == len(encoding.opt)
    assert encoding.ids[0] == roles.state
    assert encoding.pos[:length].tolist() == list(range(length))
    for number, (branch, question) in enumerate(zip(encoding.branches, asked, strict=True), start=1):
        assert encoding.ids[branch.start] == roles.question
        assert set(encoding.seg[branch]) == {number}
        assert encoding.pos[branch].tolist() == list(range(length, length + branch.stop - branch.start))
        assert encoding.decide_idx[number - 1] == branch.stop - 1
        assert encoding.opt[branch.stop - 1] == DECIDE
        closes = encoding.opt_idx[number - 1]
        assert [encoding.opt[close] for close in closes] == list(range(len(question.options)))
        assert all(branch.start < close < branch.stop for close in closes)
    assert set(encoding.ids[encoding.decide_idx]) == {roles.decide}
    assert set(encoding.ids[encoding.close_idx]) == {roles.option_close}


@given(state=hostile_text, instructions=hostile_text, options=st.lists(hostile_text, min_size=1, max_size=4))
def test_no_text_forges_a_delimiter(encoder: Encoder, state: str, instructions: str, options: list[str]) -> None:
    generous = encoder.within(Context(100_000, 200_000, 400_000))
    encoding = generous.encode({"key " + state: [state]}, [Question({instructions: instructions}, options)])
    assert np.isin(encoding.ids, encoder.delimiters.ids).sum() == 1 + 1 + 2 * len(options) + 1


@given(text=hostile_text)
def test_neutral_text_stays_as_it_is(text: str) -> None:
    once = neutralise(text)
    assert neutralise(once) == once
    assert not any(name in once for family in FAMILIES for name in family if "|" in name)


@given(text=hostile_text)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_text_keeps_a_delimiter_of_the_tokenizer_it_is_meant_for(family: Names, text: str) -> None:
    delimiters = Delimiters(0, 1, 2, 3, 4, names=family)
    once = delimiters.neutralise(text)
    assert delimiters.neutralise(once) == once
    assert not any(name in once for name in family)


@given(text=st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"])))
def test_text_without_a_bracket_is_not_touched(text: str) -> None:
    assert neutralise(text) == text


def test_special_tokens_of_released_models_get_broken_bars() -> None:
    assert neutralise("a <|im_start|> b <|x y|> <||>") == "a <¦im_start¦> b <|x y|> <||>"
    assert neutralise("<|<|fim_prefix|>|>") == "<|<¦fim_prefix¦>|>"
    assert Delimiters(0, 1, 2, 3, 4).neutralise("<file_sep> is text to them") == "<file_sep> is text to them"


@pytest.mark.parametrize("family", FAMILIES[1:])
def test_tokenizers_of_other_families_have_delimiters_too(family: Names) -> None:
    tokenizer = Tokenizer.from_str(
        json.dumps({"added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}})
    )
    tokenizer.add_special_tokens(list(family))
    assert Delimiters.find(tokenizer.token_to_id, "here") == Delimiters(0, 1, 2, 3, 4, names=family)
    assert Encoder(tokenizer, Delimiters.find(tokenizer.token_to_id, "here")).count_state_tokens(" ".join(family)) == 1
    with pytest.raises(Refused, match=r"^here: .*<\|fim_prefix\|>"):
        Delimiters.find(lambda name: 7 if name == family[0] else None, "here")


def test_isolated_options_begin_at_one_position_and_the_decision_follows_the_longest(encoder: Encoder) -> None:
    isolated = Encoder(encoder.tokenizer, encoder.delimiters, option_isolation=True)
    plain, own = encoder.encode("s", [TEAM]), isolated.encode("s", [TEAM])
    assert own.ids.tolist() == plain.ids.tolist() and own.opt.tolist() == plain.opt.tolist()
    spans = [own.pos[own.opt == option].tolist() for option in range(3)]
    begin = int(plain.pos[plain.opt == 0][0])
    assert spans == [list(range(begin, begin + len(span))) for span in spans]
    assert own.pos[-1] == begin + max(map(len, spans))
    assert own.pos[own.opt == -1].tolist() == plain.pos[plain.opt == -1].tolist()


def test_special_tokens_that_are_no_delimiters_are_read_as_text_too(encoder: Encoder) -> None:
    tokenizer = Tokenizer.from_str(encoder.tokenizer.to_str())
    tokenizer.add_special_tokens(["<s>"])
    assert tokenizer.encode("a<s>b").ids.count(tokenizer.token_to_id("<s>")) == 1
    ids = Encoder(tokenizer, encoder.delimiters).encode({"a<s>": "<s>"}, [Question("<s>", ["<s>"])]).ids
    assert tokenizer.token_to_id("<s>") not in ids


@given(asked=st.lists(questions, min_size=2, max_size=4))
def test_one_question_of_a_record_is_encoded_as_if_it_alone_were_asked(encoder: Encoder, asked: list[Question]) -> None:
    generous = encoder.within(Context(10_000, 20_000, 40_000))
    together = generous.encode("a state", asked)
    for number, question in enumerate(asked):
        alone, part = generous.encode("a state", [question]), together.only(number, number + 1)
        for name in ("ids", "seg", "pos", "opt", "decide_idx", "close_idx", "option_counts"):
            assert getattr(alone, name).tolist() == getattr(part, name).tolist(), name


def test_a_state_over_the_limit_is_refused_by_name_and_number(encoder: Encoder) -> None:
    narrow = encoder.within(Context(max_state=10))
    state = "word " * 50
    whole = encoder.count_state_tokens(state)
    with pytest.raises(ContextOverflow) as caught:
        narrow.encode(state, [TEAM], name="tickets/7")
    assert (
        str(caught.value)
        == f"tickets/7: a state of {whole} tokens, over the limit of 10; shorten it, or raise max_state"
    )
    assert (caught.value.state_tokens, caught.value.max_state) == (whole, 10)
    assert isinstance(caught.value, ValueError)


def test_a_state_just_at_the_limit_is_taken_whole(encoder: Encoder) -> None:
    length = encoder.count_state_tokens(STATE)
    assert not encoder.within(Context(max_state=length)).encode(STATE, [TEAM]).state_truncated
    with pytest.raises(ContextOverflow):
        encoder.within(Context(max_state=length - 1)).encode(STATE, [TEAM])


def test_a_lenient_encoder_cuts_the_end_of_a_state_and_says_so(encoder: Encoder) -> None:
    whole = encoder.encode(STATE, [TEAM, URGENT])
    cut = encoder.within(Context(max_state=10), strict=False).encode(STATE, [TEAM, URGENT])
    assert cut.state_truncated and not whole.state_truncated
    assert (cut.state_length, cut.state_tokens) == (10, whole.state_tokens)
    assert cut.ids[:10].tolist() == whole.ids[:10].tolist()
    assert [cut.ids[branch].tolist() for branch in cut.branches] == [whole.ids[b].tolist() for b in whole.branches]
    assert cut.pos[cut.branches[1].start] == 10


@pytest.mark.parametrize("strict", [True, False])
def test_a_branch_or_a_record_over_its_limit_is_refused_even_by_a_lenient_encoder(
    encoder: Encoder, strict: bool
) -> None:
    whole = encoder.encode(STATE, [URGENT, LEVEL])
    row = whole.longest_row
    fitting = Context(384, row, len(whole))
    assert len(encoder.within(fitting, strict=strict).encode(STATE, [URGENT, LEVEL])) == len(whole)
    with pytest.raises(ContextOverflow, match=r"^r1: question 2 takes \d+ tokens where \d+ are left of max_branch"):
        encoder.within(Context(384, row - 1, 2048), strict=strict).encode(STATE, [URGENT, LEVEL], name="r1")
    with pytest.raises(ContextOverflow, match=rf"^r1: {len(whole)} tokens with all its questions, over max_packed"):
        encoder.within(Context(384, 1024, len(whole) - 1), strict=strict).encode(STATE, [URGENT, LEVEL], name="r1")


def test_the_room_of_questions_stays_when_longer_states_are_let_in() -> None:
    assert Context.for_states(384) == Context()
    assert Context.for_states(7552) == Context(7552, 8192, 9216)
    assert Context.from_manifest({"context": {"max_state": 200, "max_branch": None, "truncate": False}}) == Context(200)
    assert Context.from_manifest({}) == Context.from_manifest({"context": "long"}) == Context()


def test_a_record_brings_its_labels_along(encoder: Encoder) -> None:
    record = DataRecord.build(
        "Two charges.",
        {
            "team": {"type": "choice", "criteria": {"a": None, "b": "the other"}, "label": "b", "src": "t"},
            "angry": {"type": "noul", "label": True, "src": "t"},
            "level": {"type": "score", "criteria": ["low", "high"], "label": 0, "src": "t"},
        },
        id="r",
        source="s",
    )
    encoding = encoder.encode_record(record)
    assert encoding.labels == (1, 1, 0)
    assert encoding.only(1, 3).labels == (1, 0)
    assert decoded(encoder, encoding, slice(0, len(encoding))).count("b: the other") == 1


def test_nothing_to_answer_is_refused(encoder: Encoder) -> None:
    with pytest.raises(Refused, match=r"^r9: nothing to answer"):
        encoder.encode(STATE, [], name="r9")
    with pytest.raises(Refused, match="every question has options"):
        encoder.encode(STATE, [TEAM, Question("?", [])])


def test_limits_that_a_tokenizer_file_carries_do_not_cut_or_pad(encoder: Encoder, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_str(encoder.tokenizer.to_str())
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=40)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    bounded = Encoder.from_directory(tmp_path)
    assert bounded.encode(STATE, [TEAM, ONE]).ids.tolist() == encoder.encode(STATE, [TEAM, ONE]).ids.tolist()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 9\n", "a Git LFS pointer"),
        (b'{"model": {', "cut short"),
        (b"{}", "Cannot instantiate|missing field"),
    ],
)
def test_what_lies_in_place_of_a_tokenizer_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(DamagedFile, match=rf"tokenizer\.json: not a tokenizer.*({says})"):
        Encoder.from_directory(tmp_path)


def test_a_tokenizer_that_is_missing_or_damaged_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"tokenizer\.json: no such file"):
        Encoder.from_directory(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": ')
    with pytest.raises(DamagedFile, match="not a tokenizer") as caught:
        Encoder.from_directory(tmp_path)
    assert "\n" not in str(caught.value)
