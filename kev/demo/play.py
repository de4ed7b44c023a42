"""The demo from the first file to the verdict's threshold, phase by phase; each is told as it begins."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from kev.clock import SystemClock
from kev.demo import plan
from kev.demo.by_hand import ByHand
from kev.demo.kept import KeptEmulator, KeptWatcher, own_environment, rounds
from kev.demo.place import Place
from kev.errors import KevError
from kev.records.readout import read_readout
from kev.session.journal import append_event, events_path

LONGEST_S = 1800.0
"""A round of minutes that is not over by then will never be."""

TEND_S = 0.1
TRIES = 5
"""At a step that an ended emulator can interrupt; each can be repeated without doing anything twice."""

Say = Callable[[str, str], None]
"""Takes a phase and a line."""


class Play:
    """One demo in `place`."""

    def __init__(self, place: Place, say: Say) -> None:
        self.place, self._say = place, say
        self._clock = SystemClock()
        self._emulator = KeptEmulator(place)
        self._watcher: KeptWatcher | None = None
        self._began = time.monotonic()
        self.seconds: dict[str, float] = {}
        """Since the beginning, at the first moment of each phase."""

    @property
    def environment(self) -> Mapping[str, str]:
        return own_environment(self.place.work) | self._emulator.environment

    @property
    def environment_of_emulator(self) -> Mapping[str, str]:
        """What a dashboard's actions need to meet the emulator, and never the provider itself."""
        own = own_environment(self.place.work)
        return {
            name: own[name] for name in ("PYTHONPATH", "KEV_APP_NAME", "OMP_NUM_THREADS")
        } | self._emulator.environment

    def run(self) -> None:
        """Everything up to the moment at which a person confirms. Raises KevError."""
        self._prepare()
        self._open()
        self._deploy()
        self.tell("launch", f"launching round {plan.ROUND}: {len(plan.plans(self.place.size, self.place.base))} "
                  "studies of a tiny model; money is simulated")  # fmt: skip
        self._repeat(rounds(self.place, "launch", "--stagger", "0"))
        self.tell("watch", "the watcher takes over; the full-weight arm's machine will become slow, and time out")
        self._watch()
        arm = self._candidate()
        if arm is None:
            self.tell("over", "the read-out has no candidate: nothing to confirm")
            return
        self.tell("candidate", f"the candidate is {arm}, {self.seconds_since('launch'):.0f} s after the launch")
        self.place.choose(arm)
        self.tell("stage", f"{arm} is committed as the choice; its reads of stage {plan.STAGE} are launched")
        self._repeat(rounds(self.place, "launch-reads", "--stage", plan.STAGE, "--stagger", "0"))
        self._watch()
        self.tell("ready", f"stage {plan.STAGE} waits to be confirmed, by a person: {self.confirm_command()}")

    def hand_over(self) -> None:
        """Everything up to the first key, then only what is not a person's to do, for good. Raises KevError."""
        self._prepare()
        self.place.read_parent()
        self._deploy()
        self._tell_environment()
        helper = ByHand(self.place, self.tell)
        while True:
            self._emulator.tend()
            helper.tend(self.environment)
            time.sleep(TEND_S)

    def stay(self) -> None:
        """Keep the emulator there for what a person does next, until this process is told to leave."""
        while True:
            self._emulator.tend()
            time.sleep(TEND_S)

    def confirm_command(self) -> str:
        """What a person types to decide the stage, in a checkout with its environment."""
        return f"python -m kev.rounds confirm {self.place.spec} --stage {plan.STAGE}"

    def tell(self, phase: str, text: str) -> None:
        """Say what begins, and write it to the session's journal."""
        self.seconds[phase] = time.monotonic() - self._began
        if self.place.state.exists():
            append_event(events_path(self.place.state), self._clock.now(), "demo", text, subject=f"r{plan.ROUND}")
        self._say(phase, text)

    def seconds_since(self, phase: str) -> float:
        return time.monotonic() - self._began - self.seconds[phase]

    def _prepare(self) -> None:
        self.tell("prepare", f"freezing suites, registering round {plan.ROUND}, starting the emulator")
        self.place.write_faults()
        self._emulator.start()
        self.place.register()
        self._emulator.tend()

    def _open(self) -> None:
        self.tell("open", f"opening a session of ${plan.AUTHORIZATION_USD}, simulated")
        command = [sys.executable, "-m", "kev.session", "open", plan.SESSION, "--root", str(self.place.work),
                   "--authorization", str(plan.AUTHORIZATION_USD), "--round", str(self.place.spec_name)]  # fmt: skip
        opening = self._start(command)
        self.place.read_parent()
        self._finish(opening)
        self._tell_environment()

    def _tell_environment(self) -> None:
        self._say("environment", json.dumps(dict(self.environment_of_emulator)))

    def _deploy(self) -> None:
        self.tell("deploy", "deploying modal_app.py to the emulator")
        base = self._start(self.place.base_command())
        self._repeat([sys.executable, "-m", "modal", "deploy", str(self.place.work / "modal_app.py")])
        self._finish(base)

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = KeptWatcher(self.place, self.place.size.interval_s)
        else:
            self._watcher.begin_again()
        while not self._watcher.is_done:
            self._tend()
            if time.monotonic() - self._began > LONGEST_S:
                raise KevError(f"the demo was not over within {LONGEST_S:.0f} s; {self.place.root} has its logs")

    def _candidate(self) -> str | None:
        candidates = read_readout(self.place.readout).readout.candidates.values()
        return next((arm for arm in candidates if arm is not None), None)

    def _tend(self) -> None:
        self._emulator.tend()
        if self._watcher is not None:
            self._watcher.tend(self.environment)
        time.sleep(TEND_S)

    def _repeat(self, command: Sequence[str]) -> None:
        for left in reversed(range(TRIES)):
            try:
                self._finish(self._start(command))
                return
            except KevError:
                if not left:
                    raise

    def _start(self, command: Sequence[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command, cwd=self.place.work, env=dict(self.environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def _finish(self, process: "subprocess.Popen[str]") -> None:
        """Wait for a process. Raises KevError with the last line of one that failed."""
        while True:
            self._emulator.tend()
            try:
                said = process.communicate(timeout=TEND_S)[0]
                break
            except subprocess.TimeoutExpired:
                continue
        if process.returncode:
            last = said.strip().splitlines()[-1:] or ["it said nothing"]
            raise KevError(f"{' '.join(map(str, process.args[1:5]))}: {last[0]}")  # type: ignore[index]
