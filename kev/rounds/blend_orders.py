"""Mixing checkpoints as an order for the gate: what cannot be meant, what it may cost, and where it comes to be."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from kev.budget import INTERPOLATION, MAX_TIMEOUT_FULL_WEIGHT, cpu_bound
from kev.errors import UsageError
from kev.ledger.units import blend_id
from kev.records.ledger import Order
from kev.records.spec import STUDY_NAME, Blend, RoundSpec
from kev.rounds.trial_orders import Provenance, Wanted, round_up
from kev.worker.orders import BLEND_FUNCTION, blend_directory

VOLUME = "/runs/"
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[\w.-]+")
REVISION = re.compile(r"[0-9a-f]{40}")

WHAT = ("sft", "toward", "base", "revision", "blend_head", "prefix", "study")
"""What of a payload says which checkpoints are wanted."""


@dataclass(frozen=True, slots=True)
class BlendRequest:
    """What a command line or a spec asks for. `alphas` are shares of `sft`, separated by commas."""

    sft: str
    prefix: str
    alphas: str
    base: str
    revision: str
    study: str
    timeout: int
    toward: str = ""
    blend_head: bool = False

    def shares(self) -> list[str]:
        """The alphas as they were written."""
        return [part.strip() for part in self.alphas.split(",")]


def blend_problems(request: BlendRequest) -> list[tuple[str, str]]:
    """What cannot be meant, each as (key, what is wrong with it)."""
    found = []
    if not request.sft.startswith(VOLUME):
        found.append(("sft", f"{request.sft!r:.100}: write a checkpoint under /runs/"))
    if request.toward and not (request.toward.startswith(VOLUME) or PINNED.fullmatch(request.toward)):
        words = "write a checkpoint under /runs/, or owner/name@revision of the Hub"
        found.append(("toward", f"{request.toward!r:.100}: {words}"))
    if not request.toward:
        if request.blend_head:
            found.append(("blend_head", "needs a checkpoint `toward` which it is drawn: a base has no head"))
        if not request.base:
            found.append(("base", "is missing, and nothing else is named `toward` which it is drawn"))
        elif not REVISION.fullmatch(request.revision):
            found.append(("revision", f"{request.revision!r:.60}: write the 40 hexadecimal digits of its commit"))
    for key, value in (("study", request.study), ("prefix", request.prefix)):
        if not STUDY_NAME.fullmatch(value):
            found.append((key, f"{value!r:.100}: a name is 1 to 80 letters, digits, _ or -"))
    if not 1 <= request.timeout <= MAX_TIMEOUT_FULL_WEIGHT:
        found.append(("timeout", f"{request.timeout}: write a number of seconds, up to {MAX_TIMEOUT_FULL_WEIGHT}"))
    percents = [_percent(share) for share in request.shares()]
    for share, percent in zip(request.shares(), percents, strict=True):
        if percent is None:
            found.append(("alphas", f"{share!r:.40}: write shares from 0.01 to 0.99 in whole hundredths"))
    if None not in percents and len(set(percents)) < len(percents):
        found.append(("alphas", f"{request.alphas!r:.100}: names a share twice"))
    return found


def check_blend(request: BlendRequest) -> list[str]:
    """The alphas of a request. Raises UsageError for the first thing that cannot be meant."""
    for key, message in blend_problems(request):
        raise UsageError(f"--{key.replace('_', '-')} {message}")
    return request.shares()


def _percent(alpha: str) -> int | None:
    try:
        percent = Decimal(alpha) * 100
    except InvalidOperation:
        return None
    whole = percent.is_finite() and 1 <= percent <= 99 and percent == int(percent)
    return int(percent) if whole else None


def blend_order(request: BlendRequest, alphas: Sequence[str], provenance: Provenance) -> Wanted:
    """The request as a unit of the ledger."""
    order = Order(
        kind="blend",
        name=f"{request.study}/{request.prefix}",
        function=BLEND_FUNCTION,
        payload={"sources": provenance.sources, "git_commit": provenance.commit, "sft": request.sft,
                 "toward": request.toward, "base": request.base, "revision": request.revision,
                 "alphas": list(alphas), "prefix": request.prefix, "study": request.study,
                 "blend_head": request.blend_head},
        timeout=request.timeout,
        attempt_usd=round_up(cpu_bound(INTERPOLATION, request.timeout)),
        remote=request.study,
        local=f"runs/{request.study}",
        session=provenance.session,
    )  # fmt: skip
    return blend_id(request.study, request.prefix), order


def request_of(blend: Blend) -> BlendRequest:
    """What a spec asks for."""
    return BlendRequest(sft=blend.sft, prefix=blend.prefix, alphas=blend.alphas, base=blend.base,
                        revision=blend.revision, study=blend.study, timeout=blend.timeout, toward=blend.toward,
                        blend_head=blend.blend_head)  # fmt: skip


def registered_blend(spec: RoundSpec) -> BlendRequest | None:
    """The blend that a round registers as how some of its arms are made; None where no arm is made so."""
    blend = spec.construction.blend if spec.construction is not None else None
    if blend is None:
        return None
    request = request_of(blend)
    made = {checkpoint_at(request, alpha) for alpha in request.shares() if _percent(alpha) is not None}
    return request if any(arm.checkpoint in made for arm in spec.arms.values()) else None


def registered_orders(spec: RoundSpec, provenance: Provenance) -> list[Wanted]:
    """The blend of a round as orders of that round; none where none is registered."""
    request = registered_blend(spec)
    if request is None:
        return []
    unit_id, order = blend_order(request, request.shares(), provenance)
    return [(unit_id, order.model_copy(update={"round": spec.round, "app": spec.app}))]


def checkpoint_at(request: BlendRequest, alpha: str) -> str:
    """Where the checkpoint of a share comes to be, as a spec names it."""
    return f"{VOLUME}{blend_directory(request.study, request.prefix, alpha)}/checkpoint"


def is_same_blend(one: Order, other: Order) -> bool:
    """Whether both make the same checkpoints, or part of them."""
    return all(one.payload.get(key) == other.payload.get(key) for key in WHAT)
