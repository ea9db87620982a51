"""`Workflow`: a workflow document, built by calls.

Belongs here: one method per kind of node and the fields of a document, written as they were given and in their order.
Does not belong here: values and references inside fields (values.py, references.py), and any rule about what makes
sense: `compile` asks the compiler, with the text that would be registered.

A module of the application may be imported by a worker, so nothing here loads the compiler before it is asked to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baton.builder.references import Node, Origin, Reference, SagaFields
from baton.builder.values import After, Collector, Duration
from baton.core.expressions import escape
from baton.errors import InvalidDefinition, MalformedDocument, Problem

if TYPE_CHECKING:
    from baton.core.graph import Graph
    from baton.core.toolspec import ToolSpec
    from baton.tools.define import Registry


class Workflow:
    """A workflow document in the making.

    `input` is a pydantic model (or any type that pydantic describes) or a JSON Schema. Mistakes do not stop the
    building: `document`, `to_yaml` and `compile` raise `InvalidDefinition` with all of them.
    """

    def __init__(
        # An object, because for type checkers `int | None` and `Annotated[…]` are no types when they are values.
        self,
        name: str,
        *,
        description: str | None = None,
        input: object = None,
    ) -> None:
        self.name = name
        self._origin = Origin(name)
        self._made = Collector(self._origin)
        self._input = input
        self._head: dict[str, Any] = {"name": self._made.value("/name", name)}
        if description is not None:
            self._head["description"] = self._made.value("/description", description)
        self._nodes: dict[str, dict[str, Any]] = {}
        self._output: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<workflow {self.name} with {len(self._nodes)} nodes>"

    # ---- what values can refer to ----------------------------------------------------------------------------

    @property
    def input(self) -> Reference:
        """The saga's input."""
        return Reference(self._origin, "input")

    @property
    def saga(self) -> SagaFields:
        """The saga's own id, user, tenant and workflow."""
        return SagaFields(self._origin)

    # ---- nodes -----------------------------------------------------------------------------------------------

    def task(
        self,
        name: str,
        tool: str | Callable[..., Any],
        *,
        with_: Mapping[str, Any] | None = None,
        after: After | None = None,
        timeout: Duration | None = None,
        description: str | None = None,
    ) -> Node:
        """A node that runs a tool, given by its name or as the function that `@tool` declared."""
        place = f"{_place(name)}/tool"
        chosen = self._made.value(place, tool) if isinstance(tool, str) else self._name_of(place, tool)
        return self._add(
            name, {"tool": chosen}, with_=with_, after=after, timeout=timeout, description=description
        )

    def wait(
        self,
        name: str,
        for_: Duration | None = None,
        *,
        signal: str | None = None,
        timeout: Duration | None = None,
        after: After | None = None,
        description: str | None = None,
    ) -> Node:
        """A node that waits: `for_` a time, or until `signal` comes, at most `timeout`."""
        place = f"{_place(name)}/wait"
        wait: dict[str, Any] = {}
        if for_ is not None:
            wait["for"] = self._made.duration(f"{place}/for", for_)
        if signal is not None:
            wait["signal"] = self._made.value(f"{place}/signal", signal)
        if timeout is not None:
            wait["timeout"] = self._made.duration(f"{place}/timeout", timeout)
        return self._add(name, {"wait": wait}, after=after, description=description)

    def workflow(
        self,
        name: str,
        workflow: str | Workflow,
        *,
        with_: Mapping[str, Any] | None = None,
        after: After | None = None,
        description: str | None = None,
    ) -> Node:
        """A node that starts a saga of another workflow: `NAME`, `NAME@VERSION`, or one that was built."""
        called = workflow.name if isinstance(workflow, Workflow) else workflow
        reference = self._made.value(f"{_place(name)}/workflow", called)
        return self._add(name, {"workflow": reference}, with_=with_, after=after, description=description)

    def output(self, value: Any) -> None:
        """The saga's result."""
        if self._output:
            self._made.note("/output", "the output is set twice")
        self._output["output"] = self._made.value("/output", value)

    def _add(
        self,
        name: str,
        node: dict[str, Any],
        *,
        with_: Mapping[str, Any] | None = None,
        after: After | None = None,
        timeout: Duration | None = None,
        description: str | None = None,
    ) -> Node:
        place = _place(name)
        if with_ is not None:
            node["with"] = self._made.value(f"{place}/with", with_)
        if after is not None and (names := self._made.after(f"{place}/after", after)) is not None:
            node["after"] = names
        if timeout is not None:
            node["timeout"] = self._made.duration(f"{place}/timeout", timeout)
        if description is not None:
            node["description"] = self._made.value(f"{place}/description", description)
        if name in self._nodes:
            self._made.note(place, f"there are two nodes `{name}`", "give one of them another name")
        else:
            self._nodes[name] = node
        return Node(name, self._origin)

    def _name_of(self, path: str, function: Callable[..., Any]) -> str:
        from baton.tools import define

        names = sorted(name for name, tool in define.REGISTRY.items() if tool.function is function)
        called = str(getattr(function, "__name__", repr(function)))
        if not names:
            self._made.replace(
                path, f"`{called}` is not a tool", "declare it with @tool, or write the name of a tool"
            )
        elif len(names) > 1:
            self._made.replace(
                path, f"`{called}` is the function of several tools", f"write one: {', '.join(names)}"
            )
        # A text in any case, so that the rest of the node can be looked at.
        return names[0] if names else called

    # ---- the document ----------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The document as a JSON value, a new one each time. Raises `InvalidDefinition`."""
        made, value = self._build()
        _raise_if(made.problems)
        return value

    def to_yaml(self) -> str:
        """The document as the YAML that can be registered. Raises `InvalidDefinition`."""
        from baton.core.yamltext import write_yaml

        return write_yaml(self.document())

    def compile(self, tools: Mapping[str, ToolSpec] | Registry | None = None) -> Graph:
        """The graph, as a registration of `to_yaml()` makes it; by default against all tools that are imported.

        Raises `InvalidDefinition` with every problem of the building and of the document.
        """
        from baton.core.compile import compile_document, refusal_of
        from baton.core.yamltext import write_yaml
        from baton.tools import define

        tools = define.REGISTRY if tools is None else tools
        specs = tools.specs() if isinstance(tools, define.Registry) else tools
        made, value = self._build()
        try:
            graph = compile_document(write_yaml(value), specs)
        except (InvalidDefinition, MalformedDocument) as error:
            # Positions are those in a text that nobody has seen.
            found = (replace(problem, line=0, column=0) for problem in error.problems)
            new = [problem for problem in found if problem.path not in made.stand_ins]
            raise refusal_of([*made.problems, *new]) from error
        _raise_if(made.problems)
        return graph

    def _build(self) -> tuple[Collector, dict[str, Any]]:
        """The document as far as it could be made, with everything that is wrong so far."""
        made = Collector(self._origin)
        made.problems += self._made.problems
        made.stand_ins |= self._made.stand_ins
        value = dict(self._head)
        if self._input is not None:
            value["input"] = made.value("/input", self._schema(made))
        # Copied, so that whoever changes a document does not change the workflow.
        value |= deepcopy({"nodes": self._nodes, **self._output})
        return made, value

    def _schema(self, made: Collector) -> Any:
        if isinstance(self._input, Mapping):
            return self._input
        from pydantic import PydanticUserError, TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError

        try:
            return TypeAdapter(self._input).json_schema()
        except (PydanticUserError, PydanticSchemaGenerationError, NameError) as error:
            return made.replace("/input", f"no JSON Schema for {self._input!r}: {error}")


def _place(name: str) -> str:
    return f"/nodes/{escape(name)}"


def _raise_if(problems: list[Problem]) -> None:
    if problems:
        from baton.core.compile import refusal_of

        raise refusal_of(problems)
