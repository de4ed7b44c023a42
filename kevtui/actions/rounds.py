"""Actions on a round: validate, deploy, launch, start the watcher, read out."""

from contextlib import suppress
from decimal import Decimal

from kev import files
from kev.errors import KevError
from kev.rounds.engine import DEFAULT_APP
from kev.rounds.places import readout_path
from kev.rounds.trial_orders import Provenance, Wanted, trial_orders
from kevtui import format as shown
from kevtui.actions.checks import MONEY, SHOWN, registered_checks
from kevtui.actions.orders import bound_of, by_study, cards_of, is_large, missing_of, states_of
from kevtui.actions.proposal import Check, Proposal, Wish, digest_of
from kevtui.actions.truth import Truth, guarded, known, round_name, spec_digest
from kevtui.actions.verbs import VERBS


def propose_validate(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())
    return Proposal(
        verb="validate",
        target=round_name(loaded),
        root=str(truth.root),
        command=("-m", "kev.rounds", "validate", *truth.spec_options(loaded)),
        state=spec_digest(loaded),
        weight=VERBS["validate"].weight,
        facts=(("spec", truth.shown(loaded.path)), ("changes", "nothing")),
        **truth.record(),
    )


def propose_readout(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())
    path = readout_path(loaded.spec, truth.root)
    rows = [f"{tag} {_has_rows(truth, tag)}" for tag in loaded.spec.reads]
    return Proposal(
        verb="readout",
        target=round_name(loaded),
        root=str(truth.root),
        command=("-m", "kev.rounds", "readout", *truth.spec_options(loaded)),
        state=digest_of([spec_digest(loaded), *rows]),
        weight=VERBS["readout"].weight,
        facts=(("writes", truth.shown(path)), ("costs", "nothing; it reads the rows that are here")),
        before="as it was" if path.exists() else "no read-out",
        after="computed from the rows that are here",
        **truth.record(),
    )


def propose_deploy(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())
    app = loaded.spec.app or DEFAULT_APP
    gpus = sorted({study.gpu for study in loaded.spec.studies.values() if isinstance(study.gpu, str)})

    def waiting() -> list[Check]:
        live = [unit.id for unit in truth.units.open() if unit.live is not None and unit.order.app in (app, None)]
        detail = f"{', '.join(live[:SHOWN])} would be refused for its sources" if live else ""
        return [Check("nothing of this app waits for a machine", not live, detail)]

    program = truth.root / "modal_app.py"
    checks = [Check("the app's program is here", program.is_file(), "" if program.is_file() else f"{program}: missing")]
    return Proposal(
        verb="deploy",
        target=round_name(loaded),
        root=str(truth.root),
        command=("-m", "modal", "deploy", "modal_app.py"),
        environment=(("KEV_APP_NAME", app), *((("KEV_GPU", gpus[0]),) if len(gpus) == 1 else ())),
        state=digest_of([app, _sources(truth), *gpus]),
        weight=VERBS["deploy"].weight,
        checks=(*checks, *guarded("the ledger can be read", waiting)),
        facts=(("app", app), ("cards", ", ".join(gpus) or shown.MISSING), ("sources", _sources(truth)[:12])),
        lasting="what was deployed under this name before is replaced; a call that still waits is then refused",
        before="whatever is deployed",
        after=f"sources {_sources(truth)[:12]}",
        **truth.record(),
    )


def propose_launch(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())
    name, wanted, trouble = round_name(loaded), [], None
    missing: list[Wanted] | None = None
    try:
        wanted = trial_orders(loaded.spec, truth.root, Provenance())
    except KevError as error:
        trouble = str(error)
    else:
        with suppress(KevError):  # a check says that the ledger cannot be read
            missing = missing_of(truth, wanted)
    bound = None if missing is None else bound_of(order for _, order in missing)
    checks = [
        *registered_checks(loaded),
        Check("every study has a bound", trouble is None, trouble or ""),
        *guarded("its names are unused", lambda: _names(truth, wanted)),
        *guarded("the session is not paused", lambda: [truth.not_paused()]),
        *guarded(MONEY, lambda: truth.money_checks(bound)),
        Check("the deployed sources are these", None, "the launch compares them before anything starts"),
    ]
    facts = [
        *((study, cards_of(orders)) for study, orders in by_study(missing or []).items()),
        *known(lambda: truth.money_facts(bound)),
    ]
    nothing = bool(wanted) and missing == []
    return Proposal(
        verb="launch",
        target=name,
        root=str(truth.root),
        command=("-m", "kev.rounds", "launch", *truth.options(loaded)),
        state=digest_of([spec_digest(loaded), *states_of(truth, wanted)]),
        weight=VERBS["launch"].weight,
        checks=tuple(checks),
        facts=tuple(facts),
        lasting="what runs costs until it ends or is cancelled; a study's name is never used again",
        typed=name if is_large(bound, wish.name_above_usd) else "",
        already="every trial of it was started before" if nothing else "" if wanted or trouble else "it trains nothing",
        bound=None if bound is None else str(bound),
        before="not known" if missing is None else f"{len(wanted) - len(missing)} of {len(wanted)} trials started",
        after=f"{len(wanted)} of {len(wanted)} trials started",
        **truth.record(),
    )


def propose_watch(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())

    def launched() -> list[Check]:
        absent = [study for study in loaded.spec.studies if not truth.units.of_name(study)]
        return [Check("its studies were launched", not absent, f"{', '.join(absent[:SHOWN])} not" if absent else "")]

    alive = bool(known(lambda: [("", "")] if truth.watcher_alive() else []))
    record = truth.watcher if alive else None
    checks = [
        *registered_checks(loaded),
        *guarded("its studies were launched", launched),
        *guarded("the session is known", lambda: [Check("the session is known", True, truth.session.name)]),
    ]
    committed = known(lambda: truth.money_facts(Decimal(0)))
    return Proposal(
        verb="watch",
        target=round_name(loaded),
        root=str(truth.root),
        command=("-m", "kev.rounds", "watch", *truth.options(loaded), "--detach"),
        state=digest_of([spec_digest(loaded), record.process if record else "none", alive]),
        weight=VERBS["watch"].weight,
        checks=tuple(checks),
        facts=(
            ("may start", "continuations within their bounds, and the reads of arms that are done"),
            ("each under", "the spend rule, asked again each time"),
            *((name, value) for name, value in committed if name != "bound"),
        ),
        lasting="nothing: the watcher can be ended and started again",
        already=f"process {record.process} on {record.host} watches" if record else "",
        before="no watcher",
        after="a watcher",
        **truth.record(),
    )


def _names(truth: Truth, wanted: list[Wanted]) -> list[Check]:
    here = set(files.list_names(truth.runs))
    taken = [
        name for name in dict.fromkeys(order.name for _, order in wanted)
        if not truth.units.of_name(name) and (name in here or f"{name}.spawn.json" in here)
    ]  # fmt: skip
    detail = f"{', '.join(taken[:SHOWN])}: a name is never used again" if taken else ""
    return [Check("its names are unused", not taken, detail)]


def _has_rows(truth: Truth, tag: str) -> str:
    return ",".join(f"{name}:{_stamp(truth, name)}" for name in files.list_names(truth.runs) if tag in name)


def _stamp(truth: Truth, name: str) -> int:
    try:
        return (truth.runs / name / "rows.json").stat().st_mtime_ns
    except OSError:
        return 0


def _sources(truth: Truth) -> str:
    from kev.worker.sources import digest, source_hashes

    try:
        return digest(source_hashes(truth.root))
    except (KevError, OSError):
        return "unknown"
