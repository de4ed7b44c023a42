"""Who is told to slow down waits as told, says so once, and does not wait for money."""

import pytest

from kev.compute.errors import RemoteError, SpendLimitReached, Throttled
from kev.rounds.patience import PATIENCE_S, PAUSE_S, wait_out


class Counter:
    """Answers after refusals, and keeps what was said and waited meanwhile."""

    def __init__(self, *refusals: RemoteError) -> None:
        self.refusals, self.said, self.waited = list(refusals), list[str](), list[float]()

    async def ask(self) -> str:
        if self.refusals:
            raise self.refusals.pop(0)
        return "an answer"

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


async def test_a_throttle_is_waited_out_as_long_as_it_says() -> None:
    counter = Counter(Throttled("too many", retry_after_s=7), Throttled("too many"))
    assert await wait_out(counter.ask, counter.said.append, counter.sleep) == "an answer"
    assert counter.waited == [7, PAUSE_S]
    assert counter.said == ["asked too often, going on in 7 s (too many)"]


async def test_a_throttle_that_outlasts_all_patience_is_told() -> None:
    counter = Counter(Throttled("too many", retry_after_s=PATIENCE_S), Throttled("still too many", retry_after_s=1))
    with pytest.raises(Throttled, match="still"):
        await wait_out(counter.ask, counter.said.append, counter.sleep)
    assert counter.waited == [PATIENCE_S]


async def test_no_more_money_is_never_waited_for() -> None:
    counter = Counter(SpendLimitReached("spend limit"))
    with pytest.raises(SpendLimitReached):
        await wait_out(counter.ask, counter.said.append, counter.sleep)
    assert (counter.waited, counter.said) == ([], [])
