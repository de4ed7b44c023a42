"""What a dialog says of an action, from the report of `kevtui act --dry-run`. Texts from files are made safe here."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from kev.text import visible
from kevtui.glyphs import BAD, GOOD, NOTHING, to_ascii
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Role

_MARK = {True: (GOOD, Role.GOOD), False: (BAD, Role.BAD), None: (NOTHING, Role.DIM)}
_WORD = {True: "yes", False: "NO", None: "later"}


def body(report: Mapping[str, Any], ink: Ink) -> Text:
    """Checklist, figures, what is for good, and the exact command."""
    text, ascii_only, dim = Text(), ink.ascii_only, ink.styles[Role.DIM]
    if report.get("already"):
        text.append(f"Nothing to do: {_safe(report['already'], ascii_only)}.\n\n", style="bold")
    checks = report.get("checks") or ()
    for check in checks:
        mark, role = _MARK[check["met"]]
        text.append(f"{to_ascii(mark) if ascii_only else mark} {_WORD[check['met']]:<6}", style=ink.styles[role])
        detail = f": {check['detail']}" if check["detail"] else ""
        text.append(f"{_safe(check['text'] + detail, ascii_only)}\n")
    if checks:
        text.append("\n")
    facts = dict(report.get("preview") or {})
    width = max((len(_safe(name, ascii_only)) for name in facts), default=0)
    for name, value in facts.items():
        text.append(f"{_safe(name, ascii_only):<{width}}  ", style=dim)
        text.append(f"{_safe(value, ascii_only)}\n")
    if report.get("cannot_be_undone"):
        text.append("\ncannot be undone  ", style="bold")
        text.append(f"{_safe(report['cannot_be_undone'], ascii_only)}\n")
    if report.get("command"):
        text.append("\n$ ", style=dim)
        text.append(f"{_safe(report['command'], ascii_only)}\n", style=dim)
    if report.get("text"):
        text.append(f"\n{_safe(report['text'], ascii_only)}\n", style="bold")
    text.rstrip()
    return text


def confirm_words(report: Mapping[str, Any]) -> str:
    """What the confirming key does, with its price: "launch r41 for at most $61.38"."""
    from decimal import Decimal

    from kevtui import format as shown

    bound = report.get("bound_usd")
    price = f" for at most {shown.money(Decimal(bound))}" if bound and Decimal(bound) else ""
    return f"{report.get('verb', '')} {report.get('target', '')}{price}"


def _safe(text: object, ascii_only: bool) -> str:
    shown = visible(str(text))
    return to_ascii(shown) if ascii_only else shown
