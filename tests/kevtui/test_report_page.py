"""The report page: whole without anything else, nothing on it acts, and nothing that is missing becomes a number."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from xml.etree import ElementTree

import pytest
import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st

from kev import files
from kev.clock import SystemClock
from kev.records.base import write_record
from kev.records.session import SessionState, SpendReading
from kev.session_report import SessionReport, build_report, read_records
from kev.session_report import to_markdown as session_markdown
from kevtui.observe.snapshot import Alert, Arm, Criterion, Finding, Money, Readout, Severity, Snapshot, Verdict
from kevtui.report import charts
from kevtui.report.gather import Material
from kevtui.report.markdown import to_markdown
from kevtui.report.markup import tag, text
from kevtui.report.page import to_html

REPOSITORY = Path(__file__).parents[2]
HOSTILE = (
    samples.HOSTILE + "</title></svg></style><script>alert(1)</script><img src=x onerror='x()'> \"' | `x` ](http://x)"
)
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")
LOADS = {"script", "link", "img", "iframe", "object", "embed", "a", "base", "form", "image", "use", "foreignobject"}


class Reader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += attrs
        if name != "meta":
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def session(tmp_path: Path) -> SessionReport:
    now = SystemClock().now()
    reading = SpendReading(at=now.isoformat(), metered_usd=Decimal("150.25"))
    state = tmp_path / "runs" / "night-state.json"
    write_record(
        state,
        SessionState(session="night", authorization_usd=Decimal(1000), reserve_usd=Decimal(100),
                     baseline_usd=Decimal("50.25"), readings=[reading]),
    )  # fmt: skip
    return build_report(read_records(tmp_path, state, now), now)


def read(snapshot: Snapshot, report: SessionReport | None = None) -> Reader:
    return Reader(to_html(Material(snapshot, report)))


def test_a_page_is_well_formed_and_loads_nothing(session: SessionReport) -> None:
    page = read(samples.night(), session)
    assert not page.open
    assert not LOADS & set(page.tags)
    assert "https://" not in to_html(Material(samples.night(), session))
    assert not {name for name, _ in page.attributes} & {"src", "href", "style", "onclick", "onload"}
    assert "svg" in page.tags and "Step rates" in page.words and "r41-27b/trial-0" in page.words


def test_no_text_from_a_file_acts_on_the_page_or_on_a_terminal() -> None:
    night = samples.night()
    criterion = Criterion(HOSTILE, "primary", Verdict.FAIL, HOSTILE, HOSTILE, HOSTILE, value=1.0, threshold=2.0)
    study = replace(night.studies[0], trials=(replace(night.studies[0].trials[0], label=HOSTILE, error=HOSTILE),))
    hostile = replace(
        night, title=HOSTILE, studies=(study,),
        alerts=(Alert("x", Severity.WARNING, HOSTILE, HOSTILE),), findings=(Finding(HOSTILE, HOSTILE),),
        readout=Readout(source=HOSTILE, arms=(Arm(HOSTILE, "9b", note=HOSTILE, criteria=(criterion,)),),
                        candidates=((HOSTILE, HOSTILE),)),
    )  # fmt: skip
    html = to_html(Material(hostile, None, HOSTILE))
    page = Reader(html)
    assert not page.open and not LOADS & set(page.tags)
    assert not {name for name, _ in page.attributes if name.startswith("on")}
    assert not CONTROL.search(html)
    markdown = to_markdown(Material(hostile, None, HOSTILE))
    assert not CONTROL.search(markdown)
    assert not re.search(r"(?<!\\)<script", markdown)
    assert not re.search(r"(?<!\\)\]\(http", markdown)


@given(st.text())
def test_text_and_attributes_come_back_as_they_were_shown(value: str) -> None:
    element = ElementTree.fromstring(tag("text", value, id=value))
    assert element.text == (element.get("id") or None)
    assert tag("b", text(value)) == tag("b", value)


def filled(kind: Any, numbers: Iterator[int]) -> Any:
    """A value of `kind` in which every text, amount, figure and moment is another one, and no field is empty."""
    if get_origin(kind) in (UnionType, Union):
        return filled(get_args(kind)[0], numbers)
    if get_origin(kind) is tuple:
        return (filled(get_args(kind)[0], numbers),)
    if get_origin(kind) is Mapping:
        return {filled(str, numbers): filled(get_args(kind)[1], numbers)}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: filled(hints[field.name], numbers) for field in fields(kind)})
    number = next(numbers)
    made = {str: f"text{number}", int: number, float: number / 10_000, Decimal: Decimal(number) / 100, bool: False}
    return made.get(kind, samples.NOW + timedelta(minutes=number))


def leaves(value: Any) -> Iterator[str]:
    """Every text, amount, figure and moment in it, as a report writes them."""
    if is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, tuple | Mapping):
        for each in [*value.items()] if isinstance(value, Mapping) else value:
            yield from leaves(each)
    elif isinstance(value, datetime):
        yield f"{value:%Y-%m-%d %H:%M} UTC"
    elif isinstance(value, str):
        yield value
    elif isinstance(value, float):
        yield f"{value:.4f}"
    elif isinstance(value, Decimal):
        yield f"{value:,.2f}"


def test_the_page_holds_whatever_the_sessions_own_report_says() -> None:
    report: SessionReport = filled(SessionReport, count(1001))
    told = [leaf for leaf in leaves(report) if leaf in session_markdown(report)]
    assert len(told) > 70
    words = read(samples.night(), report).words
    assert [leaf for leaf in told if leaf not in words] == []


def test_what_is_not_known_is_missing_and_not_zero() -> None:
    page = read(Snapshot(samples.NOW, "r1", "/"))
    assert "No reading of the meter" in page.words
    assert "$0" not in page.words and "svg" not in page.tags
    lost = Arm("9b-x", "9b", criteria=(Criterion("1_docs", "primary", Verdict.MISSING),))
    plot = charts.criteria(lost, identity="c")
    assert plot is not None and "no figures" in plot and "? missing" in plot and "<circle" not in plot


def test_simulated_money_and_samples_say_so(session: SessionReport) -> None:
    night = samples.night()
    simulated = replace(night, sample=True, money=replace(night.money, simulated=True))
    page = read(simulated, replace(session, simulated=True))
    assert "SIMULATED MONEY" in page.words and "SAMPLE" in page.words and "simulated US dollars" in page.words
    markdown = to_markdown(Material(simulated, replace(session, simulated=True)))
    assert "simulated money" in markdown and "SAMPLE" in markdown
    assert "SIMULATED" not in read(replace(night, sample=False, money=replace(night.money, simulated=False))).words


def test_spend_is_drawn_below_its_authorization() -> None:
    readings = tuple((samples.NOW + timedelta(hours=hour), Decimal(10 * hour)) for hour in range(5))
    plot = ElementTree.fromstring(charts.spend(Money(Decimal(100), readings=readings, committed=Decimal(20))))
    space = "{http://www.w3.org/2000/svg}"
    limit = next(line for line in plot.iter(f"{space}line") if line.get("class") == "limit")
    line = next(plot.iter(f"{space}polyline"))
    heights = [float(point.split(",")[1]) for point in (line.get("points") or "").split()]
    assert heights == sorted(heights, reverse=True) and min(heights) > float(limit.get("y1") or "nan")
    assert {"title", "desc"} <= {element.tag.removeprefix(space) for element in plot}
    assert "committed $20" in "".join(plot.itertext())


def test_a_long_series_keeps_its_last_point_and_a_page_its_size() -> None:
    readings = tuple((samples.NOW + timedelta(minutes=at), Decimal(at)) for at in range(20_000))
    plot = charts.spend(Money(Decimal(100_000), readings=readings))
    assert len(plot) < 40_000 and "spent $19,999" in plot


def test_a_trial_without_a_clock_has_words_instead_of_a_plot() -> None:
    trial = samples.night().trials[0]
    still = replace(trial, points=tuple(replace(point, at_s=None) for point in trial.points))
    assert charts.step_rate(trial, identity="a") is not None
    assert charts.step_rate(still, identity="a") is None


def kevtui(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "kevtui", "report", *arguments], capture_output=True, text=True, timeout=60, check=False,
        cwd=REPOSITORY,
    )  # fmt: skip


def test_the_command_writes_a_page_but_never_over_something_else(session: SessionReport, tmp_path: Path) -> None:
    page, state = tmp_path / "page.html", tmp_path / "runs" / "night-state.json"
    before = files.read_bytes(state)
    for _ in range(2):
        done = kevtui("night", "--root", str(tmp_path), "--html", str(page))
        assert (done.returncode, done.stdout) == (0, f"{page}\n"), done.stderr
    assert "Report of night" in page.read_text()
    for wrong in (str(state), str(tmp_path), str(page / "x.html")):
        refused = kevtui("night", "--root", str(tmp_path), "--html", wrong)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
    assert files.read_bytes(state) == before
    assert kevtui("night", "--root", str(tmp_path)).stdout.startswith("# Session night\n")
