"""Arithmetic word problems, in the form of GSM8K: a question, and an answer that ends in `#### <number>`."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from kev import files
from kev.errors import DamagedFile, DamagedLine

NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gina", "Hugo")
THINGS = ("apples", "books", "cards", "eggs", "pens", "stones")
MARK = "####"
MAX_DIGITS = 40
_NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?|-?\$?\.\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, the worked answer, and the number that is right."""

    question: str
    answer: str
    number: Decimal


def make_problem(stream: random.Random, steps: int) -> Problem:
    """A problem of so many steps: things are got and given away, and never more than there are."""
    name, thing = stream.choice(NAMES), stream.choice(THINGS)
    have = stream.randint(2, 9)
    told, worked = [f"{name} has {have} {thing}."], []
    for _ in range(steps):
        gives = have > 1 and stream.random() < 0.5
        by = stream.randint(1, min(9, have - 1) if gives else 9)
        after = have - by if gives else have + by
        told.append(f"{name} gives away {by}." if gives else f"{name} gets {by} more.")
        worked.append(f"{have} {'-' if gives else '+'} {by} = {after}")
        have = after
    told.append(f"How many {thing} does {name} have now?")
    return Problem(" ".join(told), "\n".join([*worked, f"{MARK} {have}"]), Decimal(have))


def make_problems(stream: random.Random, steps: int, *, without: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Different problems without end, none of them a question in `without`; ends where no new one is found."""
    seen = set(without)
    misses = 0
    while misses < 10_000:
        problem = make_problem(stream, steps)
        if problem.question in seen:
            misses += 1
            continue
        misses = 0
        seen.add(problem.question)
        yield problem


def training_problems(count: int, steps: int) -> list[Problem]:
    """What agents train on: drawn from a seed that anybody may know, and asked of nobody."""
    made = make_problems(random.Random(f"training problems of {steps} steps"), steps)
    return [problem for problem, _ in zip(made, range(count), strict=False)]


def write_training_data(directory: Path, *, count: int = 2000, steps: int = 1) -> Path:
    """`train.jsonl` in `directory`, in the form of GSM8K."""
    path = directory / "train.jsonl"
    rows = [{"question": each.question, "answer": each.answer} for each in training_problems(count, steps)]
    files.write_atomic(path, b"".join(files.dump_json_line(row) for row in rows))
    return path


def read_problems(path: Path) -> list[Problem]:
    """The problems of a file in the form of GSM8K. Raises NotFound, DamagedFile or DamagedLine."""
    problems = []
    for line in files.parse_json_lines(files.read_bytes(path)):
        if line.damage is not None:
            raise DamagedLine(path, line.number, line.damage)
        value = line.value if isinstance(line.value, dict) else {}
        question, answer = value.get("question"), value.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise DamagedLine(path, line.number, "a problem has a question and an answer")
        number = number_in(answer) if MARK in answer else None
        if number is None:
            raise DamagedLine(path, line.number, f"the answer does not end in `{MARK} <number>`")
        problems.append(Problem(question, answer, number))
    if not problems:
        raise DamagedFile(path, "holds no problem")
    return problems


def number_in(text: str) -> Decimal | None:
    """The number that a text answers with: the first after the last mark, else the last in it; None without any."""
    _, mark, after = text.rpartition(MARK)
    found = _NUMBER.findall(after if mark else text)
    if not found:
        return None
    said = (found[0] if mark else found[-1]).replace(",", "").replace("$", "")
    if len(said) > MAX_DIGITS:
        return None
    try:
        return Decimal(said)
    except InvalidOperation:
        return None
