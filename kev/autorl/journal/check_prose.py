"""What a section says in words: the training against its source, causes, evidence, metrics (rules 3, 4, 5, 6, 8)."""

import re
from collections.abc import Iterator, Sequence

from kev.autorl.journal.check_form import same_as, source_file
from kev.autorl.journal.facts import Facts
from kev.autorl.journal.failures import FAILURE_TYPES
from kev.autorl.journal.findings import SUMMARY, Finding
from kev.autorl.journal.rounds import Round, agrees
from kev.autorl.journal.section import PROGRESS, SETTINGS, STATUS, TYPE, WHY, Section, Stated
from kev.autorl.journal.training import LONG, TYPES, UNKNOWN, Training
from kev.autorl.metrics import Metrics, compute_metrics
from kev.autorl.scores import Scores

CITES = re.compile(r"scores\.json|run\.log|agent\.log")
_COUNTS = {"submissions", "errors", "not_finite", "score_trajectory", "best_score"}
METRICS = tuple(name for name in Metrics.model_fields if name not in _COUNTS)
METRIC = re.compile(
    rf"(?P<name>{'|'.join(METRICS)})\s*(?P<mark>[=＝:：]?)\s*(?P<figure>[+-]?\d+(?:\.\d+)?)?(?P<unit>\s*%)?"
)
_TYPED = re.compile(r"failure_type\s*[=＝:：]?\s*`?(\w+)")
_NAMED = re.compile("|".join(name for name in FAILURE_TYPES if name != "unknown"))
CAUSE = re.compile(r"\.log\b|scores\.json|(?:Error|Exception)\b|Traceback|\bOOM\b|\bnan\b|exit[_ ]code", re.I)
NEW = re.compile(r"新增|new evidence|new attempt|nothing new|tried", re.I)


def failure_type_in(section: Section) -> str | None:
    """The failure type that a section states, whether or not there is such a type."""
    for text in (section.text(PROGRESS), section.text(STATUS)):
        if (found := _TYPED.search(text)) is not None:
            return found[1]
        if (found := _NAMED.search(text)) is not None:
            return found[0]
    return None


def check_training(found: Round) -> Iterator[Finding]:
    """Rule 3. What stands under code/ now says nothing of a round before it was changed."""
    section, facts = found.section, found.facts
    stated, line = section.train_type, section.line_of(TYPE)
    if stated and stated not in TYPES:
        yield Finding(3, "type", SUMMARY, line, stated, " / ".join(TYPES))
    if not is_of_now(found):
        return
    machine = training_of(section, found.before, facts)
    if stated == UNKNOWN == facts.training().kind:
        return  # several trainers in one folder: the round may say that it cannot be told
    if machine.kind != UNKNOWN and stated in TYPES and stated != machine.kind:
        yield Finding(3, "type_source", SUMMARY, line, stated, f"{machine.kind} ({machine.where or 'code/'})")
    for name, value in machine.settings.items():
        said = stated_setting(section, name)
        if said is not None and value != UNKNOWN and not same_value(said, value):
            machine_words = f"{name}={value} ({machine.where})"
            yield Finding(3, "setting", SUMMARY, section.line_of(SETTINGS), f"{name}={said}", machine_words)


def training_of(section: Section, before: Sequence[Section], facts: Facts) -> Training:
    """What the source says that a section tells of."""
    return facts.training(source_file(section, before))


def stated_setting(section: Section, name: str) -> str | None:
    """A setting under its name in the journal or its long one."""
    return section.setting(name) or section.setting(LONG.get(name, name))


def same_value(stated: str, machine: str) -> bool:
    """Whether two spellings are one value."""
    try:
        return abs(float(stated) - float(machine)) <= 1e-12 * abs(float(machine))
    except ValueError:
        return stated.strip("`'\"").casefold() == machine.casefold()


def check_failure(found: Round) -> Iterator[Finding]:
    """Rules 4 and 8: the type of a failure, its cause, and what is new where it is the same again."""
    section = found.section
    stated, line = failure_type_in(section), section.line_of(PROGRESS)
    if stated is not None and stated not in FAILURE_TYPES:
        yield Finding(4, "failure_type", SUMMARY, line, stated, " / ".join(FAILURE_TYPES))
    machine = machine_type(found)
    if section.status == "failure":
        if stated is None:
            yield Finding(4, "no_failure_type", SUMMARY, line, "", machine[0] if machine else "failure_type=unknown")
        if not CAUSE.search(section.text(PROGRESS)):
            yield Finding(4, "no_cause", SUMMARY, line, "", machine[1] if machine else "agent.log / run.log")
        before = found.before[-1] if found.place else None
        repeated = before is not None and before.status == "failure" and failure_type_in(before) == stated
        if repeated and stated is not None and not NEW.search(section.text(PROGRESS)):
            yield Finding(8, "repeat", SUMMARY, line, stated, "新增证据 / 新增尝试 / 无新增")
    if machine is not None and stated in FAILURE_TYPES and stated != machine[0]:
        yield Finding(4, "failure_type", SUMMARY, line, stated or "", f"{machine[0]} ({machine[1]})")
    elif machine is not None and stated is None and section.status == "success":
        yield Finding(4, "failure_type", SUMMARY, line, "success", f"{machine[0]} ({machine[1]})")


def machine_type(found: Round) -> tuple[str, str] | None:
    """The failure type that the files are sure of, and what shows it."""
    section = found.section
    ended = found.facts.ended_by(section.time)
    entry = None if found.machine is None else found.machine.entry
    if entry is not None and entry.label == "no change":
        return "copy_model_fallback", f"submission {entry.submission_id} has the weights of the base"
    if ended is None or found.sealed or not found.is_last or section.status != "failure":
        return None  # a log of many rounds says nothing of one in the midst
    failure, _ = found.facts.failure([] if entry is None else [entry], ended[1])
    return None if failure is None or failure.type == UNKNOWN else (failure.type, str(failure.evidence))


def check_evidence(found: Round) -> Iterator[Finding]:
    """Rules 5 and 6: why cites the round before, and progress is a figure that is the machine's."""
    section = found.section
    why, progress = section.text(WHY), section.text(PROGRESS)
    if why and section.iteration > 1 and not CITES.search(why):
        yield Finding(5, "evidence", SUMMARY, section.line_of(WHY), why, "scores.json / run.log / agent.log")
    metrics = list(METRIC.finditer(progress))
    if progress and not metrics and failure_type_in(section) is None:
        yield Finding(6, "metric", SUMMARY, section.line_of(PROGRESS), progress, "valid_submission_rate, …")
    for each, value in metric_faults(found):
        said = f"{each['name']}={each['figure']}{each['unit'] or ''}"
        yield Finding(
            6, "metric_value", SUMMARY, section.line_of(PROGRESS), said, f"{each['name']}={metric_text(value)}"
        )


def metric_faults(found: Round) -> Iterator[tuple[re.Match[str], float | None]]:
    """Metrics that a round states and the machine does not have, where they stand, each with the machine's."""
    known, meta, duration = found.machine, found.facts.meta, found.section.duration
    if known is None:
        return
    possible = [compute_metrics(Scores(list(entries)), meta) for entries in (known.covered, known.present)]
    for each in METRIC.finditer(found.section.text(PROGRESS)):
        if each["figure"] is None:
            continue
        values = [getattr(figures, each["name"]) for figures in possible]
        if each["name"] == "time_used_ratio" and meta is not None and duration is not None and meta.timeout_s:
            values.append(duration / meta.timeout_s)
        if not any(_is_metric(each, value) for value in values):
            yield each, values[-1]


def metric_text(value: float | None) -> str:
    """A metric as the journal has it."""
    return "null" if value is None else str(round(value, 4))


def _is_metric(found: re.Match[str], machine: float | None) -> bool:
    if machine is None:
        return False
    stated = float(found["figure"]) / (100 if found["unit"] else 1)
    if not found["mark"] and found["figure"].startswith(f"{machine}"):
        return True  # "valid_submission_rate1.03/3": what stood between two figures was lost
    if "." not in found["figure"] and not found["unit"]:
        return stated == int(machine)  # whole seconds
    return agrees(Stated.of(found["figure"]), machine) or (bool(found["unit"]) and abs(stated - machine) <= 0.005)


def is_of_now(found: Round) -> bool:
    """Whether the source is still what the round was trained with, as far as that shows."""
    section = found.section
    changed = found.facts.code_changed_at
    if changed is None:
        return False
    if found.is_last or changed <= section.time:
        return True
    chain = section.iteration
    for later in found.sections[found.place + 1 :]:
        same = same_as(later)
        if same is None or same < chain:
            return False
    return True
