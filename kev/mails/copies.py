"""Near-copies: mails that share half of what the shorter of them says.

A campaign is sent with other names and numbers in it, a newsletter comes every week with one frame, an answer quotes
what it answers. Such mails belong into one partition, or a model is asked what it has seen.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

SHINGLE = 4
"""Words in a row that are compared."""

SHARED = 0.5
"""The part of the shorter mail's shingles from which two mails are near-copies."""

_WORD = re.compile(r"[^\W\d_]+")


def shingles(text: str) -> frozenset[str]:
    """Every four words in a row, without case, digits and punctuation; all words of a text that has fewer."""
    words = _WORD.findall(text.casefold())
    if len(words) <= SHINGLE:
        return frozenset([" ".join(words)])
    return frozenset(" ".join(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))


def clusters(texts: Sequence[str]) -> list[list[int]]:
    """The places in `texts`, in clusters of near-copies; a copy of a copy is in the cluster too.

    Every pair that shares a shingle is compared, so that none is missed by chance.
    """
    parents = list(range(len(texts)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    holders: dict[str, list[int]] = defaultdict(list)
    sizes: list[int] = []
    for place, text in enumerate(texts):
        own = shingles(text)
        sizes.append(len(own))
        common = Counter(other for shingle in own for other in holders[shingle])
        for other, shared in common.items():
            if shared >= SHARED * min(sizes[place], sizes[other]):
                parents[max(root(place), root(other))] = min(root(place), root(other))
        for shingle in own:
            holders[shingle].append(place)
    members: dict[int, list[int]] = defaultdict(list)
    for place in range(len(texts)):
        members[root(place)].append(place)
    return list(members.values())
