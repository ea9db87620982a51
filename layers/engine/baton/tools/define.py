"""@tool: a Python function becomes a tool; its schemas come from the type hints by pydantic.

The registry is what a process imported. What a tool says of itself besides is abilities.py's, how it is run
perform.py's, and how an application's are loaded standard/__init__.py's.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic.json_schema import GenerateJsonSchema

from baton.core.documents.nodes.own import OwnKind
from baton.core.effects.inverses import problems_of_inverses
from baton.core.effects.keys import KeyRule
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import EFFECTS, PATCH_WORKFLOW, Merits, Pins, ToolSpec
from baton.core.expressions import nearest, parse_duration
from baton.core.failures.alternatives import declaration_problems
from baton.core.failures.codes import CLASSES, CODE_PATTERN
from baton.core.failures.names import code_of
from baton.core.limits import Limits
from baton.core.pipelines import pipeline as written
from baton.core.pipelines.base import PipelineFailed
from baton.ports import StepContext, StepFailure
from baton.tools.abilities import NAME, Abilities

_EXPONENT = "([eE][+-]?[0-9]+)?"


class JsonSchemas(GenerateJsonSchema):
    """Generator of JSON Schemas of parameters and results of tools, and of types in a `Workflow`."""

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a `Decimal`: a text; as input, a number too. Pydantic's own has look-ahead."""
        found: dict[str, Any] = super().decimal_schema(schema)
        text = {"type": "string", "pattern": _pattern(schema, is_signed=not self._is_input_from_zero(schema))}
        kinds = found.get("anyOf")
        if kinds is None:
            return text
        return {**found, "anyOf": [text if kind.get("type") == "string" else kind for kind in kinds]}

    def _is_input_from_zero(self, schema: Any) -> bool:
        bounds = [schema[name] for name in ("gt", "ge") if schema.get(name) is not None]
        return self.mode == "validation" and any(bound >= 0 for bound in bounds)


def _pattern(schema: Any, *, is_signed: bool) -> str:
    """Return a pattern without look-ahead; the type itself checks the rest when the tool is called."""
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    whole = "[0-9]+"
    if digits is not None:
        most = max(0, digits - (places or 0))
        whole = f"0*[0-9]{{1,{most}}}" if most else "0+"
    part, least_part = "[0-9]*", "[0-9]+"
    if places is not None:
        part, least_part = f"[0-9]{{0,{places}}}0*", f"[0-9]{{1,{places}}}0*" if places else "0+"
    return f"^[{'+-' if is_signed else '+'}]?({whole}(\\.{part})?|\\.{least_part}){_EXPONENT}$"


def core_schema_objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in pydantic's core schema of a type: schemas, fields and configurations."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            todo += (value for key, value in part.items() if key not in _NO_SCHEMA)
        elif isinstance(part, (list, tuple)):
            todo += part


_NO_SCHEMA = frozenset({"cls", "default", "expected", "function", "members", "metadata"})
"""Keys with objects of the application, which may contain circles."""


F = TypeVar("F", bound=Callable[..., Any])
Raises = Mapping[type[BaseException], str | tuple[str, str]]
"""Codes of errors, by their classes; with a code, the class of failure if its code alone does not say it."""
_is_code = re.compile(CODE_PATTERN).fullmatch


class ToolError(Exception):
    """Error for a wrong declaration of a tool; raised while its module is imported."""


class SchemaMismatch(StepFailure):
    """Failure of a tool elsewhere that breaks its schemas: a defect, which the tool itself has not named."""


@dataclass(frozen=True)
class Tool:
    """A function with what pydantic made of its hints. `context` is the parameter that gets `Context`.

    reads_json: a type in its hints takes JSON in another way than Python's
    values (strict, `bytes` as base64). keys_may_meet: two keys of an object
    in its result can be the same text in JSON. raises: the codes and classes
    of errors; shared: those of all tools of its application.
    document: of a workflow function, the fields of its document. completed:
    gives the tool with what only all declared tools together say of it, and
    adds those that it declares by using them.
    replaces: of a test's stand-in, the function under `@tool`. graphs: of a
    workflow function, its agents, as graphs of its document.
    """

    spec: ToolSpec
    function: Callable[..., Any]
    parameters: type[BaseModel]
    result: TypeAdapter[Any]
    context: str
    is_async: bool
    raises: Mapping[type[BaseException], tuple[str, str]] = field(default_factory=dict)
    shared: Mapping[type[BaseException], tuple[str, str]] = field(default_factory=dict)
    reads_json: bool = False
    keys_may_meet: bool = True
    document: Mapping[str, Any] | None = None
    completed: Callable[[Tool, dict[str, Tool]], Tool] | None = None
    replaces: Callable[..., Any] | None = None
    graphs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> dict[type[BaseException], tuple[str, str]]:
        """The codes and classes of its errors; its own go before those of its application."""
        return {**self.shared, **self.raises}

    @property
    def needs_process(self) -> bool:
        """True if only the end of its process stops it: a plain function with effects."""
        return not self.is_async and self.spec.effect != "pure"


class Registry(Mapping[str, Tool]):
    """Tools by name. Two different functions cannot share one."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._incomplete: list[str] = []
        self.raised: dict[type[BaseException], tuple[str, str]] = {}
        """The codes and classes of errors of all its tools: see `raises`."""
        self.pins: Pins | None = None
        """The tools of MCP servers: see tools/standard/mcp.py."""

    def add(self, tool: Tool) -> None:
        """Add a tool. Raises `ToolError` when another function has this name."""
        if not tool.shared and tool.shared is not self.raised:
            tool = replace(tool, shared=self.raised)
        there = self._tools.get(tool.spec.name)
        if there is not None and _origin(there) != _origin(tool):
            raise ToolError(f"tool `{tool.spec.name}` is declared by {_origin(there)} and by {_origin(tool)}")
        self._tools[tool.spec.name] = tool
        if tool.completed is not None:
            self._incomplete.append(tool.spec.name)

    def complete(self) -> None:
        """Complete the tools of which only all tools together say something; raises `ToolError`."""
        while self._incomplete:
            tool = self._tools[self._incomplete[-1]]
            if tool.completed is not None:
                self._tools[tool.spec.name] = tool.completed(tool, self._tools)
            self._incomplete.pop()

    def pinned_names(self) -> frozenset[str]:
        """Return the names of the tools of MCP servers."""
        servers = {} if self.pins is None else self.pins.servers
        return frozenset(f"{name}.{tool}" for name, one in servers.items() for tool in one.tools)

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the declarations of the tools by name."""
        return {name: self[name].spec for name in self}

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield the impossible references between tools: the tool's name, and the problem."""
        specs = self.specs()
        yield from declaration_problems(specs)
        yield from problems_of_inverses(specs)

    def check(self) -> None:
        """Raise `ToolError` for the first impossible reference between tools, once all are added."""
        for name, why in self.problems():
            raise ToolError(f"tool `{name}`: {why}{_where(self[name].function)}")

    def __getitem__(self, name: str) -> Tool:
        if self._incomplete:
            self.complete()
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        if self._incomplete:
            self.complete()
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


REGISTRY = Registry()


def _origin(tool: Tool) -> str:
    return f"{tool.function.__module__}.{tool.function.__qualname__}"


def tool(
    name: str,
    *,
    version: str = "1",
    effect: str = "idempotent",
    timeout: str | float | None = None,
    domain: str = "",
    cost_usd: Decimal | str | float | None = None,
    key: KeyRule | None = None,
    verify: str = "",
    instead_of: str | Sequence[str] = (),
    hints: str | Sequence[str] = (),
    merits: Merits | None = None,
    carries_out: str | Sequence[str] = (),
    for_tools: str | Sequence[str] = "*",
    fallbacks: Mapping[str, Sequence[Any]] | None = None,
    context: str = "",
    repeatable: bool = False,
    requires_approval: bool | Mapping[str, Any] = False,
    risk: Risk | None = None,
    undo: str = "",
    breaker: str = "",
    in_doubt: str = "",
    cache: str | float | None = None,
    raises: Raises | None = None,
    registry: Registry | None = None,
) -> Callable[[F], F]:
    """Declare a function as a tool; the function itself stays as it was.

    effect: `pure` (no effect outside), `idempotent` (may run again, always with the same
    `context.idempotency_key`, which it must pass on) or `once` (must not run again when it is not sure
    whether it has happened). timeout: of one attempt; without one, that of the deployment (30 s). The
    parameter annotated with `Context`, if any, is filled by the engine.

    domain: what it is about, for the failure matrix. cost_usd: what one attempt costs at most. key: what
    makes two calls the same. verify: the tool that looks whether a call of this one has happened.

    What is done when it fails: fallbacks has, by parameter, values to try one after the other; context is the
    parameter that can be shortened, or given in parts. instead_of: tools that this one can stand in for, for
    these hints (without any: for all). carries_out: hints and hooks that this one carries out before an
    attempt of for_tools. merits: what speaks for it against other ways. Names of tools are patterns, in which
    `*` stands for any text.

    repeatable: an agent that calls it again with equal arguments has it called again, under another key.
    Without it, the agent is told the result of the first call.

    requires_approval: a person approves every call first; or a mapping, the approval of a node in a document,
    such as `{"to": {"group": "support"}, "title": "Pay it back?", "expires": "2h"}`. risk: what it does, and
    which arguments are amount, currency and party; by the rules of the document, calls of high and critical
    risk are approved first.

    undo: the tool that takes back what a call of this one has done. Each of its parameters gets the field of
    the same name of what this tool returned, else the argument of the same name; `output` and `input` get the
    whole of them. A document says `compensate` where that is not right. in_doubt: where it is not known
    whether a call has done something, `call` the tool of undo in any case, or `ask` a person; without it,
    that is called where it does no harm.

    breaker: the name of the circuit breaker that holds calls back while the target is down; `tool` for one of
    its own, `host` for that of the argument `url`.

    cache: the time for which a result answers equal calls of the same user, such as `5m`; only for `pure`
    tools. `POST /warm` then calls the tool ahead of its steps.

    raises: the codes of errors that the function raises on purpose, such as `{KeyError: "not_listed",
    CardDeclined: ("card_declined", "permanent")}`; they hold for derived classes, too, and the nearest class
    counts. Without it, an error of Python that says "bug" is a defect, which parks the saga; `{ValueError:
    "tool_defect"}` makes one of another.

    An `async` function is cancelled at its timeout. A plain one runs in a helper process, which is killed; so
    it is declared where importing the app declares it again, and shares no variables with the worker. A plain
    one that is `pure` runs in a thread of the worker, and may run on after its step has ended.

    Decorating raises `ToolError`, with the function and where it is.
    """
    if callable(name):
        called = getattr(name, "__name__", repr(name))
        raise ToolError(f'write `@tool("name")` above `def {called}`{_where(name)}')

    abilities = Abilities(
        domain=domain,
        cost_usd=cost_usd,
        key=key,
        verify=verify,
        instead_of=instead_of,
        hints=hints,
        merits=merits,
        carries_out=carries_out,
        for_tools=for_tools,
        fallbacks=fallbacks,
        context=context,
        repeatable=repeatable,
        requires_approval=requires_approval,
        risk=risk,
        undo=undo,
        breaker=breaker,
        in_doubt=in_doubt,
        cache=cache,
    )

    def declare(function: F) -> F:
        try:
            _check(name, effect)
            made = _make(function, name, version, effect, _milliseconds(name, timeout), abilities)
            made = replace(made, raises=_codes(f"tool `{name}`: ", raises))
            (REGISTRY if registry is None else registry).add(made)
        except ToolError as error:
            raise ToolError(f"{error}{_where(function)}") from error.__cause__
        return function

    return declare


def _where(function: Callable[..., Any]) -> str:
    """Return ` (search, sagas/order.py:12)`: the function, and its file from the top of its package on."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    depth = function.__module__.count(".") + 1
    path = Path(code.co_filename)
    if path.name == "__init__.py":
        depth += 1
    return f" (`{function.__name__}`, {'/'.join(path.parts[-depth:])}:{code.co_firstlineno})"


def _check(name: str, effect: str) -> None:
    if not NAME.fullmatch(name):
        raise ToolError(f"`{name}` is not a tool name; write lower case, with dots, such as `table.hold`")
    if name == PATCH_WORKFLOW:
        raise ToolError(f"`{name}` is a call of agents to the engine; give the tool another name")
    if effect not in EFFECTS:
        hint = nearest(effect, EFFECTS)
        known = f"tool `{name}`: effect `{effect}` is not one of {', '.join(EFFECTS)}"
        raise ToolError(f"{known}; {hint}" if hint else known)


def raises(errors: Raises, *, registry: Registry | None = None) -> None:
    """Declare the codes of errors for all tools of the application; those of a tool's own `raises` go before.

    An error is a class of the application or of a library: `raises({CardDeclined: ("card_declined",
    "permanent")})`. Raises `ToolError`.
    """
    try:
        found = _codes("", errors)
    except ToolError as error:
        frame = sys._getframe(1)  # noqa: SLF001  # the line of the author
        raise ToolError(f"{error} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})") from None
    (REGISTRY if registry is None else registry).raised.update(found)


def _codes(whose: str, raises: Mapping[Any, Any] | None) -> dict[type[BaseException], tuple[str, str]]:
    found = {}
    for error, said in (raises or {}).items():
        code, kind = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
        if not (isinstance(error, type) and issubclass(error, BaseException)) or issubclass(
            error, StepFailure
        ):
            shown = getattr(error, "__name__", repr(error))
            raise ToolError(f"{whose}raises: `{shown}` is no class of errors that can have a code here")
        if not isinstance(code, str) or not _is_code(code):
            raise ToolError(f"{whose}raises: {code!r} is no code; write one such as `not_listed`")
        if kind and kind not in CLASSES:
            hint = nearest(str(kind), CLASSES) or f"there are: {', '.join(CLASSES)}"
            raise ToolError(f"{whose}raises: {kind!r} is no class of failures; {hint}")
        found[error] = code_of(code), kind
    return found


def _milliseconds(name: str, timeout: str | float | None) -> int:
    try:
        return 0 if timeout is None else parse_duration(timeout)
    except ValueError as error:
        raise ToolError(f"tool `{name}`: timeout: {error}") from error


def _make(
    function: Callable[..., Any],
    name: str,
    version: str,
    effect: str,
    timeout_ms: int,
    abilities: Abilities | None,
    context_type: type = StepContext,
) -> Tool:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, SyntaxError, TypeError) as error:
        raise ToolError(f"tool `{name}`: a type hint cannot be resolved: {error}") from error
    fields: dict[str, Any] = {}
    context = ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            shown = f"tool `{name}`: parameter `{parameter.name}` must be an ordinary named one"
            raise ToolError(f"{shown}; write each argument as a parameter of its own")
        if parameter.name not in hints:
            raise ToolError(f"tool `{name}`: parameter `{parameter.name}` has no type hint")
        if parameter.name.startswith("_") or parameter.name == "model_config":
            raise ToolError(f"tool `{name}`: `{parameter.name}` cannot be the name of a parameter")
        if hints[parameter.name] is context_type:
            if context:
                raise ToolError(f"tool `{name}`: `{context}` and `{parameter.name}` both ask for the context")
            context = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    if "return" not in hints:
        raise ToolError(f"tool `{name}` has no return type hint (write `-> None` if it returns nothing)")
    try:
        shape = _shape(name, fields, hints["return"])
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise ToolError(f"tool `{name}`: {_without_schema(fields, hints['return'], error)}") from error
    try:
        able = {} if abilities is None else abilities.fields(name, effect, shape.takes, hints)
    except ValueError as error:
        raise ToolError(f"tool `{name}`: {error}") from error
    spec = ToolSpec(
        name=name,
        version=version,
        effect=effect,
        parameters=shape.takes,
        result=shape.gives,
        timeout_ms=timeout_ms,
        description=inspect.getdoc(function) or "",
        sees_key=bool(context),
        **able,
    )
    is_async = inspect.iscoroutinefunction(function)
    return Tool(
        spec=spec,
        function=function,
        parameters=shape.parameters,
        result=shape.result,
        context=context,
        is_async=is_async,
        reads_json=shape.reads_json,
        keys_may_meet=shape.keys_may_meet,
    )


def _without_schema(fields: Mapping[str, tuple[Any, Any]], returns: Any, error: Exception) -> str:
    """Return which hint has no JSON schema, and why."""
    places = {f"its parameter `{name}`": hint for name, (hint, _) in fields.items()}
    for place, hint in {**places, "its result": returns}.items():
        try:
            TypeAdapter(hint, config=None).json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError) as found:
            why = str(found).partition("\n")[0].partition(". Set `arbitrary")[0]
            more = "; it has to be a value that a log can hold: make a session or a client inside of the function"
            return f"no JSON schema for {place}: {why}{more}"
    return f"no JSON schema for its hints: {error}"


@dataclass(frozen=True)
class _Shape:
    """Models that pydantic makes of the hints of a function, which are kept with it."""

    fields: Mapping[str, tuple[Any, Any]]
    returns: Any
    parameters: type[BaseModel]
    result: TypeAdapter[Any]
    takes: dict[str, Any]
    gives: dict[str, Any]
    reads_json: bool
    keys_may_meet: bool

    def is_of(self, fields: Mapping[str, tuple[Any, Any]], returns: Any) -> bool:
        """Return true if these hints are the same, and the defaults the same objects."""
        return (
            [*self.fields] == [*fields]
            and self.returns == returns
            and all(
                hint == self.fields[one][0] and default is self.fields[one][1]
                for one, (hint, default) in fields.items()
            )
        )


# The last of each name: the standard tools are declared anew for each run of a test of sagas, and pydantic takes longest.
_SHAPES: dict[str, _Shape] = {}


def _shape(name: str, fields: Mapping[str, Any], returns: Any) -> _Shape:
    known = _SHAPES.get(name)
    if known is not None and known.is_of(fields, returns):
        return known
    with warnings.catch_warnings():
        # A parameter may well be called `json` or `copy`; that pydantic's models have more attributes
        # of these names does not matter here.
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute", UserWarning)
        config = ConfigDict(extra="forbid", allow_inf_nan=False)
        parameters = create_model(f"{name} parameters", __config__=config, **fields)
    result = TypeAdapter(returns)
    takes = parameters.model_json_schema(schema_generator=JsonSchemas)
    gives = result.json_schema(mode="serialization", schema_generator=JsonSchemas)
    _SHAPES[name] = _Shape(
        fields,
        returns,
        parameters,
        result,
        takes,
        gives,
        reads_json=any(map(_reads_json, core_schema_objects(parameters.__pydantic_core_schema__))),
        keys_may_meet=any(map(_keys_may_meet, core_schema_objects(result.core_schema))),
    )
    return _SHAPES[name]


def _reads_json(part: Mapping[str, Any]) -> bool:
    return part.get("strict") is True or part.get("val_json_bytes", "utf8") != "utf8"


def _keys_may_meet(part: Mapping[str, Any]) -> bool:
    keys = part.get("keys_schema", {}) if part.get("type") == "dict" else None
    return part.get("type") == "any" or (keys is not None and keys.get("type") != "str")


def modules_of(module: str) -> Iterator[ModuleType]:
    """Import the app and, of a package, each module whose name does not begin with `_`; yield each."""
    app = importlib.import_module(module)
    yield app
    for inner in pkgutil.iter_modules(getattr(app, "__path__", ()), f"{module}."):
        if not inner.name.rpartition(".")[2].startswith("_"):
            yield importlib.import_module(inner.name)


M = TypeVar("M", bound=type[BaseModel])
NODE_KINDS: dict[str, OwnKind] = {}
"""The kinds that a process has imported, by their keys."""
_NAME = re.compile("[a-z][a-z0-9_]{0,31}")


def node_kind(
    name: str,
    *,
    example: Mapping[str, Any],
    title: str = "",
    version: str = "1",
    icon: str = "●",
    kinds: dict[str, OwnKind] | None = None,
) -> Callable[[M], M]:
    """Declare a pydantic model as a kind of node: a document writes its fields under `name`.

    The model's method `nodes(step)` gives the nodes of built-in kinds that stand for it, each
    under a name of its own, as a document writes them. The first begins; the last gives the
    output. `step("search")` is the name that `search` has in the graph. A field that may hold an
    expression must take a text. `example` is what a document has under `name`. Raises `ToolError`.
    """

    def declare(declared: M) -> M:
        model = declared
        known = NODE_KINDS if kinds is None else kinds
        if not _NAME.fullmatch(name):
            raise ToolError(
                f"`{name}` cannot be the name of a kind of node; write for example search_and_hold"
            )
        if not callable(getattr(model, "nodes", None)):
            raise ToolError(f"the kind `{name}` has no method `nodes(self, step)`")
        there = known.get(name)
        if there is not None and _kind_origin(there.model) != _kind_origin(model):
            raise ToolError(
                f"the kind `{name}` is declared by {_kind_origin(there.model)} and by {_kind_origin(model)}"
            )
        if "extra" not in model.model_config:
            model = _strict(model)
        words = inspect.cleandoc(model.__doc__ or "")
        known[name] = OwnKind(name, model, title or name, words, version, icon, {name: dict(example)})
        return declared

    return declare


def _strict(model: M) -> M:
    """Make the model refuse unknown fields, as everywhere in documents."""
    said = {"__module__": model.__module__, "__qualname__": model.__qualname__, "__doc__": model.__doc__}
    make: Any = type(model)
    made: M = make(model.__name__, (model,), {**said, "model_config": ConfigDict(extra="forbid")})
    return made


def _kind_origin(model: type[BaseModel]) -> str:
    return f"{model.__module__}.{model.__qualname__}"


def pipeline(
    name: str, says: str, steps: Sequence[Any], *, inputs: Sequence[str], registry: Registry | None = None
) -> None:
    """Declare the tool `name`, which does these steps of `std.pipeline` with the `data` that it is called
    with.

    says: what it is for, as models and people read it. inputs: the names of the data that it takes. Its
    version is a hash of the steps. Raises `ToolError` with every mistake in them.
    """
    made = [*steps]
    try:
        plan = written.read_pipeline(made, dict.fromkeys(inputs))
    except PipelineFailed as error:
        raise ToolError(f"tool `{name}`: {error}") from error
    version = written.digest(made, inputs)
    takes = {
        "type": "object",
        "properties": {one: {} for one in inputs},
        "required": [*inputs],
        "additionalProperties": False,
    }
    hint = Annotated[dict[str, Any], WithJsonSchema(takes), Field(description="Its inputs, by name.")]

    def run(data: dict[str, Any]) -> Any:
        if strange := {*inputs} ^ {*data}:
            raise StepFailure(
                "input_invalid", f"data: {', '.join(sorted(strange))}: it takes {', '.join(inputs)}"
            )
        try:
            return written.run_pipeline(plan, data, most_bytes=Limits().result_bytes).value
        except PipelineFailed as error:
            raise StepFailure(error.code, str(error)) from error

    # What models read names the inputs; and two pipelines are two functions.
    run.__annotations__ = {"data": hint, "return": Any}
    run.__doc__ = inspect.cleandoc(says)
    run.__qualname__ = f"pipeline {version}"
    tool(name, version=version, effect="pure", registry=registry)(run)
