"""The command lines of `readout` and `confirm`, apart from their code, which needs numpy."""

import argparse
from pathlib import Path


def add_readout_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `kev.rounds readout`."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="experiments/rounds/r<N>.json")
    parser.add_argument("--root", type=Path, metavar="DIR", help="what the spec's paths are relative to")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write here instead of runs/r<N>-readout")
    parser.add_argument("--json", action="store_true", help="print the read-out instead of a table")


def add_confirm_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `kev.rounds confirm`."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="experiments/rounds/r<N>.json")
    parser.add_argument("--stage", required=True, metavar="NAME", help="the confirmation stage to decide")
    parser.add_argument("--arm", metavar="NAME", help="the candidate, where the read-out names several")
    parser.add_argument("--root", type=Path, metavar="DIR", help="what the spec's paths are relative to")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write here instead of runs/r<N>-verdict")
    parser.add_argument("--json", action="store_true", help="print the verdict instead of a table")
