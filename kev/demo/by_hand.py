"""What a demo does while a person acts on its round: a watcher that continues nothing, and the choice of a candidate.

A person opens the session, launches, continues what timed out, reads and confirms. The watcher is there, as in a real
night, for as long as something is unsettled: without one nothing is polled and nothing comes home.
"""

import time
from collections.abc import Callable, Mapping

from kev.demo import plan
from kev.demo.kept import KeptWatcher
from kev.demo.place import Place
from kev.errors import KevError, NotFound
from kev.ledger.book import Ledger
from kev.records.readout import read_readout
from kev.session import session_name
from kev.session.find import list_states

LOOK_S = 1.0


class ByHand:
    """Looks at what a person has done in `place`, and does what follows from it. `tell` takes a phase and a line."""

    def __init__(self, place: Place, tell: Callable[[str, str], None]) -> None:
        self._place, self._tell = place, tell
        self._watcher: KeptWatcher | None = None
        self._is_open = self._has_chosen = False
        self._next = 0.0

    def tend(self, environment: Mapping[str, str]) -> None:
        """Do what there is to do now; never waits. Raises KevError."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_S
        if not self._is_open:
            self._find_session()
        elif self._watcher is None:
            self._await_launch()
        else:
            if self._watcher.is_done and any(True for _ in Ledger(self._place.runs).read().open()):
                self._watcher.begin_again()
            self._watcher.tend(environment)
            if not self._has_chosen and self._watcher.is_done:
                self._choose()

    def _find_session(self) -> None:
        states = list_states(self._place.runs)
        if states:
            self._place.session, self._is_open = session_name(states[0]), True
            self._tell("open", f"a person has opened {self._place.session}; next: launch round {plan.ROUND}")

    def _await_launch(self) -> None:
        units = Ledger(self._place.runs).read()
        if all(units.of_name(study) for study in plan.plans(self._place.size, self._place.base)):
            self._watcher = KeptWatcher(self._place, self._place.size.interval_s, continues=False)
            self._tell(
                "watch", "a watcher follows what runs; the full-weight arm will time out, and waits for a person"
            )

    def _choose(self) -> None:
        try:
            candidates = read_readout(self._place.readout).readout.candidates.values()
        except NotFound:
            return
        arm = next((arm for arm in candidates if arm is not None), None)
        if arm is None:
            raise KevError("the read-out has no candidate: nothing to confirm")
        self._place.choose(arm)
        self._has_chosen = True
        self._tell(
            "stage", f"{arm} is committed as the choice; next: the reads of stage {plan.STAGE}, then its verdict"
        )
