"""When garbage is searched for: while nobody presses a key, since one whole search takes longer than a frame may.

By itself Python searches everything whenever that has grown by a quarter, as likely as not while a dialog opens, which
makes much and leaves much behind: measured, 25 to 85 ms.
"""

import gc

PAUSE_S = 5.0
"""No key for this long, and none is likely to come within the next moment."""

LOOK_S = 30.0
"""Between two looks at whether a search is due."""

DUE = 10
"""So many searches of what is young make a whole one due, as they do for Python."""

OVERDUE = 500
"""And so many do even where keys come without a pause."""

NEVER = 1 << 30


def settle() -> None:
    """Search once, and take what is there now for something that stays; from now on `sweep` does the whole searches."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    gc.enable()


def sweep(quiet_s: float) -> bool:
    """Search everything, if that is due and there was no key for `quiet_s`, or overdue; whether it did."""
    searches = gc.get_count()[2]
    if searches < (DUE if quiet_s >= PAUSE_S else OVERDUE):
        return False
    gc.collect()
    return True
