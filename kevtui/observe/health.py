"""Whether one trial's training goes as it went before: its rate, its loss, its gradients. Fed line by line."""

import re
from math import isfinite
from typing import Final

from kevtui.observe.snapshot import Divergence, Slowing
from kevtui.observe.usual import Usual

METRICS_LEAST_S: Final = 5.0
"""Shorter intervals are taken together: the times of single fast steps say more of the scheduler than of the rate."""

ARRIVAL_LEAST_S: Final = 20.0
"""The same for lines that were seen to arrive, which is known to a poll's two seconds only."""

SLOW, SLOW_BACK = 0.5, 0.7
"""Below half of the usual rate is slow, until above seven tenths of it."""

LARGE, LARGE_BACK = 10.0, 4.0
"""Above ten times the usual gradient norm is large: clipping takes care of single ones below that."""

FINITE_AGAIN: Final = 20
"""So many finite losses in a row end an alert on one that was not: skipped steps come in groups."""

_LOST = re.compile(rb'"loss"\s*:\s*(?:NaN|-?Infinity)\b')
_STEP = re.compile(rb'"step"\s*:\s*(\d{1,12})\b')


class Health:
    """What is unusual of one trial, kept in a few dozen figures."""

    def __init__(self) -> None:
        self._rate = Usual(limit=SLOW, back=SLOW_BACK)
        self._gradient = Usual(limit=LARGE, back=LARGE_BACK)
        self._from: tuple[float, int] | None = None
        """(seconds, step) at which the interval that is being measured began."""
        self._lost: tuple[int, int] | None = None
        """(first step, finite ones since the last) of losses that were not finite."""

    def at_step(self, t: float, step: int, *, least_s: float) -> None:
        """`step` was done at `t` seconds of some one clock; intervals shorter than `least_s` are taken together."""
        if self._from is None:
            self._from = (t, step)
            return
        begun, first = self._from
        if t <= begun or step <= first:
            self.restart_rate()
            self._from = (t, step)
        elif t - begun >= least_s:
            self._from = (t, step)
            self._rate.add((step - first) / (t - begun), step)

    def restart_rate(self) -> None:
        """What was timed so far does not belong together with what comes."""
        self._rate.clear()
        self._from = None

    def loss(self, step: int, *, lost: bool) -> None:
        """A step was logged, and its loss was `lost` where it was not a finite number."""
        if lost:
            self._lost = (self._lost[0] if self._lost else step, 0)
        elif self._lost is not None:
            first, finite = self._lost
            self._lost = (first, finite + 1) if finite + 1 < FINITE_AGAIN else None

    def gradient(self, step: int, norm: float) -> None:
        """The norm before clipping; infinity where it was not a finite number."""
        self._gradient.add(norm, step)

    def damaged(self, line: bytes, *, newest: int | None) -> None:
        """A metrics line that is no JSON: some writers put NaN into it, which is damage and news at once.

        `newest` is the last step that could be read: the ones between had losses again.
        """
        if not _LOST.search(line) or not (match := _STEP.search(line)):
            return
        step = int(match.group(1))
        self.loss(step, lost=True)
        if self._lost is not None and newest is not None and newest > step:
            self._lost = (self._lost[0], newest - step) if newest - step < FINITE_AGAIN else None

    def clear(self) -> None:
        """Another attempt, another file, or another rank speaks for the trial."""
        self.restart_rate()
        self._gradient.clear()
        self._lost = None

    @property
    def slowing(self) -> Slowing | None:
        found = self._rate.departure
        return None if found is None else Slowing(60 * found.recent, 60 * found.usual, found.since_step)

    @property
    def divergences(self) -> tuple[Divergence, ...]:
        found = []
        if self._lost is not None:
            first, finite = self._lost
            found.append(Divergence("loss", first, lasting=finite == 0))
        norm = self._gradient.departure
        if norm is not None:
            value = norm.recent if isfinite(norm.recent) else None
            usual = norm.usual if isfinite(norm.usual) else None
            found.append(Divergence("gradient norm", norm.since_step, lasting=True, value=value, usual=usual))
        return tuple(found)
