"""Nothing secret goes into a bundle, wherever it stands; what is no secret stays as it is."""

import io
import json
import string
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kevtui.observe.target import Target
from kevtui.record.packing import Bundle, pack
from kevtui.record.redaction import Identity, Redactor
from kevtui.replay.kinds import Kind
from kevtui.replay.night import HeldFile, Night

ALNUM, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + string.digits
NOBODY = Identity()
NS = 1_772_000_000_000_000_000


def of(alphabet: str, low: int, high: int | None = None) -> st.SearchStrategy[str]:
    """Text that is no word: it begins with a letter and holds a digit."""
    return st.text(alphabet, min_size=low, max_size=high or low).map(lambda text: f"q7{text}"[: max(low, 4)])


SECRETS = {
    "a provider's token": of(ALNUM, 22).map(lambda text: (f"ak-{text}", text)),
    "its other half": of(ALNUM, 22).map(lambda text: (f"as-{text}", text)),
    "a hub's token": of(ALNUM, 34).map(lambda text: (f"hf_{text}", text)),
    "a model host's key": of(ALNUM, 40).map(lambda text: (f"sk-ant-api03-{text}", text)),
    "a cloud's key id": st.text(UPPER, min_size=16, max_size=16).map(lambda text: (f"AKIA{text}", text)),
    "a cloud's secret key": of(ALNUM, 40).map(lambda text: (f"aws_secret_access_key = {text}", text)),
    "a code host's token": of(ALNUM, 36).map(lambda text: (f"ghp_{text}", text)),
    "a bearer": of(ALNUM, 20).map(lambda text: (f"Authorization: Bearer {text}", text)),
    "a bearer alone": of(ALNUM, 20).map(lambda text: (f"bearer {text}", text)),
    "a basic header": of(ALNUM, 20).map(lambda text: (f"authorization=Basic {text}==", text)),
    "a cookie": of(ALNUM, 20).map(lambda text: (f"Cookie: sid={text}", text)),
    "a password in an address": of(ALNUM, 10).map(lambda text: (f"https://kim:{text}@example.com/x", text)),
    "a signature in an address": of(HEX, 40).map(lambda text: (f"https://github.com/?X-Amz-Signature={text}&x", text)),
    "a short password": of(ALNUM, 6).map(lambda text: (f"password: {text}", text)),
    "a flag": of(ALNUM, 12).map(lambda text: (f"run --api-key {text} --fast", text)),
    "a variable": of(HEX, 40).map(lambda text: (f"WANDB_API_KEY={text}", text)),
    "JSON in a text": of(ALNUM, 16).map(lambda text: (f'got {{"client_secret": "{text}"}}', text)),
    "a web token": of(ALNUM, 30).map(lambda text: (f"eyJhbGciOiJIUzI1NiJ9.{text}.{text}", text)),
    "a private key": of(ALNUM, 64).map(
        lambda text: (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}\n-----END OPENSSH PRIVATE KEY-----", text)
    ),
    "a private key cut short": of(ALNUM, 64).map(lambda text: (f"-----BEGIN PRIVATE KEY-----\n{text}", text)),
    "a home folder": of(string.ascii_lowercase, 8).map(lambda text: (f"saved /home/{text}/runs/x", text)),
    "a home folder elsewhere": of(string.ascii_lowercase, 8).map(lambda text: (rf"C:\Users\{text}\x", text)),
    "who did it": of(string.ascii_lowercase, 8).map(lambda text: (f"{text}@gpu-box launched it", text)),
    "a mail address": of(string.ascii_lowercase, 8).map(lambda text: (f"tell {text}@example.org", text)),
    "an inner host": of(string.ascii_lowercase, 8).map(lambda text: (f"from {text}.corp.internal", text)),
    "a user in a dictionary": of(string.ascii_lowercase, 8).map(lambda text: (f"{{'USER': '{text}'}} by {text}", text)),
    "a host in a line": of(string.ascii_lowercase, 8).map(lambda text: (f"hostname={text} up", text)),
    "a machine's address": st.integers(10, 99).map(lambda n: (f"to 10.{n}.7.1{n}:8080.", f"10.{n}.7.1{n}")),
    "a machine called by its address": st.integers(10, 99).map(lambda n: (f"on ip-10-{n}-7-1{n}", f"10-{n}-7-1{n}")),
    "a webhook": of(ALNUM, 24).map(lambda text: (f"https://hooks.slack.com/services/T0/B0/{text}", text)),
    "a password of figures": st.integers(10**6, 10**7).map(lambda n: (f"password={n}", str(n))),
    "a host in an address": of(string.ascii_lowercase, 8).map(lambda text: (f"s3://{text}/key", text)),
}  # fmt: skip


def bundle_of(files: dict[str, tuple[Kind, bytes]], identity: Identity = NOBODY) -> Bundle:
    target = Target(Path("/session"), "n1", None, Path("/session/runs/n1-state.json"), "n1", None)
    held = tuple(HeldFile(path, kind, NS, data) for path, (kind, data) in sorted(files.items()))
    return pack(Night(target, held, "runs/n1-state.json" if "runs/n1-state.json" in files else None), identity)


def everything_in(bundle: Bundle) -> str:
    with zipfile.ZipFile(io.BytesIO(bundle.data)) as archive:
        return "".join(f"{name}\n{archive.read(name).decode()}\n" for name in archive.namelist())


JOURNAL, LOG, STATE = "runs/n1-events.jsonl", "runs/r5-a/00-trial-0/train.log", "runs/n1-state.json"


def in_journal(text: str) -> dict[str, tuple[Kind, bytes]]:
    line = json.dumps({"at": "2026-03-01T20:00:00Z", "kind": "k", "severity": "info", "text": f"so: {text}"})
    return {JOURNAL: (Kind.JOURNAL, line.encode() + b"\n")}


def in_torn_line(text: str) -> dict[str, tuple[Kind, bytes]]:
    escaped = "".join(f"\\u{ord(sign):04x}" if sign.isalnum() and ord(sign) % 3 == 0 else sign for sign in text)
    return {JOURNAL: (Kind.JOURNAL, f'{{"text": "{escaped}'.replace("\n", "\\n").encode())}


def in_log(text: str) -> dict[str, tuple[Kind, bytes]]:
    return {LOG: (Kind.LOG, f"step 10/50 loss 1.0\rstep 20/50\n{text}\nstep 30/50 loss 0.9\n".encode())}


def in_colours(text: str) -> dict[str, tuple[Kind, bytes]]:
    middle = len(text) // 2
    return {LOG: (Kind.LOG, f"{text[:middle]}\x1b[31m\u200b{text[middle:]}\x1b[0m\n".encode())}


def in_value(text: str) -> dict[str, tuple[Kind, bytes]]:
    value = {"session": "n1", "decisions": [{"deep": [text]}], "authorization_usd": 100}
    return {STATE: (Kind.STATE, json.dumps(value).encode())}


def in_key(text: str) -> dict[str, tuple[Kind, bytes]]:
    return {STATE: (Kind.STATE, json.dumps({"session": "n1", "candidates": {text: {"trial": 1}}}).encode())}


PLACES = [in_journal, in_torn_line, in_log, in_colours, in_value, in_key]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", SECRETS)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_no_secret_is_in_a_bundle(name: str, place: Any, data: st.DataObject) -> None:
    text, secret = data.draw(SECRETS[name])
    bundle = bundle_of(place(text))
    assert secret not in everything_in(bundle)
    assert sum(bundle.manifest.redacted.values()) > 0, "what was taken out is counted"


@pytest.mark.parametrize("key", ["token", "api_key", "hf_token", "Password", "client-secret", "accessToken", "cookie"])
def test_what_stands_under_a_secret_name_is_taken_out(key: str) -> None:
    value = {"session": "n1", "notes": {key: ["plain words, 42"]}}
    text = everything_in(bundle_of({STATE: (Kind.STATE, json.dumps(value).encode())}))
    assert "plain words" not in text


def test_a_password_that_is_a_number_is_taken_out() -> None:
    text = everything_in(
        bundle_of({STATE: (Kind.STATE, b'{"session": "n1", "db": {"password": 48151623, "tokens": 7}}')})
    )
    assert "48151623" not in text
    assert '"tokens": 7' in text


def test_an_environment_is_taken_out_whole() -> None:
    value = {"session": "n1", "environment": {"SHELL": "/bin/zsh"}, "env": "A=1"}
    text = everything_in(bundle_of({STATE: (Kind.STATE, json.dumps(value).encode())}))
    assert "zsh" not in text
    assert "A=1" not in text


def test_the_one_who_records_and_the_machine_are_nowhere() -> None:
    identity = Identity("kimdoe", "Kim Doe", "/home/kimdoe", ("gpu-box-7.lab.example",), ("/home/kimdoe/decisions",))
    told = "Kim Doe (KIMDOE on GPU-Box-7) wrote /home/kimdoe/decisions/runs/x and /home/kimdoe/y; ask kimdoe"
    files = {**in_journal(told), **in_log(told), **in_value(told)}
    files["runs/kimdoe-27b.spawn.json"] = (Kind.LEDGER, json.dumps({"name": "kimdoe-27b"}).encode())
    files["runs/n1-watcher.json"] = (Kind.WATCHER, json.dumps({"host": "ab", "process": 7}).encode())
    text = everything_in(bundle_of(files, identity)).lower()
    for word in ("kimdoe", "kim doe", "gpu-box-7", "/home", "lab.example", '"ab"'):
        assert word not in text
    assert "[session]/runs/x" in text


def test_the_same_one_has_the_same_stand_in_everywhere() -> None:
    journal = b"".join(
        json.dumps({"at": "2026-03-01T20:00:00Z", "who": who, "text": text}).encode() + b"\n"
        for who, text in (("kimdoe@boxone", "a"), ("alexroe@boxone", "b"), ("kimdoe@boxtwo", "kimdoe asked alexroe"))
    )
    bundle = bundle_of({JOURNAL: (Kind.JOURNAL, journal), LOG: (Kind.LOG, b"hello kimdoe\n")})
    with zipfile.ZipFile(io.BytesIO(bundle.data)) as archive:
        lines = [json.loads(line) for line in archive.read(JOURNAL).splitlines()]
        log = archive.read(LOG).decode()
    assert [line["who"] for line in lines] == ["person-1@host-1", "person-2@host-1", "person-1@host-2"]
    assert lines[2]["text"] == "person-1 asked person-2"
    assert log == "hello person-1\n"


@pytest.mark.parametrize(
    "text",
    [
        "ep0 step 10/1564 loss 4.646 kl 0.000 anchor 0.000 0.701s/rec",
        "device=cuda world=1 trainable params=125.2M",
        "authorization: $1,000.00, headroom $457.95 of the authorization",
        "max_tokens=4096 tokenizer: Qwen/Qwen3-4B-Base-Instruct-2507-FP8 tokens 12,345",
        "attempt 2 of 3: fc-SANjJCAtPGYpRz5JRUnAG8, app ap-wht1BDyS0DxDktLpY9sxXs",
        "sha256 dfa2b589a501c7000f539eb9781347113503eebe4b2fcc8c9c418f935e66d6c1",
        "nonce a14a3fcd44ebb51a2249b10a8e5c8093",
        "init from Qwen/Qwen3-4B@1cfa9a7208912126459214e8b04321603b3df60c and model@main",
        "at 03:12:55Z the reads of r40-tiny-full-memos were launched, ≤ $0.42",
        "python -m kev.rounds confirm experiments/rounds/r40.json --stage tests",
        "/runs/r40-full/00-trial-0/checkpoint on 127.0.0.1, see https://huggingface.co/Qwen",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redactor = Redactor(Identity())
    redactor.learn(text)
    assert redactor.text(text) == text
    assert not +redactor.counts


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
@example("²ada@lab")  # a letter to Unicode and none to ASCII
@example("1::@A")  # an address next to a stand-in is another one
@example("A@1-::")
def test_any_text_can_be_redacted_and_a_second_time_changes_nothing_more(text: str) -> None:
    redactor = Redactor(Identity())
    redactor.learn(text)
    once = redactor.text(text)
    assert redactor.text(once) == once


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_figures_stay_exactly_as_they_were(value: Any) -> None:
    def figures(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [figure for part in value.values() for figure in figures(part)]
        if isinstance(value, list):
            return [figure for part in value for figure in figures(part)]
        return [] if isinstance(value, str) else [value]

    assert figures(Redactor(Identity()).value(value)) == figures(value)
