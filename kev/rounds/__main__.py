"""`python -m kev.rounds`: one command per step of a round."""

import argparse

from kev.console import parser_of, run_one_of
from kev.rounds import cancel, launch, launch_reads, options, pause, pull, resume, scaffold, status, validate, watch


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    return parser_of("python -m kev.rounds", "Rounds, from draft to verdict.", [
        ("new", "draft a round's spec and section from an earlier one", scaffold.add_arguments, scaffold.new_command),
        ("validate", "say everything that is wrong with a spec", validate.add_arguments, validate.validate_command),
        ("launch", "start every study of a round, once", launch.add_arguments, launch.launch_command),
        ("launch-reads", "start the reads that arms still need", launch_reads.add_arguments,
         launch_reads.launch_reads_command),
        ("watch", "see a launched round through to its read-out", watch.add_arguments, watch.watch_command),
        ("status", "say how every unit of a round stands", status.add_arguments, status.status_command),
        ("pull", "bring home what a study or a read has written", pull.add_arguments, pull.pull_command),
        ("resume", "continue a trial that a timeout ended", resume.add_arguments, resume.resume_command),
        ("cancel", "end a trial or a read, on record", cancel.add_arguments, cancel.cancel_command),
        ("pause", "start nothing new", pause.add_pause_arguments, pause.pause_command),
        ("unpause", "let the session go on", pause.add_unpause_arguments, pause.unpause_command),
        ("readout", "compare every arm with its parent under the rule", options.add_readout_arguments, _readout),
        ("confirm", "decide a stage for the candidate, once", options.add_confirm_arguments, _confirm),
    ])  # fmt: skip


# The numbers need numpy, which the other commands do without.


def _readout(arguments: argparse.Namespace) -> int:
    from kev.rounds import readout

    return readout.readout_command(arguments)


def _confirm(arguments: argparse.Namespace) -> int:
    from kev.rounds import confirm

    return confirm.confirm_command(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns its exit code; a wrong command line exits with 2."""
    return run_one_of(build_parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
