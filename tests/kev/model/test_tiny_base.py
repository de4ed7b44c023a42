"""Small bases: the same bytes from the same arguments, and every reader of such directories opens them."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from asking import STATE, TEAM
from comparing import contents

from kev.errors import Refused
from kev.model.loading import new_model
from kev.model.settings import Settings
from kev.model.tiny_base import Kind, base_sha256, make_tiny_base

KINDS: tuple[Kind, ...] = ("attention", "hybrid")


def test_the_same_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from kev.model.tiny_base import make_tiny_base;"
        "[make_tiny_base(Path(sys.argv[1]) / kind, kind=kind, hidden=32, layers=2, seed=7) for kind in sys.argv[2:]]"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there"), *KINDS], check=True)
    for kind in KINDS:
        here = make_tiny_base(tmp_path / "here" / kind, kind=kind, hidden=32, layers=2, seed=7)
        other = make_tiny_base(tmp_path / "other" / kind, kind=kind, hidden=32, layers=2, seed=8)
        assert contents(here) == contents(tmp_path / "there" / kind)
        assert base_sha256(here) != base_sha256(other)


def test_making_one_leaves_the_random_stream_as_it_was(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    new_model(str(make_tiny_base(tmp_path / "b", hidden=32, layers=1)), Settings(lora=2))
    assert torch.equal(torch.randn(3), expected)


@pytest.mark.parametrize("kind", ["attention", "hybrid"])
def test_transformers_opens_model_and_tokenizer_and_agrees_on_the_tokens(
    kind: str, request: pytest.FixtureRequest
) -> None:
    base: Path = request.getfixturevalue(f"{kind}_base")
    model = new_model(str(base), Settings(lora=0))
    assert model.hybrid is (kind == "hybrid")
    theirs = transformers.AutoTokenizer.from_pretrained(base)
    text = "A question about the place: naïve 日本 🙂"
    assert theirs(text, add_special_tokens=False).input_ids == model.encoder.tokenizer.encode(text).ids
    assert [theirs.convert_tokens_to_ids("<|fim_prefix|>")] == [model.encoder.delimiters.state]
    assert len(theirs) <= model.config.vocab_size


def test_neighbouring_tokens_are_read_in_a_row_by_the_recurrent_layer(hybrid_base: Path) -> None:
    """Without a row of its own a question would see its sibling: the mask alone does not keep them apart."""
    model = new_model(str(hybrid_base), Settings(lora=0)).eval()
    own, other = model.encoder.encode(STATE, [TEAM, TEAM]), model.encoder.encode(STATE, [TEAM])
    packed = model(model.collate([own], rows=False)).logits
    rows = model(model.collate([own])).logits
    alone = model(model.collate([other])).logits
    assert torch.allclose(rows[1], alone[0], atol=1e-6)
    assert not torch.allclose(packed[1], alone[0], atol=1e-4)


REPOSITORY = Path(__file__).parents[3]
main = runpy.run_path(str(REPOSITORY / "scripts" / "make_tiny_base.py"))["main"]


def test_the_command_makes_a_base_from_a_suites_texts_and_never_over_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--out", str(tmp_path / "b"), "--hidden", "32", "--layers", "1", "--vocabulary", "600"]
    assert main([*arguments, "--suite", str(REPOSITORY / "evals" / "decision-v1")]) == 0
    assert f"sha256 {base_sha256(tmp_path / 'b')}" in capsys.readouterr().out
    encoder = new_model(str(tmp_path / "b"), Settings(lora=0)).encoder
    assert len(encoder.tokenizer.encode(" approval").ids) == 1
    assert main(arguments) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "c"), "--hidden", "33"]) == 1
    assert main(["--out", str(tmp_path / "c"), "--suite", str(tmp_path)]) == 1
    assert not (tmp_path / "c").exists()


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(attention_base: Path, tmp_path: Path) -> None:
    base = make_tiny_base(tmp_path / "b", hidden=32, layers=1, vocabulary=270)
    (base / "tokenizer.json").write_bytes((attention_base / "tokenizer.json").read_bytes())
    with pytest.raises(Exception, match=r"tokens, but the backbone has \d+ embeddings"):
        new_model(str(base), Settings(lora=0))


def test_a_kind_of_model_that_nobody_knows_is_refused_in_one_line(attention_base: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "not_a_model"}')
    with pytest.raises(Refused, match=r"config\.json: .*not_a_model") as caught:
        new_model(str(tmp_path), Settings(lora=0))
    assert "\n" not in str(caught.value)
