"""The values that the expressions at one slot can name, and the fetches that they need.

The roots of expressions are in docs/documents.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.conditions import (
    ConditionError,
    SandboxAnswer,
    SandboxQuestion,
    Unanswered,
    blobs_of,
    judge,
    names_of,
)
from baton.core.conditions.model import Condition
from baton.core.decide.program import NO_VALUE, Program
from baton.core.expressions import MOST_BYTES, ExpressionError, Path, Template
from baton.core.failures.codes import class_of
from baton.core.failures.failover import Context
from baton.core.failures.names import RETRYABLE
from baton.core.graph.graph import INPUT, OUTER, written_for
from baton.core.log import events as ev
from baton.core.log.events import Value
from baton.core.log.functions import FunctionCall, KnownFunctions
from baton.core.log.records import LONGEST_MESSAGE
from baton.core.log.scopes import FAILED, NOT_BEGUN, STOPPED, SUCCEEDED, Map
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import State, unrescued
from baton.errors import CorruptLog


class LackingError(Exception):
    """Missing data that a decision needs: blobs and entries to fetch, questions to ask, functions to run on.
    Never leaves the core.
    """

    def __init__(
        self,
        needs: Iterable[str] = (),
        questions: Iterable[SandboxQuestion] = (),
        entries: Iterable[int] = (),
        functions: Iterable[FunctionCall] = (),
    ) -> None:
        super().__init__("something is to be fetched first")
        self.functions = tuple(functions)
        self.needs = frozenset(needs)
        self.entries = frozenset(entries)
        self.questions = frozenset(questions)


class Standing(Struct, frozen=True):
    """The child, of those checked at time `at`, whose time has stood still for longest: `ms` milliseconds in
    all.

    `lasts`: the part of it until now without a break.
    """

    at: int
    ms: int = 0
    child: str = ""
    lasts: int = 0


class FetchedValues(Struct, frozen=True):
    """Data fetched for a decision: decoded blobs by reference, answers by the key of their question.

    `absent` has the unavailable blobs, with the reason. A condition that needs one of those breaks; if the
    log names one, no decision is possible. `looked`: by slot, the time when this worker polled work
    elsewhere, and true if it was over then.
    `entries`: of the log, by version. `standing`: that of the children, once checked. `cancelled`: children
    that were asked to stop, each with true if they take their effects back. `handlers`: failure handlers
    that were started, or the reason why one cannot be. `functions`: those that this worker has run.
    """

    blobs: Mapping[str, Any] = {}
    answers: Mapping[str, SandboxAnswer] = {}
    absent: Mapping[str, str] = {}
    looked: Mapping[str, tuple[int, bool]] = {}
    entries: Mapping[int, ev.Entry] = {}
    cancelled: Collection[tuple[str, bool]] = ()
    handlers: Mapping[str, ev.Failure | None] = {}
    standing: Standing | None = None
    functions: KnownFunctions | None = None

    def lacks(self, refs: Iterable[str]) -> set[str]:
        """Return the references to fetch. Raises `CorruptLog` for an unavailable blob."""
        missing = {ref for ref in refs if ref not in self.blobs}
        for ref in sorted(missing & self.absent.keys()):
            raise CorruptLog(self.absent[ref])
        return missing


NOTHING = FetchedValues()
BATCH = "last_error.batch"
"""Name of the batch result of a failure that is passed to a graph."""


class EvaluationContext(Struct, frozen=True, gc=False):
    """The values at `slot` (empty: for the saga's output).

    `output` is the new output of its node; `step` has the fields of the root `step`, for the place that has
    them.
    """

    program: Program
    state: State
    found: FetchedValues
    slot: str = ""
    output: ev.Value | None = None
    failure: ev.Failure | None = None
    parameters: Any = None
    step: Mapping[str, ev.Value] | None = None

    def blaming(self, failure: ev.Failure, parameters: Any = None) -> EvaluationContext:
        """Return the same place, with `last_error` a new failure of a tool called with `parameters`."""
        return replace(self, output=None, failure=failure, parameters=parameters)

    def render(self, template: Template) -> Any:
        """Return the template's value. Raises `ExpressionError`, `LackingError`."""
        self._fetch(template.paths)
        return template.render(self.lookup)

    def read(self, path: Path) -> Any:
        """Return the value of an expression alone. Raises `ExpressionError`, `LackingError`."""
        return self.render(Template.of(path))

    def holds(self, condition: Condition) -> bool:
        """Return true if the condition is true. Raises `ConditionError`, `LackingError`."""
        if missing := blobs_of(condition) - self.found.blobs.keys() - self.found.absent.keys():
            raise LackingError(missing)
        try:
            self._fetch(names_of(condition))
        except ExpressionError as error:
            raise ConditionError("condition_too_large", str(error)) from error
        try:
            return judge(condition, self.lookup, self.found.blobs, self.found.answers)
        except Unanswered as error:
            raise LackingError(questions=error.questions) from error

    def content(self, value: ev.Value) -> Any:
        """Return the JSON value itself. Raises `LackingError`."""
        if value.ref and (missing := self.found.lacks({value.ref})):
            raise LackingError(missing)
        return self.found.blobs[value.ref] if value.ref else value.v

    def _fetch(self, paths: Iterable[Path]) -> None:
        values = [value for path in paths for value in self._values(path) if value.ref]
        if not values:
            return
        if sum(value.size for value in values) > MOST_BYTES:
            raise ExpressionError(f"the values that are named have more than {MOST_BYTES:,} bytes together")
        if missing := self.found.lacks(value.ref for value in values):
            raise LackingError(missing)

    def _values(self, path: Path) -> list[ev.Value]:
        """Return every value that is read for a path."""
        if path.root == "join":
            return list(self._arrived().values()) if path.steps[0] in ("outputs", "batch") else []
        if path.root == "last_error" and path.steps[:1] == ("batch",):
            around = self.state.origin.outer if self._is_outer(path) else None
            return [one for one in (around, self.told_batch()) if one is not None]
        if (outer := self.state.origin.outer) is not None and self._is_outer(path):
            return [self.state.origin.passed.get(_name_of(path), outer)]
        value = self._value(path)
        if value is None and path.is_previous:
            return [one for first in self._first(path).paths for one in self._values(first)]
        return [] if value is None else [value]

    def _value(self, path: Path) -> ev.Value | None:
        if path.root == "input":
            return self.state.origin.input
        if path.root == "output":
            return self.output
        if path.root == "step":
            return None if self.step is None else self.step.get(str(path.steps[0]))
        if path.root == "item":
            return self._list()
        if path.root != "ctx":
            return None
        name = Slot.parse(self.slot).node
        if path.is_previous:
            return self.state.previous.get(f"{self.program.loop_around(name, path.node)}/{path.node}")
        if path.node == name:
            return self.output
        return self.state.outputs.get(path.node)

    def lookup(self, path: Path) -> Any:
        """Return the value of the root of a path (with its node). Raises `ExpressionError`."""
        outer = self.state.origin.outer
        if outer is not None and self._is_outer(path):
            return self._of_starter(outer, path)
        if path.root == "saga":
            origin = self.state.origin
            saga, workflow = written_for(origin.saga, origin.workflow)
            return {"id": saga, "user": origin.user, "tenant": origin.tenant, "workflow": workflow}
        if path.root == "loop":
            return {"iteration": Slot.parse(self.slot).iteration[-1]}
        if path.root in ("item", "index"):
            return self._item(path.root)
        if path.root == "join":
            return self._join(str(path.steps[0]))
        if path.root == "last_error":
            last = self.failure or next(iter(self._told()), None)
            if last is None:
                return None
            shown = self._last_error(last, with_batch=path.steps[:1] == ("batch",))
            if last.answer or path.inner[:1] == ("answer",):
                shown["answer"] = msgspec.json.decode(last.answer) if last.answer else None
            return shown
        value = self._value(path)
        if value is not None:
            return self.content(value)
        if path.is_previous:
            return self._first(path).render(self.lookup)
        if path.may_be_null:
            return None
        raise ExpressionError(f"`{path.text}`: `{path.node or path.root}` has no output")

    def _is_outer(self, path: Path) -> bool:
        """Return true if a path names a value of the place that started this graph; local names hide that
        place's names.
        """
        if path.root == "ctx":
            return path.node not in self.program.nodes
        if path.root in ("item", "index"):
            return not self.program.is_one_of_many(self.slot)
        return path.root == "last_error" and self.failure is None and not self._told()

    def _of_starter(self, outer: ev.Value, path: Path) -> Any:
        """Return the value of the path at the starter, which has given every value that the graph names."""
        if (value := self.state.origin.passed.get(_name_of(path))) is not None:
            return self.content(value)
        given = self.content(outer)
        if path.node:
            return given["ctx"][path.node]
        known = given.get(path.root)
        if path.root != "last_error" or known is None:
            return known
        if path.steps[:1] == ("batch",):
            batch = self.told_batch()
            return {**known, "batch": None if batch is None else self.content(batch)}
        return {"answer": None, **known} if path.steps[:1] == ("answer",) else known

    def whole(self, path: Path) -> ev.Value | None:
        """Return the value that an expression names if it is the whole of an input or of an output,
        or None.
        """
        if path.inner or path.root not in ("input", "ctx"):
            return None
        is_outer = self.state.origin.outer is not None and self._is_outer(path)
        return self.state.origin.passed.get(_name_of(path)) if is_outer else self._value(path)

    def told_batch(self) -> ev.Value | None:
        """Return the batch result of `last_error`, or None."""
        last = self.failure or next(iter(self._told()), None)
        return self.state.origin.passed.get(BATCH) if last is None else last.batch

    def _first(self, path: Path) -> Template:
        """Return the template that replaces the round before the first."""
        place = Slot.parse(self.slot)
        depth = self.program.index.shared(place.node, path.node)
        return (
            NO_VALUE if not depth or place.iteration[depth - 1] else self.program.first_of(place.node, path)
        )

    def _item(self, root: str) -> Any:
        index = int(Slot.parse(self.slot).item)
        return index if root == "index" else self.content(self._list())[index]

    def _list(self) -> ev.Value:
        """Return the list of the map whose item is at this place."""
        work = self.state.open[owner_of(self.slot)]
        assert isinstance(work, Map), "nothing else has items of a list"
        return work.over

    def _last_error(self, failure: ev.Failure, *, with_batch: bool = False) -> dict[str, Any]:
        node = self.program.nodes.get(failure.node)
        class_ = failure.kind or class_of(failure.code)
        context = Context(
            node=failure.node,
            tool=failure.tool,
            domain="" if node is None else node.domain,
            code=failure.code,
            kind=class_,
            status=failure.status,
            attempt=failure.attempt,
            at=failure.at,
            parameters=self.parameters,
            message=failure.message,
        )
        value = context.as_value(is_retryable=class_ in RETRYABLE)
        # The engine's own failures belong to no attempt.
        value["at"] = value["at"] if failure.at else None
        value["errors"] = [_shown(error) for error in failure.errors]
        if self.parameters is None:
            del value["parameters"]
        if with_batch:  # it may be large
            value["batch"] = None if failure.batch is None else self.content(failure.batch)
        return value

    def _join(self, wanted: str) -> dict[str, Any]:
        """Return only the wanted field of `join`: the others may cost a fetch."""
        if wanted == "errors":
            return {wanted: [_shown(failure) for failure in self._told()]}
        if wanted == "batch":
            return {wanted: self.batch(self._arrived())}
        if wanted == "arrived":
            return {wanted: self._alive()}
        return {wanted: {name: self.content(value) for name, value in self._arrived().items()}}

    def batch(self, outputs: Mapping[str, ev.Value]) -> dict[str, Any]:
        """Return the result of each node before the join at this slot: the number of each fate, and each by
        its name.

        Raises `LackingError`.
        """
        name = Slot.parse(self.slot).node
        arrived, carried = self.state.tokens.get(self._place, {}), self.state.errors.get(self._place, {})
        results: dict[str, dict[str, Any]] = {}
        for src in self.program.nodes[name].before:
            if src not in arrived:
                results[src] = {"status": STOPPED}
            elif arrived[src]:
                given = {"output": self.content(outputs[src])} if src in outputs else {}
                results[src] = {"status": SUCCEEDED, **given}
            elif errors := carried.get(src):
                error = replace(errors[0], message=errors[0].message[:LONGEST_MESSAGE])
                results[src] = {"status": FAILED, "error": error.of_an_item()}
            else:
                results[src] = {"status": NOT_BEGUN}
        fates = [one["status"] for one in results.values()]
        counts = {fate: fates.count(fate) for fate in (SUCCEEDED, FAILED, STOPPED, NOT_BEGUN)}
        return {**counts, "results": results}

    @property
    def _place(self) -> str:
        """The slot of the tokens that have led here: an item has those of its node."""
        return owner_of(self.slot)

    def _alive(self) -> list[str]:
        arrived = self.state.tokens.get(self._place, {})
        return [name for name in self.program.nodes[Slot.parse(self.slot).node].before if arrived.get(name)]

    def _arrived(self) -> dict[str, ev.Value]:
        outputs = self.state.outputs
        return {name: outputs[name] for name in self._alive() if name in outputs}

    def errors(self) -> tuple[ev.Failure, ...]:
        """Return the errors that came with dead tokens, each once, without those that are rescued here.

        The newest come first, but uncaught errors before all others: they are never too many to be passed on.
        """
        found = dict.fromkeys(chain.from_iterable(its for alive, its in self._carried() if not alive))
        return tuple(sorted(found, key=lambda error: bool(error.handled)))

    def _told(self) -> tuple[ev.Failure, ...]:
        """Return all errors that came and count at this join, the newest first."""
        join = self.program.nodes[Slot.parse(self.slot).node].join if self.slot else None
        counts_lost = join is None or not join.need
        return tuple(
            dict.fromkeys(
                error
                for alive, its in self._carried()
                for error in its
                if alive or counts_lost or not error.handled
            )
        )

    def _carried(self) -> Iterator[tuple[bool, tuple[ev.Failure, ...]]]:
        """Yield what each token carries, the newest first: true for a live one, with the failure that was
        caught; else the failures that are not rescued here.
        """
        arrived, ways = self.state.tokens.get(self._place, {}), self.program.index
        name = Slot.parse(self.slot).node
        for src, its in reversed(self.state.errors.get(self._place, {}).items()):
            alive = bool(arrived.get(src))
            yield alive, its if alive else unrescued(ways, src, name, arrived, its)


def _name_of(path: Path) -> str:
    """Return the name of a value of the place that started this graph."""
    return f"ctx.{path.node}" if path.node else path.root


def _shown(failure: ev.Failure | ev.Blamed) -> dict[str, str]:
    return {"node": failure.node, "code": failure.code, "message": failure.message}


LAST_ERROR = "last_error"
MOST_INLINE = 8_192
"""Most bytes of a value that stays in the log (core/limits.py: `inline_bytes`)."""
_encode = msgspec.json.Encoder().encode


def started(context: EvaluationContext, template: Template) -> tuple[dict[str, Any], dict[str, Value]]:
    """Return the value of the template without values passed by reference; and these, by their names in the
    graph.

    Raises `ExpressionError`, `LackingError`.
    """
    passed, taken = dict[str, Value](), []
    for place, path in template.alone():
        is_whole = place[0] == OUTER or place == (
            INPUT,
        )  # a part of an input is none of its starter's values
        if is_whole and (value := context.whole(path)) is not None and _is_large(value):
            passed[INPUT if place[0] == INPUT else ".".join(place[1:])] = value
            taken.append(place)
    rest: dict[str, Any] = context.render(template.without(taken))
    if LAST_ERROR in rest.get(OUTER, ()) and (batch := context.told_batch()) is not None:
        passed[BATCH] = batch
    return rest, passed


def _is_large(value: Value) -> bool:
    """Return true if the value is kept as a blob, or will be with this decision."""
    return bool(value.ref) or len(_encode(value.v)) > MOST_INLINE
