"""`python -m kev.rounds watch`: see a launched round through to its read-out, with nobody there.

It can be ended at any instruction and started again. Its exit code is 0 with a complete read-out and 3 with one that
lacks something.
"""

import argparse
import json
import signal
from pathlib import Path

from kev.rounds.engine import STAGGER_S, Engine, add_session_arguments, run_engine
from kev.rounds.launch import check_launchable
from kev.rounds.specs import LoadedSpec, load_spec
from kev.rounds.watching.detach import READY_FD, detach, say_ready
from kev.rounds.watching.loop import INTERVAL_S, watch

INCOMPLETE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `watch`."""
    add_session_arguments(parser)
    parser.add_argument("--interval", type=float, default=INTERVAL_S, metavar="S", help="seconds between passes (120)")
    parser.add_argument("--stagger", type=float, default=STAGGER_S, metavar="S", help="seconds between starts (60)")
    parser.add_argument("--passes", type=int, metavar="N", help="look this often, then leave everything to the next")
    parser.add_argument("--no-continue", action="store_true", help="leave what was cut off to a person, with `resume`")
    parser.add_argument("--detach", action="store_true", help="go on after the terminal closes, logging to runs/")
    parser.add_argument("--dry-run", action="store_true", help="say whether the round may be watched")


def watch_command(arguments: argparse.Namespace) -> int:
    """Watch, here or detached. Raises KevError."""
    loaded = load_spec(arguments.spec, arguments.root)
    if arguments.dry_run or arguments.detach:
        warnings = check_launchable(loaded)
        if arguments.dry_run:
            print(json.dumps({"round": loaded.spec.round, "warnings": warnings}, indent=2) if arguments.json else
                  "\n".join([*(f"!!! warning: {each}" for each in warnings), "may be watched"]))  # fmt: skip
            return 0
        log = loaded.root / "runs" / f"r{loaded.spec.round}.watch.log"
        process = detach(_again(arguments), log)
        print(json.dumps({"process": process, "log": str(log)}) if arguments.json else
              f"watching round {loaded.spec.round} as process {process}; its log is {log}")  # fmt: skip
        return 0

    async def work(engine: Engine, loaded: LoadedSpec) -> int:
        for warning in check_launchable(loaded):
            engine.say(f"!!! warning: {warning}")
        complete = await watch(engine, loaded, write_readout_of, interval_s=arguments.interval,
                               stagger_s=arguments.stagger, ready=say_ready, passes=arguments.passes,
                               continues=not arguments.no_continue)  # fmt: skip
        if arguments.json:
            print(json.dumps({"record": "done", "round": loaded.spec.round, "complete": complete}))
        return 0 if complete or arguments.passes is not None else INCOMPLETE

    import os

    if READY_FD in os.environ:
        # The terminal that it came from closes some time, and that is no reason to end.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return run_engine(arguments, work)


def write_readout_of(loaded: LoadedSpec) -> bool:
    """Write and print the read-out. Returns whether every arm of it is complete. Raises KevError."""
    # numpy, which nothing else of a watch needs.
    from kev.rounds.places import readout_path
    from kev.rounds.readout import readout, write_readout
    from kev.rounds.table import print_readout

    value = readout(loaded.spec, loaded.root)
    complete = all(arm.get("complete") for arm in value["arms"].values())
    if not complete:
        lacking = sorted(arm for arm, each in value["arms"].items() if not each.get("complete"))
        value["notes"] = [*value.get("notes", []), f"incomplete: {', '.join(lacking)}"]
    write_readout(readout_path(loaded.spec, loaded.root), value)
    print_readout(value, loaded.spec)
    return complete


def _again(arguments: argparse.Namespace) -> list[str]:
    """The same command line without --detach, from any directory."""
    options = ["--interval", str(arguments.interval), "--stagger", str(arguments.stagger)]
    options += ["--passes", str(arguments.passes)] if arguments.passes is not None else []
    options += ["--root", str(Path(arguments.root).absolute())] if arguments.root is not None else []
    options += ["--session", arguments.session] if arguments.session is not None else []
    options += ["--no-continue"] if arguments.no_continue else []
    options += ["--json"] if arguments.json else []
    return [str(arguments.spec.absolute()), *options]
