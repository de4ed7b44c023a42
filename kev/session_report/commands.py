"""The command that sees a unit through to its end: a watch of its round, or the entry point that it came from."""

import shlex

from kev.ledger.units import Unit
from kev.records.ledger import Order
from kev.session_report.records import RoundRecords


def command_for(unit: Unit, of_round: RoundRecords | None, session: str) -> str:
    """What sees a unit through to its end: it finds what was started, and starts nothing a second time."""
    if of_round is not None:
        return f"python -m kev.rounds watch {of_round.path} --session {session} --detach"
    words = _entry_point(unit.order)
    return f"modal run modal_app.py::{words}" if words else f"python -m kev.session show --session {session}"


def _entry_point(order: Order) -> str:
    payload = order.payload
    match order.kind:
        case "trial":
            return _words("resume", study=order.name, suite=payload.get("suite"),
                          transfer=payload.get("transfer") or "", trial=order.label)  # fmt: skip
        case "rescore":
            label = str(payload.get("directory")).partition("-")[2]
            return _words("resume", study=payload.get("study"), suite=payload.get("suite"),
                          transfer=payload.get("transfer") or "", trial=label)  # fmt: skip
        case "read":
            flags = f"@{payload['flags']}" if payload.get("flags") else ""
            job = f"{payload.get('run')}@{payload.get('suite')}@{payload.get('name')}{flags}"
            return _words("benchmarks", jobs=job, gpu=order.gpu, timeout=order.timeout)
        case "locked":
            return _words("locked_test", trial=payload.get("trial"), name=payload.get("name"),
                          decision=payload.get("decision") or "", transfer=payload.get("transfer") or "",
                          gpu=order.gpu, timeout=order.timeout, memory_mb=order.memory_mb)  # fmt: skip
        case "blend":
            return _words("interpolate", sft=payload.get("sft"), prefix=payload.get("prefix"),
                          base=payload.get("base") or "", revision=payload.get("revision") or "",
                          alphas=",".join(payload.get("alphas") or ()), study=payload.get("study"),
                          timeout=order.timeout, toward=payload.get("toward") or None,
                          blend_head=payload.get("blend_head") or None)  # fmt: skip
        case "mirror":
            return _words("mirror_snapshots", paths=",".join(payload.get("checkpoints") or ()),
                          repo=payload.get("repo"), force=payload.get("force") or None)  # fmt: skip
        case "agent":
            wanted = {key: payload.get(key) for key in ("agent", "task", "model", "name", "seconds", "submissions")}
            return _words("agent", **wanted, gpu=order.gpu, timeout=order.timeout)
    return ""


def _words(entry_point: str, **arguments: object) -> str:
    """A command line; what is None is left out, and what is True is a switch."""
    words = [entry_point]
    for key, value in arguments.items():
        flag = f"--{key.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None:
            words += [flag, str(value)]
    return shlex.join(words)
