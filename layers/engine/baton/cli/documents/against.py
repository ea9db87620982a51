"""`baton check --against`: the functions of open sagas, replayed with the code that is here.

It reads what `baton events SAGA --json` has written. No step is run, and no deployment is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.client.exits import USAGE, CommandFailed
from baton.core.expressions import parse_time
from baton.core.log.functions import AskedOperation, Heard
from baton.core.log.records import TIMED_OUT, Failure
from baton.core.log.slots import slot_of
from baton.ports import StepFailure
from baton.ports.functions import FunctionFacts, WorkflowFunctions
from baton.runtime.worker.functions import _Changed, _Live  # as a worker replays them

GOES_ON, STOPS, UNCHECKED = "goes on", "would stop", "not checked"
Entry = Mapping[str, Any]
Functions = Mapping[tuple[str, str], tuple[str, Sequence[str]]]
"""Name and tools of the function of each node that has one, by workflow and node."""


@dataclass(frozen=True)
class Verdict:
    """Fate of the function at a slot of an open saga. `why`, if it does not go on."""

    saga: str
    workflow: str
    slot: str
    verdict: str
    why: str = ""

    def line(self) -> str:
        """Return it as a line."""
        text = f"{self.saga}: `{self.slot}` of {self.workflow} {self.verdict}"
        return f"{text}: {self.why}" if self.why else text


class _UncheckedError(Exception):
    """The log does not have all that a replay needs."""


def logs_in(text: str) -> list[list[Entry]]:
    """Return the entries of each saga in a file of logs. Raises `CommandFailed`."""
    logs: list[list[Entry]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if _kind(entry["events"][0]) == "saga_started":
                logs.append([])
            logs[-1].append(entry)
        except (ValueError, LookupError, TypeError) as error:
            hint = "It is made by: baton events SAGA --json >> FILE"
            raise CommandFailed(USAGE, f"line {number} is no entry of a log", hint) from error
    return logs


def verdicts(log: Sequence[Entry], known: Functions, functions: WorkflowFunctions) -> Iterator[Verdict]:
    """Yield a verdict for each function of a saga that is at work; none for a saga that has ended."""
    events = [event for entry in log for event in entry["events"]]
    saga = events[0]
    if _kind(events[-1]) == "saga_ended":
        return
    begun = {_place(event): number for number, event in enumerate(events) if _kind(event) == "function_began"}
    for (node, iteration), first in begun.items():
        own = [event for event in events[first:] if _place(event) == (node, iteration)]
        if any(_kind(event) in ("function_closed", "node_skipped") for event in own):
            continue
        slot = slot_of(node, iteration)
        found = Verdict(saga["saga"], saga["workflow"], slot, GOES_ON)
        try:
            if any(_kind(event) == "forked" for event in events):
                raise _UncheckedError("it was forked")
            if (function := known.get((found.workflow, node))) is None:
                raise _Changed(f"there is no workflow `{found.workflow}` with a function at `{node}` here")
            _replay(own, _Opener(functions, *function, saga, slot, node))
        except _UncheckedError as error:
            found = Verdict(found.saga, found.workflow, slot, UNCHECKED, str(error))
        except StepFailure as error:
            found = Verdict(found.saga, found.workflow, slot, STOPS, error.message)
        except _Changed as error:
            found = Verdict(found.saga, found.workflow, slot, STOPS, str(error))
        yield found


def _kind(event: Mapping[str, Any]) -> str:
    return str(event["kind"])


def _place(event: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    return str(event.get("node", "")), tuple(event.get("iteration", ()))


@dataclass
class _Opener:
    functions: WorkflowFunctions
    name: str
    tools: Sequence[str]
    saga: Mapping[str, Any]
    slot: str
    node: str

    def open(self, arguments: Any, state: Any, checkpoints: int) -> _Live:
        facts = FunctionFacts(
            saga=self.saga["saga"],
            tenant=self.saga["tenant"],
            user=self.saga["user"],
            workflow=self.saga["workflow"],
            slot=self.slot,
            node=self.node,
            tools=self.tools,
            state=state,
            checkpoints=checkpoints,
            token=lambda item: f"token-of-{item}",  # a token is no part of a request
        )
        session = self.functions.open(self.name, arguments, facts)
        return _Live(self.name, session, lambda: 0, 0, arguments, checkpoints)


def _replay(events: Iterable[Mapping[str, Any]], opener: _Opener) -> None:
    """Run a function again with the results in its log.

    Raises `_Changed`, `_UncheckedError`, `StepFailure`.
    """
    results: dict[str, tuple[Any, Failure | None]] = {}
    asked: dict[str, AskedOperation] = {}
    live: _Live | None = None
    try:
        for event in events:
            if _kind(event) == "function_began":
                live = opener.open(_content(event["given"]), None, 0)
                live.start(parse_time(event["at"]))
            elif _kind(event) == "operations_began":
                assert live is not None, "it has begun"
                live = _ran_on(live, event, asked, results, opener)
            elif item := event.get("item"):
                if _kind(event) == "step_failed":
                    said = event["failure"]
                    failure = Failure(said["code"], said["message"], kind=said.get("kind") or "")
                    results[item] = None, failure
                elif "output" in event:
                    results[item] = _result(event)
        if live is not None:
            live.check(asked)
    finally:
        if live is not None:
            live.session.close()


def _result(event: Mapping[str, Any]) -> tuple[Any, Failure | None]:
    output = event["output"]
    if event.get("by") == "time" and output.get("v") == TIMED_OUT:
        return None, Failure("timeout", "no signal came in time")
    return output, None


def _ran_on(
    live: _Live,
    event: Mapping[str, Any],
    asked: dict[str, AskedOperation],
    results: Mapping[str, tuple[Any, Failure | None]],
    opener: _Opener,
) -> _Live:
    """Give a function the results that it has heard at an event; return it, or the one after a checkpoint."""
    at = parse_time(event["at"])
    for item in event["heard"]:
        output, failure = results[item]
        operation = asked.pop(item, None)
        digest = "" if operation is None else operation.digest
        heard = Heard(item, digest, at, failure=failure)
        live.deliver(heard, None if failure is not None else _content(output))
    if event["checkpoint"] is not None:
        number, state = live.checkpoints + event["checkpoints"], _content(event["checkpoint"])
        if live.end is None or not live.end.begins_again:
            raise _Changed("the log has a checkpoint, and the function does not make it")
        live.session.close()
        asked.clear()
        live = opener.open(live.arguments, state, number)
        live.start(at)
    for item in event["left"]:
        asked.pop(item, None)
    for one in event["operations"]:
        asked[one["item"]] = AskedOperation(item=one["item"], digest=one["digest"])
    return live


def _content(value: Mapping[str, Any]) -> Any:
    if value.get("ref"):
        raise _UncheckedError("a value of it is in the object store, and not in the file")
    return value.get("v")
