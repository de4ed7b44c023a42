"""Watching a round: one pass asks how everything stands, decides, and does what follows.

decide      what is to be done about one unit, given what was seen of it; pure
pending     what became of an attempt whose spawn was never answered; pure
progress    whether a trial will be done before its timeout; pure
blends      the checkpoints that a round mixes from others
rescores    trials that were trained and never scored
passes      one pass: asking, deciding, doing
sweep       what is alive at the provider against what the ledger knows
loop        pass after pass until the round is done
"""
