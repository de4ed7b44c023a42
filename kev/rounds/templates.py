"""Templates of directory names in a spec: {round}, {arm}, {size} and {tag}, and nothing else."""

import re

FIELDS = ("round", "arm", "size", "tag")

_FIELD = re.compile(r"\{([^{}]*)\}")


def expand(template: str, *, round_number: int, arm: str, size: str, tag: str) -> str:
    """`template` with its fields filled in; a field it should not have stays as it is."""
    values = {"round": str(round_number), "arm": arm, "size": size, "tag": tag}
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def unknown_fields(template: str) -> list[str]:
    """The names in braces that no template may have, and "" for a brace without its partner."""
    unknown = [name for name in _FIELD.findall(template) if name not in FIELDS]
    rest = _FIELD.sub("", template)
    return [*unknown, ""] if "{" in rest or "}" in rest else unknown
