"""`baton check --against`: open sagas of a deployment, or of a file of logs, against the code that is here.

CHECKERS is the registry of what can stop a saga after a deploy. Functions are replayed; no step is run.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from baton.client.exits import REFUSED, USAGE, CommandFailed
from baton.core.expressions import parse_time
from baton.core.graph.graph import graph_name
from baton.core.log.codec import SCHEME
from baton.core.log.functions import AskedOperation, Heard
from baton.core.log.records import TIMED_OUT, Failure
from baton.core.log.slots import slot_of
from baton.ports import StepContext, StepFailure
from baton.ports.functions import FunctionFacts, WorkflowFunctions
from baton.runtime.worker.functions import _Changed, _Live  # as a worker replays them
from baton.tools.define import Registry
from baton.tools.perform import bind

if TYPE_CHECKING:
    from baton.client.api import Api

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
        slot = f"`{self.slot}` of " if self.slot else ""
        text = f"{self.saga}: {slot}{self.workflow} {self.verdict}"
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


def pending_steps(log: Sequence[Entry]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the slot, the tool and the arguments of each step that a function has asked for, and that has not
    ended.
    """
    steps: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for event in (event for entry in log for event in entry["events"]):
        slot = slot_of(*_place(event))
        if _kind(event) == "operations_began":
            for item in event.get("left", ()):
                steps.pop(f"{slot}#{item}", None)
            for one in event.get("operations", ()):
                if one.get("tool"):
                    steps[f"{slot}#{one['item']}"] = one["tool"], one.get("given") or {}
        elif event.get("item") and ("output" in event or _kind(event) == "step_failed"):
            steps.pop(f"{slot}#{event['item']}", None)
    for slot, (tool, given) in steps.items():
        if not given.get("ref"):
            yield slot, tool, given.get("v") or {}


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
    results: dict[str, tuple[Any, Failure | None, str]] = {}
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
                    results[item] = None, failure, event.get("by", "")
                elif "output" in event:
                    results[item] = _result(event)
        if live is not None:
            live.check(asked)
    finally:
        if live is not None:
            live.session.close()


def _result(event: Mapping[str, Any]) -> tuple[Any, Failure | None, str]:
    output, by = event["output"], event.get("by", "")
    if by == "time" and output.get("v") == TIMED_OUT:
        return None, Failure("timeout", "no signal came in time"), ""
    return output, None, by


def _ran_on(
    live: _Live,
    event: Mapping[str, Any],
    asked: dict[str, AskedOperation],
    results: Mapping[str, tuple[Any, Failure | None, str]],
    opener: _Opener,
) -> _Live:
    """Give a function the results that it has heard at an event; return it, or the one after a checkpoint."""
    at = parse_time(event["at"])
    for item in event["heard"]:
        output, failure, by = results[item]
        operation = asked.pop(item, None)
        digest = "" if operation is None else operation.digest
        heard = Heard(item, digest, at, failure=failure, by=by)
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


# ---- the open sagas of a deployment

_READ = re.compile(r"`ctx\.([\w-]+)\.output[^`]*`: nothing produces")
"""The beginning of a message about a field that a tool no longer returns."""
AT_ONCE = 8
"""Sagas that are read at a time."""
Problems = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Here:
    """The code that is here.

    `problems`: those of a document, compiled with its tools. `functions`: as `verdicts` takes them.
    """

    problems: Callable[[str], Problems]
    functions: Functions
    code: WorkflowFunctions
    registry: Registry


@dataclass(frozen=True)
class OpenSaga:
    """An open saga of a deployment: its view, the workflow that it runs, and its log if it has a function.

    `definition`: None if its version is not listed any more. `gone`: children that are not registered.
    """

    view: Mapping[str, Any]
    definition: Mapping[str, Any] | None = None
    log: Sequence[Entry] = ()
    gone: Mapping[str, str] = field(default_factory=dict)

    @property
    def ahead(self) -> set[str]:
        """Nodes that are open, and those after them."""
        found = {one["node"] for one in self.view["active"]}
        edges = [] if self.definition is None else self.definition["edges"]
        while more := {one["to"] for one in edges if one["from"] in found} - found:
            found |= more
        return found

    def verdict(self, slot: str, verdict: str, why: str) -> Verdict:
        """Return a verdict about it."""
        return Verdict(self.view["id"], self.view["workflow"], slot, verdict, why)


def _functions(saga: OpenSaga, here: Here) -> Iterator[Verdict]:
    """Yield a verdict for each function at work: it is replayed with the code that is here."""
    if saga.log:
        yield from verdicts(saga.log, here.functions, here.code)


def _documents(saga: OpenSaga, here: Here) -> Iterator[Verdict]:
    """Yield the problems of its document with the tools that are here, at nodes that it may still run."""
    if saga.definition is None:
        yield saga.verdict("", UNCHECKED, "the version of its workflow is not among the newest 100")
        return
    ahead, graph = saga.ahead, graph_name(saga.view["workflow"])
    nodes = {one["name"]: one for one in saga.definition["nodes"]}
    graphs = {nodes[name].get("graph") for name in ahead if name in nodes}
    for problem in here.problems(saga.definition["document"]):
        _, *path = f"{problem['path']}///".split("/")
        node = path[1] if path[0] == "nodes" else ""
        if path[0] == "graphs":
            node = path[3] if path[1] == graph else path[1]
            concerns = node in ahead if path[1] == graph else path[1] in graphs
        else:
            concerns = not graph and (path[0] != "nodes" or node in ahead)
        read = _READ.match(problem["message"])
        source = read[1] if read else node
        if read and source in nodes and source not in ahead:
            continue  # the log has the result with what is read of it
        if concerns:
            why = _naming(nodes.get(source, {}).get("tool"), problem["message"])
            at = ".".join(filter(None, path[2:])) if path[0] == "nodes" else ""
            where = f" at `{at}`" if at else ""
            yield saga.verdict(node, STOPS, f"its document does not compile{where}: {why}")
    for name in sorted(ahead & nodes.keys()):
        if child := saga.gone.get(nodes[name].get("workflow") or ""):
            yield saga.verdict(name, STOPS, child)


def _naming(tool: str | None, message: str) -> str:
    """Return the message with the name of the tool that it is about."""
    return message if not tool or f"`{tool}`" in message else f"`{tool}`: {message}"


def _tools(saga: OpenSaga, here: Here) -> Iterator[Verdict]:
    """Yield the open steps of its functions that their tool would refuse."""
    for slot, tool, arguments in pending_steps(saga.log):
        found = here.registry.get(tool)
        if found is None:
            yield saga.verdict(slot, STOPS, f"there is no tool `{tool}` here")
            continue
        try:
            bind(found, arguments, StepContext(saga="", tenant="", user="", node=""))
        except StepFailure as error:
            yield saga.verdict(slot, STOPS, error.message)


CHECKERS: tuple[Callable[[OpenSaga, Here], Iterable[Verdict]], ...] = (_functions, _documents, _tools)
"""Reasons for which an open saga stops after a deploy."""


async def check_open(api: Api, here: Here, most: int) -> tuple[list[Verdict], int, bool]:
    """Return the verdicts about the open sagas that changed last, at most so many; their number, and true if
    there are more.
    """
    rows: list[Mapping[str, Any]] = []
    more: str | None = None
    async for page, following in api.sagas({"status": "open"}, most, None):
        rows += page
        more = following
    reader, places = _Reader(api), asyncio.Semaphore(AT_ONCE)
    here = replace(here, problems=cache(here.problems))

    async def one(row: Mapping[str, Any]) -> list[Verdict]:
        async with places:
            try:
                saga = await reader.saga(row["id"])
            except CommandFailed as error:
                if not str(error.problem.get("type")).endswith("unreadable-log"):
                    raise
                return [Verdict(row["id"], row["workflow"], "", UNCHECKED, error.message)]
        return [] if saga is None else [found for check in CHECKERS for found in check(saga, here)]

    found = await asyncio.gather(*map(one, rows))
    return [verdict for its in found for verdict in its], len(rows), more is not None


class _Reader:
    """Reads sagas and their workflows, each version once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._definitions: dict[tuple[str, str | None], asyncio.Task[Mapping[str, Any] | None]] = {}

    async def saga(self, saga: str) -> OpenSaga | None:
        """Return an open saga; None if it has ended meanwhile."""
        view = await self._api.show(saga)
        if view["result"] is not None or not view["active"]:
            return None
        number = view["workflow_version"]
        definition = None if number is None else await self._definition(view["workflow"], str(number))
        if definition is None and view.get("former_graphs"):  # patched: no version has its graph
            own = await self._api.workflow_of(saga)
            definition = own if own["document"] else None
        nodes = () if definition is None else definition["nodes"]
        children = {one["workflow"] for one in nodes if one.get("workflow")}
        gone = {child: f"there is no workflow `{child}`" for child in children if await self._is_gone(child)}
        has_function = any(one.get("function") for one in nodes)
        log = [entry async for entry in self._api.events(saga)] if has_function else []
        values = {ref: await self._api.value(saga, ref.removeprefix(SCHEME)) for ref in _references(log)}
        return OpenSaga(view, definition, _with_values(log, values), gone)

    async def _is_gone(self, child: str) -> bool:
        name, _, number = child.partition("@")
        return await self._definition(name, number or None) is None

    async def _definition(self, name: str, number: str | None) -> Mapping[str, Any] | None:
        key = name, number
        if key not in self._definitions:
            self._definitions[key] = asyncio.create_task(self._read(name, number))
        return await self._definitions[key]

    async def _read(self, name: str, number: str | None) -> Mapping[str, Any] | None:
        try:
            return await self._api.workflow(name, number)
        except CommandFailed as error:
            if error.exit_code != REFUSED:
                raise
            return None


def _references(part: Any) -> set[str]:
    """Return the references to stored values in a log, without their periods."""
    if isinstance(part, dict):
        if isinstance(ref := part.get("ref"), str) and ref:
            return {ref.partition("@")[0]}
        part = [value for name, value in part.items() if name != "segments"]  # results that the log has, too
    return {ref for one in part for ref in _references(one)} if isinstance(part, list) else set()


def _with_values(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a log with the values that it refers to."""
    if isinstance(part, list):
        return [_with_values(one, values) for one in part]
    if not isinstance(part, dict):
        return part
    if isinstance(ref := part.get("ref"), str) and ref.partition("@")[0] in values:
        return {"v": values[ref.partition("@")[0]]}
    return {name: _with_values(value, values) for name, value in part.items()}
