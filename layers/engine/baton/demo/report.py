"""The progress of a demo run on the terminal, and its final table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from baton.core.log.state import FINISHED
from baton.core.money import usd
from baton.core.read import costs
from baton.demo.evidence import tally
from baton.demo.figures import Approval, Change, Figures, Planning, Survival, Undoing, quantile
from baton.words.text import counted, span


def show(console: Console, figures: Figures, broken: Sequence[str]) -> None:
    """Print the table of figures, then the violated promises."""
    table = Table(box=box.SIMPLE_HEAD, title="What happened", title_justify="left", show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows(figures):
        table.add_row(*row)
    console.print(table)
    for text in broken:
        console.print(Text(f"not as it should be: {text}", style="red"))
    if not broken:
        console.print(Text("All sagas ended as they should, and nothing was done twice.", style="green"))


def document(figures: Figures, broken: Sequence[str]) -> dict[str, Any]:
    """Return the figures as JSON for programs."""
    return {"kept": not broken, "problems": list(broken), "figures": msgspec.to_builtins(figures)}


def rows(figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Yield name, value, and source or composition of each figure."""
    yield (
        "sagas",
        str(sum(figures.statuses.values())),
        f"{_listed(figures.statuses)}, in {span(figures.duration_ms)}",
    )
    failed = f", {figures.failed_steps} of them failed" if figures.failed_steps else ""
    yield "steps", str(figures.steps), f"settled in the logs{failed}"
    yield "worker invocations", str(figures.worker_invocations), _invocations(figures)
    interrupted = counted(figures.interruptions, "step")
    yield "yields", str(figures.yields), f"each a hand-over; {interrupted} interrupted by the end of one"
    yield from _survivals(figures.survivals)
    yield "double bookings", str(figures.double_bookings), _books(figures)
    yield "payments", str(figures.payments), _payments(figures)
    yield "retries", str(sum(figures.retries.values())), _retries(figures)
    yield (
        "approvals",
        str(len(figures.approvals)),
        "; ".join(map(_approval, figures.approvals)) or "none was given",
    )
    yield "agent's turns", str(figures.agent.turns), _agent(figures.agent)
    yield "plans confirmed", str(figures.guest.confirmed), _guest(figures.guest)
    yield "undone", str(figures.undone.steps), _undone(figures.undone)
    made_of = f"{figures.entries} entries, those of starts, revivals and cancels included"
    yield "log writes per step", f"{figures.writes_per_step:.2f}", made_of
    p50, p95 = quantile(figures.handovers_ms, 0.50), quantile(figures.handovers_ms, 0.95)
    yield "hand-over p50 / p95", f"{span(p50)} / {span(p95)}", _handovers(figures)
    yield "AWS per million steps", usd(round(figures.usd_per_million_steps, 2)), _bill(figures)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _invocations(figures: Figures) -> str:
    parts = [
        _listed(figures.worker_outcomes),
        counted(figures.cold_starts, "cold start"),
        f"up to {figures.most_sagas_in_one} sagas in one",
        f"{figures.fewest_invocations} to {figures.most_invocations} for a saga",
    ]
    return "; ".join(parts)


def _books(figures: Figures) -> str:
    parts = [
        f"in the services' own books: {figures.effects} effects from {figures.requests} requests",
        f"{figures.repeated} were asked a second time",
        f"{figures.replays} of these had been carried out, and were answered instead of repeated",
    ]
    return "; ".join(parts)


def _payments(figures: Figures) -> str:
    text = "deposits in table-stack's books, which takes no idempotency keys for them"
    if not figures.looked_up:
        return f"{text}; none was in doubt"
    doubt = f"{figures.looked_up} in doubt after a kill, looked up before anything else"
    return (
        f"{text}; {doubt}: {figures.found_paid} had been made, and {_were(figures.found_paid)} not made again"
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _retries(figures: Figures) -> str:
    if not figures.retries:
        return "no step failed"
    if figures.asked:
        return f"{counted(figures.asked, 'failure')} went to a person"
    codes = ", ".join(f"{count} after {code}" for code, count in figures.retries.items())
    refusing = "open-delivery refuses every ninth request, the model every third, table-stack the guest's deposit three times"
    return f"{codes}: {refusing}; no person was asked about it"


def _approval(approval: Approval) -> str:
    runs = "no worker" if not approval.runs else counted(approval.runs, "worker")
    waited = f"{span(approval.waited_ms)}, in which {runs} ran for its saga"
    return f"{approval.title} Approved by {approval.by}, over the API, after {waited}"


def _agent(agent: Planning) -> str:
    told = f"{agent.failed} failed and {_were(agent.failed)} told to the model"
    again = f"{agent.answers - agent.turns or 'none'} of them for a turn that it had answered before"
    parts = [
        f"{counted(agent.calls, 'call')} of tools: {told}, {agent.repeated} repeated an earlier one",
        f"{agent.tokens:,} tokens for {usd(agent.usd)}",
        f"in the model's own book: {agent.answers} answers to {agent.requests} requests, {again}",
    ]
    return "; ".join(parts)


def _guest(guest: Change) -> str:
    if not guest.given_back:
        return "by the guest; no other wish came in between"
    what = "the table for four" if guest.given_back == 1 else "the table for four, with its deposit"
    return f"by the guest; the other wish called the first off, and the second gave back {what}"


def _undone(undone: Undoing) -> str:
    if not undone.sagas:
        return "no evening fell through"
    return (
        f"steps of {counted(undone.sagas, 'evening')} that fell through at its end; in the services' own books "
        f"{counted(undone.effects, 'effect')} {_were(undone.effects)} taken back, {undone.deposits} of them a deposit that was refunded"
    )


def _bill(figures: Figures) -> str:
    if not figures.steps:
        return "no steps"
    parts = (f"{usd(round(charge.usd / figures.steps * 1e6, 2))} {charge.what}" for charge in figures.charges)
    return f"estimated for {costs.REGION}, prices of {costs.DATE}: {', '.join(parts)}"


def _handovers(figures: Figures) -> str:
    text = "from the last entry of one invocation to the first step of the next"
    cold = len(figures.handovers_ms) - len(figures.warm_handovers_ms)
    if not cold:
        return text
    warm_p95 = span(quantile(figures.warm_handovers_ms, 0.95))
    return f"{text}; {cold} of {len(figures.handovers_ms)} into a cold start, p95 without these {warm_p95}"


def _survivals(survivals: Sequence[Survival]) -> Iterator[tuple[str, str, str]]:
    survived = sum(bool(survival.revived) for survival in survivals)
    yield "kills survived", f"{survived} of {len(survivals)}", "SIGKILL of a busy worker process"
    for survival in survivals:
        times = sorted(survival.revived.values())
        ends = dict.fromkeys(map(span, times[:1] + times[-1:]))
        held = counted(len(times), "saga")
        into = span(survival.kill.busy_ms)
        yield (
            f"  process {survival.kill.pid}",
            " to ".join(ends) or "none",
            f"from the end of the dead lease to the revival of {held}; killed {into} into its work, {survival.kill.moment}",
        )


EVERY_S = 2.0
_BAR = 14
_STYLES = {
    "completed": "green",
    "cancelled": "yellow",
    "suspended": "magenta",
    "failed": "red",
    "parked": "red",
}


class Progress:
    """Display of sagas as in `GET /sagas/{id}`. Enter it before the first update."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._steps = max(1, steps)
        self._began = time.monotonic()
        self._last = 0.0
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a message that stays on the screen."""
        console = self._live.console if self._live else self._console
        console.print(Text(f"{self._elapsed():6.1f} s  {text}"))

    def update(self, sagas: Mapping[str, Mapping[str, Any]]) -> None:
        """Show the latest state of every saga."""
        if self._live:
            self._live.update(self._drawing(sagas), refresh=True)
        elif self._elapsed() - self._last >= EVERY_S:
            self._last = self._elapsed()
            self.say(summary(sagas))

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _drawing(self, sagas: Mapping[str, Mapping[str, Any]]) -> Group:
        table = Table.grid(padding=(0, 3))
        cells = [self._cell(saga) for saga in sagas.values()]
        half = -(-len(cells) // 2)
        for index in range(half):
            table.add_row(*cells[index::half])
        return Group(table, Text(f"{self._elapsed():6.1f} s  {summary(sagas)}", style="bold"))

    def _cell(self, saga: Mapping[str, Any]) -> Text:
        done = min(self._steps, int(saga.get("steps") or 0))
        filled = done * _BAR // self._steps
        status = str(saga.get("status"))
        where = (
            status
            if status in FINISHED or status == "suspended"
            else ", ".join(str(a.get("node")) for a in saga.get("active") or ()) or status
        )
        text = Text(f"{str(saga.get('id'))[-6:]} ")
        text.append("━" * filled, style=_STYLES.get(status, "cyan")).append(
            "─" * (_BAR - filled), style="dim"
        )
        return text.append(f" {done:>2}/{self._steps} ").append(
            where[:24].ljust(24), style=_STYLES.get(status, "")
        )


def summary(sagas: Mapping[str, Mapping[str, Any]]) -> str:
    """Return all sagas in one line."""
    statuses = ", ".join(
        f"{count} {status}" for status, count in tally(str(s.get("status")) for s in sagas.values()).items()
    )
    steps = sum(int(saga.get("steps") or 0) for saga in sagas.values())
    legs = sum(int(saga.get("invocations") or 0) for saga in sagas.values())
    return f"{counted(len(sagas), 'saga')}: {statuses}; {counted(steps, 'step')}, taken up {counted(legs, 'time')}"
