"""Names that nearly fit: a message about an unknown name says which known one may be meant."""

import difflib
import posixpath
import unicodedata
from collections.abc import Collection


def nearest(name: str, known: Collection[str]) -> str:
    """The end of a message about an unknown name: the known one it is most like, or the known ones."""
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.casefold(), folded, 1, 0.5)
    if close:
        return f"; did you mean {folded[close[0]]}?"
    if not known:
        return ""
    return f"; there is {', '.join(sorted(known)[:12])}" + (", ..." if len(known) > 12 else "")


def on_any_disk(path: str) -> str:
    """What two paths share that fall together on some file system: of other letter case or Unicode form, or detours."""
    return posixpath.normpath(unicodedata.normalize("NFC", path).casefold())
