"""`python -m kev.session`: what an unattended session may spend, from its opening to its summary."""

import argparse

from kev.console import parser_of, run_one_of
from kev.session import close, commit, refresh, report, show
from kev.session import open as opening


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    return parser_of("python -m kev.session", "Sessions, from opening to summary.", [
        ("open", "say what may be spent, from where the meter stands now", opening.add_arguments, opening.open_command),
        ("show", "print the sum that a launch would be held against", show.add_arguments, show.show_command),
        ("refresh", "read the meter and print the sum", refresh.add_arguments, refresh.refresh_command),
        ("report", "what was spent, is pending, went wrong, came out, and comes next", report.add_arguments,
         report.report_command),
        ("commit", "put its record into git, and push it", commit.add_arguments, commit.commit_command),
        ("close", "end the session, with its summary in the plan", close.add_arguments, close.close_command),
    ])  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns its exit code; a wrong command line exits with 2."""
    return run_one_of(build_parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
