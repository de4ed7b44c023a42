"""Moves the wall clock that Python code in a container reads, by the seconds in KEV_CLOCK_SKEW_S.

Python imports a module of this name by itself at start, when its directory is on the path. `time.time`, `time_ns` and
the `now`, `today` and `utcnow` of `datetime` and `date` are moved; monotonic clocks, file times and what other programs
read are not.
"""

import datetime
import os
import time
from datetime import date as real_date
from datetime import datetime as real_datetime
from typing import Any

SKEW = float(os.environ.get("KEV_CLOCK_SKEW_S", "0"))
SKEW_NS = int(SKEW * 1e9)

_time, _time_ns = time.time, time.time_ns


class _Lookalike(type):
    """Instances that C code made are of the real type and must pass for one of ours."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, STANDS_FOR[cls]) if cls in STANDS_FOR else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, STANDS_FOR[cls]) if cls in STANDS_FOR else super().__subclasscheck__(subclass)


class SkewedDatetime(real_datetime, metaclass=_Lookalike):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return real_datetime.fromtimestamp(_time() + SKEW, tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


class SkewedDate(real_date, metaclass=_Lookalike):
    @classmethod
    def today(cls) -> Any:
        return real_datetime.fromtimestamp(_time() + SKEW).date()  # noqa: DTZ006  # local, as the real one


STANDS_FOR: dict[type, type] = {SkewedDatetime: real_datetime, SkewedDate: real_date}

if SKEW:
    time.time = lambda: _time() + SKEW
    time.time_ns = lambda: _time_ns() + SKEW_NS
    datetime.datetime, datetime.date = SkewedDatetime, SkewedDate  # type: ignore[misc]
