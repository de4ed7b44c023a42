"""A Snapshot as tables, printed once."""

from collections.abc import Iterator

from kevtui import format as figures
from kevtui.headless.facts import alerts_apart
from kevtui.headless.once_results import readout, reads, verdicts
from kevtui.headless.output import Output
from kevtui.headless.paint import Paint, Row, as_text
from kevtui.headless.styled import Text
from kevtui.observe.snapshot import Alert, LeaseState, Money, Snapshot, Study, Trial, WatcherState


def render(snapshot: Snapshot, output: Output) -> str:
    """Everything known, as text for `output`."""
    return as_text(lines(snapshot, Paint(output.ascii_only, output.width)), output)


def lines(snapshot: Snapshot, paint: Paint) -> Iterator[Text]:
    """The lines in the order a reader asks: where am I, what is wrong, money, motion, results, what happened."""
    yield from _head(snapshot, paint)
    standing = alerts_apart(snapshot)
    if standing:
        alerts: list[Row] = [
            (paint.state(item.severity), item.code, item.subject, f"{item.text}{_known_already(item)}")
            for item in standing
        ]
        yield from paint.section("Alerts", paint.table(("severity", "kind", "subject", "what"), alerts))
    if snapshot.findings:
        findings: list[Row] = [
            (item.path, item.reason, figures.age(item.last_good_age_s)) for item in snapshot.findings
        ]
        yield from paint.section(
            "Findings",
            paint.table(("file", "why it cannot be believed", "last good"), findings),
            note="what such a file last held stays in use",
        )
    yield from _money(snapshot.money, paint)
    yield from _studies(snapshot, paint)
    if snapshot.trials:
        trials = [_trial(trial, paint) for trial in snapshot.trials]
        yield from paint.section("Trials", paint.table(TRIAL_COLUMNS, trials))
    yield from _leases(snapshot, paint)
    yield from reads(snapshot.reads, paint)
    yield from readout(snapshot.readout, paint)
    yield from verdicts(snapshot.verdicts, paint)
    if snapshot.events:
        events: list[Row] = [
            (_moment(item.at), paint.state(item.severity), item.subject, item.text) for item in snapshot.events
        ]
        yield from paint.section("Events", paint.table(("at", "severity", "subject", "what"), events))


def _known_already(alert: Alert) -> str:
    return " (acknowledged)" if alert.acknowledged else ""


def _head(snapshot: Snapshot, paint: Paint) -> Iterator[Text]:
    head = [paint.text(snapshot.title, "bold")]
    if snapshot.sample:
        head.append(paint.text("   SAMPLE: made up, no such session ran", "bold yellow"))
    if snapshot.replay:
        head.append(paint.text(f"   REPLAY of {snapshot.taken_at:%Y-%m-%d %H:%M:%S}Z", "bold yellow"))
    known = [
        ("root", snapshot.root),
        ("spec", snapshot.spec),
        ("state", snapshot.state_file),
        ("taken", f"{snapshot.taken_at:%Y-%m-%dT%H:%M:%SZ}"),
        ("", snapshot.polling),
    ]
    rest = "   ".join(f"{name} {words}".strip() for name, words in known if words)
    return iter((Text.of(*head), paint.text(rest, "dim")))


def _money(money: Money, paint: Paint) -> Iterator[Text]:
    why = money.committed_note
    committed = why if money.committed_complete else f"incomplete: {why or 'a bound is not known'}"
    of = f"of {_moment(money.reading_at)}"
    figured = [
        ("authorization", figures.money(money.authorization), ""),
        ("baseline", figures.money(money.baseline), "metered before the session began"),
        ("metered", figures.money(money.metered), ""),
        ("spent", figures.money(money.spent), ""),
        ("committed, at most", figures.money(money.committed), committed),
        ("reserve", figures.money(money.reserve), ""),
        ("headroom", figures.money(money.headroom), ""),
        ("burn per hour", figures.money(money.burn_per_hour), ""),
        ("exhausted in", figures.age(money.exhausted_in_s), money.exhaustion_note),
        ("AI gateway", figures.money(money.gateway_spent), f"of {figures.money(money.gateway_authorization)}"),
        ("reading is old", figures.age(money.reading_age_s), f"STALE, {of}" if money.reading_stale else of),
    ]
    # A figure that is not known is shown as such, never left out.
    known: list[Row] = [
        (name, words, note if words != figures.MISSING else _unknown(name, money)) for name, words, note in figured
    ]
    title = "Money (simulated)" if money.simulated else "Money"
    return paint.section(title, paint.table(("", ">", ""), known), note=f"from {money.source}" if money.source else "")


def _unknown(name: str, money: Money) -> str:
    if name == "reading is old" and money.reading_stale:
        return f"STALE, of {_moment(money.reading_at)}, which is ahead of this machine's clock"
    return f"not known: {money.exhaustion_note}" if name == "exhausted in" and money.exhaustion_note else "not known"


def _studies(snapshot: Snapshot, paint: Paint) -> Iterator[Text]:
    if not snapshot.studies:
        return paint.section("Studies", paint.lines(["none known"], "dim"))
    columns = ("study", "state", "in the file's words", "gpu", ">timeout", "weights", ">bound", ">budget", "committed")
    rows = [_study(study, paint) for study in snapshot.studies]
    return paint.section("Studies", paint.table(columns, rows))


def _study(study: Study, paint: Paint) -> Row:
    weights = {True: "full", False: "LoRA", None: figures.MISSING}[study.full_weight]
    return (
        study.name,
        paint.state(study.state),
        study.status_text,
        study.gpu or figures.MISSING,
        figures.age(study.timeout_s),
        weights,
        figures.money(study.bound),
        figures.money(study.budget),
        "settled" if study.settled else "counted" if study.launched else "not launched",
    )


TRIAL_COLUMNS = (
    "trial", "state", ">step", ">loss", ">steps/min", "rate from", "ends about", "stopped at", ">try", "call",
    ">log age", ">work at risk", "remark",
)  # fmt: skip


def _trial(trial: Trial, paint: Paint) -> Row:
    rate, projection = trial.rate, trial.projection
    ends = figures.MISSING
    if projection is not None:
        ends = _moment(projection.finish_at) + (" PAST ITS TIMEOUT" if projection.past_timeout else "")
    step = figures.MISSING if trial.step is None else f"{trial.step} of {_known(trial.steps)}"
    finished = "finished" if trial.finished and "finished" not in trial.note else ""
    remarks = [trial.note, finished, "" if rate else trial.rate_note, trial.error or ""]
    if trial.scoring is not None:
        remarks.insert(0, "scoring {} of {}".format(*trial.scoring))
    if trial.resume_step is not None:
        remarks.insert(0, f"resume point at step {trial.resume_step}")
    return (
        trial.id,
        paint.state(trial.state),
        step,
        figures.MISSING if trial.loss is None else f"{trial.loss:.3f}",
        f"{rate.steps_per_minute:.1f}" if rate else figures.MISSING,
        f"{rate.basis}, {figures.age(rate.span_s)}" if rate else "",
        ends,
        _moment(projection.timeout_at) if projection else figures.MISSING,
        _attempts(trial),
        trial.call or figures.MISSING,
        figures.age(trial.log_age_s),
        figures.age(trial.work_at_risk_s),
        "; ".join(remark for remark in remarks if remark),
    )


def _attempts(trial: Trial) -> str:
    if trial.attempts_used is None and trial.attempts_allowed is None:
        return figures.MISSING
    return f"{_known(trial.attempts_used)} of {_known(trial.attempts_allowed)}"


def _leases(snapshot: Snapshot, paint: Paint) -> Iterator[Text]:
    watcher = snapshot.watcher
    words = "" if watcher.state is WatcherState.NONE else f" {figures.age(watcher.age_s)} ago"
    words += f"   {watcher.note}" if watcher.note else ""
    heading = Text.of("  watcher ", paint.state(watcher.state), paint.text(words))
    if not snapshot.leases:
        return paint.section("Leases", [heading], paint.lines(["no lease seen"], "dim"))
    nonce = {True: "is the ledger's", False: "NOT the ledger's", None: figures.MISSING}
    rows: list[Row] = [
        (
            lease.trial,
            paint.state(lease.state),
            figures.age(lease.unchanged_s),
            # The stamp is of another clock: one that is ahead has no age to show.
            figures.age(None if lease.state is LeaseState.CLOCK_AHEAD else lease.stamp_age_s),
            figures.MISSING if lease.skew_s is None else f"{lease.skew_s:+.0f} s",
            nonce[lease.nonce_matches],
            _known(lease.attempt),
            lease.call or figures.MISSING,
        )
        for lease in snapshot.leases
    ]
    columns = ("trial", "state", ">unchanged for", ">stamp age", ">clock skew", "nonce", ">attempt", "call")
    return paint.section("Leases", [heading], paint.table(columns, rows))


def _moment(moment: object) -> str:
    return figures.MISSING if moment is None else f"{moment:%Y-%m-%d %H:%M}Z"


def _known(value: int | None) -> str:
    return figures.MISSING if value is None else str(value)
