"""The trials of a round as orders for the gate: one unit each, at what its study was admitted for."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any

from kev import budget
from kev.document import read_value
from kev.ledger.units import rescore_id, trial_id
from kev.records.ledger import Order
from kev.records.plan import is_full_weight
from kev.records.spec import DEFAULT_GPU, RoundSpec, Study
from kev.worker.orders import RESCORE_FUNCTION, label_of, trial_directory, trial_function

Wanted = tuple[str, Order]
"""A unit's id and its order."""

RESCORE_TIMEOUT_S = 7200
RESCORE_MEMORY_MB = 131_072
"""Large models do not load into what the function has; the bound of a read counts more than this."""

MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What every order says of where it comes from."""

    sources: str = ""
    """Digest of the launcher's sources; a container refuses another."""
    commit: str | None = None
    session: str | None = None


def trial_orders(spec: RoundSpec, root: Path, provenance: Provenance) -> list[Wanted]:
    """Every trial of every study, in the order of the spec. Raises NotFound, DamagedFile or Refused."""
    return [wanted for name, study in spec.studies.items() for wanted in _study(spec, root, name, study, provenance)]


def _study(spec: RoundSpec, root: Path, name: str, study: Study, provenance: Provenance) -> Iterable[Wanted]:
    plan: list[Any] = read_value(root / study.plan)
    full_weight = is_full_weight(plan)
    bound = budget.check_study(name, study.gpu, study.timeout, study.budget, len(plan), full_weight)
    attempts = budget.FULL_WEIGHT_ATTEMPTS if full_weight else 1
    each = round_up(bound / len(plan) / attempts)
    for index, config in enumerate(plan):
        order = trial_order(
            name, index, config, suite=study.suite, transfer=study.transfer, gpu=study.gpu, timeout=study.timeout,
            full_weight=full_weight, attempt_usd=each, study_usd=budget.recorded(bound), provenance=provenance,
        )  # fmt: skip
        yield trial_id(name, label_of(index)), order.model_copy(update={"app": spec.app, "round": spec.round})


def trial_order(
    study: str, index: int, config: dict[str, Any], *, suite: str, transfer: str | None, gpu: str, timeout: int,
    full_weight: bool, attempt_usd: Decimal, study_usd: Decimal | None, provenance: Provenance,
    existing: int | None = None,
) -> Order:  # fmt: skip
    """One trial of a study, whoever wants it; with `existing`, the scoring of a checkpoint that is there."""
    directory = f"{study}/{trial_directory(index, existing)}"
    return Order(
        kind="trial",
        name=study,
        label=label_of(index, existing),
        function=trial_function(gpu, full_weight),
        payload={
            "sources": provenance.sources,
            "git_commit": provenance.commit,
            "study": study,
            "index": index,
            "config": config,
            "suite": suite,
            "transfer": transfer,
            "gpu": gpu,
            **({} if existing is None else {"existing": existing}),
        },
        gpu=gpu,
        timeout=timeout,
        attempts=budget.FULL_WEIGHT_ATTEMPTS if full_weight else 1,
        attempt_usd=attempt_usd,
        remote=directory,
        local=f"runs/{directory}",
        lease=directory,
        study_usd=study_usd,
        session=provenance.session,
    )


def rescore_order(
    directory: str, *, suite: str | None, transfer: str | None, gpu: str, timeout: int, provenance: Provenance
) -> Order:  # fmt: skip
    """Scoring the trial in `<study>/<NN>-<label>`, whose training is whole, whoever wants it."""
    study, _, name = directory.partition("/")
    return Order(
        kind="rescore",
        name=f"{directory}/rescore",
        function=RESCORE_FUNCTION,
        payload={"sources": provenance.sources, "git_commit": provenance.commit, "study": study, "directory": name,
                 "suite": suite, "transfer": transfer},
        gpu=gpu,
        timeout=timeout,
        attempt_usd=round_up(budget.compute_bound(gpu, timeout, 1)),
        remote=directory,
        local=f"runs/{directory}",
        session=provenance.session,
    )  # fmt: skip


def rescore_of(trial: Order, provenance: Provenance) -> Wanted:
    """Scoring a trial of a round again, on one card, for as long as its function has."""
    order = rescore_order(
        trial.remote, suite=trial.payload.get("suite"), transfer=trial.payload.get("transfer"),
        gpu=(trial.gpu or DEFAULT_GPU).partition(":")[0], timeout=RESCORE_TIMEOUT_S, provenance=provenance,
    )  # fmt: skip
    more = {"memory_mb": RESCORE_MEMORY_MB, "app": trial.app, "round": trial.round}
    return rescore_id(trial.remote, 0), order.model_copy(update=more)


def round_up(amount: Decimal) -> Decimal:
    """`amount` as a JSON number can hold it, and never less than it is."""
    return amount.quantize(MICRO, ROUND_UP)


def is_same_work(one: Order, other: Order) -> bool:
    """Whether two orders want the same thing; sources and commit may have moved on in between."""
    return _wanted(one) == _wanted(other)


def _wanted(order: Order) -> dict[str, Any]:
    payload = {key: value for key, value in order.payload.items() if key not in ("sources", "git_commit")}
    return {"payload": payload, "gpu": order.gpu, "timeout": order.timeout, "function": order.function}
