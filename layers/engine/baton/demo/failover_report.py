"""The table of `baton failover`: a row for each fault, and what was not as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from baton.demo.failover import Outcome
from baton.words.text import counted, span


def show(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print the table, then what is wrong in words."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("table-stack …", min_width=14)
    table.add_column("", no_wrap=True)
    table.add_column("way taken", min_width=10)
    table.add_column("time", no_wrap=True, justify="right")
    table.add_column("attempts", no_wrap=True, justify="right")
    table.add_column("saga", no_wrap=True)
    for one in outcomes:
        passed = Text("failed", style="red") if one.problems else Text("passed", style="green")
        time = span(one.took_ms) if one.took_ms else "not ended"
        table.add_row(one.case.fault, passed, one.way, time, str(one.attempts), one.saga)
    console.print(table)
    for one in outcomes:
        for problem in one.problems:
            console.print(Text(f"table-stack {one.case.fault}: {problem}", style="red"))
    failed = sum(bool(one.problems) for one in outcomes)
    if failed:
        console.print(
            Text(
                f"{failed} of {counted(len(outcomes), 'dinner')} did not go the way that the document says.",
                style="red",
            )
        )
    else:
        said = f"All {counted(len(outcomes), 'dinner')} went the way that the document says, and the services' books are right."
        console.print(Text(said, style="green"))


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same for programs, as JSON."""
    return {
        "passed": not any(one.problems for one in outcomes),
        "cases": [
            {
                "fault": one.case.fault,
                "passed": not one.problems,
                "expected": one.case.way,
                "way": one.way,
                "status": one.status,
                "took_ms": one.took_ms,
                "attempts": one.attempts,
                "saga": one.saga,
                "trace": one.trace,
                "problems": one.problems,
            }
            for one in outcomes
        ],
    }
