"""Syntax of an agent: a model, its instructions, the tools that it may call, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import COMPENSATE, FAILING, MAP, Compiler, Words
from baton.core.documents.nodes.model import SAID, WORDS, AsksModel
from baton.core.documents.nodes.undone import only_none, undos
from baton.core.documents.parts.fields import (
    OPERATIONS_SAY,
    Given,
    NodeName,
    ToolPatterns,
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
from baton.core.effects.operations import OPERATIONS, Operations, keeps_list, list_problems
from baton.core.effects.toolspec import Approval
from baton.core.graph.graph import AgentParts, Node
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
    asks = Approval(by_tool=spec.requires_approval, risk=spec.risk) if spec.may_ask else None
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


MOST_TURNS, MOST_CALLS, MOST_CALLS_IN_A_TURN = 1_000, 10_000, 64
MOST_TOKENS = 1_000_000_000


class AgentModel(Asking):
    """Model, instructions and tools of an agent."""

    model: ModelName = Field(description="The model, as the deployment knows it: `NAME` or `PROFILE/NAME`.")
    tools: ToolPatterns = Field(
        default_factory=list, description="The tools that it may call; `*` stands for any text."
    )
    operations: OperationsField = Field(default_factory=dict, description=OPERATIONS_SAY)
    signal: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="Signals of this name are messages to the agent. It reads them with its next turn.",
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
            "turns": "max_turns iterations max_iterations steps max_steps",
            "calls": "max_calls max_tool_calls",
            "tokens": "max_total_tokens token_limit token_budget",
            "summarise": "summarize summary compact compaction",
            **WORDS,
        },
        said=SAID,
    )
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
        yield from compiler.allows(f"/nodes/{name}/agent/tools", agent.tools)
        yield from list_problems(f"/nodes/{name}/agent", compiler.matching(agent.tools), agent.operations)
        yield from only_none(
            f"/nodes/{name}/{COMPENSATE}", node.compensate, "each call is undone as its tool says"
        )

    def signal(self, node: NodeModel) -> str:
        return self.of(node).signal or ""

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        agent: AgentModel = self.of(node)
        specs = compiler.matching(agent.tools)
        step = step_of(
            agent, node.timeout, compiler.attempts(name, model_tool()), ways=shorter_turns(agent.summarise)
        )
        parts = AgentParts(
            turn=Node(
                name=name,
                kind=self.kind,
                arguments={"tools": [spec.name for spec in specs], **operations_argument(agent.operations)},
                breaker=node.breaker or "",
                **{key: value for key, value in step.items() if key != "failover"},
            ),
            calls=tuple(
                call_of(compiler, self.kind, name, spec, agent.tools, agent.operations) for spec in specs
            ),
            turns=agent.turns,
            calls_in_a_turn=agent.calls_in_a_turn,
            calls_in_all=agent.calls,
            tokens=agent.tokens or 0,
            repeatable=tuple(spec.name for spec in specs if spec.repeatable),
        )
        kept = {key: step[key] for key in ("failover", "cost")}
        return {
            "kind": self.kind,
            "arguments": model_arguments(agent.model, agent),
            "agent": parts,
            "signal": agent.signal or "",
            "stays": node.compensate is not None,
            **kept,
        }

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        tools = ", ".join(node.get("tools") or ()) or "no tools"
        return f"{node.get('model', '')} with {tools}, at most {node.get('turns')} turns"
