"""Models of a test, answering by function, by list, or by calls of every tool. Any has a price."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.adapters.clock import SystemClock
from baton.core.conditions.document import example_of
from baton.core.expressions import nearest, with_hint
from baton.core.log.slots import Slot
from baton.core.models.messages import request_bytes, wire_names
from baton.core.models.usage import MODEL, Price, Usage
from baton.ports import StepFailure
from baton.ports.models import CALLS, ModelAnswer, ModelCall, ModelRequest, Over, ToolOffer
from baton.runtime.invocation.context import inline
from baton.testing.loop import VirtualLoop
from baton.testing.operations import FunctionNodes, is_label, own_name
from baton.testing.pytest_plugin import variable

if TYPE_CHECKING:
    from baton.adapters.models.deployed import DeployedModels

REAL = "real"
"""In place of a script: the node asks its own model."""
OPENAI = "https://api.openai.com/v1"
ANSWER_MS = 300_000
"""Milliseconds of the machine's clock that a real model has for an answer."""
Script = Callable[[ModelRequest], Any]
PRICE = Price(input=1_000_000, output=10_000_000)  # of any model: $1 and $10 for a million tokens
_BYTES = 4  # of a token, about
_MOST = 64  # calls of one answer
_REFUSED = "too_many_calls"
_HOW = 'a list of answers, one after the other; a function of the request; every_tool_once(); one answer for all; or "real"'


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call requested by a scripted answer, created by `call`."""

    tool: str
    arguments: Mapping[str, Any]


def call(tool: str, /, **arguments: Any) -> ScriptedCall:
    """Return an answer that requests a call of this tool. A list of these requests several calls at once."""
    return ScriptedCall(tool, arguments)


class _InTurn:
    """Script of one answer after the other. A request of a worker that died gets the same again."""

    def __init__(self, node: str, answers: Sequence[Any]) -> None:
        self._node, self._answers = node, answers
        self._given: dict[str, Any] = {}

    def __call__(self, request: ModelRequest) -> Any:
        if request.key not in self._given:
            if len(self._given) == len(self._answers):
                so_many = len(self._answers)
                is_list = isinstance(request.schema, Mapping) and request.schema.get("type") == "array"
                last = f"the last message is: {_last(request)}"
                last += (
                    "\na list is one answer after the other; an answer that is a list stands in it: [[…]]"
                    * is_list
                )
                raise AssertionError(
                    f"`{self._node}` asks its model for answer {so_many + 1}, and `models` has {so_many}; {last}"
                )
            self._given[request.key] = self._answers[len(self._given)]
        return self._given[request.key]


class _EveryTool:
    """Script that calls each offered tool once, and then answers."""

    def __init__(self, arguments: Mapping[str, Mapping[str, Any]], answer: Any) -> None:
        self.arguments, self._answer = arguments, answer

    def __call__(self, request: ModelRequest, names: Mapping[str, str] = MappingProxyType({})) -> Any:
        """Return the next answer. `names` maps offered tool names to those of the document."""
        given = {wire_names([tool])[tool]: arguments for tool, arguments in self.arguments.items()}
        left = _not_called(request)
        if left:
            return [
                ScriptedCall(
                    offer.name, given[offer.name] if offer.name in given else _arguments(offer, names)
                )
                for offer in left[:_MOST]
            ]
        if self._answer is not None:
            return self._answer
        if request.schema is None:
            return "done"
        found = example_of(request.schema)
        if found is None:
            raise ValueError(
                "no example of the answer's schema could be made; write every_tool_once(answer=…)"
            )
        return json.dumps(found[0])


def every_tool_once(
    arguments: Mapping[str, Mapping[str, Any]] | None = None, *, answer: Any = None
) -> Script:
    """Return a script that calls every tool of its agent once, with arguments generated from the tools'
    schemas, and then answers.

    arguments: by tool, arguments to use instead. answer: by default an example that conforms to the
    `output_schema`, or the text `done`.
    """
    return _EveryTool(arguments or {}, answer)


def _not_called(request: ModelRequest) -> list[ToolOffer]:
    """Return the tools that were not called. Empty if all calls of the last answer exceeded the limit."""
    names, done, last = dict[str, str](), set[str](), False
    for message in request.messages:
        if message["role"] == "assistant":
            last = False
            names |= {one["id"]: one["function"]["name"] for one in message.get("tool_calls") or ()}
        elif message["role"] == "tool" and f'"code":"{_REFUSED}"' not in message["content"]:
            done.add(names[message["tool_call_id"]])
            last = True
    return [offer for offer in request.tools if offer.name not in done] if last or not names else []


def _arguments(offer: ToolOffer, names: Mapping[str, str]) -> Any:
    found = example_of(offer.parameters)
    if found is None:
        tool = names.get(offer.name, offer.name)
        raise ValueError(
            f"no example of the arguments of `{tool}` could be made from its schema; "
            f'write every_tool_once({{"{tool}": {{…}}}})'
        )
    return found[0]


class ScriptedModels:
    """The port `Models` of a test. `read` sets its scripts. `check` raises the errors of the scripts."""

    def __init__(self, functions: FunctionNodes | None = None) -> None:
        self._functions = functions or FunctionNodes()
        self._scripts: Mapping[str, Script] = {}
        self._names: Mapping[str, Mapping[str, str]] = {}
        self._wrong: BaseException | None = None
        self._handed: dict[str, ModelRequest] = {}
        self._real: DeployedModels | None = None

    def read(self, models: Any, nodes: Mapping[str, Collection[str]]) -> None:
        """Read the scripts. Raises `ValueError` for nodes without one. `nodes`: the tools of each."""
        asking = sorted(node for node, tools in nodes.items() if MODEL in tools)
        functions = sorted(self._functions.nodes)  # which know only when they run what they ask
        if isinstance(models, Mapping):
            for node in models:
                if node not in asking and not (functions and is_label(node)):
                    known = nearest(node, asking) or f"there are: {', '.join(asking) or 'none'}"
                    raise ValueError(
                        f"models: there is no node `{node}` that asks a model; {known}"
                        "\nthe keys are nodes; an answer that is an object is written in a list: [{…}]"
                    )
        elif models is not None and not asking + functions:
            raise ValueError("models: no node of the workflow or its children asks a model")
        elif isinstance(models, (list, tuple)) and len(asking + functions) > 1:
            names = ", ".join(f'"{node}": […]' for node in asking + functions)
            raise ValueError(f"models: several nodes ask a model; write a list for each: {{{names}}}")
        else:
            models = {} if models is None else dict.fromkeys(asking + functions, models)
        missing = [node for node in asking if node not in models]
        if missing and not functions:  # a function asks few of those that its application has
            raise ValueError(
                f"`{missing[0]}` asks a model, and a test reaches none; "
                f'write run(…, models={{"{missing[0]}": …}}): {_HOW}'
            )
        self._names = {node: _names(nodes.get(node, ())) for node in models}
        scripts = {node: said for node, said in models.items() if said != REAL}
        self._scripts = {node: _script(node, said, self._names[node]) for node, said in scripts.items()}
        if len(scripts) < len(models):
            self._real = real_models()

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Answer as the port specifies."""
        # A request's key is made of its saga, its slot and the attempt.
        slot = request.key.split("/")[2]
        node = self._functions.named(self._scripts, slot) or Slot.parse(slot).node
        if node in self._names and node not in self._scripts:
            return await self._ask(request)
        try:
            if node not in self._scripts:
                name = own_name(Slot.parse(slot).item) if node in self._functions.nodes else node
                raise ValueError(f'`{name}` asks a model; write run(…, models={{"{name}": …}}): {_HOW}')
            said = self._scripts[node](request)
            if inspect.isawaitable(said):
                loop = asyncio.get_running_loop()
                with loop.asking() if isinstance(loop, VirtualLoop) else nullcontext():
                    said = await said
            return _answer(node, said, request, self._names[node])
        except (StepFailure, asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # `pytest.fail` in a script is no `Exception`
            # It is about the test: `check` raises it once the worker is done.
            self._wrong = self._wrong or error
            raise StepFailure("bad_request", f"the script of the test: {error!r}", kind="permanent") from None

    async def _ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask the model itself. Virtual time passes as on the clock."""
        assert self._real is not None, "a node without a script has it"
        clock, loop = SystemClock(), asyncio.get_running_loop()
        with loop.asking() if isinstance(loop, VirtualLoop) else nullcontext():
            try:
                return await self._real.answer(replace(request, until=clock.now() + ANSWER_MS))
            finally:  # an idle connection would let time pass as on the clock afterwards
                await self._real.aclose()

    async def submit(self, request: ModelRequest) -> str:
        """Submit as the port specifies. The answer is available immediately."""
        self._handed[request.key] = request
        return request.key.replace("/", "_")

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        """Collect as the port specifies."""
        return await self.answer(
            next(one for key, one in self._handed.items() if key.replace("/", "_") == response)
        )

    async def cancel(self, model: str, response: str) -> None:
        """Cancel as the port specifies. No request is in progress."""

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        """Handle an announcement as the port specifies. There are no announcements."""
        return None

    def price(self, model: str) -> Price | None:
        """Return the price as the port specifies."""
        return (self._real.price(model) if self._real is not None else None) or PRICE

    def check(self) -> None:
        """Raise the errors of scripts, except failures of steps."""
        if self._wrong is not None:
            raise self._wrong


def real_models() -> DeployedModels:
    """Return the models of the environment: those of `BATON_MODEL_PROFILES`, or of `OPENAI_BASE_URL`.

    Raises `ValueError` without a credential.
    """
    from baton.adapters.credentials import Credentials, VariableSecrets
    from baton.adapters.models.deployed import DeployedModels
    from baton.adapters.models.profiles import Profiles

    text = variable("BATON_MODEL_PROFILES") or f"openai={variable('OPENAI_BASE_URL') or OPENAI}"
    profiles = Profiles(text, region=variable("AWS_REGION"))

    def name_of(profile: str) -> str:
        return "OPENAI_API_KEY" if profile == "openai" else f"BATON_MODEL_KEY_{profile.upper()}"

    def key_of(profile: str) -> str:
        return variable(f"BATON_MODEL_KEY_{profile.upper()}") or variable(name_of(profile))

    for profile in map(profiles.named, profiles.names()):
        if not key_of(profile.name) and not profile.needs_no_credential:
            raise ValueError(f'models="real" asks {profile.host}, and {name_of(profile.name)} is not set')
    clock = SystemClock()
    credentials = Credentials(VariableSecrets(key_of, name_of), clock, inline, "the model profile")
    return DeployedModels(profiles, credentials, clock, inline)


def _names(tools: Collection[str]) -> Mapping[str, str]:
    """Return the document's tool names by the names under which the tools are offered."""
    return {wire: tool for tool, wire in wire_names(sorted(set(tools) - {MODEL})).items()}


def _script(node: str, said: Any, names: Mapping[str, str]) -> Script:
    if isinstance(said, _EveryTool):
        known = sorted(names.values())
        for tool in said.arguments:
            if tool not in known:
                hint = nearest(tool, known) or f"there are: {', '.join(known) or 'none'}"
                raise ValueError(f"models: `{node}` may not call `{tool}`; {hint}")
        return partial(said, names=names)
    if said is every_tool_once:
        raise ValueError(f"models: write every_tool_once() for `{node}`, with brackets")
    if isinstance(said, ScriptedCall):
        raise ValueError(
            f"models: `{node}` would ask for this call in each turn; write a list: [call(…), the answer]"
        )
    if callable(said):
        script: Script = said
        if isinstance(said, type) or not _takes_one(said):
            raise ValueError(
                f"models: what is called for `{node}` is a function of one argument, the request"
            )
        return script
    if isinstance(said, (list, tuple)):
        return _InTurn(node, said)
    return lambda _: said


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _answer(node: str, said: Any, request: ModelRequest, names: Mapping[str, str]) -> ModelAnswer:
    """Return a script's answer. Raises its `StepFailure`, or `ValueError` for an invalid answer."""
    if isinstance(said, BaseException):
        raise said
    if isinstance(said, ModelAnswer):
        if said.usage.input or said.usage.output:
            return said
        written = len(said.text) + sum(len(one.name) + len(one.arguments) for one in said.calls)
        return replace(said, usage=_usage(request, written))
    if said is None:
        raise ValueError(f"the script of `{node}` gives None; write text, a value, call(…) or an exception")
    wanted = [said] if isinstance(said, ScriptedCall) else said
    if isinstance(wanted, (list, tuple)) and wanted and all(isinstance(one, ScriptedCall) for one in wanted):
        calls = tuple(
            ModelCall(
                id=f"c{index}",
                name=_name(node, one.tool, request, names),
                arguments=_json(node, one.arguments),
            )
            for index, one in enumerate(wanted)
        )
        written = sum(len(one.name) + len(one.arguments) for one in calls)
        return ModelAnswer(calls=calls, finish=CALLS, usage=_usage(request, written), model=request.model)
    text = said if isinstance(said, str) else _json(node, said)
    return ModelAnswer(text=text, usage=_usage(request, len(text)), model=request.model)


def _usage(request: ModelRequest, written: int) -> Usage:
    offers = [[one.name, one.description, one.parameters] for one in request.tools]
    return Usage(
        input=-(-request_bytes(request.messages, [offers, request.schema]) // _BYTES),
        output=-(-written // _BYTES),
    )


def _json(node: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the script of `{node}`: {error}") from error


def _name(node: str, tool: str, request: ModelRequest, names: Mapping[str, str]) -> str:
    """Return the name under which a tool is offered. Raises `ValueError` for a misspelt one."""
    offered = [offer.name for offer in request.tools]
    name = tool if tool in offered else wire_names([tool])[tool]
    if name not in offered or (name != tool and f"{name}_2" in offered):
        known = [names.get(one, one) for one in offered]
        hint = nearest(tool, known) or f"there are: {', '.join(known) or 'none'}"
        raise ValueError(
            with_hint(f"the script of `{node}` calls `{tool}`, which is not offered", hint)
            + "; for an answer that is wrong on purpose, give a ModelAnswer"
        )
    return name


def _last(request: ModelRequest) -> str:
    said = str(request.messages[-1].get("content"))
    return said if len(said) <= 200 else said[:199] + "…"
