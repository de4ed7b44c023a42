"""`python -m kev.emulator up [--root DIR] [--port P] [--faults FILE] [--print-env]`"""

import argparse
import asyncio
import logging
import os
import shlex
import signal
import sys
from pathlib import Path

from kev import emulator
from kev.errors import KevError

DEFAULT_ROOT = Path(".kev-emulator")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kev.emulator", description="A Modal control plane on loopback.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start, print the environment for clients, and serve until interrupted")
    up.add_argument("--root", type=Path, default=DEFAULT_ROOT, help="where everything is kept (%(default)s)")
    up.add_argument("--port", type=int, default=0, help="port to listen on; 0 for that of the last time, or any")
    up.add_argument("--host", default="127.0.0.1", help="loopback address to listen on (%(default)s)")
    up.add_argument("--faults", type=Path, help="fault plan (TOML)")
    up.add_argument("--print-env", action="store_true", help="print the environment and nothing else")
    up.add_argument("--attended", action="store_true", help="end when standard input does, with whoever holds it")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        asyncio.run(serve(options))
    except KevError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


async def serve(options: argparse.Namespace) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP, or the end of an attended input."""
    stop = asyncio.Event()
    if options.attended:
        _stop_with_input(stop)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with emulator.Emulator(options.root, port=options.port, host=options.host, faults=options.faults) as plane:
        for name, value in plane.environment.items():
            print(f"export {name}={shlex.quote(value)}")
        if not options.print_env:
            print(f"# serving on {plane.url}, state in {plane.root}; money is simulated; stop with Ctrl-C")
        sys.stdout.flush()
        await stop.wait()


def _stop_with_input(stop: asyncio.Event) -> None:
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def readable() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            stop.set()

    loop.add_reader(descriptor, readable)


if __name__ == "__main__":
    sys.exit(main())
