"""Performer of steps whose tool is a model: the request of a `model` node, a turn of an agent, or a plan.

The money and the reading of an answer are in model_request.py, the messages in transcript.py. Turns that are
due, and the handling of their calls, are decided in core/nodes/agent.py. Loaded with the first request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from baton.core.decide.decision import RunStep
from baton.core.effects.operations import (
    API,
    APIS,
    CALLS,
    DESCRIBE,
    END_CONVERSATION,
    NOT_LISTED,
    OFFERS,
    OPERATION,
    OPERATIONS,
    RESULT,
    WORKFLOWS,
    Operations,
    operation_name,
)
from baton.core.effects.toolspec import PATCH_WORKFLOW, ToolSpec
from baton.core.limits import SETTING
from baton.core.log.folding.received import breaker_of
from baton.core.log.records import Response, Segment
from baton.core.log.scopes import ENDS, PLAN, Agent, stand_in_answer
from baton.core.log.slots import owner_of
from baton.core.log.state import State
from baton.core.log.work import Callback
from baton.core.models import messages as said
from baton.core.models.usage import MODEL, SHARE, SUMMARISE
from baton.core.on_demand import OnDemand
from baton.errors import NotFound
from baton.ports import Performer, StepContext, StepFailure
from baton.ports.models import ModelAnswer, ModelCall, Models
from baton.runtime.invocation.attempt import Values, tool_called
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.invocation.live import LiveShow
from baton.runtime.models.model_request import (
    MOST_TOLD,
    NO_TOOLS,
    ModelAttempt,
    ModelMemory,
    Offered,
    Summary,
    answer_data,
    as_priced,
    calls_of,
    check_whole,
    has_strange_names,
)
from baton.runtime.models.transcript import Transcript, refused_calls, sought_tools
from baton.runtime.money.ledger import Ledger

if TYPE_CHECKING:
    from baton.runtime.models import aliases, replanner, sessions
    from baton.runtime.starting.catalog import Catalog
else:
    aliases = OnDemand("baton.runtime.models.aliases")
    replanner = OnDemand("baton.runtime.models.replanner")
    sessions = OnDemand("baton.runtime.models.sessions")

logger = logging.getLogger("baton.models")
MOST_CALLS = 64


class ModelCaller:
    """A performer that calls a model where a step's tool is that, and passes on everything else."""

    def __init__(
        self,
        performer: Performer,
        models: Models | None,
        context: InvocationContext,
        ledger: Ledger,
        values: Values,
        live: LiveShow,
        catalog: Callable[[], Catalog] | None,
        memory: ModelMemory,
        specs: Mapping[str, ToolSpec],
        state: State,
        step: RunStep,
    ) -> None:
        self._catalog, self._tenant = catalog, state.origin.tenant
        self._performer = performer
        self._models = models
        self._context = context
        self._ledger = ledger
        self._values = values
        self._live = live
        self._memory = memory
        self._specs = specs
        self._state = state
        self._step = step

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        agent = self._agent()
        if tool == PATCH_WORKFLOW:
            return await self._patched(arguments, context)
        if tool != MODEL:
            is_search = tool == self._step.node.tool
            if is_search and CALLS in arguments:
                arguments = {**arguments, CALLS: await self._described(arguments[CALLS], context)}
            result = await self._performer.perform(tool, arguments, context)
            is_answer = agent is not None and tool == tool_called(self._step) and not is_search
            return stand_in_answer(result) if is_answer else result
        if self._models is None:
            raise StepFailure("model_unavailable", "this deployment has no models", kind="permanent")
        if why := breaker_of(self._state, self._step.slot):
            raise StepFailure("too_many_corrections", f"{why}. The last: {self._last_mistake()}")
        asking = ModelAttempt(self._models, self._ledger, self._live, self._state, self._step, context)
        if agent is not None:
            return await self._turn(asking, agent, arguments, context)
        if self._step.place.item == PLAN:
            return await self._plan(asking, arguments)
        return await self._single(asking, arguments)

    async def _patched(self, arguments: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
        """Patch the saga for its agent. Raises `StepFailure`."""
        patch = self._context.patch
        if patch is None or self._step.way is not None or self._step.hooks:
            # What a person has approved are these arguments, and no others.
            raise StepFailure(NOT_LISTED, "only an agent patches its saga, as it says itself", happened=False)
        return await patch(arguments, context)

    async def collect(self, work: Callback, context: StepContext) -> Any:
        """Return the result of a request that was handed over. Raises `StepFailure`, `UnfinishedError`."""
        if self._models is None or work.response is None:
            raise StepFailure("model_unavailable", "this deployment has no models", kind="permanent")
        asking = ModelAttempt(self._models, self._ledger, self._live, self._state, self._step, context)
        changed = {**self._step.arguments, "model": work.response.model}
        if (agent := self._agent()) is not None:
            return await self._collected(asking, agent, changed, work, context)
        given = as_priced({**self._step.node.arguments, **changed}, self._step.node.arguments["model"])
        answer = await asking.collect(work, given, self._context.clock.now())
        return answer_data(answer, self._step.node.output_schema)

    def _agent(self) -> Agent | None:
        """Return the agent that the step is a turn or a call of."""
        work = self._state.open.get(self._step.place.owner)
        return work if isinstance(work, Agent) else None

    async def _single(self, asking: ModelAttempt, given: Mapping[str, Any]) -> Any:
        given = as_priced(given, self._step.node.arguments["model"])
        opening = await Transcript(self._context, self._values, self._state.origin).opening(given)
        answer = await asking.answer(given, self._corrected(opening))
        return answer if isinstance(answer, Response) else answer_data(answer, self._step.node.output_schema)

    async def _plan(self, asking: ModelAttempt, given: Mapping[str, Any]) -> dict[str, Any]:
        node = self._step.node
        given = as_priced(given, node.arguments["model"])
        answer = await asking.answer(given, self._corrected(replanner.asking(given, self._specs)))
        assert isinstance(answer, ModelAnswer), "a plan is not asked for in the background"
        return replanner.read_plan(answer, node.output_schema, given, self._specs)

    async def _turn(
        self, asking: ModelAttempt, work: Agent, changed: Mapping[str, Any], context: StepContext
    ) -> dict[str, Any] | Response:
        """Return the result of a turn, or the request that its provider works on."""
        origin, slot = self._state.origin, self._step.slot
        told = self._memory.told[origin.saga, owner_of(slot)]
        transcript = Transcript(self._context, self._values, origin, told)
        given, named = await transcript.given(work, changed), told.written["model"]
        given = as_priced(given, named)
        tools = await self._offered(context)
        talk, share = await transcript.read(work, tools.names), int(changed.get(SHARE, 0))
        if work.turn == 1 and (session := told.written.get(said.SESSION)) not in (None, ""):
            talk = await transcript.continued(talk, await self._earlier(session))
        note = ""
        if told.offered and told.offered != tools.hash:
            note = said.change_of_tools(refused_calls(talk.before, tools.tools))
            talk.heard.extend(said.tools_changed(note))
        summary = Summary(asking, self._context.clock, told.written, given["model"], changed.get(SUMMARISE))
        if share:
            talk = await transcript.cut(work, talk, share, summary.of)
        talk = await transcript.kept(work, talk)
        # It begins with what the turn before it has read, and that was counted, but for tools found since.
        counted = work.used.read if work.tail and not share and not tools.search else 0
        if tools.search:
            tools = tools.of(sought_tools(talk.before, tools.search))
        messages = self._corrected(talk.messages)
        answer = await asking.answer(given, messages, tools, counted, known=talk.known)
        segments = None if talk.segments is None else tuple(talk.segments)
        if isinstance(answer, Response):  # what the request begins with is part of what was handed over
            handed = replace(answer, segments=segments, summary=summary.tokens, no_summary=summary.failed)
            return replace(handed, offered=tools.hash, changed=note)
        turned = await self._turned(answer, tools, talk.made, segments, summary.tokens, summary.failed)
        return {**turned, **_told(tools.hash, note)}

    async def _earlier(self, session: Any) -> list[said.Message]:
        """Return what was said in the session before this agent. Raises `StepFailure`."""
        slot = owner_of(self._step.slot)
        return await sessions.earlier_messages(self._context, self._state.origin, slot, session)

    async def _collected(
        self,
        asking: ModelAttempt,
        work: Agent,
        changed: Mapping[str, Any],
        handed: Callback,
        context: StepContext,
    ) -> dict[str, Any]:
        """Return the result of a turn whose request was handed over.
        A poll that finds nothing reads no transcript.
        """
        response = handed.response
        assert response is not None, "the caller has looked"
        transcript = Transcript(self._context, self._values, self._state.origin)
        written = await transcript.content(work.given)
        given = as_priced({**written, **changed}, written["model"])
        answer = await asking.collect(handed, given, self._context.clock.now())
        segments = work.segments if response.segments is None else response.segments
        made = await transcript.made(segments) if answer.calls else {}
        tools = await self._offered(context) if answer.calls else NO_TOOLS
        turned = await self._turned(
            answer, tools, made, response.segments, response.summary, response.no_summary
        )
        return {**turned, **_told(response.offered, response.changed)}

    async def _offered(self, context: StepContext) -> Offered:
        """Return the tools of the turn. Raises `StepFailure`."""
        arguments = self._step.node.arguments
        if not (arguments.get(APIS) or arguments.get(WORKFLOWS)):
            return self._memory.offered(arguments)
        return self._memory.offered(arguments, await self._described(arguments, context))

    async def _described(self, arguments: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
        """Return the texts and parameters of calls that are no tools, by their names."""
        known, listed, workflows = self._memory.described, arguments.get(APIS), arguments.get(WORKFLOWS, {})
        described = {**arguments[OFFERS]}
        if listed:
            if (key := msgspec.json.encode(listed)) not in known:
                known[key] = await self._operations(listed, context)
            described |= known[key]
        for name, reference in workflows.items():
            if (key := reference.encode()) not in known:
                known[key] = await self._input(reference)
            described[name] = {**described[name], **known[key]}
        return described

    async def _operations(self, listed: Operations, context: StepContext) -> dict[str, Any]:
        """Return what the descriptions of APIs say of operations."""
        try:
            found = await self._performer.perform(DESCRIBE, {OPERATIONS: listed}, context)
        except StepFailure as failure:  # its calls say what is wrong, and the other tools go on
            logger.warning("operations are not described: %s", failure)
            return {}
        return {
            operation_name(one[API], one[OPERATION]): {
                "description": one["text"] or f"`{one[OPERATION]}` of the API `{one[API]}`.",
                "parameters": one["parameters"],
            }
            for one in found
        }

    async def _input(self, reference: str) -> dict[str, Any]:
        """Return the parameters of a workflow, as it is registered now; nothing if no object is."""
        assert self._catalog is not None, "a saga has the catalog of its workflow"
        catalog = self._catalog()
        try:
            definition = await catalog.find(self._tenant, reference)
        except NotFound as error:
            logger.warning("a workflow is not described: %s", error)
            return {}
        schema = (await catalog.graph(self._tenant, definition.graph)).input_schema
        return {"parameters": schema} if isinstance(schema, dict) and schema.get("type") == "object" else {}

    async def _turned(
        self,
        answer: ModelAnswer,
        tools: Offered,
        made: Mapping[str, str],
        segments: Sequence[Segment] | None,
        summary: tuple[int, ...],
        no_summary: str,
    ) -> dict[str, Any]:
        """Return an answer as the log has it. Raises `StepFailure`."""
        check_whole(answer)
        asked = answer.calls[:MOST_CALLS]
        calls = await self._calls(asked, tools, made)
        calls, ended = _ending(calls) if ENDS in self._step.node.arguments else (calls, {})
        return {
            "text": answer.text,
            "calls": calls,
            **({"left_out": len(answer.calls) - MOST_CALLS} if len(answer.calls) > MOST_CALLS else {}),
            "data": None if asked else answer_data(answer, self._step.node.output_schema),
            **ended,
            **({said.ECHO: answer.echo} if answer.echo else {}),
            "tokens": [answer.usage.input, answer.usage.output, *summary],
            **({"no_summary": no_summary} if no_summary else {}),
            **({} if segments is None else {"segments": [[one.ref, one.turns] for one in segments]}),
        }

    async def _calls(
        self, asked: Sequence[ModelCall], tools: Offered, made: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Return the calls of an answer as the log has them, those with an alias under the right names."""
        calls = calls_of(asked, tools, made)
        if not has_strange_names(calls):
            return calls
        context, origin = self._context, self._state.origin
        book = aliases.AliasBook(
            context.store.entities, context.call.within(aliases.WITHIN_MS), origin.tenant
        )
        approves = context.limits.alias_approval == SETTING
        names = aliases.NamesOfModels(book, origin.saga, context.clock.now(), approves=approves)
        corrected = await names.corrected(asked, tools.tools, self._step.slot)
        calls = calls_of([call for call, _ in corrected], tools, made)
        renamed = (names for _, names in corrected)
        return [
            {**one, "renamed": names} if names else one for one, names in zip(calls, renamed, strict=True)
        ]

    def _corrected(self, messages: list[said.Message]) -> list[said.Message]:
        """Return the messages with the last answer to the same messages, and its mistake."""
        why, refused = self._step.correction, self._step.refused
        return [*messages, *said.correction(why, msgspec.json.decode(refused or '""'))] if why else messages

    def _last_mistake(self) -> str:
        """Return the text for a person about the last answer that was refused."""
        agent = self._agent()
        if self._step.correction or agent is None:
            return self._step.correction
        # That of a turn before this one: all its calls have failed, and their failures are in the state.
        return "; ".join(one.v["error"]["message"] for one in agent.tail[-1].results[:MOST_TOLD])


def _ending(calls: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the calls that are made, and the end of a conversation, which is called for alone."""
    ends = [one for one in calls if one["tool"] == END_CONVERSATION and "error" not in one]
    if not ends:
        return calls, {}
    if len(calls) == 1:
        return [], {"data": ends[0]["arguments"][RESULT], ENDS: True}
    error = {"code": "input_invalid", "message": "call it alone, once the other calls have ended"}
    return [{**one, "error": error} if one in ends else one for one in calls], {}


def _told(offered: str, changed: str) -> dict[str, str]:
    """Return the part of a turn's answer about the tools that were offered."""
    return ({said.OFFERED: offered} if offered else {}) | ({said.CHANGED: changed} if changed else {})
