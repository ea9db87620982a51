"""A second reading of what docs/semantics.md says of maps and of pauses: how a map goes on, given how its items ended.

Shares no code with the engine. Nothing is counted on the way: each question is answered from the list of ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AT_ONCE = 40
BEGIN, DONE, FAIL, OVER = "begin", "done", "fail", "over"


@dataclass(frozen=True)
class Item:
    """How an item ended: with a value, or with a code, by this attempt."""

    succeeded: bool
    value: Any
    attempt: int = 0


@dataclass(frozen=True)
class Run:
    """A map at work: its list, how many items have begun, and how those ended that have, in the order of their ends.

    `late`: what follows has begun, and nothing comes of the items that are left.
    """

    over: list[Any]
    begun: int = 0
    ended: Mapping[int, Item] = field(default_factory=dict)
    late: bool = False


@dataclass(frozen=True)
class Turn:
    """How a map goes on: `count` items begin, it is done with a value, or it has failed; or all that it has left running is over.

    `leaves`: items are left, which run on.
    """

    what: str
    count: int = 0
    value: Any = None
    code: str = ""
    attempt: int = 0
    batch: str = ""
    leaves: bool = False


def tells_all(node: Any) -> bool:
    """Whether not all items of this map have to succeed."""
    said = node["map"]
    return "tolerated_failures" in said or said.get("wait_for", "all") != "all"


def turn(node: Any, run: Run) -> Turn | None:
    said, size = node["map"], len(run.over)
    good = [index for index, item in run.ended.items() if item.succeeded]
    bad = [index for index, item in run.ended.items() if not item.succeeded]
    need = {"all": 0, "any": 1}.get(said.get("wait_for", "all"), said.get("wait_for"))
    may = said.get("tolerated_failures")
    if isinstance(may, str):
        may = size * int(may.rstrip("%")) // 100
    is_over = len(run.ended) == size
    if run.late and is_over:
        return Turn(OVER)
    runs_on = said.get("rest", "cancel") == "run"
    if not run.begun and need > size:
        return Turn(FAIL, code="map_failed")
    is_enough = bool(need) and len(good) >= need
    # What decides is what was so when the last of them succeeded: too many may have failed by then, and not later.
    if runs_on and is_enough and not run.late and not is_over and not _is_lost(run, need, may):
        return Turn(DONE, value=batch_of(run, "running"), leaves=True)
    if not run.late and (is_over or not runs_on):
        fate = "running" if runs_on and need else "stopped"
        if _is_lost(run, need, may):
            return Turn(FAIL, code="map_failed", batch=json.dumps(batch_of(run, fate)))
        if bad and may is None and not need:
            first = run.ended[bad[0]]
            return Turn(FAIL, code=first.value, attempt=first.attempt, batch=json.dumps(batch_of(run)))
        if is_over or is_enough:
            outputs = [run.ended[index].value for index in range(size)] if not tells_all(node) else None
            return Turn(DONE, value=batch_of(run, fate) if outputs is None else outputs)
    at_work = run.begun - len(run.ended)
    count = min(said.get("concurrency", AT_ONCE) - at_work, size - run.begun)
    return Turn(BEGIN, count=count) if count > 0 else None


def _is_lost(run: Run, need: int, may: int | None) -> bool:
    """Whether a policy says that too many have failed."""
    bad = sum(not item.succeeded for item in run.ended.values())
    return (may is not None and bad > may) or bool(need and len(run.over) - bad < need)


def batch_of(run: Run, at_work: str = "stopped") -> dict[str, Any]:
    """What became of each item; `at_work`: what is said of those that have begun and not ended."""
    rows = [_row(run, index, at_work) for index in range(len(run.over))]
    fates = ("succeeded", "failed", *dict.fromkeys((at_work, "stopped")), "not_begun")
    return {**{fate: sum(row["status"] == fate for row in rows) for fate in fates}, "results": rows}


def _row(run: Run, index: int, at_work: str) -> dict[str, Any]:
    item = run.ended.get(index)
    if item is None:
        return {"index": index, "status": at_work if index < run.begun else "not_begun"}
    if item.succeeded:
        return {"index": index, "status": "succeeded", "output": item.value}
    return {"index": index, "status": "failed", "error": {"code": item.value, "message": ""}}


def pause_of(loop: Any, rounds: int) -> int:
    """Milliseconds between the end of this round, from 0, and the next one."""
    pause = loop.get("pause", "0ms")
    if isinstance(pause, str):
        return int(pause.removesuffix("ms"))
    return int(pause["first"].removesuffix("ms")) * int(pause["factor"] ** rounds)
