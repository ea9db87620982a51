"""Syntax of a kind of node: `NodeDocument`, and `Compiler`, the interface of the compiler for a kind.

Each kind has a file and is listed in registry.py. The behaviour of a node that is ready is in core/nodes/.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from baton.core.documents.parts.node import MOST_ITEMS
from baton.core.effects.risk import Rules
from baton.core.effects.toolspec import ToolSpec
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.fields import Model
    from baton.core.documents.parts.node import NodeModel, ReplanModel
    from baton.core.limits import Limits

# What a node of any kind may have.
COMMON = ("after", "when", "branch", "loop", "join", "catch", "output_schema", "limits", "description")
AT_AN_END = ("after", "when", "join", "description")
# Fields only of nodes whose work can be done again.
FAILING = ("retry", "on_failure", "failover", "breaker")
# Fields only of nodes that call a tool.
APPROVAL, REPLAN = "requires_approval", "replan"
# A field of nodes that can be done for each item of a list.
MAP = "map"
# A field only of nodes that do what can be undone.
COMPENSATE = "compensate"
# A field only of nodes that call a tool: it is asked again.
POLL = "poll"


class Words(NamedTuple):
    """Words of other tools for the keys of one object, and messages about words without a key."""

    keys: Mapping[str, str]
    said: Mapping[str, str] = {}

    def key(self, word: str) -> str:
        """Return the key that a word stands for, or an empty string."""
        return _of(word, ((key, words) for key, words in self.keys.items()))

    def advice(self, word: str) -> str:
        """Return the message about a word without a key, or an empty string."""
        return _of(word, ((advice, words) for words, advice in self.said.items()))


def _of(word: str, found: Iterable[tuple[str, str]]) -> str:
    plain = word.replace("_", "")
    return next((result for result, words in found if plain in words.replace("_", "").split()), "")


class KnownInterfaces(Protocol):
    """Interfaces outside the document: the tools, and by reference the schema of each child's input."""

    @property
    def tools(self) -> Mapping[str, ToolSpec]: ...
    @property
    def children(self) -> Mapping[str, Any]: ...


class Compiler(KnownInterfaces, Protocol):
    """Interface of the compiler for a kind while a document is checked and built."""

    @property
    def workflow(self) -> str:
        """The name of the workflow that is compiled."""
        ...

    @property
    def graph(self) -> str:
        """The name of the graph of the document that is compiled; empty for the document itself."""
        ...

    def no_such_graph(self, place: str, graph: str) -> Iterator[Problem]:
        """Yield the problem of a name that no graph of the document has."""
        ...

    def takers(self, signal: str) -> Iterator[tuple[str, NodeModel]]:
        """Yield the nodes that take signals of this name."""
        ...

    def seen(self, name: str) -> Mapping[str, Any]:
        """Return a template of the values that the graph of a node
        takes from its document besides its input; empty for none.
        """
        ...

    @property
    def limits(self) -> Limits:
        """The limits of the deployment, for what a document leaves open."""
        ...

    @property
    def risk_rules(self) -> Rules:
        """Rules that give a call its level of risk: those of the document, or the defaults."""
        ...

    @property
    def replan(self) -> ReplanModel | None:
        """The document's settings for every task that a model may put something in place of; else None."""
        ...

    def exists(self, place: str, tool: str) -> Iterator[Problem]:
        """Yield a problem for a tool that does not exist, or that `guardrails` do not allow."""
        ...

    def allows(self, place: str, tools: Sequence[str]) -> Iterator[Problem]:
        """Yield the problems of a list of patterns of tools, all of which the node may call."""
        ...

    @property
    def undoes(self) -> bool:
        """True if anything of this workflow is undone."""
        ...

    def answer_schema(self, name: str) -> Any:
        """Return the schema of a node's output, or None."""
        ...

    def schema(self, place: str, schema: Any) -> Iterator[Problem]:
        """Yield the problems of a value that is no JSON Schema."""
        ...

    def fits(self, place: str, given: Mapping[str, Any], spec: ToolSpec) -> Iterator[Problem]:
        """Yield the problems of the arguments at a place, checked against the schema of a tool."""
        ...

    def takes(self, name: str, spec: ToolSpec) -> Iterator[Problem]:
        """Yield the problems of a node's `with`, held against the schema of the tool or child."""
        ...

    def fails_with(self, place: str, code: str) -> Iterator[Problem]:
        """Yield a problem for a code that no failure should have: the name of a class,
        or nearly a known code.
        """
        ...

    def matching(self, patterns: Sequence[str]) -> list[ToolSpec]:
        """Return the tools that may run and that the patterns name, in the order of their names."""
        ...

    def among(self, spec: ToolSpec, patterns: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the arguments of a search for tools that neither author nor model chooses.

        They limit the search to the tools of the patterns that may run.
        """
        ...

    def remedies(self, spec: ToolSpec) -> dict[str, Any]:
        """Return the fields of the graph's node about a tool, for any node that calls it.

        They are alternatives, and what goes before the tool.
        """
        ...

    def attempts(self, name: str, spec: ToolSpec) -> dict[str, Any]:
        """Return the fields of the graph's node about failed attempts at a tool."""
        ...

    def stand_ins(self, name: str) -> Collection[str]:
        """Return the tools that rules and policies may call in place of a node's own."""
        ...


class NodeDocument:
    """One kind of node, as documents write it. A kind overrides what differs from these defaults."""

    # ---- words and schema

    kind: ClassVar[str]
    """Its name in graphs and logs."""
    key: ClassVar[str]
    """The field of a document's node that makes it one."""
    title: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[Mapping[str, Any]]
    """Such a node as it stands in a document."""
    version: ClassVar[str] = "1"
    """Changes when a document means something else than before."""
    icon: ClassVar[str] = "●"
    outline: ClassVar[tuple[str, str]] = ('["', '"]')
    """Opening and closing brackets of its box in Mermaid."""
    runs: ClassVar[bool] = True
    """True if this version can run it."""
    own: ClassVar[tuple[str, ...]] = ()
    """The fields besides `key` that not every kind has."""
    refusal: ClassVar[str] = ""
    """The message about any other field that a node can have."""
    is_idle: ClassVar[bool] = False
    """True if no invocation runs while it is open."""
    takes_signals: ClassVar[bool] = False
    most_items: ClassVar[int] = MOST_ITEMS
    """The longest list for whose items it can be done."""
    lifted: ClassVar[bool] = False
    """True if such a node with `map` becomes a graph of one node, which runs once for each item."""
    ends: ClassVar[bool] = False
    """True if the saga ends with it, so that nothing comes after it."""
    output: ClassVar[Mapping[str, Any]] = {}
    """The JSON Schema of every output of such a node."""

    field: ClassVar[tuple[Any, Any]]
    """The annotation and the description of `key`."""
    model: ClassVar[type[Model] | None] = None
    """The model of its value, where that is an object with keys of its own."""
    inside: ClassVar[Words | None] = None
    """Words of other tools for the keys of `model`."""
    deeper: ClassVar[Mapping[type[Model], Words]] = {}
    """The same for models in that one."""
    familiar: ClassVar[str] = ""
    """Words of other tools for `key`."""
    advice: ClassVar[Mapping[str, str]] = {}
    """Messages about words without a key, by word."""

    @property
    def input(self) -> dict[str, Any] | None:
        """The JSON Schema of every `with` of such a node; None for a kind that takes none."""
        return {"type": "object"} if "with" in self.own else None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it may have, besides `key`."""
        return (*self.own, *(AT_AN_END if self.ends else COMMON))

    @property
    def capabilities(self) -> dict[str, bool]:
        """The abilities of a node of this kind, for users who draw or choose one."""
        return {
            "input": "with" in self.own,
            "timeout": "timeout" in self.own,
            "retry": "retry" in self.own,
            "parked": self.is_idle,
            "signals": self.takes_signals,
        }

    def signal(self, node: NodeModel) -> str:
        """Return the signal that the node takes, if any."""
        return ""

    def refuses(self, names: Collection[str]) -> str:
        """Return the message about fields that the node may not have."""
        if MAP in names:
            return f"`{MAP}` goes with any node that does not end the saga; put this node after the one with `{MAP}`"
        if "callback" in names:
            return "`callback` goes with a `tool`: what is handed over is a tool's work"
        if "input" in names:
            return "`input` goes with a `workflow` or a `graph`; did you mean `with`?"
        if "cancel_on" in names:
            return "`cancel_on` goes with a `workflow` or a `graph`: a signal cancels a child saga"
        if COMPENSATE in names:
            return f"`{COMPENSATE}` goes with a `tool`, an `agent`, a `workflow` or a `graph`: nothing else does what can be undone"
        if REPLAN in names:
            return f"`{REPLAN}` goes with a `tool`; a model or an agent has `fallbacks`"
        if POLL in names:
            return f"`{POLL}` goes with a `tool`: it is the tool that is asked again; others go round with a `loop`"
        if APPROVAL in names:
            return f"`{APPROVAL}` goes with a `tool`; a question of its own is a node with `human`"
        name = "" if self.ends else next((name for name in FAILING if name in names), "")
        return (
            f"`{name}` goes with a `tool`: nothing else is tried again or done another way; "
            "`catch` says where it goes on from a failure"
            if name
            else self.refusal
        )

    def nearest_valid_form(self, value: Any) -> str:
        """Return a suggestion for a text or a list in place of the object under `key`; empty for none."""
        return ""

    # ---- meaning

    written: ClassVar[bool] = False
    """True if the output stands in the document, under `key`."""
    chooses: ClassVar[bool] = False
    """True if the node itself is asked for the next node: the `choose` of its branch leads nowhere else."""

    def tool(self, node: NodeModel) -> str:
        """Return the tool whose attempts can fail and be tried again; empty for kinds without attempts."""
        return ""

    def taker(self, known: KnownInterfaces, node: NodeModel) -> ToolSpec | None:
        """Return the tool or child that takes the node's `with`; None if its parameters are not known."""
        return None

    def gives(self, known: KnownInterfaces, node: NodeModel, declared: Any) -> Any:
        """Return the JSON Schema of the output; None when nothing is known.
        `declared`: the node's `output_schema`, or None.
        """
        return declared

    def answers(self, node: NodeModel) -> Any:
        """Return the JSON Schema that the kind itself asks of the output of a node that declares none;
        else None.
        """
        return None

    def starts(self, node: NodeModel) -> str:
        """Return the workflow that such a node starts as a saga of its own; else an empty text."""
        return ""

    def delegates(self, node: NodeModel) -> Iterator[tuple[str, str]]:
        """Yield (JSON Pointer below the node, workflow or graph) for each saga that its model may start."""
        yield from ()

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        """Yield (JSON Pointer below the node, value) for each value that may have expressions but `with`."""
        yield f"/{self.key}", self.of(node)

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """Yield the problems of a node of this kind whose shape is right."""
        yield from ()

    def never_fails_with(self, code: str) -> tuple[str, str] | None:
        """Return (message, suggestion) for a code under `catch` that no failure of such a node has."""
        return None

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        """Return the fields of the graph's node that this kind adds."""
        raise NotImplementedError

    def of(self, node: NodeModel) -> Any:
        """Return the value of the node under `key`."""
        return getattr(node, self.key)

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        """Return a node of the graph in a few words, as `GET /workflows/{name}` shows it.
        `span` writes a length of time.
        """
        return self.key
