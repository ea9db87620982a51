"""`run`: one saga of a workflow, from its start until nothing more can happen. deployment.py simulates the
deployment.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from baton.builder import Workflow
from baton.builder.found import PythonWorkflow, documents, text_of
from baton.core.documents.compile import children_of, compile_document
from baton.core.documents.text import parse_document
from baton.core.expressions import nearest, parse_duration, with_hint
from baton.core.failures.matrix import DEPLOYED
from baton.core.failures.policy import ASK
from baton.core.graph.graph import HANDLER, Graph, Node, graph_name
from baton.core.limits import Limits
from baton.core.log.questions import ACTIONS, APPROVE, REJECT, SUBMIT
from baton.errors import InvalidDefinition, MalformedDocument, NotFound, UserError
from baton.testing.deployment import Deployment
from baton.testing.killing import Kills, Moments, check_kills, moments_of, node_at
from baton.testing.loop import VirtualLoop, run_virtual
from baton.testing.models import ScriptedModels
from baton.testing.operations import FunctionNodes, is_label
from baton.testing.outside import At, plans_of, timed_cancel, timed_signals
from baton.testing.pytest_plugin import keep
from baton.testing.result import Result, Unanswered
from baton.tools.define import NODE_KINDS, Registry, Tool, ToolError
from baton.tools.standard import load_app, with_standard

APP = "sagas"
# Far ahead: a tool that compares its deadline with the machine's clock has time left.
BEGIN = "2100-01-01T00:00:00Z"
_KINDS = (".yaml", ".yml")  # of an app's documents
_FILES = (*_KINDS, ".json")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


Source = str | Path | PythonWorkflow
ScriptedReply = str | Mapping[str, Any] | None


def run(
    workflow: Source,
    given: Any = None,
    *,
    signals: Mapping[str, Any] | Sequence[tuple[At, str, Any]] = _NOTHING,
    answers: Mapping[str, ScriptedReply | Sequence[ScriptedReply]] = _NOTHING,
    stand_ins: Mapping[str, Callable[..., Any]] = _NOTHING,
    kills: Moments = _NOTHING,
    callbacks: Mapping[str, Any] = _NOTHING,
    cancel: Any = None,
    models: Any = None,
    app: str = "",
    tools: Registry | None = None,
    workflows: Sequence[Source] = (),
    user: str = "tester",
    tenant: str = "test",
    worker_timeout: str | float = "60s",
    on_failure: str = ASK,
    at: str = BEGIN,
) -> Result:
    """Run one saga until nothing more can happen, and return its result.

    workflow: a function under `@workflow`, the name of one of the app's workflows, the path of a document,
    its text, or a `Workflow`.
    given: the input of the saga. Dataclasses and models of pydantic in it become JSON.
    signals: payloads by name. A payload is sent as soon as a wait for its signal is open, once for each wait,
    in child sagas too. A signal without a payload is never sent. Alternatively a list of `(at, name,
    payload)`: each is sent once, `at` a time after the start, to every saga that has not ended and whose
    workflow waits for the name.
    answers: the person's answers, by the node that asks or that a question is about, in child sagas too. An
    answer is one of the question's `options`, such as `retry` or `approve`, or an object with `action`, and
    `arguments`, `output`, `data` or `comment`; with `data`, the action is `submit`. None lets the question
    expire. A list contains an answer for each time that the node asks, and its last one is repeated. A
    question about another node fails the run immediately.
    callbacks: results of external work, by the node that hands it over: an output that arrives immediately,
    an `Elsewhere` with its time, failure and heartbeats, or a list of those, one for each handover. Other
    work never reports.
    cancel: time after the start at which the saga is cancelled, or an object with `at`, `undo` (true: it
    undoes what it has done) and `grace_s` (30: what running steps have to finish).
    models: answers to agents and `model` nodes, in child sagas too: a list of answers in order, a function of
    the request, `every_tool_once()`, or one answer for all requests; by node if there are several. An answer
    is a text, a value that is written as JSON, `call(TOOL, …)` or a list of these, a `StepFailure`, or a
    `ModelAnswer`. "real": the node asks its own model, of the profiles and with the key of the environment.
    stand_ins: functions by the name of a tool, called in its place with the same arguments by keyword. The
    result must be one that the tool could return.
    kills: moments at which the worker's process dies at a call of the node's tool, by node or by one round of
    it as `NODE@ROUND`, or at the call of its inverse as `NODE#undo`, or at a unit of the tool's journal as
    `NODE: UNIT`: `before` the call, `during` it (at the
    first wait of an `async` tool) or `after` its effect, before anything is written. A list is about
    successive calls. The next worker continues when the lease of the dead one has expired.
    In `answers`, `callbacks` and `kills`, an operation of a function is named by its label, such as `charge`,
    `charge#2` or `notify[3]/send`; `send` is each operation of that name.
    app: the package of tools and documents; by default that of the function, or `sagas`.
    tools: a registry to use instead; no app is imported then.
    workflows: further documents, for children; those of the app are found automatically.
    worker_timeout: duration of one invocation. on_failure: the deployment's `OnFailure`: ask, fail or
    escalate. at: start of the saga, ISO 8601.

    The engine is the real one, with its worker, relay and reconciler. The stores are in memory and time is
    virtual: a wait of a year takes no time, and two runs are equal. Plain functions run where they are
    called, so their own timeout does not stop them. While an `async` tool or a script of `models` waits for a
    socket, a process or a working thread, time passes as on the clock.

    Raises: the `UserError` of the API, with each problem as a note; `ToolError` for a missing app, and for a
    stand-in for no tool or with another signature; `ValueError` for an input, a payload or an answer that is
    not JSON, for a signal that no wait of the workflow or its children expects, for an answer about no node,
    for a kill at no step, for a node that asks a model which `models` does not script, and for a script that
    gives no answer; `Unanswered` for a question without an entry in `answers`; `LoopBlocked` for an `async`
    tool that blocks the event loop for a second of real time; `AssertionError` for a kill at a step where no
    worker died; `EngineDefect`.
    """
    app = app or _app_of(workflow)
    declared = _tools_of(app, tools)
    registry = _with_stand_ins(declared, stand_ins)
    known = _Documents(_of_app(app) if tools is None else [], workflows, declared)
    begin_ms = _begin_ms(at)
    timeout = _duration("worker_timeout", worker_timeout)
    if on_failure not in DEPLOYED:
        raise ValueError(f"on_failure is one of {', '.join(DEPLOYED)}, not `{on_failure}`")
    limits = Limits(on_failure=on_failure)
    began_with = _as_json("the input", given)
    timed = [] if isinstance(signals, Mapping) else timed_signals(signals)
    ends = [] if cancel is None else [timed_cancel(cancel)]
    by_name = signals if isinstance(signals, Mapping) else {}
    sent = {name: _as_json(f"the payload of `{name}`", payload) for name, payload in by_name.items()}
    timed = [replace(one, payload=_as_json(f"the payload of `{one.name}`", one.payload)) for one in timed]
    timed = sorted([*timed, *ends], key=lambda signal: signal.after_ms)
    moments, tools_of = moments_of(kills), dict[str, set[str]]()
    functions = FunctionNodes()
    deadly = Kills(moments, tools_of, functions) if moments else None
    plans, scripted, inverses = plans_of(callbacks), ScriptedModels(functions), dict[str, set[str]]()
    answered = {node: _answers(node, answer) for node, answer in answers.items()}

    async def main(loop: VirtualLoop) -> Result:
        deployment = Deployment(
            loop,
            registry,
            limits,
            begin=begin_ms,
            worker_timeout=timeout,
            caller=(tenant, user),
            kills=deadly,
            elsewhere=plans,
            models=scripted,
            functions=functions,
        )
        name, awaited, nodes, choosing = await _register(
            deployment, known, known.text(workflow), functions.nodes, inverses
        )
        named = [*answered, *plans, *map(node_at, moments)]
        if not functions.nodes:  # a function knows its signals and its operations only when it runs
            _check_names(
                "wait for a signal", [*sent, *(signal.name for signal in timed if signal.name)], awaited
            )
            _check_names("node", named, nodes.keys())
        _check_names("node or operation", [one for one in named if not is_label(one)], nodes.keys())
        for signal in sent:
            if not awaited.get(signal, True):
                raise ValueError(
                    f"signal `{signal}`: an agent hears it while it works; say when: signals=[(AT, {signal!r}, PAYLOAD)]"
                )
        steps = [name for name in nodes.keys() - functions.nodes if nodes[name] and name not in choosing]
        _check_actions(answered, steps)
        scripted.read(models, nodes)
        check_kills(moments, nodes, registry, inverses)
        tools_of.update(nodes)
        view, _ = await deployment.service().start(name, began_with, key="")
        if timed:
            deployment.post(view["id"], timed)
        await deployment.settle(sent, answered)
        result = await deployment.result(view["id"])
        for question in result.questions:
            if question["expires_at"] and functions.of_question(answered, question) is None:
                raise Unanswered(result, question)
        return result

    try:
        result = run_virtual(main)
    except UserError as error:
        for problem in error.problems:
            place = f"line {problem.line}, column {problem.column}" if problem.line else ""
            parts = [place, problem.path, problem.message, problem.suggestion]
            error.add_note("  ".join(part for part in parts if part))
        error.__traceback__ = None  # it is about what was given, not about where the engine found it
        raise
    if deadly is not None and (places := deadly.left()):
        raise AssertionError(
            f"kill at `{places[0]}`: no worker died there, at least not so often\n{result!r}"
        )
    keep(result)
    return result


def _app_of(workflow: Source) -> str:
    """Return the package of a function, or the usual one."""
    module = "" if isinstance(workflow, (str, Path, Workflow)) else getattr(workflow, "__module__", "")
    return module.rpartition(".")[0] or module or APP


def _tools_of(app: str, given: Registry | None) -> Registry:
    """Return these tools, or those of the app. Raises `ToolError`."""
    if given is not None:
        with_standard(given).check()
        return given
    try:
        return load_app(app)
    except ToolError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            error.add_note(
                "in a test: run(…, app=PACKAGE) names the package, and pytest finds it by "
                '`pythonpath = ["layers/app"]` in pyproject.toml'
            )
        raise


def _duration(what: str, value: str | float) -> int:
    """Return milliseconds. Raises `ValueError`."""
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _begin_ms(at: str) -> int:
    """Return UTC epoch milliseconds. A time without zone is in UTC. Raises `ValueError`."""
    try:
        begin = datetime.fromisoformat(at)
    except (TypeError, ValueError):
        raise ValueError(f"at: `{at}` is not a time; write for example {BEGIN}") from None
    return round((begin if begin.tzinfo else begin.replace(tzinfo=UTC)).timestamp() * 1_000)


def _as_json(what: str, value: Any) -> Any:
    """Return the value as it would arrive over HTTP. Raises `ValueError`."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_of_object))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error


def _of_object(value: Any) -> Any:
    """Return a dataclass or a model of pydantic as JSON types."""
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        return to_jsonable_python(value)
    return json.JSONEncoder().default(value)


async def _register(
    deployment: Deployment,
    known: _Documents,
    text: str,
    functions: set[str],
    inverses: dict[str, set[str]],
) -> tuple[str, dict[str, bool], dict[str, set[str]], set[str]]:
    """Register a document and those of its children that are known.

    Returns the workflow's name; the signals that any of them accepts, with true if a wait is for it; their
    nodes with the tools that they call; and the nodes about which a person chooses among other answers.
    Adds the nodes that run functions to `functions`, and to `inverses` the tools that undo each node.
    """
    graph = await _graph_of(deployment, known, text)
    name, done, has_all = graph.name, {graph.name}, False
    todo, awaited, nodes = _nodes_of(graph), dict[str, bool](), dict[str, set[str]]()
    choosing: set[str] = set()
    while todo:
        node = todo.pop()
        if node.signal:
            is_wait = node.agent is None and not node.workflow
            awaited[node.signal] = awaited.get(node.signal, False) or is_wait
        parts = () if node.agent is None else (node.agent.turn, *node.agent.by_name.values())
        choosing |= {node.name} if any(part.asks is not None for part in parts) else set()
        if node.replan is not None:
            parts = (node.replan.plan, *node.replan.calls)
            choosing |= {node.name} if node.replan.by_person else set()
        if node.function is not None:
            parts = node.function.calls
            functions.add(node.name)
        undone = {undo.step.tool for part in (node, *parts) for undo in part.undo.values()}
        inverses.setdefault(node.name, set()).update(undone)
        nodes.setdefault(node.name, set()).update({part.tool for part in (node, *parts)} - {""})
        children = [one.partition("@")[0] for one in node.starts if not graph_name(one)]
        if node.function is not None and not has_all:  # only the function knows which it starts
            children, has_all = list(known.inputs()), True
        for child in children:
            document = None if not child or child in done else known.named(child)
            if document is None:
                continue
            done.add(child)
            todo += _nodes_of(await _graph_of(deployment, known, document))
    return name, awaited, nodes, choosing


async def _graph_of(deployment: Deployment, known: _Documents, text: str) -> Graph:
    """Register a document and return its graph. Raises `InvalidDefinition` also for input that a child
    refuses: the API notes it, since the child may be another one tomorrow.
    """
    refusal = None
    try:
        graph = await deployment.register(text)
        if not children_of(graph):
            return graph
    except InvalidDefinition as error:
        refusal = error
    graph = compile_document(text, deployment.tools, children=known.inputs(), kinds=NODE_KINDS)
    if refusal is not None:
        raise refusal
    return graph


def _nodes_of(graph: Graph) -> list[Node]:
    """Return the nodes of the graph, of the graphs that it names, and of its failure handler."""
    nodes = [node for one in (graph, *graph.graphs.values()) for node in one.work]
    if graph.handler is None:
        return nodes
    plain = Node(name=HANDLER, kind=graph.nodes[0].kind, workflow=graph.handler.workflow)
    return [*nodes, plain]


def _check_names(what: str, said: Iterable[str], known: Collection[str]) -> None:
    """Raise `ValueError` for an unknown name: a misspelt signal would not arrive, unnoticed."""
    for name in said:
        if name not in known:
            hint = nearest(name, known) or f"there are: {', '.join(sorted(known))}"
            raise ValueError(f"there is no {what} `{name}`; {hint if known else 'there are none'}")


def _check_actions(
    answered: Mapping[str, Sequence[Mapping[str, Any] | None]], steps: Collection[str]
) -> None:
    """Raise `ValueError` for an invalid answer about a step. The API checks those to a node."""
    known = (*ACTIONS, APPROVE, REJECT)
    for node, said in ((node, one) for node, each in answered.items() for one in each):
        if said is not None and node in steps and said["action"] not in known:
            raise ValueError(f"the answer about `{node}` is {', '.join(known)}; not `{said['action']}`")


def _answers(node: str, given: ScriptedReply | Sequence[ScriptedReply]) -> tuple[dict[str, Any] | None, ...]:
    """Return the answers for a node. Raises `ValueError` for an invalid one."""
    if given is None or isinstance(given, str | Mapping):
        return (_answer(node, given),)
    if not given:
        raise ValueError(f"the answers about `{node}` are none: write None for a question that expires")
    return tuple(_answer(node, one) for one in given)


def _answer(node: str, given: ScriptedReply) -> dict[str, Any] | None:
    """Return one answer for a node. Raises `ValueError` for an invalid one."""
    if given is None:
        return None
    said = {"action": given} if isinstance(given, str) else dict(given)
    if "data" in said:
        said = {"action": SUBMIT, **said}
    strange = said.keys() - {"action", "arguments", "output", "data", "comment"}
    if strange or not isinstance(said.get("action"), str):
        others = "`arguments`, `output`, `data` or `comment`; or `data` alone"
        if not strange:
            raise ValueError(f"the answer about `{node}` has `action`, a text, and may have {others}")
        names = ", ".join(f"`{name}`" for name in sorted(map(str, strange)))
        raise ValueError(f"the answer about `{node}` has no {names}: it has `action`, and may have {others}")
    answer: dict[str, Any] = _as_json(f"the answer about `{node}`", said)
    return answer


class _Documents:
    """Workflow documents available to a test: its own and those of the app, by name."""

    def __init__(self, of_app: Sequence[str], given: Sequence[Source], registry: Registry) -> None:
        self._texts, self._registry = list(of_app), registry
        self._texts = [*map(self.text, given), *of_app]

    def text(self, source: Source) -> str:
        """Return the text of a document. Raises `NotFound` for an unknown name and a missing file."""
        if not isinstance(source, (str, Path)):
            return text_of(source, self._registry)
        if isinstance(source, Path) or source.endswith(_FILES):
            return _read(Path(source))
        if "\n" in source or source.lstrip().startswith("{"):
            return source
        found = self.named(source)
        if found is None:
            names = [name for name, *_ in self._all()]
            hint = nearest(source, names) or (f"there are: {', '.join(names)}" if names else "there are none")
            raise NotFound(f"there is no workflow `{source}`; {hint}")
        return found

    def named(self, name: str) -> str | None:
        """Return the document with this name, or None. An unreadable document has no name."""
        return next((text for its, _, text in self._all() if its == name), None)

    def inputs(self) -> dict[str, Any]:
        """Return the input schemas of the documents, by name."""
        return {name: schema for name, schema, _ in self._all()}

    def _all(self) -> Iterator[tuple[str, Any, str]]:
        return ((*front, text) for text in self._texts if (front := _front(text)))


@lru_cache(maxsize=256)  # each run of an app asks several times for all of its documents
def _front(text: str) -> tuple[str, dict[str, Any] | None] | None:
    """Return the name and the input schema of a document, or None of an unreadable one."""
    try:
        value = parse_document(text).value
    except MalformedDocument:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    schema = value.get("input")
    return value["name"], schema if isinstance(schema, dict) else None


def _of_app(app: str) -> list[str]:
    """Return the documents of an app: those in its package, and those that its modules build."""
    module = importlib.import_module(app)
    places = [Path(place) for place in getattr(module, "__path__", ())]
    files = sorted(file for place in places for kind in _KINDS for file in place.glob(f"*{kind}"))
    return [*map(_read, files), *documents(module).values()]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"the workflow document {file} cannot be read: {error}") from error


def _with_stand_ins(registry: Registry, stand_ins: Mapping[str, Callable[..., Any]]) -> Registry:
    result, known = Registry(), with_standard(registry)
    result.pins = registry.pins
    for name, function in stand_ins.items():
        if name not in known:
            raise ToolError(with_hint(f"stand-in for `{name}`: there is no such tool", nearest(name, known)))
        result.add(_stand_in(known[name], function))
    for name, tool in registry.items():
        if name not in stand_ins:
            result.add(tool)
    return result


def _words(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _stand_in(tool: Tool, function: Callable[..., Any]) -> Tool:
    """Return the tool with another function, which receives the context only if it accepts one. Raises
    `ToolError` for a function with another signature.
    """
    which = f"stand-in for `{tool.spec.name}`"
    if not callable(function):
        raise ToolError(
            f"{which}: {function!r} is no function; for a fixed result write: lambda **_: {function!r}"
        )
    signature = inspect.signature(function)
    name = tool.spec.name
    takes_any = any(its.kind is its.VAR_KEYWORD for its in signature.parameters.values())
    context = tool.context if takes_any or tool.context in signature.parameters else ""
    given = [*tool.parameters.model_fields, *([context] if context else [])]
    needed = [its for its in signature.parameters.values() if its.default is its.empty]
    needed = [its for its in needed if its.kind not in (its.VAR_KEYWORD, its.VAR_POSITIONAL)]
    called = f"`{name}` is called with ({', '.join(given)}), by keyword"
    if strange := [its.name for its in needed if its.name not in given]:
        raise ToolError(f"{which}: it needs {_words(strange)}, which `{name}` does not have; {called}")
    if missing := [one for one in given if not takes_any and one not in signature.parameters]:
        raise ToolError(f"{which}: it does not take {_words(missing)} of `{name}`; {called}")
    try:
        signature.bind(**dict.fromkeys(given))
    except TypeError as error:
        raise ToolError(f"{which}: {error}; {called}") from None
    return replace(
        tool,
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        context=context,
        replaces=tool.function,
    )
