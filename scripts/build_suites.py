"""Freeze the generated suites into evals/, or check that what is frozen is what the generators make.

python scripts/build_suites.py            freeze what is not there yet; refuse to change what is
python scripts/build_suites.py --check    change nothing; exit 1 and name every difference
"""

import argparse
import sys
from pathlib import Path

from kev.console import failures_of_files, run
from kev.data.freeze import build, differences, freeze, shared_states
from kev.data.suites import SUITES
from kev.errors import UsageError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="suites to freeze or check (all)")
    parser.add_argument("--root", type=Path, default=Path("evals"), help="where suites lie (evals)")
    parser.add_argument("--check", action="store_true", help="change nothing, only compare")
    arguments = parser.parse_args()
    plans = {plan.name: plan for plan in SUITES}
    unknown = [name for name in arguments.names if name not in plans]
    if unknown:
        raise UsageError(f"no suite is called {unknown[0]!r}; there are {', '.join(plans)}")
    chosen = [plans[name] for name in arguments.names or plans]
    if not arguments.check:
        for plan in chosen:
            print(freeze(arguments.root, plan))
        return 0
    faults = [fault for plan in chosen for fault in differences(arguments.root / plan.name, build(plan))]
    faults += shared_states(SUITES)
    print("\n".join(faults) or f"{len(chosen)} suites are as the generators make them")
    return 1 if faults else 0


def main_with_files() -> int:
    with failures_of_files():
        return main()


if __name__ == "__main__":
    sys.exit(run(main_with_files))
