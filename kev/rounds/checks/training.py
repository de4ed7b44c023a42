"""What an arm or a parent was trained on, as far as the spec and the files of its trial tell."""

from kev.errors import KevError
from kev.files import read_json
from kev.records.spec import Arm
from kev.rounds.checks.arms import TRIAL
from kev.rounds.pools import Training
from kev.rounds.subject import Subject


def training_of_arm(subject: Subject, arm: Arm) -> Training | None:
    if arm.trained_on is not None:
        return Training(tuple(arm.trained_on))
    match = TRIAL.fullmatch(arm.trial or "")
    if match is None:
        return None
    study = subject.spec.studies.get(match["study"])
    if study is not None:
        try:
            plan = subject.checkout.plan(study.plan)
        except KevError:
            plan = []
        index = int(match["index"])
        entry = plan[index] if isinstance(plan, list) and index < len(plan) else None
        data = entry.get("data") if isinstance(entry, dict) else None
        return Training((study.suite,), (data,) if isinstance(data, str) else ())
    return training_of_trial(subject, str(arm.trial))


def training_of_trial(subject: Subject, trial: str) -> Training | None:
    try:
        provenance = read_json(subject.checkout.root / trial / "provenance.json")
    except (KevError, OSError, ValueError):
        return None
    if not isinstance(provenance, dict):
        return None
    suite = subject.checkout.suite_with_hash(str(provenance.get("suite_sha256")))
    config = provenance.get("config")
    data = config.get("data") if isinstance(config, dict) else None
    return Training((suite,), (data,) if isinstance(data, str) else ()) if suite is not None else None
