"""Arithmetic word problems by exact match. Settings: `items`, `steps`, `max_new_tokens`, and `file` for a GSM8K file.

Without a file the problems are made anew for each season, from a secret, and none is in the training data. With one,
a keyed hash decides which half of it is hidden.
"""

from kev.autorl.engines import open_engine
from kev.autorl.evaluation import Evaluation
from kev.autorl.evaluators.order import Order
from kev.autorl.evaluators.problems import Problem, make_problems, number_in, read_problems, training_problems

KIND = "exact match"
TRAINING = 2000
SHOWN = 5


def prompt_of(problem: Problem) -> str:
    """The template: ours, whatever template comes with the model."""
    return f"Question: {problem.question}\nAnswer:"


def evaluate(order: Order) -> Evaluation:
    problems = choose(order)
    default = 32 if "file" not in order.task.settings else 400
    engine = open_engine(order.engine, order.model, order.base)
    texts = engine.generate(
        [prompt_of(each) for each in problems], max_new_tokens=order.number("max_new_tokens", default, most=8192)
    )
    answers = [number_in(answered(text)) for text in texts]
    right = sum(answer == each.number for answer, each in zip(answers, problems, strict=True))
    silent = sum(answer is None for answer in answers)
    return order.share(right, len(problems), KIND, without_a_number=silent, engine=engine.name)


def answered(text: str) -> str:
    """What a completion says before it goes on to ask a question of its own."""
    return text.partition("\nQuestion:")[0]


def choose(order: Order) -> list[Problem]:
    """The problems of this grading."""
    size = order.number("items", 200)
    if "file" in order.task.settings:
        assert order.task.directory is not None
        problems = read_problems(order.task.directory / str(order.task.settings["file"]))
        return order.sample(order.halves(problems, [each.question for each in problems]), size)
    steps = order.number("steps", 1, most=8)
    known = frozenset(each.question for each in training_problems(TRAINING, steps))
    # Both splits come from one pool and never share a problem; the draws of a split may.
    pool = [
        each for each, _ in zip(make_problems(order.draw("pool"), steps, without=known), range(8 * size), strict=False)
    ]
    return order.sample(order.halves(pool, [each.question for each in pool]), size)
