"""Parents that would be served at another temperature than the one they are shipped with."""

from typing import Any

from kev.errors import KevError
from kev.files import as_finite, read_json
from kev.rounds.checks.training import training_of_trial
from kev.rounds.sides import parent_side
from kev.rounds.subject import Subject

SHIPPED_TOLERANCE = 0.05


def check_shipped_temperatures(subject: Subject) -> None:
    """Warn of a parent whose own rows are in distribution and fit another temperature than it is shipped with.

    Only what is here is compared: the parent's development rows, and the table beside its checkpoint's head.
    """
    spec = subject.spec
    first_arm = {arm.parent: name for name, arm in reversed(spec.arms.items()) if arm.parent in spec.parents}
    for name, arm in first_arm.items():
        side = parent_side(spec, arm)
        path = f"{side.development_directory()}/rows.json"
        shipped = _shipped(subject, f"{side.trial}/checkpoint/head.json")
        if spec.parents[name].pooled or shipped is None or not subject.checkout.has(path):
            continue
        if not _is_in_distribution(subject, str(side.trial)):
            continue
        try:
            served = _fitted(read_json(subject.checkout.root / path), path)
        except KevError as error:
            subject.problems.add("damaged-file", ("parents", name, "trial"), str(error))
            continue
        if abs(served - shipped) > SHIPPED_TOLERANCE:
            message = (
                f"would be served at T = {served:.3f}, fitted on rows of a training corpus, and is shipped with "
                f"T = {shipped:.3f}; a pool would serve it at a held-out one"
            )
            subject.problems.warn("shipped-temperature", ("parents", name, "trial"), message)


def _shipped(subject: Subject, path: str) -> float | None:
    if not subject.checkout.has(path):
        return None
    try:
        head = read_json(subject.checkout.root / path)
    except KevError:
        return None
    return as_finite(head.get("temperature")) if isinstance(head, dict) else None


def _is_in_distribution(subject: Subject, trial: str) -> bool:
    training = training_of_trial(subject, trial)
    suites = [subject.checkout.suite(path) for path in training.suites] if training is not None else []
    return any(suite.manifest.is_training_corpus() for suite in suites if suite is not None)


def _fitted(value: Any, path: str) -> float:
    from kev.metrics import fit_temperature, raw, rows_from_json  # numpy, needed by few validations

    return fit_temperature(raw(rows_from_json(value, path))).temperature
