"""Launching the reads of a round."""

from decimal import Decimal

from kev.errors import KevError
from kev.rounds.guards import candidate_of
from kev.rounds.launch_reads import readable_arms
from kev.rounds.read_orders import arm_reads, has_landed
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Provenance, Wanted
from kevtui import format as shown
from kevtui.actions.checks import MONEY, registered_checks, stage_checks
from kevtui.actions.orders import bound_of, cards_of, is_large, missing_of, states_of
from kevtui.actions.proposal import Check, Proposal, Wish, digest_of
from kevtui.actions.truth import Truth, guarded, known, round_name, spec_digest
from kevtui.actions.verbs import VERBS


def propose_reads(truth: Truth, wish: Wish) -> Proposal:
    """The reads of the round's arms, or of one stage for the candidate: a read of a test is made once."""
    name, _, stage = (wish.target or truth.only_round()).partition("/")
    loaded = truth.round(name)
    arm = wish.arm
    checks: list[Check] = []
    wanted: list[Wanted] = []
    missing: list[Wanted] | None = None
    trouble = None
    try:
        if stage:
            arm = arm or candidate_of(loaded.spec, truth.root)
            checks += stage_checks(loaded, stage, arm)
        wanted = _unread(truth, loaded, [arm] if stage and arm else readable_arms(loaded, arm), stage or None)
        missing = missing_of(truth, wanted)
    except KevError as error:
        trouble = str(error)
    bound = None if missing is None else bound_of(order for _, order in missing)
    orders = [order for _, order in missing or []]
    once = [order.once for order in orders if order.once is not None]
    checks = [
        *registered_checks(loaded),
        *checks,
        Check("it is known what to read", trouble is None, trouble or ""),
        *guarded("the session is not paused", lambda: [truth.not_paused()]),
        *guarded(MONEY, lambda: truth.money_checks(bound) if missing != [] else []),
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
        state=digest_of([spec_digest(loaded), stage, who, *states_of(truth, wanted)]),
        weight=VERBS["reads"].weight,
        checks=tuple(checks),
        facts=(
            (
                "reads",
                "not known"
                if missing is None
                else f"{len(orders)}, on {cards_of(orders) if orders else shown.MISSING}",
            ),
            *((("read once", f"{len(once)} of them: such a test can never be read again"),) if once else ()),
            *known(lambda: truth.money_facts(bound)),
        ),
        lasting="a read that was begun is paid for; a test is read once, whatever comes of it",
        typed=_typed_for_reads(wish, bound, bool(once or stage), who or name),
        already="no read is missing that could be launched" if missing == [] else "",
        bound=None if bound is None else str(bound),
        before="not known" if missing is None else f"{len(wanted) - len(missing)} of {len(wanted)} reads started",
        after=f"{len(wanted)} of {len(wanted)} reads started",
        **truth.record(),
    )


def _typed_for_reads(wish: Wish, bound: Decimal | None, once: bool, name: str) -> str:
    return name if once or is_large(bound, wish.name_above_usd) else ""


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
