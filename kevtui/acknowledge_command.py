"""`kevtui act acknowledge`: what the key does, without a screen. It spends nothing and starts no command."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kev.errors import NotFound, Refused, UsageError
from kevtui import exit_codes

if TYPE_CHECKING:
    from kevtui.actions.standing import StandingFile
    from kevtui.observe.snapshot import Alert, Snapshot

VERB: Final = "acknowledge"
ALL: Final = "all"
MOST_NAMED: Final = 10


def acknowledge(arguments: argparse.Namespace, report: dict[str, Any]) -> int:
    """Acknowledge, or take that back; fills in `report`. Raises KevError."""
    from kev.clock import SystemClock
    from kevtui.actions.accept import who
    from kevtui.actions.standing import StandingFile
    from kevtui.observe.observer import Observer
    from kevtui.observe.target import resolve
    from kevtui.permission import why_read_only
    from kevtui.settings import read_settings

    if not arguments.target:
        raise UsageError(f"{VERB} needs what is watched, as `kevtui session` takes it: r41, a session, a folder")
    if not arguments.alert:
        raise UsageError(f"{VERB} needs --alert ID; `kevtui session {arguments.target} --json` has the ids, as .alerts")
    target = resolve(arguments.target, root=arguments.root, cwd=Path.cwd())
    why = why_read_only(target.root, asked=arguments.read_only, setting=read_settings().read_only)
    if why and not arguments.dry_run:
        raise Refused(f"nothing may be changed from here: {why}")
    clock = SystemClock()
    observer = Observer(target, clock=clock)
    try:
        snapshot = observer.observe()
    finally:
        observer.close()
    standing = StandingFile(target.root / "runs", target.session, target.state, clock)
    report |= {"alerts": [], "reason": arguments.reason or None, "who": who(), "session": target.session}
    if arguments.withdraw:
        new = _withdraw(arguments, standing)
    else:
        new = _acknowledge(arguments, standing, snapshot)
    report["changed"] = bool(new) and not arguments.dry_run
    report["alerts"] = new
    report["state"] = "dry run" if arguments.dry_run else "done" if new else "nothing to do"
    was, now = ("acknowledged", "raised") if arguments.withdraw else ("raised", "acknowledged")
    report |= {"before": was if new else now, "after": now}
    report["text"] = (
        ", ".join(new)
        if new
        else f"{'none of them is' if arguments.withdraw else 'all of them are'} " + ("acknowledged")
    )
    return exit_codes.FINE


def _acknowledge(arguments: argparse.Namespace, standing: "StandingFile", snapshot: "Snapshot") -> list[str]:
    alerts = list(_meant(arguments.alert, standing, snapshot))
    if arguments.dry_run:
        return [alert.id for alert in alerts if not alert.acknowledged]
    return standing.acknowledge(alerts, reason=arguments.reason)


def _withdraw(arguments: argparse.Namespace, standing: "StandingFile") -> list[str]:
    names = None if ALL in arguments.alert else list(arguments.alert)
    known = standing.standing()
    if names is not None and (unknown := [name for name in names if name not in known]):
        raise NotFound(f"{unknown[0]}: no such alert is on record")
    if arguments.dry_run:
        return [name for name, entry in known.items() if entry.acknowledged and (names is None or name in names)]
    return standing.withdraw(names, reason=arguments.reason)


def _meant(names: list[str], standing: "StandingFile", snapshot: "Snapshot") -> "Iterator[Alert]":
    """The alerts with those ids. One that takes time to be seen may only be known to a dashboard that was watching."""
    from kevtui.observe.snapshot import Alert, Severity

    here = {alert.id: alert for alert in snapshot.alerts}
    if ALL in names:
        yield from here.values()
        return
    known = standing.standing()
    for name in names:
        if name in here:
            yield here[name]
        elif name in known:
            entry = known[name]
            code, _, subject = name.partition(":")
            severity = next((each for each in Severity if each == entry.severity), Severity.INFO)
            yield Alert(code, severity, subject, entry.text, entry.condition, entry.acknowledged is not None)
        else:
            there = ", ".join(list(here)[:MOST_NAMED]) or "none"
            raise NotFound(f"{name}: no alert has that id; there are {there}")
