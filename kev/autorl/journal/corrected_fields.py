"""The fields of one round put right: what is readable and not denied by the machine's files stays as it is."""

import math
import re
from collections.abc import Sequence

from kev.autorl.journal.check_figures import went_back
from kev.autorl.journal.check_form import MOST_KEY_CODE, MOST_SNIPPET, blocks_in, is_time, same_as, without_blocks
from kev.autorl.journal.check_prose import (
    CAUSE,
    CITES,
    METRIC,
    NEW,
    failure_type_in,
    is_of_now,
    machine_type,
    metric_faults,
    metric_text,
    same_value,
    stated_setting,
    training_of,
)  # fmt: skip
from kev.autorl.journal.compose import evidence_text, metrics_text, score_text
from kev.autorl.journal.corrected_order import Place
from kev.autorl.journal.excerpts import key_lines, snippet
from kev.autorl.journal.failures import FAILURE_TYPES
from kev.autorl.journal.findings import Language
from kev.autorl.journal.rounds import Round
from kev.autorl.journal.section import (
    CODE,
    FAILURE,
    PROGRESS,
    SCORE,
    SETTINGS,
    SNIPPET,
    STATUS,
    SUCCESS,
    TYPE,
    WHAT,
    WHY,
    Section,
    block,
    minute_of,
    note,
    setting_pattern,
)  # fmt: skip
from kev.autorl.journal.training import LONG, TYPES, UNKNOWN
from kev.autorl.journal.training import SETTINGS as SETTING_NAMES
from kev.autorl.scores import Scores, improvement_of
from kev.records.autorl import ScoreEntry

NOT_RECORDED = ("not recorded; put in by `journal repair`", "未记录；由 `journal repair` 补充")
_FAILURE_TYPE = re.compile(r"failure_type\s*[=＝:：]?\s*`?\w+`?")
_HEADING = re.compile(r"^[ \t]*(?=#{1,6}[ \t]*Iteration\b)", re.M)


class Correction:
    """The values of one round: `notes` gets the prose that has no place in them."""

    def __init__(
        self, place: Place, found: Round, before: Sequence[Section], taken: set[int], language: Language
    ) -> None:
        self._place = place
        self._found = found
        self._section = place.section
        self._before = before
        """The rounds before it, put right."""
        self._language = language
        self.notes = [note(place.section.iteration, "", text) for text in place.section.loose]
        self._entry, self._score = self._scored(taken)
        self.duration = self._duration()
        self.time = self._time()
        self._training = training_of(self._section, found.before, found.facts)

    def fields(self) -> dict[str, str]:
        """Every field of the section. The best is put in once all rounds are right."""
        success, status = self._status()
        return {
            STATUS: status,
            SCORE: score_text(self._score, self._improvement(), None, None),
            TYPE: self._type(),
            SETTINGS: self._settings(),
            WHAT: self._text(WHAT) or NOT_RECORDED[self._language == "zh"],
            WHY: self._why(),
            PROGRESS: self._progress(success),
            CODE: self._code(),
            SNIPPET: self._snippet(),
        }

    def _text(self, label: str) -> str:
        return _HEADING.sub(r"\\", self._section.text(label))

    def _scored(self, taken: set[int]) -> tuple[ScoreEntry | None, float | None]:
        """The submission of the round and its score; a score that nobody got is that of the next one in line."""
        facts, known = self._section.score_facts, self._found.machine
        stated = None if facts is None else facts.score
        if known is None:
            return None, None if stated is None else float(stated)
        if known.entry is not None:
            return known.entry, known.entry.score
        text = self._section.text(SCORE)
        if stated is None and text and "nan" not in text.lower():
            return None, None  # the round says that it has none
        rounds, place = self._found.known or (), self._found.place
        last = max([each.entry.submission_id for each in rounds[:place] if each.entry], default=0)
        after = min([each.entry.submission_id for each in rounds[place + 1 :] if each.entry], default=10**9)
        scores = self._found.facts.scores
        for entry in scores.valid if scores is not None else ():
            if entry.submission_id not in taken and last < entry.submission_id < after:
                taken.add(entry.submission_id)
                return entry, entry.score
        return None, None

    def _improvement(self) -> float | None:
        facts = self._section.score_facts
        if self._found.machine is None:
            stated = None if facts is None else facts.improvement
            return None if stated is None or self._score is None else float(stated)
        baseline = self._found.facts.baseline
        if self._entry is not None and self._entry.baseline_score is not None:
            baseline = self._entry.baseline_score
        return improvement_of(self._score, baseline)

    def _duration(self) -> int:
        least = math.ceil(self._before[-1].duration or 0) if self._before else 0
        lasted = self._found.facts.lasted
        most = math.inf if lasted is None else max(math.ceil(lasted), least)
        line = self._place.line
        for value in (self._section.duration, None if line is None else line.duration_s):
            if value is not None and least <= value <= most:
                return int(value)
        elapsed = math.ceil(self._entry.elapsed_seconds or 0) if self._entry is not None else 0
        return int(min(max(least, elapsed), most))

    def _time(self) -> str:
        line, earlier = self._place.line, self._before[-1].time if self._before else ""
        sent = (self._entry.timestamp or "")[:16].replace("T", " ") if self._entry is not None else ""
        later = next((each.time for each in self._found.sections[self._found.place + 1 :] if is_time(each.time)), "")
        for text in (self._section.time, "" if line is None else line.timestamp, sent, earlier, later):
            if is_time(text) and not (earlier and went_back(earlier, text)):
                return text
        return earlier or minute_of(self._found.facts.now)

    def _status(self) -> tuple[bool, str]:
        line, code = self._place.line, self._section.exit_code
        status = self._section.status or (line.status if line is not None else None)
        if code is None and line is not None and "unknown" not in self._section.text(STATUS):
            code = line.exit_code
        ended = self._found.facts.ended_by(self.time)
        if ended is not None and self._found.is_last and code is not None:
            code = ended[1]
        success = status == "success" if status is not None else self._score is not None
        success = success and not code
        return success, f"{SUCCESS if success else FAILURE} (exit_code={'unknown' if code is None else code})"

    def _type(self) -> str:
        stated, line = self._section.train_type, self._place.line
        machine = self._training.kind if is_of_now(self._found) else UNKNOWN
        if machine != UNKNOWN and not (stated == UNKNOWN == self._found.facts.training().kind):
            self._keep(TYPE, stated, machine)
            return machine
        if stated in TYPES:
            return stated
        self._keep(TYPE, stated, UNKNOWN)
        return line.train_type if line is not None and line.train_type in TYPES else UNKNOWN

    def _keep(self, label: str, stated: str, now: str) -> None:
        if stated and stated not in TYPES and stated != now:
            self.notes.append(note(self._section.iteration, label, stated))

    def _settings(self) -> str:
        text = self._text(SETTINGS)
        for name in (*SETTING_NAMES, *LONG):
            # An equals sign that was lost comes back where the value cannot be anything else.
            if (found := setting_pattern(name).search(text)) is not None and found["bare"]:
                text = f"{text[: found.start('bare')].rstrip()}={text[found.start('bare') :]}"
        if not is_of_now(self._found):
            return text or UNKNOWN
        for name, value in self._training.settings.items():
            said = stated_setting(self._section, name)
            if said is None or value == UNKNOWN or same_value(said, value):
                continue
            shown = name if self._section.setting(name) else LONG.get(name, name)
            text = setting_pattern(shown).sub(f"{shown}={value}", text, count=1)
        return text or self._training.settings_text()

    def _why(self) -> str:
        text = self._text(WHY)
        if text and (self._place.number == 1 or CITES.search(text)):
            return text
        evidence = evidence_text(self._place.number, self._before, self._found.facts)
        return f"{text or NOT_RECORDED[self._language == 'zh']} ({evidence})"

    def _progress(self, success: bool) -> str:
        text = self._section.text(PROGRESS)
        for each, value in reversed(list(metric_faults(self._found))):
            end = each.end("unit") if each["unit"] else each.end("figure")
            text = f"{text[: each.start('figure')]}{metric_text(value)}{text[end:]}"
        text = _HEADING.sub(r"\\", text)
        stated, machine = failure_type_in(self._section), machine_type(self._found)
        wanted = self._failure_type(stated, machine, success)
        if wanted is not None and stated != wanted:
            said = f"failure_type={wanted}"
            text = _FAILURE_TYPE.sub(said, text) if _FAILURE_TYPE.search(text) else _joined(text, said)
        if not success:
            if not CAUSE.search(text):
                text = _joined(text, machine[1] if machine else "agent.log / run.log: " + NOT_RECORDED[0])
            before = self._before[-1] if self._before else None
            if before is not None and before.status == "failure" and failure_type_in(before) == wanted:
                text = text if NEW.search(text) else _joined(text, "无新增")
        if self._place.is_new or not text or (wanted is None and not _has_metric(text)):
            known = self._found.machine
            text = _joined(text, metrics_text(Scores(list(known.covered) if known is not None else [])))
        return text

    def _failure_type(self, stated: str | None, machine: tuple[str, str] | None, success: bool) -> str | None:
        line = self._place.line
        if machine is not None:
            return machine[0]
        if stated in FAILURE_TYPES:
            return stated
        if stated is not None or not success:
            return line.failure_type if line is not None else UNKNOWN
        return None

    def _code(self) -> str:
        text = self._text(CODE)
        if not text:
            return key_lines("", self._training, self._found.facts.sources)
        blocks = blocks_in(text)
        lines = [line for each in blocks for line in each.split("\n")] if blocks else text.split("\n")
        lines = [line for line in lines if line.strip()]
        if len(lines) <= MOST_KEY_CODE:
            return f"\n{text}" if text.startswith("```") else text
        self._note_words(CODE, text if not blocks else without_blocks(text))
        return "\n" + block("", lines[:MOST_KEY_CODE]).strip()

    def _snippet(self) -> str:
        text, facts = self._text(SNIPPET), self._found.facts
        same = same_as(self._section)
        moved = same is not None and (same >= self._place.number or self._place.number != self._section.iteration)
        if not text or moved:
            return snippet("", self._training, facts.sources, self._before)
        blocks = blocks_in(text)
        lines = (blocks[0] if blocks else text).rstrip("\n").split("\n")
        said = sum(bool(line.strip()) for line in lines) - (not blocks)  # the first names the file
        if len(blocks) <= 1 and (len(lines) if blocks else said) <= MOST_SNIPPET:
            return text
        head = text.partition("```")[0].strip().replace("\n", " ") if blocks else lines.pop(0).strip()
        rest = without_blocks(text).removeprefix(head) if blocks else "\n".join(lines[MOST_SNIPPET:])
        self._note_words(SNIPPET, rest)
        return block(head, lines[:MOST_SNIPPET])

    def _note_words(self, label: str, text: str) -> None:
        if text.strip():
            self.notes.append(note(self._section.iteration, label, text))


def _joined(text: str, more: str) -> str:
    return f"{text}; {more}" if text else more


def _has_metric(text: str) -> bool:
    return METRIC.search(text) is not None
