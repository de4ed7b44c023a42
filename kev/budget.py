"""What work may cost at most, and whether it may be launched: rates, admission bounds and the spend rule.

All amounts are US dollars as exact decimals; they are rounded only where they are recorded (`recorded`) or shown.
A card whose price is not known has no bound, never the price of another.

    rate  = price of the cards + cores * CPU_HOURLY + (memory limit + disk / 20) in GiB * MEMORY_GIB_HOURLY
    bound = rate * timeout in hours * trials * attempts

Image builds, start-up and storage are outside the bound.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from kev import files
from kev.errors import Refused

GPU_HOURLY = {"H100": Decimal("3.95"), "H200": Decimal("4.54"), "B200": Decimal("6.25"), "T4": Decimal("0.59")}
"""US dollars per card and hour."""

CPU_HOURLY = Decimal("0.0473")
"""US dollars per core and hour."""

MEMORY_GIB_HOURLY = Decimal("0.008")
"""US dollars per GiB of the memory limit and hour."""

DISK_SHARE = 20
"""Ephemeral disk is billed as this fraction of its size in memory."""

MAX_GPUS = 8
"""Cards in one container."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a container has beside its cards: cores, and MiB of memory (request and limit) and of ephemeral disk."""

    cpu: int
    memory: tuple[int, int]
    disk: int = 0


TRIAL = Resources(4, (65_536, 196_608))
"""A LoRA trial, and an agent's run; a read is admitted as one, which over-estimates it."""

FULL_WEIGHT_DISK = 1_048_576
FULL_WEIGHT_SINGLE = Resources(24, (368_640, 409_600), FULL_WEIGHT_DISK)
FULL_WEIGHT_SHARDED = Resources(16, (409_600, 471_040), FULL_WEIGHT_DISK)
INTERPOLATION = Resources(8, (81_920, 131_072))
MIRROR = Resources(4, (16_384, 65_536))

FULL_WEIGHT_ATTEMPTS = 3
"""The first run and two continuations; a LoRA trial has one attempt."""

MIN_TIMEOUT = 60
MAX_TIMEOUT = 28_800
MAX_TIMEOUT_FULL_WEIGHT = 86_400
"""Seconds that one attempt may have."""

MAX_BUDGET = Decimal(250)
MAX_BUDGET_FULL_WEIGHT = Decimal(1000)
"""What one study may be given."""

RESERVE_SHARE = Decimal("0.10")
"""Part of an authorization that stays unspent."""

MAX_READING_AGE = 900.0
"""Seconds after which a billing reading no longer admits a launch."""

CENT = Decimal("0.01")

_GPU = re.compile(r"([A-Z][A-Z0-9]*)(?::([1-9][0-9]{0,3}))?")


# ------------------------------------------------------------------------------------------------------ bounds


@dataclass(frozen=True, slots=True)
class Gpu:
    """The cards of one container."""

    type: str
    count: int


def parse_gpu(value: object) -> Gpu:
    """`H200` or `H200:8`. Raises Refused, naming the value and the known types, for anything else."""
    match = _GPU.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[1] not in GPU_HOURLY or int(match[2] or 1) > MAX_GPUS:
        known = ", ".join(sorted(GPU_HOURLY))
        raise Refused(f"gpu {value!r:.40}: no price is known; write {known}, or one of them with :2 to :{MAX_GPUS}")
    return Gpu(match[1], int(match[2] or 1))


def hourly_rate(gpu: object, full_weight: bool = False) -> Decimal:
    """US dollars per hour of one trial's container on `gpu`. Raises Refused for a card without a price."""
    cards = parse_gpu(gpu)
    resources = (FULL_WEIGHT_SINGLE if cards.count == 1 else FULL_WEIGHT_SHARDED) if full_weight else TRIAL
    return GPU_HOURLY[cards.type] * cards.count + hourly_rate_of(resources)


def hourly_rate_of(resources: Resources) -> Decimal:
    """US dollars per hour of `resources`, without cards."""
    gib = (resources.memory[1] + Decimal(resources.disk) / DISK_SHARE) / 1024
    return CPU_HOURLY * resources.cpu + MEMORY_GIB_HOURLY * gib


def compute_bound(gpu: object, timeout_s: float, trials: int, full_weight: bool = False) -> Decimal:
    """The most that `trials` containers can cost: each to its timeout, on every attempt. Not rounded.

    Read jobs are bounded by the same formula, one trial per job. Raises Refused for a card without a price, a timeout
    that is no positive number of seconds, or fewer than one trial.
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise Refused(f"trials {trials!r:.40}: write a whole number from 1 up")
    attempts = FULL_WEIGHT_ATTEMPTS if full_weight else 1
    return hourly_rate(gpu, full_weight) * _seconds(timeout_s) * trials * attempts / 3600


def cpu_bound(resources: Resources, timeout_s: float) -> Decimal:
    """The most that one job without cards can cost. Not rounded. Raises Refused for a timeout that is none."""
    return hourly_rate_of(resources) * _seconds(timeout_s) / 3600


def attempt_rest_bound(
    gpu: object, timeout_s: float, elapsed_s: float, attempts_left: int, full_weight: bool = False
) -> Decimal:
    """What a trial that has run for `elapsed_s` can still cost, `attempts_left` later attempts included."""
    rate = hourly_rate(gpu, full_weight)
    rest = max(_seconds(timeout_s) - Decimal(str(max(0.0, elapsed_s))), Decimal(0))
    return rate * (rest + _seconds(timeout_s) * max(0, attempts_left)) / 3600


def recorded(amount: Decimal) -> Decimal:
    """`amount` to the cent, as spawn records hold it."""
    return amount.quantize(CENT, ROUND_HALF_EVEN)


def dollars(amount: Decimal) -> str:
    """`$1.0442`, `-$12,000.00`: cents at least and millionths at most, since a launch may fail by less than a cent."""
    whole, _, rest = f"{abs(amount):,.6f}".partition(".")
    return f"{'-' if amount < 0 else ''}${whole}.{rest.rstrip('0'):0<2}"


def check_study(
    name: str, gpu: object, timeout_s: float, budget: Decimal, trials: int, full_weight: bool = False
) -> Decimal:
    """The bound of a study that is within its limits and its own budget.

    Raises Refused, naming the study, the figure and the limit it passes.
    """
    longest = MAX_TIMEOUT_FULL_WEIGHT if full_weight else MAX_TIMEOUT
    largest = MAX_BUDGET_FULL_WEIGHT if full_weight else MAX_BUDGET
    try:
        bound = compute_bound(gpu, timeout_s, trials, full_weight)
    except Refused as refusal:
        raise Refused(f"study {name}: {refusal}") from None
    if not MIN_TIMEOUT <= timeout_s <= longest:
        raise Refused(f"study {name}: timeout {timeout_s} s; it must be from {MIN_TIMEOUT} to {longest} s")
    if not (budget.is_finite() and 0 < budget <= largest):
        raise Refused(f"study {name}: budget ${budget}; it must be above 0 and at most ${largest}")
    if bound > budget:
        raise Refused(f"study {name}: bound ${bound:f} is above its budget ${budget}")
    return bound


def _seconds(value: object) -> Decimal:
    number = files.as_finite(value)
    if number is None or number <= 0:
        raise Refused(f"timeout {value!r:.40}: write a number of seconds above 0")
    return Decimal(str(value))


# ------------------------------------------------------------------------------------------------------- spend


@dataclass(frozen=True, slots=True)
class Spent:
    """US dollars metered since a baseline. `carried` of them are from billing cycles that have ended."""

    usd: Decimal
    carried: Decimal = Decimal(0)
    resets: int = 0
    """How often the meter fell."""


def spent(baseline: Decimal, metered: Sequence[Decimal]) -> Spent | None:
    """What was spent since the meter stood at `baseline`, from its later readings, oldest first; None without any.

    The meter counts from zero in each billing cycle. A reading below the one before is therefore a new cycle: what the
    old one had come to is carried over, and the new one counts from zero. Money metered between the last reading of a
    cycle and its end is never seen, so read often around its end; a correction that lowers the meter within a cycle
    is taken for a reset as well, which over-states the spend and so can refuse a launch but never allow one.
    """
    if not metered:
        return None
    carried, resets, start, last = Decimal(0), 0, baseline, baseline
    for reading in metered:
        if reading < last:
            carried, start, resets = carried + last - start, Decimal(0), resets + 1
        last = reading
    return Spent(carried + last - start, carried, resets)


@dataclass(frozen=True, slots=True)
class Committed:
    """The most that unsettled work can still cost. Not complete if the bound of some of it is not known."""

    usd: Decimal = Decimal(0)
    complete: bool = True


def committed(bounds: Iterable[Decimal | None]) -> Committed:
    """The sum of the bounds of everything unsettled; None stands for work whose bound cannot be told."""
    known = list(bounds)
    return Committed(sum((bound for bound in known if bound is not None), Decimal(0)), None not in known)


def reserve(authorization: Decimal) -> Decimal:
    """What is kept back of `authorization` where nobody said otherwise."""
    return authorization * RESERVE_SHARE


@dataclass(frozen=True, slots=True)
class Account:
    """Money at one moment. `spent` is None where no billing reading can be believed: unknown, not zero."""

    authorization: Decimal
    reserve: Decimal
    spent: Decimal | None
    committed: Committed = Committed()

    @property
    def headroom(self) -> Decimal | None:
        """What a launch must stay below; negative if too much is out already, None if the spend is unknown."""
        if self.spent is None:
            return None
        return self.authorization - self.reserve - self.spent - self.committed.usd

    def check_launch(self, what: str, bound: Decimal, *, reading_age_s: float | None,
                     limit_s: float = MAX_READING_AGE, out: str = "") -> None:  # fmt: skip
        """Hold `what` against the spend rule. Raises Refused, naming every figure the rule was applied to.

        `out` says what the sum of the commitments is made of.
        The caller holds the session's lock from the reading of the meter until the launch is on record.
        """
        headroom, of = self.headroom, f": {out}" if out else ""
        if headroom is None or self.spent is None or reading_age_s is None:
            raise Refused(f"{what}: the spend is unknown; take a billing reading first")
        if not 0 <= reading_age_s <= limit_s:
            raise Refused(
                f"{what}: the billing reading is {reading_age_s:,.0f} s old, more than the {limit_s:,.0f} s allowed; "
                "take a new one"
            )
        if not self.committed.complete:
            raise Refused(
                f"{what}: what is committed is not fully known{of}; repair or settle the damaged ledgers first"
            )
        if not (bound.is_finite() and bound > 0):
            raise Refused(f"{what}: bound {bound} is no amount above zero")
        if bound >= headroom:
            raise Refused(
                f"{what}: bound {dollars(bound)} is not below the headroom {dollars(headroom)} "
                f"(authorization {dollars(self.authorization)} - reserve {dollars(self.reserve)} "
                f"- spent {dollars(self.spent)} - committed {dollars(self.committed.usd)}{of})"
            )
