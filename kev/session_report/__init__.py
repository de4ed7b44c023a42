"""The report of a session: what it spent, what is pending, what went wrong, what came out, and what to do next.

    structure   the report itself: plain dataclasses, each of them JSON values
    records     what it is made from, read from the disk
    build       from records to a report
    steps       at most three next steps, each with what speaks for it; pure
    markdown    the report as text

Any other form of it is made from `SessionReport.to_json()`.
"""

from kev.session_report.build import build_report, read_report
from kev.session_report.markdown import to_markdown
from kev.session_report.records import Records, read_records
from kev.session_report.structure import SessionReport

__all__ = ["Records", "SessionReport", "build_report", "read_records", "read_report", "to_markdown"]
