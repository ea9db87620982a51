"""A document whose shape is right, and what more than one check asks of it, each worked out once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from baton.core.conditions.document import read_condition
from baton.core.conditions.model import Condition
from baton.core.conditions.schema import check_schema
from baton.core.conditions.schemafaults import misspelt, schema_faults
from baton.core.conditions.schemaplan import InvalidSchema, SchemaError
from baton.core.documents.compile.available_outputs import AvailableOutputs
from baton.core.documents.compile.flow import Edges, Flow, Loops
from baton.core.documents.models import WorkflowModel, kind_of
from baton.core.documents.nodes.base import NodeDocument
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import nearest
from baton.core.failures.alternatives import hooks_of, ways_of
from baton.core.failures.failover import DAY_MIN, DAYS, Action, Match, Policy, Window, matches_patterns
from baton.core.failures.policy import ANY, ASK, FAIL, HINTS, HOOKS, PolicyChange, merge_changes
from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.graph.graph import graph_name
from baton.core.limits import USUAL, Limits
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.models import NodeModel
    from baton.core.documents.parts.failing import (
        MatchModel,
        PolicyModel,
        ReactionModel,
        RetryModel,
        WindowModel,
    )
    from baton.core.failures.alternatives import Alternative


def policy_rules(
    retry: RetryModel | None, on_failure: Mapping[str, ReactionModel]
) -> dict[str, PolicyChange]:
    """Return the rules of a node or a document.
    Its `retry` holds for any failure, unless `on_failure` says otherwise.
    """
    rules = {code: _change_of(code, reaction) for code, reaction in on_failure.items()}
    if retry is not None:
        general = PolicyChange(retry=retry.change())
        rules[ANY] = merge_changes(general, rules[ANY]) if ANY in rules else general
    return rules


def ladder_of_word(word: str) -> tuple[str, ...]:
    """Return the strategies that one word stands for: its own, and those after it."""
    if STRATEGIES[word].parks:
        # The operator who decides about the incident can still let the saga take its effects back.
        return (word, *(name for name, strategy in STRATEGIES.items() if strategy.reverts))
    names = (*STRATEGIES,)
    return names[names.index(word) :]


def _change_of(code: str, model: ReactionModel) -> PolicyChange:
    said: str | Sequence[str] | None = model.ladder
    last = None
    if isinstance(said, str):
        # To revert is a word for all failures. A rule that names one says what is done about it, and nothing before that.
        is_last = said in (ASK, FAIL) or (code == ANY and STRATEGIES[said].reverts)
        last, said = (said, None) if is_last else (None, ladder_of_word(said))
    return PolicyChange(
        kind=model.class_,
        ladder=_tuple(said),
        last=last,
        retry=None if model.retry is None else model.retry.change(),
        at_most=model.at_most or None,
        hints=_tuple(model.hints),
        before_retry=_tuple(model.before_retry),
        message=model.message,
        question=model.question,
        severity=model.severity,
        may_change=_tuple(model.may_change),
        expires_ms=model.expires,
        escalate=None if model.escalate is None else tuple(step.said() for step in model.escalate),
    )


def policies_of(
    models: Sequence[PolicyModel], read: Callable[[int, Any], Condition | None]
) -> tuple[Policy, ...]:
    """Return the policies.
    `read` makes the condition at a place of the list, as it stands in the document, a condition.
    """
    return tuple(
        Policy(
            name=model.name,
            when=_match_of(model.when, None if model.when.if_ is None else read(index, model.when.if_)),
            then=Action(
                strategy=model.then.strategy,
                hint=model.then.hint or "",
                tool=model.then.tool or "",
                arguments=dict(model.then.with_),
            ),
            message=model.message,
            at_most=model.at_most,
        )
        for index, model in enumerate(models)
    )


def _match_of(model: MatchModel, condition: Condition | None) -> Match:
    attempt = model.attempt
    return Match(
        nodes=tuple(model.node),
        tools=tuple(model.tool),
        domains=tuple(model.domain),
        codes=tuple(model.code),
        kinds=tuple(model.class_),
        attempt=(1, 0) if attempt is None else (attempt.from_, attempt.to or 0),
        times=tuple(map(_window_of, model.time)),
        parameters={path: tuple(values) for path, values in model.parameters.items()},
        condition=condition,
    )


def _window_of(model: WindowModel) -> Window:
    sign = -1 if model.utc_offset.startswith("-") else 1
    return Window(
        begins=_minutes(model.from_),
        ends=_minutes(model.to),
        days=tuple(sorted({DAYS.index(day) for day in model.days})),
        offset=sign * _minutes(model.utc_offset[1:]),
    )


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return (int(hours) * 60 + int(minutes)) % DAY_MIN


def _tuple(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


# ---- names ---------------------------------------------------------------------------------------------------------


def strange_names(
    rules: Mapping[str, PolicyChange],
    tools: Collection[str],
    meant: Callable[[str, Iterable[str]], str] = nearest,
) -> Iterator[tuple[str, str, str]]:
    """Yield unknown hints and hooks: neither the engine's own nor a tool of the application.

    Of each the place below `on_failure`, what is wrong, and what may have
    been meant, which `nearest_valid_form` says.
    """
    for code, change in rules.items():
        for part, known in (("hints", HINTS), ("before_retry", HOOKS)):
            for index, name in enumerate(getattr(change, part) or ()):
                if name not in known and name not in tools:
                    what = "hint" if part == "hints" else "hook"
                    message = f"there is no {what} and no tool `{name}`"
                    yield f"/{code}/{part}/{index}", message, meant(name, [*known, *tools])


Tools = Mapping[str, ToolSpec]
Children = Mapping[str, Any]
"""By reference (`NAME`, `NAME@VERSION` or `NAME@TAG`): the schema of what a child
takes; None for one that takes anything.
"""
# Looking for the nearest of many names takes long, and authors repair a document from its beginning.
MAX_HINTS = 20


@dataclass(frozen=True)
class Within:
    """Context of a graph in its document; `graph` is its name, empty for the document itself.

    `inputs`: by the names of graphs, the schemas of what these take.
    `outer`: nodes of the document whose outputs it sees.
    `has_item`: it is started once for each item of a list.
    `seen`: by the node that starts a graph (empty for the failure handler),
    the template of what that sees from there.
    """

    graph: str = ""
    inputs: Children = field(default_factory=dict)
    outer: frozenset[str] = frozenset()
    has_item: bool = False
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of all graphs of the document."""
        return [graph_name(graph) for graph in self.inputs]


ALONE = Within()


class OutOfTime(Exception):
    """Error for a document that takes too long to compile. `place`: the part that was under way."""

    def __init__(self, place: str = "") -> None:
        super().__init__(place)
        self.place = place


@dataclass
class Source:
    """The model of a document.
    Not `is_whole`: some nodes are only what is left of them, or stand in for others.

    `has_time` says whether the compiler may go on. `limits`: those of the deployment.
    """

    model: WorkflowModel
    tools: Tools
    is_whole: bool = True
    children: Children = field(default_factory=dict)
    hints_left: int = MAX_HINTS
    has_time: Callable[[], bool] = lambda: True
    tries_left: int = MAX_HINTS
    asked_for: dict[str, bool] = field(default_factory=dict)
    within: Within = ALONE
    limits: Limits = USUAL

    @property
    def nodes(self) -> dict[str, NodeModel]:
        return self.model.nodes

    @cached_property
    def kinds(self) -> dict[str, NodeDocument]:
        """Kind of each node."""
        return {name: kind_of(node) for name, node in self.nodes.items()}

    def tool(self, name: str) -> str:
        """Return the tool whose attempts can fail at a node, or an empty string."""
        return self.kinds[name].tool(self.nodes[name])

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Return the nearest known name, for the first few problems."""
        self.hints_left -= 1
        return nearest(name, known) if self.hints_left >= 0 else ""

    def go_on(self, place: str = "") -> None:
        """Check the time at each node and each condition. Raises `OutOfTime`."""
        if not self.has_time():
            raise OutOfTime(place)

    @cached_property
    def edges(self) -> Edges:
        """The edges between the nodes."""
        return Edges(self.nodes)

    @cached_property
    def flow(self) -> Flow:
        """The nodes and edges without circles."""
        return Flow(self.nodes, self.edges)

    @cached_property
    def loops(self) -> Loops:
        """The loops around each node."""
        return Loops(self.nodes, self.edges, self.flow)

    @cached_property
    def produced(self) -> AvailableOutputs | None:
        """Outputs that each node can count on.

        None if some nodes are missing or changed, or the edges or loops have problems.
        """
        if not self.is_whole or self.edges.problems or self.edges.circle or self.loops.problems:
            return None
        return AvailableOutputs(self.flow, self.go_on)

    @cached_property
    def read(self) -> dict[str, ReadCondition]:
        """All conditions that can be read, by their places."""
        found = {}
        for place, value, of, names in (*_conditions(self.nodes), *self._conditions_of_policies()):
            self.go_on(place)
            condition, problems = read_condition(value, place, self.model.schemas, of=of)
            found[place] = ReadCondition(condition, tuple(problems), of, names)
        return found

    @cached_property
    def asked(self) -> list[Any]:
        """All conditions as written."""
        return [value for _, value, _, _ in (*_conditions(self.nodes), *self._conditions_of_policies())]

    def condition(self, place: str) -> Condition | None:
        """Return the condition at this place, if it can be read."""
        return self.read[place].condition

    # ---- failures ----------------------------------------------------------------------------------------------

    @cached_property
    def allowed(self) -> Tools:
        """The tools that may run."""
        rails = self.model.guardrails
        if rails is None or rails.allowed_tools is None:
            return self.tools
        return {name: spec for name, spec in self.tools.items() if may_run(name, rails.allowed_tools)}

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The nodes whose attempts at a tool can fail."""
        return tuple(name for name in self.nodes if self.tool(name))

    @cached_property
    def failures(self) -> dict[str, PolicyChange]:
        """The rules of the document."""
        return policy_rules(self.model.retry, self.model.on_failure)

    @cached_property
    def known_names(self) -> frozenset[str]:
        """Tools, and what these carry out under names that only they and documents know."""
        said = (name for spec in self.tools.values() for name in (*spec.carries_out, *spec.hints))
        return frozenset((*self.tools, *said))

    @cached_property
    def hinted(self) -> dict[str, PolicyChange]:
        """Hints that policies name for each node."""
        found: dict[str, PolicyChange] = {}
        for _, policy, names in self.policies:
            if (hint := policy.then.hint) is not None:
                for name in names:
                    found[name] = PolicyChange(hints=(*(found.get(name, PolicyChange()).hints or ()), hint))
        return found

    @cached_property
    def policies(self) -> list[PlacedPolicy]:
        """The failover policies of nodes and of the document."""
        found = []
        for name, node in self.nodes.items():
            for index, policy in enumerate(node.failover):
                found.append(PlacedPolicy(f"/nodes/{name}/failover/{index}", policy, (name,)))
        for index, policy in enumerate(self.model.failover):
            self.go_on(f"/failover/{index}")
            when = policy.when
            fitting = (name for name in self.tasks if matches_patterns(name, when.node))
            names = tuple(name for name in fitting if matches_patterns(self.tool(name), when.tool))
            found.append(PlacedPolicy(f"/failover/{index}", policy, names))
        return found

    def _conditions_of_policies(self) -> Iterable[tuple[str, Any, str, tuple[str, ...]]]:
        for place, policy, names in self.policies:
            if policy.when.if_ is not None:
                yield f"{place}/when/if", policy.when.if_, "last_error", names

    def alternatives(self, tool: str) -> tuple[Alternative, ...]:
        """Return alternatives for the work of a tool, by tools that may run."""
        if tool not in self._ways:
            self._ways[tool] = ways_of(tool, self.allowed)
        return self._ways[tool]

    def hooks(self, tool: str) -> dict[str, str]:
        """Return, by hook, the tool that carries it out for this one."""
        if tool not in self._hooks:
            self._hooks[tool] = hooks_of(tool, self.allowed)
        return self._hooks[tool]

    @cached_property
    def _ways(self) -> dict[str, tuple[Alternative, ...]]:
        return {}

    @cached_property
    def _hooks(self) -> dict[str, dict[str, str]]:
        return {}


class ReadCondition(NamedTuple):
    """A condition, if it can be read, with its faults, its default subject,
    and the nodes at which it is asked.
    """

    condition: Condition | None
    problems: tuple[Problem, ...]
    of: str
    nodes: tuple[str, ...]


class PlacedPolicy(NamedTuple):
    """A failover policy, its place in the document, and the nodes that it is for."""

    place: str
    policy: PolicyModel
    nodes: tuple[str, ...]


def may_run(tool: str, patterns: Iterable[str] | None) -> bool:
    """Return true if the tool may run; `*` in a pattern stands for any text."""
    return patterns is None or any(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), tool) for pattern in patterns
    )


def _conditions(nodes: Mapping[str, NodeModel]) -> Iterable[tuple[str, Any, str, tuple[str, ...]]]:
    """Yield (JSON Pointer, condition, default subject of the condition, nodes where it is asked)."""
    for name, node in nodes.items():
        if node.when is not None:
            yield f"/nodes/{name}/when", node.when, "input", (name,)
        if node.branch is not None:
            for index, rule in enumerate(node.branch.rules):
                yield f"/nodes/{name}/branch/rules/{index}/if", rule.if_, "output", (name,)
        if node.loop is not None:
            yield f"/nodes/{name}/loop/while", node.loop.while_, "output", (name,)
        for index, caught in enumerate(node.catch):
            if caught.if_ is not None:
                yield f"/nodes/{name}/catch/{index}/if", caught.if_, "last_error", (name,)


def check_schemas(source: Source) -> Iterator[Problem]:
    """Yield a problem for each invalid schema, and for each unknown name of one."""
    model = source.model
    if model.input is not None:
        yield from schema_problems("/input", model.input)
    for name, schema in model.schemas.items():
        yield from schema_problems(f"/schemas/{name}", schema)
    for name, node in source.nodes.items():
        place = f"/nodes/{name}/output_schema"
        if isinstance(node.output_schema, str):
            if node.output_schema not in model.schemas:
                message = f"there is no schema `{node.output_schema}` under `schemas`"
                yield Problem(place, message, source.hint(node.output_schema, model.schemas))
        elif node.output_schema is not None:
            yield from schema_problems(place, node.output_schema)


def output_schema(source: Source, name: str) -> Any:
    """Return the schema that a node's output has to match; None when it declares none."""
    node = source.nodes[name]
    schema = node.output_schema
    if schema is None:
        return source.kinds[name].answers(node)
    return source.model.schemas.get(schema) if isinstance(schema, str) else schema


def schema_problems(place: str, schema: Any) -> Iterator[Problem]:
    """Yield the problems of a JSON Schema at a place."""
    try:
        check_schema(schema)
    except SchemaError as error:
        told = list(schema_faults(schema)) if isinstance(error, InvalidSchema) else []
        found = told or [Problem("", f"not a JSON Schema: {error}")]
    else:
        found = []
    yield from (replace(one, path=place + one.path) for one in (*found, *misspelt(schema)))
