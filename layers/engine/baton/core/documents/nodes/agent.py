"""Syntax of an agent: a model, its instructions, the tools that it may call, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec.structs import replace
from pydantic import Field, StrictBool

from baton.core.documents.nodes.base import APPROVAL, COMPENSATE, FAILING, MAP, Compiler, Words
from baton.core.documents.nodes.delegates import WORDS as CALL_WORDS
from baton.core.documents.nodes.delegates import (
    CallModel,
    Calls,
    delegate_nodes,
    delegate_offers,
    delegate_problems,
    handing_over,
    patterns_of,
    tool_problems,
)
from baton.core.documents.nodes.model import SAID, WORDS, AsksModel
from baton.core.documents.nodes.undone import only_none, undos
from baton.core.documents.parts.fields import (
    OPERATIONS_SAY,
    Duration,
    Given,
    Model,
    NodeName,
    NodePaths,
    between,
)
from baton.core.documents.parts.fields import Operations as OperationsField
from baton.core.documents.parts.node import (
    Asking,
    ModelName,
    SummaryModel,
    model_arguments,
    shorter_turns,
    step_of,
)
from baton.core.documents.parts.people import ApprovalModel, CallRiskModel, Text, escalation_problems
from baton.core.effects.operations import (
    API,
    APIS,
    CALLS,
    END_CONVERSATION,
    OFFERS,
    OPERATION,
    OPERATIONS,
    RESULT,
    WORKFLOWS,
    Operations,
    calls_operations,
    keeps_list,
    list_problems,
    operation_name,
    operation_offer,
    searches_calls,
)
from baton.core.effects.risk import ASKING, Rules, least
from baton.core.effects.toolspec import PATCH_WORKFLOW, Approval
from baton.core.expressions import escape, nearest
from baton.core.graph.graph import AgentParts, Node
from baton.core.graph.patches import PATHS, patch_offer, patch_tool, path_problems
from baton.core.limits import DAY_MS
from baton.core.log.questions import APPROVE, REJECT
from baton.core.log.scopes import ENDS
from baton.core.models.messages import SESSION
from baton.core.models.usage import model_tool
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel
    from baton.core.effects.toolspec import ToolSpec


def call_of(
    compiler: Compiler,
    kind: str,
    name: str,
    spec: ToolSpec,
    tools: Sequence[str],
    operations: Operations,
    **more: Any,
) -> Node:
    """Return the node of a call as if a node of the document made it.
    `arguments` are not the model's to say.
    """
    asks = approval_of(None, spec) if spec.may_ask else None
    said: dict[str, Any] = {
        "tool": spec.name,
        "arguments": (operations_argument(operations) if keeps_list(spec) else compiler.among(spec, tools))
        or None,
        "tool_version": spec.version,
        "schema_hash": spec.schema_hash,
        "effect": spec.effect,
        "verified": spec.is_verified,
        "timeout_ms": spec.timeout_ms,
        "domain": spec.domain,
        "cost": spec.cost,
        "approval": asks,
        **compiler.remedies(spec),
    }
    said["undo"] = undos(
        compiler, kind, name, spec, others=[way.tool for way in said["ways"] if way.tool and not way.first]
    )
    return Node(name=name, kind=kind, **{**said, **more})


def operations_argument(operations: Operations) -> dict[str, Any]:
    """Return the argument that says which operations may be called, where some are listed."""
    return {OPERATIONS: {api: list(ids) for api, ids in operations.items()}} if operations else {}


def approval_of(model: ApprovalModel | None, spec: ToolSpec) -> Approval:
    """Return the rule for a call of the tool; `model`: the words of the document."""
    asks = Approval(by_tool=spec.requires_approval, risk=spec.risk)
    if model is None:
        return asks
    says = model.said()
    if spec.approval is not None and "to" in model.model_fields_set:
        says.setdefault("to", {})  # the starter, in place of the audience of the tool
    return replace(asks, always=model.always, says=says or None, expires_ms=model.expires_ms)


def approval_problems(place: str, model: ApprovalModel, spec: ToolSpec, rules: Rules) -> Iterator[Problem]:
    """Yield the problems of a document that decides what only its tool or a person may decide."""
    if model.escalate is not None:
        why = _only_by_a_person(model, spec, rules)
        yield from escalation_problems(
            f"{place}/escalate",
            model.escalate,
            expires=model.expires,
            expiry="see `expires`, 24h by default",
            answers=(APPROVE, REJECT),
            refused={APPROVE: (why, f"write `decide: {REJECT}`, or `hand_on`")} if why else {},
        )
    if model.always:
        return
    if spec.requires_approval:
        yield Problem(
            place,
            f"`{spec.name}` requires an approval itself, before every call, and no document takes that away",
            "leave `always` out",
        )
    elif spec.risk is None:
        yield Problem(place, f"`{spec.name}` declares no risk, so that nothing is ever asked", "write `true`")
    elif model.model_fields_set == {"always"}:
        yield Problem(
            place,
            f"`{spec.name}` declares a risk, and asks before what is high or critical all the same",
            "leave it out; rules under `risk` of the document say what is risky",
        )


def _only_by_a_person(model: ApprovalModel, spec: ToolSpec, rules: Rules) -> str:
    """Return the reason that every call needs a person, whatever its arguments; empty if some do not."""
    if spec.requires_approval:
        said = f"`{spec.name}` requires an approval itself"
    elif spec.risk is None:
        said = f"`{spec.name}` declares none"
    elif (level := least(spec.risk, rules)) in ASKING:
        said = f"the risk of each call of `{spec.name}` is {level}"
    elif not model.always:
        said = "with `always: false`, a person is asked only about what is high or critical"
    else:
        return ""
    return f"`{APPROVE}` without a person needs a risk that can be low or medium; {said}"


def _asking(agent: AgentModel, specs: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    """Return the tools of an agent's calls, by the names of the calls."""
    known = {spec.name: spec for spec in specs if not calls_operations(spec)}
    for spec in specs:
        if calls_operations(spec):
            names = (operation_name(api, one) for api, ids in agent.operations.items() for one in ids)
            known |= {called: _risky(agent, called, spec) for called in names}
    return known | ({PATCH_WORKFLOW: patch_tool()} if agent.patch else {})


def _risky(agent: AgentModel, called: str, spec: ToolSpec) -> ToolSpec:
    """Return the tool of an operation with the operation's risk."""
    return replace(spec, risk=agent.risk[called].risk) if called in agent.risk else spec


def _risk_problems(place: str, agent: AgentModel, known: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    """Yield the problems of risks of what is no operation of the agent."""
    operations = [called for called, spec in known.items() if calls_operations(spec)]
    for called in agent.risk:
        if called not in operations:
            message = f"`{called}` is no operation of the agent"
            hint = "the tool declares its risk itself" if called in known else nearest(called, operations)
            yield Problem(f"{place}/{escape(called)}", message, hint or "list it under `operations`")


def _approvals_problems(
    compiler: Compiler, place: str, agent: AgentModel, known: Mapping[str, ToolSpec]
) -> Iterator[Problem]:
    """Yield the problems of approvals of no call of the agent, or looser than the tool says."""
    delegates = {one.name for one in agent.tools}
    for called, model in agent.requires_approval.items():
        at = f"{place}/{escape(called)}"
        if called in known:
            yield from approval_problems(at, model, known[called], compiler.risk_rules)
        elif called in delegates:
            message = f"`{called}` is no tool: what its own steps do is approved there"
            yield Problem(at, message, "write `requires_approval` at a node of it, or at its tools")
        else:
            names = ", ".join(f"`{one}`" for one in known) or "none"
            hint = nearest(called, known) or f"its calls are {names}"
            yield Problem(at, f"the agent has no call `{called}`", hint)


def _patching(name: str, agent: AgentModel) -> Iterator[Node]:
    """Yield the call by which the agent patches its saga, if it may."""
    if agent.patch:
        tool, asked = patch_tool(), agent.requires_approval.get(PATCH_WORKFLOW)
        yield Node(
            name=name,
            kind="agent",
            tool=tool.name,
            arguments={PATHS: agent.patch},
            effect=tool.effect,
            approval=None if asked is None else approval_of(asked, tool),
        )


MESSAGE = "message"
_END_SAYS = (
    "Ends the conversation, with its result. Call it alone, and only once nothing is left to talk about."
)


class ConversationModel(Model):
    """A conversation: `true`, or its settings."""

    short: ClassVar[str] = "enabled"

    enabled: StrictBool = Field(
        default=True, description="After an answer, the agent waits for the next message."
    )
    idle: Duration = Field(
        default=DAY_MS,
        description="Time for which it waits for a message; without it, 24 hours. Then its last answer is the output.",
        json_schema_extra={"default": "24h"},
    )


MOST_TURNS, MOST_CALLS, MOST_CALLS_IN_A_TURN = 1_000, 10_000, 64
MOST_TOKENS = 1_000_000_000


class AgentModel(Asking):
    """Model, instructions and tools of an agent."""

    model: ModelName = Field(description="The model, as the deployment knows it: `NAME` or `PROFILE/NAME`.")
    tools: Calls = Field(
        default_factory=list,
        description="The tools that it may call, and workflows, graphs, functions and questions to people.",
        examples=[["table.*", {"workflow": "delivery"}, {"ask": "manager", "to": {"group": "hosts"}}]],
    )
    operations: OperationsField = Field(default_factory=dict, description=OPERATIONS_SAY)
    requires_approval: Annotated[dict[str, ApprovalModel], Given] = Field(
        default_factory=dict,
        description=(
            "Calls that a person approves first, by the name of the tool, or `API:OPERATION`. "
            "What the tool itself says stays."
        ),
        examples=[{"table.hold": True, "shop:refund": {"to": {"group": "finance"}}}],
    )
    risk: Annotated[dict[str, CallRiskModel], Given] = Field(
        default_factory=dict,
        description="The risk of operations, by `API:OPERATION`: a level, or what they do. Tools declare their own.",
        examples=[
            {
                "shop:refund": "high",
                "shop:pay": {
                    "action": "payment",
                    "amount": "body.cents",
                    "currency_is": "USD",
                    "minor": True,
                },
            }
        ],
    )
    patch: Annotated[NodePaths, Given] = Field(
        default_factory=list,
        description=(
            "Paths below `/nodes` of this document that the agent may patch in its own saga, by the call "
            "`patch_workflow`; `*` stands for any text. Without it, an agent patches nothing."
        ),
        examples=[["/nodes/report", "/nodes/check_*"]],
    )
    signal: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="Signals of this name are messages to the agent. It reads them with its next turn.",
    )
    conversation: Annotated[ConversationModel | None, Given] = Field(
        default=None,
        description=(
            "An answer does not end the agent: it waits for the next message, the signal `message` if `signal` "
            "has no other name."
        ),
        examples=[True, {"idle": "3d"}],
    )
    turns: Annotated[int, between(1, MOST_TURNS)] = Field(default=20, description="Largest number of turns.")
    calls: Annotated[int, between(1, MOST_CALLS)] = Field(
        default=100, description="Largest number of tool calls."
    )
    calls_in_a_turn: Annotated[int, between(1, MOST_CALLS_IN_A_TURN)] = Field(
        default=16, description="Largest number of calls in one answer; further ones are refused."
    )
    tokens: Annotated[int, between(1, MOST_TOKENS)] | None = Field(
        default=None,
        description=(
            "Largest number of tokens of all requests and answers. A request that could exceed it is "
            "not made."
        ),
    )
    summarise: Annotated[SummaryModel | None, Given] = Field(
        default=None,
        description="Older messages that do not fit are summarised; without it they are left out.",
    )

    session: Annotated[Text | None, Given] = Field(
        default=None,
        description=(
            "Name of a session. The agent goes on with what earlier agents of it, and of the same user, were told "
            "and have answered."
        ),
        examples=["${input.thread}"],
    )

    @property
    def listens(self) -> str:
        """The name of the signals that are messages; empty for an agent that hears none."""
        return self.signal or (MESSAGE if self.idle_ms else "")

    @property
    def idle_ms(self) -> int:
        """The milliseconds for which a conversation waits for a message; 0: it is none."""
        talk = self.conversation
        return talk.idle if talk is not None and talk.enabled else 0


def _end_offer(schema: Any) -> dict[str, Any]:
    """Return the call by which an agent ends its conversation; `schema`: that of its output, or None."""
    result = {"type": "string", "description": "Result of the conversation."}
    parameters = {
        "type": "object",
        "properties": {RESULT: result if schema is None else schema},
        "required": [RESULT],
        "additionalProperties": False,
    }
    return {"description": _END_SAYS, "parameters": parameters}


class AskedAgent(AsksModel):
    kind = "agent"
    key = "agent"
    title = "Agent"
    description = (
        "Asks a model, makes the tool calls in its answer, and asks again until an answer has no "
        "call. That answer is the output. Each turn and each call is a recorded step. The model "
        "is told of a call that fails, is rejected or is not allowed."
    )
    icon = "✦"
    outline = ("[[", "]]")
    own = (MAP, "timeout", *FAILING, COMPENSATE)
    lifted = True
    refusal = "an agent takes no `with`: write what it is to do under `agent.prompt`"
    example: ClassVar[Mapping[str, Any]] = {
        "agent": {
            "model": "gpt-5-mini",
            "instructions": "You find tables. Book nothing.",
            "prompt": "A table for ${input.party} in ${input.city}.",
            "tools": ["table.search"],
        }
    }
    output: ClassVar[Mapping[str, Any]] = {
        "description": "The text of the last answer; with `output_schema`, that."
    }
    familiar = "llm_agent assistant bot"
    field = (Annotated[AgentModel | None, Given], Field(default=None))
    model = AgentModel
    inside = Words(
        keys={
            "model": "name llm",
            "tools": "functions allowed_tools",
            "operations": "endpoints apis allowed_operations operation_ids",
            "requires_approval": "needs_approval require_approval approvals confirm interrupt_before interrupt_on",
            "turns": "max_turns iterations max_iterations steps max_steps",
            "calls": "max_calls max_tool_calls",
            "tokens": "max_total_tokens token_limit token_budget",
            "summarise": "summarize summary compact compaction",
            "session": "thread thread_id session_id conversation_id memory",
            "conversation": "chat multi_turn interactive dialog dialogue",
            "patch": "patches may_patch patch_paths patchable",
            **WORDS,
        },
        said=SAID,
    )
    deeper: ClassVar[Mapping[type[Model], Words]] = {
        CallModel: CALL_WORDS,
        ConversationModel: Words(keys={"idle": "timeout idle_timeout ttl expires"}),
    }
    chooses = True
    takes_signals = True

    def nearest_valid_form(self, value: Any) -> str:
        return f"write `agent: {{model: {value}, prompt: …}}`" if isinstance(value, str) and value else ""

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """Yield the problems of the node.
        An agent chooses its tools itself: all that it may call have to be allowed.
        """
        yield from super().check(compiler, name, node)
        agent: AgentModel = self.of(node)
        place = f"/nodes/{name}/agent"
        yield from tool_problems(compiler, f"{place}/tools", agent.tools)
        specs = compiler.matching(patterns_of(agent.tools))
        yield from list_problems(place, specs, agent.operations)
        known = _asking(agent, specs)
        if agent.patch and compiler.graph:
            message = "the agent runs in a child saga, which has no document of its own to patch"
            yield Problem(f"{place}/patch", message, "let an agent of the document itself patch")
        yield from delegate_problems(compiler, f"{place}/tools", agent.tools, known)
        yield from _risk_problems(f"{place}/risk", agent, known)
        yield from path_problems(f"{place}/patch", agent.patch, name)
        if agent.idle_ms and END_CONVERSATION in {*known, *(one.name for one in agent.tools)}:
            message = f"the agent has a call `{END_CONVERSATION}`, by which it ends its conversation"
            yield Problem(f"{place}/conversation", message, "rename the other call")
        yield from _approvals_problems(compiler, f"{place}/{APPROVAL}", agent, known)
        yield from only_none(
            f"/nodes/{name}/{COMPENSATE}", node.compensate, "each call is undone as its tool says"
        )

    def delegates(self, node: NodeModel) -> Iterator[tuple[str, str]]:
        agent: AgentModel = self.of(node)
        for index, one in enumerate(agent.tools):
            if one.reference:
                yield f"/agent/tools/{index}", one.reference

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        yield from super().values(node)
        agent: AgentModel = self.of(node)
        if agent.session is not None:
            yield f"/agent/{SESSION}", agent.session
        for call, model in agent.requires_approval.items():
            for name, value in model.said().items():
                yield f"/agent/{APPROVAL}/{escape(call)}/{name}", value

    def signal(self, node: NodeModel) -> str:
        agent: AgentModel = self.of(node)
        return agent.listens

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        agent: AgentModel = self.of(node)
        patterns = patterns_of(agent.tools)
        specs = compiler.matching(patterns)
        tools = [spec for spec in specs if not calls_operations(spec)]
        step = step_of(
            agent, node.timeout, compiler.attempts(name, model_tool()), ways=shorter_turns(agent.summarise)
        )

        def call(spec: ToolSpec, called: str, **more: Any) -> Node:
            made = call_of(compiler, self.kind, name, spec, patterns, agent.operations, **more)
            if asked and searches_calls(spec):
                made = replace(made, arguments={**(made.arguments or {}), CALLS: asked})
            if (times := next(handing_over(agent.tools, spec.name), None)) is not None:
                made = replace(made, callback=times)
            approval = agent.requires_approval.get(called)
            return made if approval is None else replace(made, approval=approval_of(approval, spec))

        operations = {
            (called := operation_name(api, one)): (
                _risky(agent, called, spec),
                {API: api, OPERATION: one, OPERATIONS: {api: [one]}},
            )
            for spec in specs
            if calls_operations(spec)
            for api, ids in agent.operations.items()
            for one in ids
        }
        offers = {called: operation_offer(spec, given) for called, (spec, given) in operations.items()}
        asked: dict[str, Any] = {APIS: agent.operations} if offers else {}
        if offers := {**offers, **delegate_offers(compiler, agent.tools)}:
            asked[OFFERS] = offers
        if agent.patch:
            asked[OFFERS] = {**asked.get(OFFERS, {}), PATCH_WORKFLOW: patch_offer(agent.patch)}
        if agent.idle_ms:
            ends = {END_CONVERSATION: _end_offer(compiler.answer_schema(name))}
            asked |= {ENDS: True, OFFERS: {**asked.get(OFFERS, {}), **ends}}
        if workflows := {one.name: one.workflow for one in agent.tools if one.workflow}:
            asked[WORKFLOWS] = workflows
        delegates = delegate_nodes(compiler, name, agent.tools, stays=node.compensate is not None)
        parts = AgentParts(
            turn=Node(
                name=name,
                kind=self.kind,
                arguments={"tools": [spec.name for spec in tools], **asked},
                breaker=node.breaker or "",
                **{key: value for key, value in step.items() if key != "failover"},
            ),
            calls=(*(call(spec, spec.name) for spec in tools), *delegates, *_patching(name, agent)),
            turns=agent.turns,
            calls_in_a_turn=agent.calls_in_a_turn,
            calls_in_all=agent.calls,
            tokens=agent.tokens or 0,
            repeatable=tuple(spec.name for spec in tools if spec.repeatable),
            operations={
                called: call(spec, called, arguments=given) for called, (spec, given) in operations.items()
            },
            idle_ms=agent.idle_ms,
        )
        kept = {key: step[key] for key in ("failover", "cost")}
        return {
            "kind": self.kind,
            "arguments": model_arguments(agent.model, agent)
            | ({} if agent.session is None else {SESSION: agent.session}),
            "agent": parts,
            "signal": agent.listens,
            "stays": node.compensate is not None,
            **kept,
        }

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        tools = ", ".join(node.get("tools") or ()) or "no tools"
        return f"{node.get('model', '')} with {tools}, at most {node.get('turns')} turns"
