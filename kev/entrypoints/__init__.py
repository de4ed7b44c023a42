"""What `modal run modal_app.py::<entry point>` does on the launcher's machine.

commands        flags in, an exit code and one line for every failure out
admission       everything that is checked before a study is launched
ledger          the spawn record, written before and after each spawn
study           launching the trials of a plan
continuation    going on with one trial after a timeout
resume          every trial of a study: adopt, continue, or score again
pull            bringing a study home, and its results.jsonl
benchmarks      reads, each with a record of its own
interpolation   checkpoints between two others
mirror          copies of checkpoints in another place
locked_test     the one read of the test partitions
"""
