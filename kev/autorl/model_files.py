"""The small files of a model directory, put right in the sealed copy: nothing runs, and every loader reads them.

Trainers write `extra_special_tokens` as a list, or null, and a `tokenizer_class` that only their own generation of the
library knows; other loaders refuse these, some with a message about something else.
"""

import json
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.rejection import Rejected
from kev.errors import DamagedFile
from kev.model.layout import CONFIG, read_config_file

TOKENIZER_CONFIG = "tokenizer_config.json"
MAX_BYTES = 64 * 1024 * 1024
EXTRA = "extra_special_tokens"
ADDITIONAL = "additional_special_tokens"


def put_right(directory: Path) -> list[str]:
    """Rewrite what needs it in a copy that is ours; what was done, a line each. Raises Rejected `bad_config`."""
    config = _object(directory / CONFIG)
    remarks = _without_code(directory / CONFIG, config)
    path = directory / TOKENIZER_CONFIG
    if path.exists():
        tokenizer = _object(path)
        remarks += _without_code(path, tokenizer)
        repaired, said = repaired_tokenizer(tokenizer)
        if said:
            files.write_atomic(path, _dumped(repaired))
            remarks += said
    return remarks


def repaired_tokenizer(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A tokenizer's configuration that every generation of loaders reads, and what was changed in it."""
    changed, said = dict(config), list[str]()
    extra = changed.get(EXTRA, {})
    if isinstance(extra, dict):
        _put(changed, EXTRA, {name: found for name, each in extra.items() if (found := _token(each)) is not None}, said)
    elif isinstance(extra, list | str):
        del changed[EXTRA]
        known = _tokens(changed.get(ADDITIONAL))
        changed[ADDITIONAL] = [*known, *(token for token in _tokens(extra) if token not in known)]
        said.append(f"{TOKENIZER_CONFIG}: {EXTRA} is {_kind(extra)}, and was made {ADDITIONAL}")
    else:
        del changed[EXTRA]
        said.append(f"{TOKENIZER_CONFIG}: {EXTRA} is {_kind(extra)}, and was left out")
    if changed.get(ADDITIONAL) is not None:
        _put(changed, ADDITIONAL, _tokens(changed[ADDITIONAL]), said)
    if changed.get("tokenizer_class") == "TokenizersBackend":
        changed["tokenizer_class"] = "PreTrainedTokenizerFast"
        said.append(f"{TOKENIZER_CONFIG}: tokenizer_class TokenizersBackend was made PreTrainedTokenizerFast")
    return changed, said


def _put(config: dict[str, Any], key: str, value: Any, said: list[str]) -> None:
    """Set `key` where its tokens are not written as loaders read them."""
    if config.get(key, value) != value:
        config[key] = value
        said.append(f"{TOKENIZER_CONFIG}: {key} holds what is no token as loaders know it, and was written anew")


def _tokens(value: Any) -> list[Any]:
    """The tokens that a list of them, a table of them, or a single one holds, each once."""
    listed = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    found: list[Any] = []
    for each in listed:
        token = _token(each)
        if token is not None and token not in found:
            found.append(token)
    return found


def _token(value: Any) -> Any:
    """A token as loaders read it: text, or an object that says it is one; None for what is neither."""
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return value if value.get("__type") == "AddedToken" else {**value, "__type": "AddedToken"}
    return value if isinstance(value, str) else None


def _kind(value: Any) -> str:
    names = {list: "a list", str: "one text", type(None): "null"}
    return names.get(type(value), "neither tokens nor null")


def _without_code(path: Path, config: dict[str, Any]) -> list[str]:
    """Take the way to code that comes with a model out of `config`, and out of the file."""
    if "auto_map" not in config:
        return []
    del config["auto_map"]
    files.write_atomic(path, _dumped(config))
    return [f"{path.name}: auto_map was left out; code that comes with a model is never run"]


def _object(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise Rejected("bad_config", f"{path.name}: missing; save the model with save_pretrained")
    try:
        value = read_config_file(path, limit=MAX_BYTES)
    except DamagedFile as error:
        raise Rejected("bad_config", f"{path.name}: {error.reason}") from None
    if not isinstance(value, dict):
        raise Rejected("bad_config", f"{path.name}: does not hold an object")
    return value


def _dumped(config: dict[str, Any]) -> bytes:
    # With infinities as Python writes them, for the loaders, which are written in it.
    return (json.dumps(config, indent=2) + "\n").encode()
