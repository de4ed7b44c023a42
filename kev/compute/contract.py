"""What kev assumes about Modal's server, as a list, and the run that checks it.

The emulator encodes how the client reads the server's answers, which is not the same as what the server does. So
every assumption that the code rests on stands in `kev.compute.assumptions`, is checked on the emulator by the test
suite, and can be checked against Modal itself by anyone with a token:

    python -m kev.compute.contract                                      on a fresh emulator
    python -m kev.compute.contract --against-modal                      says what that would create and cost
    python -m kev.compute.contract --against-modal --create-and-pay     does it
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kev import files
from kev.compute.client import ModalSettings, settings_from
from kev.compute.modal_compute import ModalCompute
from kev.compute.protocol import DeployEventKind
from kev.errors import KevError, Refused
from kev.text import shorten, visible

APP = "kev-contract"
VOLUME = "kev-contract"
DICT = "kev-contract"
APP_FILE = Path(__file__).with_name("contract_app.py")

WHAT_IT_DOES = f"""\
This deploys the app {APP!r} to the workspace of your token, with small functions on a CPU and no GPU, calls each of
them a few times, and creates the volume {VOLUME!r} and the Dict {DICT!r}. All three are deleted at the end.
Expect under a minute of container time in all, some cents at most, and a few minutes of waiting.
It refuses to start if any of the three exists already. To do it: add --create-and-pay"""


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    UNCHECKED = "unchecked"
    """Nothing that a client may do can check it."""


class Differs(Exception):
    """What was observed is not what was assumed; the text says what was."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that the code takes for granted about the server."""

    id: str
    statement: str
    how: str
    """How it is checked, or why it is not."""
    check: "Callable[[Probe], Awaitable[None]] | None" = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    assumption: Assumption
    verdict: Verdict
    observed: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.assumption.id,
            "statement": self.assumption.statement,
            "how": self.assumption.how,
            "verdict": str(self.verdict),
            "observed": self.observed,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Probe:
    """What a check works with: the contract app, deployed, and the account it is deployed in."""

    compute: ModalCompute
    settings: ModalSettings
    scratch: Path
    run: str
    """Distinguishes this run's files and keys from those of any other."""


async def check(assumption: Assumption, probe: Probe) -> Finding:
    """Whether `assumption` holds. Never raises but to be cancelled: whatever goes wrong is a difference."""
    if assumption.check is None:
        return Finding(assumption, Verdict.UNCHECKED)
    began = time.monotonic()
    try:
        await assumption.check(probe)
    except Exception as error:
        observed = shorten(visible(f"{type(error).__name__}: {error}"), 400).removeprefix("Differs: ")
        return Finding(assumption, Verdict.DIFFERS, observed, time.monotonic() - began)
    return Finding(assumption, Verdict.HOLDS, seconds=time.monotonic() - began)


async def check_all(settings: ModalSettings, say: Callable[[str], None] = print) -> list[Finding]:
    """Deploy the contract app, check every assumption in turn, and remove what was created.

    Raises Refused if anything of the contract's names is there already, KevError if the app cannot be deployed.
    """
    from kev.compute.assumptions import ASSUMPTIONS
    from kev.compute.contract_cleanup import check_absent, remove

    findings = []
    async with ModalCompute(settings) as compute:
        await check_absent(compute, settings)
        try:
            await deploy(compute, say)
            with tempfile.TemporaryDirectory() as scratch:
                probe = Probe(compute, settings, Path(scratch), f"{time.time_ns():x}")
                for assumption in ASSUMPTIONS:
                    finding = await check(assumption, probe)
                    findings.append(finding)
                    say(line_of(finding))
        finally:
            await remove(compute, settings)
    return findings


async def deploy(compute: ModalCompute, say: Callable[[str], None]) -> None:
    """Deploy the contract app. Raises KevError with the last words of `modal deploy`."""
    async for event in compute.deploy(str(APP_FILE)):
        if event.kind is DeployEventKind.FAILED:
            raise KevError(event.text)
        if event.kind is DeployEventKind.DEPLOYED:
            say(f"deployed {event.text}")


def line_of(finding: Finding) -> str:
    """`holds    phase-active  ...` and what was observed instead, where it differs."""
    line = f"{finding.verdict:<9} {finding.assumption.id:<24} {finding.assumption.statement}"
    return f"{line}\n{'':>10}observed: {finding.observed}" if finding.verdict is Verdict.DIFFERS else line


async def run_on_emulator(say: Callable[[str], None] = print) -> list[Finding]:
    """The whole contract on an emulator of its own, which is gone afterwards."""
    from kev.emulator import Emulator

    with tempfile.TemporaryDirectory(prefix="kev-contract-") as root:
        async with Emulator(root=Path(root)) as plane:
            return await check_all(settings_from(plane.environment, APP), say)


def main(arguments: list[str] | None = None) -> int:
    """0 if every assumption that can be checked holds, 1 if one differs, 2 if the run was refused or failed."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.compute.contract", description="Check what kev assumes about Modal's server."
    )
    parser.add_argument("--against-modal", action="store_true", help="against Modal itself, with your token")
    parser.add_argument("--create-and-pay", action="store_true", help="really do that")
    parser.add_argument("--report", type=Path, help="write every finding to this file, as JSON")
    options = parser.parse_args(arguments)
    try:
        findings = asyncio.run(_run(options.against_modal, options.create_and_pay))
        if options.report:
            files.write_atomic(options.report, files.dump_json([each.to_json() for each in findings]))
    except KevError as error:
        print(error, file=sys.stderr)
        return 2
    differing = [each for each in findings if each.verdict is Verdict.DIFFERS]
    unchecked = sum(1 for each in findings if each.verdict is Verdict.UNCHECKED)
    print(f"{len(findings)} assumptions: {len(differing)} differ, {unchecked} cannot be checked by a client")
    return 1 if differing else 0


async def _run(against_modal: bool, create_and_pay: bool) -> list[Finding]:
    if not against_modal:
        return await run_on_emulator()
    if not create_and_pay:
        print(WHAT_IT_DOES)
        raise Refused("nothing was created")
    return await check_all(ModalSettings(app=APP))


if __name__ == "__main__":
    # Run as a module this file is `__main__`; the classes that the assumptions use are those of the importable one.
    from kev.compute import contract

    sys.exit(contract.main())
