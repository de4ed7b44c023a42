"""OpenCompass, or any command that leaves such a summary. Settings: `command`, `items`, `datasets`?.

`command` is a list of words in which `{model}` and `{work_dir}` are replaced. It runs in a private directory and what
it leaves there is read: the newest `summary*.csv`, whose last column is the model's. What lies in a submission under
such a name is never looked at, since it was never copied.
"""

import csv
import io
import statistics
import subprocess
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.evaluation import Evaluation
from kev.autorl.evaluators.order import Order
from kev.errors import DamagedFile, NotFound, Refused, UsageError

KIND = "opencompass"
HEAD = ("dataset", "version", "metric", "mode")


def evaluate(order: Order) -> Evaluation:
    command = order.task.settings.get("command", ["opencompass", "--hf-path", "{model}", "--work-dir", "{work_dir}"])
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise UsageError(f"task {order.task.name}: command is a list of words")
    work = order.scratch / "work"
    files.make_directory(work)
    places = {"{model}": str(order.model), "{work_dir}": str(work)}
    words = [_filled(word, places) for word in command]
    try:
        done = subprocess.run(words, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        raise UsageError(f"{words[0]}: no such command; install OpenCompass, or name another in the task") from None
    if done.returncode:
        last = (done.stderr or done.stdout).decode(errors="backslashreplace").strip().splitlines()[-1:]
        raise Refused(f"{words[0]} ended with exit code {done.returncode}: {(last or ['it said nothing'])[0][:500]}")
    scores = read_summary(_summary_in(work))
    wanted = order.task.settings.get("datasets")
    if isinstance(wanted, list):
        if missing := [name for name in wanted if name not in scores]:
            raise Refused(f"the summary has no score for {missing[0]!r:.100}")
        scores = {name: scores[name] for name in wanted}
    return order.evaluation(statistics.fmean(scores.values()), order.number("items", 1), KIND, datasets=scores)


def read_summary(path: Path) -> dict[str, float]:
    """Score by dataset. Raises DamagedFile for a row without a number: it is never left out of the mean."""
    text = files.read_bytes(path).removeprefix(files.UTF8_BOM).decode(errors="backslashreplace")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if not rows or tuple(rows[0][:4]) != HEAD or len(rows[0]) != 5:
        raise DamagedFile(path, f"its columns are not {', '.join(HEAD)} and one model")
    scores: dict[str, float] = {}
    for number, row in enumerate(rows[1:], start=2):
        try:
            value: Any = files.as_finite(float(row[4]))
        except (IndexError, ValueError):
            value = None
        if value is None or row[0] in scores:
            raise DamagedFile(path, f"line {number}: no number for {row[0]!r:.100}, or a second one")
        scores[row[0]] = value
    if not scores:
        raise DamagedFile(path, "holds no dataset")
    return scores


def _summary_in(work: Path) -> Path:
    found = sorted(work.rglob("summary*.csv"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise NotFound("the command left no summary*.csv")
    return found[-1]


def _filled(word: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        word = word.replace(name, value)
    return word
