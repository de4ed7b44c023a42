"""Questions for tests, and hypothesis strategies for them."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Question:
    """The least that the encoder asks of a question."""

    instructions: Any
    options: list[str]


TEAM = Question("Which team takes it?", ["billing: payments", "shipping", "access"])
URGENT = Question({"ask": "Is it urgent?", "not": "loud"}, ["no", "yes"])
LEVEL = Question("How angry?", ["calm", "cross", "angry", "furious"])
ONE = Question("", ["only this"])
STATE = {"subject": "Charged twice", "lines": ["two charges", "one order"], "paid": True}

texts = st.text(max_size=30)
questions = st.builds(Question, texts, st.lists(texts, min_size=1, max_size=5))
records = st.tuples(st.text(max_size=120), st.lists(questions, min_size=1, max_size=4))
