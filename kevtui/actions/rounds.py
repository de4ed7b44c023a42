"""Actions on a round: validate, deploy, launch, start the watcher, launch reads, read out."""

from decimal import Decimal

from kev.errors import KevError
from kev.records.ledger import Order
from kev.rounds.engine import DEFAULT_APP
from kev.rounds.guards import candidate_of, confirmation_problems
from kev.rounds.launch_reads import readable_arms
from kev.rounds.problems import Severity
from kev.rounds.read_orders import arm_reads, has_landed
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Provenance, Wanted, trial_orders
from kev.rounds.validate import Validation, validate
from kevtui import format as shown
from kevtui.actions.proposal import Check, Proposal, Wish, digest_of
from kevtui.actions.truth import Truth, guarded, known, round_name, spec_digest
from kevtui.actions.verbs import VERBS

SHOWN = 3
"""Problems of a spec that a check names."""

MONEY = "the money is known"


def propose_validate(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())
    return Proposal(
        verb="validate",
        target=round_name(loaded),
        root=str(truth.root),
        command=("-m", "kev.rounds", "validate", *truth.spec_options(loaded)),
        state=spec_digest(loaded),
        weight=VERBS["validate"].weight,
        facts=(("spec", str(loaded.path)), ("changes", "nothing")),
        **truth.record(),
    )


def propose_readout(truth: Truth, wish: Wish) -> Proposal:
    loaded = truth.round(wish.target or truth.only_round())
    from kev.rounds.places import readout_path

    path = readout_path(loaded.spec, truth.root)
    rows = [f"{tag} {_has_rows(truth, tag)}" for tag in loaded.spec.reads]
    return Proposal(
        verb="readout",
        target=round_name(loaded),
        root=str(truth.root),
        command=("-m", "kev.rounds", "readout", *truth.spec_options(loaded)),
        state=digest_of([spec_digest(loaded), *rows]),
        weight=VERBS["readout"].weight,
        facts=(("writes", str(path)), ("costs", "nothing; it reads the rows that are here")),
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
    try:
        wanted = trial_orders(loaded.spec, truth.root, Provenance())
    except KevError as error:
        trouble = str(error)
    missing = known(lambda: _missing(truth, wanted)) if not trouble else []
    bound = bound_of(missing)
    checks = [
        *registered_checks(loaded),
        Check("every study has a bound", trouble is None, trouble or ""),
        *guarded("its names are unused", lambda: _names(truth, wanted)),
        *guarded("the session is not paused", lambda: [truth.not_paused()]),
        *guarded(MONEY, lambda: truth.money_checks(bound)),
        Check("the deployed sources are these", None, "the launch compares them before anything starts"),
    ]
    studies = [(study, each) for study, each in by_study(missing).items()]
    facts = [
        *((study, _cards(orders)) for study, orders in studies),
        *known(lambda: truth.money_facts(bound)),
    ]
    nothing = bool(wanted) and not missing and not trouble
    return Proposal(
        verb="launch",
        target=name,
        root=str(truth.root),
        command=("-m", "kev.rounds", "launch", *truth.options(loaded)),
        state=digest_of([spec_digest(loaded), *_states(truth, wanted)]),
        weight=VERBS["launch"].weight,
        checks=tuple(checks),
        facts=tuple(facts),
        lasting="what runs costs until it ends or is cancelled; a study's name is never used again",
        typed=name if bound > Decimal(str(wish.name_above_usd)) else "",
        already="every trial of it was started before" if nothing else "" if wanted or trouble else "it trains nothing",
        bound=str(bound),
        before=f"{len(wanted) - len(missing)} of {len(wanted)} trials started",
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


def propose_reads(truth: Truth, wish: Wish) -> Proposal:
    """The reads of the round's arms, or of one stage for the candidate: a read of a test is made once."""
    name, _, stage = (wish.target or truth.only_round()).partition("/")
    loaded = truth.round(name)
    arm = wish.arm
    checks: list[Check] = []
    wanted: list[Wanted] = []
    trouble = None
    try:
        if stage:
            arm = arm or candidate_of(loaded.spec, truth.root)
            checks += stage_checks(loaded, stage, arm)
        wanted = _unread(truth, loaded, [arm] if stage and arm else readable_arms(loaded, arm), stage or None)
    except KevError as error:
        trouble = str(error)
    missing = known(lambda: _missing(truth, wanted)) if not trouble else []
    bound = bound_of(missing)
    once = [order.once for _, order in missing if order.once is not None]
    checks = [
        *registered_checks(loaded),
        *checks,
        Check("it is known what to read", trouble is None, trouble or ""),
        *guarded("the session is not paused", lambda: [truth.not_paused()]),
        *guarded(MONEY, lambda: truth.money_checks(bound) if missing else []),
        Check("the deployed sources are these", None, "compared before anything starts"),
    ]
    options = ["--stage", stage] if stage else []
    options += (["--arm", arm] if stage else ["--arms", arm]) if arm else []
    who = arm or ""
    return Proposal(
        verb="reads",
        target=f"{round_name(loaded)}/{stage}" if stage else round_name(loaded),
        root=str(truth.root),
        command=("-m", "kev.rounds", "launch-reads", *truth.options(loaded), *options),
        state=digest_of([spec_digest(loaded), stage, who, *_states(truth, wanted)]),
        weight=VERBS["reads"].weight,
        checks=tuple(checks),
        facts=(
            ("reads", f"{len(missing)}, on {_cards([order for _, order in missing]) if missing else shown.MISSING}"),
            *((("read once", f"{len(once)} of them: such a test can never be read again"),) if once else ()),
            *known(lambda: truth.money_facts(bound)),
        ),
        lasting="a read that was begun is paid for; a test is read once, whatever comes of it",
        typed=_typed_for_reads(wish, bound, bool(once or stage), who or name),
        already="no read is missing that could be launched" if not missing and not trouble else "",
        bound=str(bound),
        before=f"{len(wanted) - len(missing)} of {len(wanted)} reads started",
        after=f"{len(wanted)} of {len(wanted)} reads started",
        **truth.record(),
    )


def _typed_for_reads(wish: Wish, bound: Decimal, once: bool, name: str) -> str:
    return name if once or bound > Decimal(str(wish.name_above_usd)) else ""


# ------------------------------------------------------------------------------------------------- shared by verbs


def registered_checks(loaded: LoadedSpec) -> list[Check]:
    """Whether a spec may be launched or watched, as the engine asks it."""

    def look() -> list[Check]:
        result: Validation = validate(loaded.path, loaded.root)
        problems = result.of(Severity.PROBLEM)
        named = "; ".join(str(problem) for problem in problems[:SHOWN])
        more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        recorded = loaded.spec.archive
        return [
            Check("the spec has no problem", not problems, named + more),
            Check("it is registered", result.registration is not None,
                  "" if result.registration else "commit the spec with its section in the plan document"),
            *([Check("it is no recorded round", False, f"recorded in {recorded}")] if recorded else []),
        ]  # fmt: skip

    return guarded("the spec can be checked", look)


def stage_checks(loaded: LoadedSpec, stage: str, arm: str) -> list[Check]:
    """Whether a stage may be read or decided, one check that lists every rule that forbids it."""

    def look() -> list[Check]:
        problems = confirmation_problems(loaded.spec, loaded.root, stage, arm)
        if not problems:
            return [Check(f"stage {stage} may be decided for {arm}", True)]
        return [Check(f"stage {stage} may be decided for {arm}", False, problem) for problem in problems]

    return guarded(f"stage {stage} may be decided for {arm}", look)


def bound_of(missing: list[Wanted]) -> Decimal:
    return sum((order.attempt_usd * order.attempts for _, order in missing), Decimal(0))


def by_study(missing: list[Wanted]) -> dict[str, list[Order]]:
    found: dict[str, list[Order]] = {}
    for _, order in missing:
        found.setdefault(order.name, []).append(order)
    return found


def _cards(orders: list[Order]) -> str:
    first = orders[0]
    bound = sum((order.attempt_usd * order.attempts for order in orders), Decimal(0))
    tries = f", up to {first.attempts} attempts" if first.attempts > 1 else ""
    gpus = ", ".join(dict.fromkeys(order.gpu or "no card" for order in orders))
    return f"{len(orders)} × {gpus}, {shown.age(first.timeout)} each{tries}, {shown.money(bound)}"


def _missing(truth: Truth, wanted: list[Wanted]) -> list[Wanted]:
    known = truth.units.by_id
    return [(name, order) for name, order in wanted if name not in known or not known[name].counted]


def _states(truth: Truth, wanted: list[Wanted]) -> list[str]:
    def look() -> list[tuple[str, str]]:
        known = truth.units.by_id
        return [
            (name, f"{len(known[name].counted)} {known[name].outcome}" if name in known else "new")
            for name, _ in wanted
        ]

    return [" ".join(each) for each in known(look)]


def _names(truth: Truth, wanted: list[Wanted]) -> list[Check]:
    from kev import files

    here = set(files.list_names(truth.runs))
    taken = [
        name for name in dict.fromkeys(order.name for _, order in wanted)
        if not truth.units.of_name(name) and (name in here or f"{name}.spawn.json" in here)
    ]  # fmt: skip
    detail = f"{', '.join(taken[:SHOWN])}: a name is never used again" if taken else ""
    return [Check("its names are unused", not taken, detail)]


def _unread(truth: Truth, loaded: LoadedSpec, arms: list[str], stage: str | None) -> list[Wanted]:
    found: dict[str, Wanted] = {}
    for arm in arms:
        for unit_id, order in arm_reads(
            loaded.spec, truth.root, arm, Provenance(), stage=stage, parents=stage is not None
        ):
            place = f"{order.local}/decision" if order.kind == "locked" else order.local
            if not has_landed(truth.root, place):
                found.setdefault(unit_id, (unit_id, order))
    return list(found.values())


def _has_rows(truth: Truth, tag: str) -> str:
    from kev import files

    names = [name for name in files.list_names(truth.runs) if tag in name]
    stamps = [f"{name}:{_stamp(truth, name)}" for name in names]
    return ",".join(stamps)


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
