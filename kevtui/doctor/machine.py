"""The clock, the system's limits, the provider's credentials and what is installed. Nothing is asked of a network."""

import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from kev import files
from kev.errors import KevError
from kevtui.doctor.check import Check, Outcome

EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
FEW_INSTANCES = 16
FEW_WATCHES = 8192
MOST_TOML = 1024 * 1024

EXTRAS = (("modal", "modal", "launching and watching on Modal"), ("torch", "train", "training and reading here"))


def clock(now: datetime, synchronized: str | None) -> Iterator[Check]:
    """`synchronized` is what the system says of its own clock: "yes", "no", or None where it does not say."""
    if now < EARLIEST:
        yield Check("clock", "date", Outcome.BAD, f"{now:%Y-%m-%d}", "set the clock: ages and leases are wrong with it")
    elif synchronized == "no":
        fix = "timedatectl set-ntp true"
        yield Check("clock", "date", Outcome.RISK, f"{now:%Y-%m-%d %H:%M}Z, not synchronised", fix)
    else:
        said = "synchronised" if synchronized == "yes" else "whether it is synchronised is not known"
        yield Check("clock", "date", Outcome.GOOD, f"{now:%Y-%m-%d %H:%M}Z, {said}")


def events(limits: Mapping[str, int]) -> Iterator[Check]:
    """`limits` are those of inotify by name, empty where the system has none."""
    for name, few in (("max_user_instances", FEW_INSTANCES), ("max_user_watches", FEW_WATCHES)):
        if name not in limits:
            continue
        low = limits[name] < few
        fix = f"sysctl fs.inotify.{name}={few * 16}; without it changes are found by polling" if low else ""
        yield Check("files", name, Outcome.RISK if low else Outcome.GOOD, f"{limits[name]}", fix)


def provider(environment: Mapping[str, str], home: Path) -> Iterator[Check]:
    """Whether the provider can be asked, and as whom. No secret is ever part of what is found."""
    area = "provider"
    server = environment.get("MODAL_SERVER_URL", "")
    if server:
        yield _address(server)
    if environment.get("MODAL_TOKEN_ID") and environment.get("MODAL_TOKEN_SECRET"):
        yield Check(area, "credentials", Outcome.GOOD, "from MODAL_TOKEN_ID and MODAL_TOKEN_SECRET")
        return
    path = Path(environment.get("MODAL_CONFIG_PATH") or home / ".modal.toml")
    try:
        mode = path.stat().st_mode
        profiles = tomllib.loads(files.read_bytes(path, limit=MOST_TOML).decode())
    except (FileNotFoundError, NotADirectoryError):
        yield Check(area, "credentials", Outcome.RISK, f"no {path}", "modal token new, or nothing where you only watch")
        return
    except (OSError, KevError, ValueError):
        yield Check(area, "credentials", Outcome.BAD, f"{path} cannot be read as TOML", "modal token new")
        return
    wanted = environment.get("MODAL_PROFILE")
    active = [
        name for name, held in profiles.items() if isinstance(held, dict) and (name == wanted or held.get("active"))
    ]
    if wanted and wanted not in profiles:
        found = f"MODAL_PROFILE is {wanted}, which {path} does not have"
        yield Check(area, "credentials", Outcome.BAD, found, f"MODAL_PROFILE={next(iter(profiles), 'NAME')}")
    elif not active:
        yield Check(area, "credentials", Outcome.BAD, f"no active profile in {path}", "modal profile activate NAME")
    elif mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Check(area, "credentials", Outcome.RISK, f"{path} can be read by others", f"chmod 600 {path}")
    else:
        yield Check(area, "credentials", Outcome.GOOD, f"profile {active[0]} of {path}")


def _address(server: str) -> Check:
    from kev.compute.client import is_loopback

    try:
        here = is_loopback(server)
    except ValueError as error:
        return Check("provider", "address", Outcome.BAD, f"{server}: is no URL ({error})", "unset MODAL_SERVER_URL")
    found = f"{server}: {'the emulator, money is simulated' if here else 'not the public address'}"
    return Check("provider", "address", Outcome.INFO, found)


def hook(argv: Sequence[str], program: str | None) -> Check:
    """The hook that alerts are told to; `program` is what its first word leads to, or None. It is not run."""
    if program is None:
        fix = "name a program that is there and may be run, by its whole path"
        return Check("settings", "alert hook", Outcome.RISK, f"{argv[0]}: no such program", fix)
    return Check("settings", "alert hook", Outcome.GOOD, program)


def installed() -> Iterator[Check]:
    """Which of the parts that are installed apart are there."""
    for module, extra, what in EXTRAS:
        if find_spec(module) is None:
            fix = f"pip install 'kevtui[{extra}]'"
            yield Check("installed", module, Outcome.INFO, f"not there: no {what}", fix)
        else:
            yield Check("installed", module, Outcome.GOOD, f"there: {what}")
