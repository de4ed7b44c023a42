"""A breach of the ten rules of the journal: where it is, what is stated there, and what the machine has."""

from dataclasses import dataclass
from typing import Any, Literal

from kev.text import shorten, visible

Language = Literal["en", "zh"]
MESSAGES: dict[str, tuple[str, str]] = {
    "changed": ("what was written before is changed or gone", "已写入的内容被改动或删除"),
    "encoding": ("not plain UTF-8 with newlines", "不是带换行符的纯 UTF-8 文本"),
    "title": ("the first line is not the title", "首行不是标题"),
    "heading": ("a heading that cannot be read as a round's", "标题无法解析"),
    "sequence": ("the round is out of sequence", "迭代号不连续"),
    "too_many": ("more rounds than are compared", "轮次过多，仅比较前面的部分"),
    "type": ("no type of training that the format knows", "训练类型不在枚举中"),
    "type_source": ("the source says another type of training", "训练类型与源码不符"),
    "setting": ("the source says another value", "关键配置与源码不符"),
    "no_failure_type": ("a failure without failure_type", "失败未标注 failure_type"),
    "no_cause": ("a failure without a cause that can be located", "失败未给出可定位的根因"),
    "failure_type": ("the files say another failure_type", "failure_type 与文件不符"),
    "evidence": ("cites none of scores.json, run.log, agent.log", "未引用 scores.json / run.log / agent.log 的证据"),
    "metric": ("holds no metric and no failure type", "没有过程指标或失败类型"),
    "metric_value": ("a metric that differs from the machine's", "过程指标与机器值不符"),
    "snippet": ("more than one block, or more than 40 lines", "代码片段多于一段或超过 40 行"),
    "key_code": ("more than 5 lines", "关键代码超过 5 行"),
    "same_as": ("the same as a round that is not earlier", "引用的相同轮次并不早于本轮"),
    "repeat": ("the same failure again, without what is new", "重复根因未写明新增或无新增"),
    "no_lines": ("there is no summary.jsonl", "缺少 summary.jsonl"),
    "line_damaged": ("cannot be read", "无法解析"),
    "line_keys": ("other keys than the format has", "字段与格式不符"),
    "line_missing": ("the round has no line in summary.jsonl", "summary.jsonl 缺少该轮的记录"),
    "line_extra": ("no section for this line", "没有对应的 section"),
    "line_repeated": ("a round that has a line already", "重复的记录"),
    "line_order": ("the line is out of sequence", "记录顺序不符"),
    "line_differs": ("differs from the section", "与 section 不一致"),
    "missing": ("a field is missing or empty", "字段缺失或为空"),
    "repeated": ("a field is there twice", "字段重复"),
    "order": ("the fields are not in their order", "字段顺序不符"),
    "line_breaks": ("line breaks were lost", "换行丢失"),
    "score_line": ("score, improvement and best cannot be read", "Score 行无法解析"),
    "not_finite": ("not a finite number", "不是有限数"),
    "invented": ("no submission has this score", "没有任何提交得到该分数"),
    "improvement": ("not score less baseline", "Improvement 不等于得分减基线"),
    "best": ("not the best of the rounds so far", "Best 不是截至本轮的最高分"),
    "best_later": ("a best from a later round", "Best 来自更晚的迭代"),
    "status": ("status and exit code do not fit", "状态与退出码不符"),
    "exit_code": ("run.log has another exit code", "退出码与 run.log 不符"),
    "duration": ("longer than the run, or shorter than the round before", "耗时超过运行时间或小于上一轮"),
    "time": ("no time as YYYY-MM-DD HH:MM", "时间不是 YYYY-MM-DD HH:MM"),
}
SUMMARY, LINES = "summary.md", "summary.jsonl"


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach. `rule` is 1 to 10, or 0 for a fact that the machine's files deny."""

    rule: int
    code: str
    file: str
    line: int | None = None
    stated: str = ""
    machine: str = ""

    def words(self, language: Language = "en") -> str:
        """The finding on one line that a terminal can show."""
        message = MESSAGES[self.code][language == "zh"]
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        if language == "zh":
            rule = f"规则 {self.rule}" if self.rule else "事实"
            stated, machine = "写的是", "机器值"
        else:
            rule = f"rule {self.rule}" if self.rule else "fact"
            stated, machine = "stated", "machine"
        parts = [f"{where}: {rule}: {message}"]
        parts += [f"{stated} {shorten(self.stated, 120)}"] if self.stated else []
        parts += [f"{machine} {shorten(self.machine, 120)}"] if self.machine else []
        return visible("; ".join(parts))

    def to_json(self, language: Language = "en") -> dict[str, Any]:
        return {
            "rule": self.rule, "code": self.code, "file": self.file, "line": self.line, "stated": self.stated,
            "machine": self.machine, "words": self.words(language),
        }  # fmt: skip
