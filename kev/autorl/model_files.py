"""The small files of a model directory, put right in the sealed copy: nothing runs, and every loader reads them.

Trainers write `extra_special_tokens` as a list, or null, and a `tokenizer_class` that only their own generation of the
library knows; other loaders refuse these, some with a message about something else.
"""

from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.rejection import Rejected
from kev.errors import DamagedFile
from kev.model.layout import CONFIG

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
            files.write_atomic(path, files.dump_json(repaired))
            remarks += said
    return remarks


def repaired_tokenizer(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A tokenizer's configuration that every generation of loaders reads, and what was changed in it."""
    changed, said = dict(config), []
    extra = changed.get(EXTRA, {})
    if extra is None:
        del changed[EXTRA]
        said.append(f"{TOKENIZER_CONFIG}: {EXTRA} is null, and was left out")
    elif isinstance(extra, list):
        del changed[EXTRA]
        known = changed.get(ADDITIONAL)
        known = known if isinstance(known, list) else []
        changed[ADDITIONAL] = [*known, *(token for token in extra if token not in known)]
        said.append(f"{TOKENIZER_CONFIG}: {EXTRA} is a list, and was made {ADDITIONAL}")
    if changed.get("tokenizer_class") == "TokenizersBackend":
        changed["tokenizer_class"] = "PreTrainedTokenizerFast"
        said.append(f"{TOKENIZER_CONFIG}: tokenizer_class TokenizersBackend was made PreTrainedTokenizerFast")
    return changed, said


def _without_code(path: Path, config: dict[str, Any]) -> list[str]:
    """Take the way to code that comes with a model out of `config`, and out of the file."""
    if "auto_map" not in config:
        return []
    del config["auto_map"]
    files.write_atomic(path, files.dump_json(config))
    return [f"{path.name}: auto_map was left out; code that comes with a model is never run"]


def _object(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise Rejected("bad_config", f"{path.name}: missing; save the model with save_pretrained")
    try:
        value = files.read_json(path, limit=MAX_BYTES)
    except DamagedFile as error:
        raise Rejected("bad_config", f"{path.name}: {error.reason}") from None
    if not isinstance(value, dict):
        raise Rejected("bad_config", f"{path.name}: does not hold an object")
    return value
