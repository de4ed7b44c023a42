"""Ends what a demo leaves if the demo itself is killed: `python -m kev.demo.warden DIR [--temporary]`.

The demo holds the other end of the input. Its end means that the demo is gone, however it went.
"""

import sys
from pathlib import Path

from kev import files
from kev.demo.processes import end_all


def main(arguments: list[str]) -> int:
    """Wait for the end of the input, then clear up."""
    sys.stdin.buffer.read()
    root = Path(arguments[0])
    end_all(root)
    if "--temporary" in arguments[1:]:
        files.remove_tree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
