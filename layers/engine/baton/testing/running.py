"""`run`: one saga of a workflow, from its start to where nothing more can happen.

Belongs here: what a test may give, and finding the workflows and tools it means. Does not belong here:
how the deployment around the saga works.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from baton.builder import Workflow
from baton.builder.found import documents
from baton.core.compile import compile_document
from baton.core.document import parse_document
from baton.core.durations import parse_duration
from baton.core.toolspec import nearest
from baton.errors import MalformedDocument, NotFound, UserError
from baton.testing.deployment import Deployment
from baton.testing.loop import VirtualLoop, run_virtual
from baton.testing.result import Result
from baton.tools.define import Registry, Tool, ToolError, load_app
from baton.tools.standard import with_standard

APP = "sagas"
# Far ahead: a tool that compares its deadline with the machine's clock has time left.
BEGIN = "2100-01-01T00:00:00Z"
_KINDS = (".yaml", ".yml")  # of an app's documents
_FILES = (*_KINDS, ".json")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


Source = str | Path | Workflow


def run(
    workflow: Source,
    given: Any = None,
    *,
    signals: Mapping[str, Any] = _NOTHING,
    answers: Mapping[str, str | Mapping[str, Any] | None] = _NOTHING,
    stand_ins: Mapping[str, Callable[..., Any]] = _NOTHING,
    app: str = APP,
    tools: Registry | None = None,
    workflows: Sequence[Source] = (),
    user: str = "tester",
    tenant: str = "test",
    worker_timeout: str | float = "60s",
    at: str = BEGIN,
) -> Result:
    """Run one saga to its end, or to where it waits for what never comes, and say what became of it.

    workflow: the name of one of the app's workflows, the path of a document, its text, or a `Workflow`.
    given: the saga's input. signals: by name, the payload that is sent as soon as a wait for it is open (once
    for each wait, of child sagas too); a signal that is not named is never sent.
    answers: by the node that a question is about, what somebody answers to it (in child sagas too): `retry` or `fail`,
    or an object with `action`, and `arguments` or `output`; None lets it expire. With a question about another node the
    run is over where it would expire: the saga is left `suspended`, and the question is in `Result.questions`.
    stand_ins: by the name of a tool, a function that is called in its place, with the same arguments and by
    keyword; its result must be one that the tool could have given.
    app: the package of tools and documents. tools: a registry to use instead; no app is imported then.
    workflows: further documents, for children; those of the app are found by themselves.
    worker_timeout: of one invocation. at: when the saga starts, ISO 8601.

    The engine is the real one, with its worker, relay and reconciler; the stores are in memory and time
    is virtual: a wait of a year takes no time, and two runs are equal. Plain functions run where they are
    called, so their own timeout does not stop them. While an `async` tool holds a socket open, or a thread
    of an executor runs, time passes as on the clock.

    Raises: the `UserError` that the API would answer with (each problem as a note); `ToolError` for
    an app that is not there or a stand-in for no tool; `ValueError` for an input, a payload or an answer that is not JSON,
    for a signal that no wait of the workflow or its children is for, and for an answer about no node; `EngineDefect`.
    """
    registry = _with_stand_ins(load_app(app) if tools is None else tools, stand_ins)
    known = _Documents(_of_app(app) if tools is None else [], workflows)
    begin = datetime.fromisoformat(at)
    begin_ms = round((begin if begin.tzinfo else begin.replace(tzinfo=UTC)).timestamp() * 1_000)
    timeout = parse_duration(worker_timeout)
    began_with = _as_json("the input", given)
    sent = {name: _as_json(f"the payload of `{name}`", payload) for name, payload in signals.items()}
    answered = {node: _answer(node, answer) for node, answer in answers.items()}

    async def main(loop: VirtualLoop) -> Result:
        deployment = Deployment(loop, registry, begin=begin_ms, worker_timeout=timeout, caller=(tenant, user))
        name, awaited, nodes = await _register(deployment, registry, known, known.text(workflow))
        _check_names("wait for a signal", sent, awaited)
        _check_names("node", answered, nodes)
        view, _ = await deployment.service().start(name, began_with, key="")
        await deployment.settle(sent, answered)
        return await deployment.result(view["id"])

    try:
        return run_virtual(main)
    except UserError as error:
        for problem in error.problems:
            place = f"line {problem.line}, column {problem.column}" if problem.line else ""
            parts = [place, problem.path, problem.message, problem.suggestion]
            error.add_note("  ".join(part for part in parts if part))
        raise


def _as_json(what: str, value: Any) -> Any:
    """The value as it would come over HTTP. Raises `ValueError`."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from error


async def _register(
    deployment: Deployment, registry: Registry, known: _Documents, text: str
) -> tuple[str, set[str], set[str]]:
    """Register a document and, as far as they are known, those of its children.

    The workflow's name, the signals that any of them waits for, and their nodes.
    """
    specs = with_standard(registry).specs()
    graph = compile_document(text, specs, children=known.inputs())
    name, done = graph.name, {graph.name}
    await deployment.service().register(text, json_only=False)
    todo, awaited, nodes = list(graph.nodes), set[str](), set[str]()
    while todo:
        node = todo.pop()
        awaited |= {node.signal} - {""}
        nodes.add(node.name)
        child = node.workflow.partition("@")[0]
        document = None if not child or child in done else known.named(child)
        if document is not None:
            done.add(child)
            await deployment.service().register(document, json_only=False)
            todo += compile_document(document, specs, children=known.inputs()).nodes
    return name, awaited, nodes


def _check_names(what: str, said: Iterable[str], known: set[str]) -> None:
    """Raises `ValueError`: a misspelt signal would never come, and the test would pass for that."""
    for name in said:
        if name not in known:
            hint = nearest(name, known) or f"there are: {', '.join(sorted(known))}"
            raise ValueError(f"there is no {what} `{name}`; {hint if known else 'there are none'}")


def _answer(node: str, given: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Raises `ValueError` for what is no answer."""
    if given is None:
        return None
    said = {"action": given} if isinstance(given, str) else dict(given)
    strange = said.keys() - {"action", "arguments", "output"}
    if strange or not isinstance(said.get("action"), str):
        raise ValueError(f"the answer about `{node}` has `action`, and may have `arguments` or `output`")
    answer: dict[str, Any] = _as_json(f"the answer about `{node}`", said)
    return answer


class _Documents:
    """The workflow documents that a test can mean: those it gave and those of the app, by name."""

    def __init__(self, of_app: Sequence[str], given: Sequence[Source]) -> None:
        self._texts = list(of_app)
        self._texts = [*map(self.text, given), *of_app]

    def text(self, source: Source) -> str:
        """Raises `NotFound` for a name that no document has and a file that is not there."""
        if isinstance(source, Workflow):
            return source.to_yaml()
        if isinstance(source, Path) or source.endswith(_FILES):
            return _read(Path(source))
        if "\n" in source or source.lstrip().startswith("{"):
            return source
        found = self.named(source)
        if found is None:
            names = [name for name, _ in self._all()]
            hint = nearest(source, names) or (f"there are: {', '.join(names)}" if names else "there are none")
            raise NotFound(f"there is no workflow `{source}`; {hint}")
        return found

    def named(self, name: str) -> str | None:
        """The document with this name; one that cannot be read has none."""
        return next((text for its, text in self._all() if its == name), None)

    def inputs(self) -> dict[str, Any]:
        """By name, the schema of what each takes."""
        found = {name: parse_document(text).value.get("input") for name, text in self._all()}
        return {name: schema if isinstance(schema, dict) else None for name, schema in found.items()}

    def _all(self) -> Iterator[tuple[str, str]]:
        for text in self._texts:
            try:
                value = parse_document(text).value
            except MalformedDocument:
                continue
            if isinstance(value, dict) and isinstance(value.get("name"), str):
                yield value["name"], text


def _of_app(app: str) -> list[str]:
    """The documents of an app: those in its package, and those that its modules build."""
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
    for name, function in stand_ins.items():
        if name not in known:
            raise ToolError(f"stand-in for `{name}`: there is no such tool. {nearest(name, known)}".strip())
        result.add(_stand_in(known[name], function))
    for name, tool in registry.items():
        if name not in stand_ins:
            result.add(tool)
    return result


def _stand_in(tool: Tool, function: Callable[..., Any]) -> Tool:
    """The tool with another function, which gets the context only if it takes one."""
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return replace(
        tool,
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        context=tool.context if takes_any or tool.context in parameters else "",
    )
