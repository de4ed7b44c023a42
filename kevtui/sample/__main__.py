"""`python -m kevtui.sample DIR`: the process that plays the sample session. Says "over" on its output at the end."""

import argparse
import select
import sys
from pathlib import Path

from kev import files
from kev.clock import SystemClock
from kevtui.sample.story import Story


def main() -> int:
    """Play the session into DIR; with --attended, stop as soon as whoever holds the input is gone."""
    parser = argparse.ArgumentParser(prog="python -m kevtui.sample", description=__doc__)
    parser.add_argument("root", type=Path, metavar="DIR")
    parser.add_argument("--stretch", type=float, default=1.0, help="real seconds per second of the story")
    parser.add_argument("--attended", action="store_true", help="stop when the input closes")
    parser.add_argument("--temporary", action="store_true", help="with --attended: remove DIR then")
    arguments = parser.parse_args()

    def left_alone(timeout_s: float) -> bool:
        # The input closes when the viewer goes, however it goes; no signal is sent to anyone.
        readable, _, _ = select.select([sys.stdin] if arguments.attended else [], [], [], timeout_s)
        return bool(readable)

    for pause_s in Story(arguments.root, SystemClock(), arguments.stretch).play():
        if left_alone(pause_s):
            break
    else:
        print("over", flush=True)
        if arguments.attended:
            left_alone(float(10**6))
    if arguments.temporary:
        files.remove_tree(arguments.root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
