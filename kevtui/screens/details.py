"""Everything known of one thing, as text that can be selected and copied."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from kev.text import visible
from kevtui import format as shown
from kevtui.observe.snapshot import Lease, LeaseState, Study, Trial
from kevtui.screens.over import OverScreen

Facts = list[tuple[str, str]]
"""(name, value), in the order to show them."""


def describe(trial: Trial, lease: Lease | None, study: Study | None) -> list[tuple[str, Facts]]:
    """(heading, facts) of a trial. A fact that is not known is listed as missing, so that its absence is seen."""
    return [
        (trial.id, _of_trial(trial)),
        ("Progress", _of_progress(trial)),
        ("Lease", _of_lease(lease)),
        ("Study", _of_study(study)),
    ]


def _of_trial(trial: Trial) -> Facts:
    tries = f"{_number(trial.attempts_used)} of {_number(trial.attempts_allowed)}"
    return [
        ("state", f"{trial.state}, {trial.note}" if trial.note else str(trial.state)),
        ("attempts", tries),
        ("call", trial.call or shown.MISSING),
        ("started", f"{trial.started_at:%Y-%m-%d %H:%M}Z" if trial.started_at else shown.MISSING),
        ("error", trial.error or "none"),
        ("log", trial.log or shown.MISSING),
        ("last log line", _ago(trial.log_age_s)),
    ]


def _of_progress(trial: Trial) -> Facts:
    rate, projection = trial.rate, trial.projection
    facts = [
        ("step", f"{_number(trial.step)} of {_number(trial.steps)}{', finished' if trial.finished else ''}"),
        ("loss", shown.MISSING if trial.loss is None else f"{trial.loss:.4g}"),
        (
            "step rate",
            f"{rate.steps_per_minute:.1f} steps/min over {shown.age(rate.span_s)}, by {rate.basis}"
            if rate
            else trial.rate_note or shown.MISSING,
        ),
        ("resume point", f"step {trial.resume_step:,}" if trial.resume_step is not None else shown.MISSING),
        ("work at risk", shown.age(trial.work_at_risk_s)),
    ]
    if projection:
        facts += [
            ("finishes", f"{shown.clock(projection.finish_at)}, in {shown.age(projection.remaining_s)}"),
            ("between", f"{shown.age(projection.remaining_low_s)} and {shown.age(projection.remaining_high_s)}"),
            (
                "timeout",
                f"{shown.clock(projection.timeout_at)}{', before it finishes' if projection.past_timeout else ''}",
            ),
        ]
    if trial.scoring:
        facts.append(("scoring", f"{trial.scoring[0]:,} of {trial.scoring[1]:,}"))
    return facts


def _of_lease(lease: Lease | None) -> Facts:
    if lease is None:
        return [("state", str(LeaseState.UNKNOWN))]
    nonce = {None: shown.MISSING, True: "matches the ledger", False: "does not match the ledger"}[lease.nonce_matches]
    return [
        ("state", str(lease.state)),
        ("heartbeat changed", _ago(lease.unchanged_s)),
        ("heartbeat's own stamp", _ago(lease.stamp_age_s)),
        ("remote clock ahead by", f"{lease.skew_s:+.1f} s" if lease.skew_s is not None else shown.MISSING),
        ("nonce", nonce),
        ("attempt", _number(lease.attempt)),
        ("call", lease.call or shown.MISSING),
    ]


def _of_study(study: Study | None) -> Facts:
    if study is None:
        return [("state", shown.MISSING)]
    weights = {None: shown.MISSING, True: "full weights", False: "adapter"}[study.full_weight]
    return [
        ("name", study.name),
        (
            "state",
            str(study.state) if study.status_text in ("", study.state) else f"{study.state}: {study.status_text}",
        ),
        ("GPU", study.gpu or shown.MISSING),
        ("timeout", shown.age(study.timeout_s)),
        ("trains", weights),
        ("bound", shown.money(study.bound)),
        ("budget", shown.money(study.budget)),
        ("settled", "yes, can cost no more" if study.settled else "no"),
        ("trials", _number(len(study.trials))),
    ]


def _number(value: int | None) -> str:
    return shown.MISSING if value is None else f"{value:,}"


def _ago(seconds: float | None) -> str:
    text = shown.age(seconds)
    return f"{text} ago" if seconds is not None and seconds >= 0 else text


def details_text(sections: list[tuple[str, Facts]]) -> Text:
    """The sections with names in one column; what came from files is made visible first."""
    width = max(len(name) for _, facts in sections for name, _ in facts)
    text = Text()
    for heading, facts in sections:
        text.append(f"\n{visible(heading)}\n" if text else f"{visible(heading)}\n", style="bold")
        for name, value in facts:
            text.append(f"  {name:<{width}}  ", style="dim")
            text.append(f"{visible(value)}\n")
    text.rstrip()
    return text


class DetailsScreen(OverScreen[None]):
    """Sections of facts, such as all of one trial. `y` copies everything, the mouse selects parts, escape closes."""

    DEFAULT_CSS = """
    DetailsScreen { align: center middle; }
    DetailsScreen > VerticalScroll {
        width: 90%; max-width: 110; height: auto; max-height: 90%; padding: 0 1;
        background: $surface; border: solid $primary;
    }
    DetailsScreen.ascii > VerticalScroll { border: ascii $primary; scrollbar-size: 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "close", show=False),
        Binding("y", "copy", "copy all", show=False),
        Binding("j", "scroll_rows(1)", "down", show=False),
        Binding("k", "scroll_rows(-1)", "up", show=False),
    ]

    def __init__(self, sections: list[tuple[str, Facts]], *, ascii: bool = False) -> None:  # noqa: A002
        # A scroll bar is drawn with half blocks.
        super().__init__(classes="ascii" if ascii else None)
        self._ascii = ascii
        self._facts = sections

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text(), markup=False)

    def show(self, sections: list[tuple[str, Facts]]) -> None:
        """Replace what is shown, where it differs."""
        if sections != self._facts:
            self._facts = sections
            self.query_one(Static).update(self._text())

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._text().plain)
        self.query_one(VerticalScroll).border_subtitle = "copied"

    def action_scroll_rows(self, rows: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    def _text(self) -> Text:
        text = details_text(self._facts)
        if self._ascii:
            text.plain = text.plain.replace("–", "-").encode("ascii", "replace").decode()
        return text
