"""The checkpoint of the synthetic objective: its weights by feature, in JSON that anyone can read."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kev import files
from kev.data.record import DataRecord
from kev.errors import DamagedFile
from kev.linear import FEATURES, LinearModel

MODEL = "synthetic.json"

Priors = dict[tuple[str, int], Counter[int]]
"""How often each place was right, by question type and number of options."""


def priors_of(records: Iterable[DataRecord]) -> Priors:
    """The answers of `records`; choices add nothing, since their options have other names in every record."""
    priors: Priors = {}
    for record in records:
        for question in record.questions.values():
            if question.type != "choice":
                priors.setdefault((question.type, len(question.keys)), Counter())[question.label_index] += 1
    return priors


def model_bytes(model: LinearModel) -> bytes:
    """The file of a checkpoint. Every float is written so that it reads back as the same bits."""
    priors = [
        {"type": kind, "options": options, "counts": [counts[place] for place in range(options)]}
        for (kind, options), counts in sorted(model.priors.items())
    ]
    weights = dict(zip(FEATURES, model.weights.tolist(), strict=True))
    return files.dump_json({"synthetic": True, "weights": weights, "priors": priors})


def read_model(path: Path) -> LinearModel:
    """The model in `path`. Raises NotFound or DamagedFile."""
    value = files.read_json(path)
    try:
        weights = np.array([value["weights"][name] for name in FEATURES], dtype=np.float64)
        priors = {
            (str(each["type"]), int(each["options"])): Counter(dict(enumerate(map(int, each["counts"]))))
            for each in value["priors"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(path, f"is no synthetic checkpoint ({error})") from None
    if not np.isfinite(weights).all():
        raise DamagedFile(path, "holds a weight that is no finite number")
    return LinearModel(weights, priors)
