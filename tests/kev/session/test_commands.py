"""What is pending names the exact command that finishes it: one that the entry points take, and that wants the same."""

import ast
import shlex
from pathlib import Path
from typing import Any

import pytest

from kev.ledger.units import Unit
from kev.records.ledger import Order
from kev.rounds.blend_orders import BlendRequest, blend_order
from kev.rounds.trial_orders import Provenance
from kev.session_report.commands import command_for

REQUEST = BlendRequest("/runs/n/00-trial-0/checkpoint", "2b", "0.85,0.5", "a/b", "f" * 40, "mix", 600)
PAYLOADS: dict[str, dict[str, Any]] = {
    "trial": {"suite": "evals/a", "transfer": None},
    "rescore": {"study": "n", "directory": "03-trial-3", "suite": "evals/a", "transfer": "evals/b"},
    "read": {"run": "a/b@c0ffee", "suite": "evals/a", "name": "mine", "flags": "--split calibration"},
    "locked": {"trial": "n/00-trial-0", "name": "final", "decision": "evals/a", "transfer": None},
    "agent": {"agent": "copy_model", "task": "gsm", "model": "/hf/x", "name": "one", "seconds": 60, "submissions": 2},
    "mirror": {"checkpoints": ["/runs/n/00-trial-0/checkpoint"], "repo": "a/b", "force": True},
}


def unit_of(kind: str, payload: dict[str, Any]) -> Unit:
    values = {"kind": kind, "name": "n", "label": "trial-3", "function": "f", "payload": payload, "gpu": "H200",
              "timeout": 900, "attempt_usd": 1, "remote": "n", "local": "runs/n"}  # fmt: skip
    return Unit(f"{kind}/n", Order.model_validate(values))


def flags_of(command: str) -> tuple[str, dict[str, str]]:
    """The entry point of a command, and its flags with their values."""
    modal, run, target, *words = shlex.split(command)
    assert (modal, run) == ("modal", "run")
    found: dict[str, str] = {}
    while words:
        flag = words.pop(0)
        assert flag.startswith("--")
        found[flag[2:].replace("-", "_")] = words.pop(0) if words and not words[0].startswith("--") else "True"
    return target.removeprefix("modal_app.py::"), found


def parameters_of(entry_point: str) -> tuple[set[str], set[str]]:
    """All of them, and those that must be given."""
    module = ast.parse((Path(__file__).parents[3] / "modal_app.py").read_text())
    (function,) = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == entry_point]
    names = [argument.arg for argument in function.args.args]
    return set(names), set(names[: len(names) - len(function.args.defaults)])


@pytest.mark.parametrize("kind", [*PAYLOADS, "blend"])
def test_the_command_of_every_kind_is_one_that_its_entry_point_takes(kind: str) -> None:
    payload = PAYLOADS.get(kind) or blend_order(REQUEST, REQUEST.shares(), Provenance())[1].payload
    entry_point, flags = flags_of(command_for(unit_of(kind, payload), None, "night"))
    every, needed = parameters_of(entry_point)
    assert needed <= flags.keys() <= every


def test_the_command_of_a_blend_wants_the_same_blend() -> None:
    unit_id, order = blend_order(REQUEST, REQUEST.shares(), Provenance())
    _, flags = flags_of(command_for(Unit(unit_id, order), None, "night"))
    again = BlendRequest(**{**flags, "timeout": int(flags["timeout"])})  # type: ignore[arg-type]
    assert blend_order(again, again.shares(), Provenance()) == (unit_id, order)


def test_a_scored_trial_is_named_by_its_label() -> None:
    _, flags = flags_of(command_for(unit_of("rescore", PAYLOADS["rescore"]), None, "night"))
    assert flags["trial"] == "trial-3"
