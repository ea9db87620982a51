"""Syntax of one request to a model: a typed answer, without tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.conditions.schemafaults import is_plain
from baton.core.documents.nodes.base import FAILING, MAP, Compiler, KnownInterfaces, NodeDocument, Words
from baton.core.documents.parts.control import BranchModel
from baton.core.documents.parts.fields import Given, document_form
from baton.core.documents.parts.node import (
    Asking,
    ModelName,
    expression_texts,
    model_arguments,
    step_of,
)
from baton.core.failures.breakers import HOST, TOOL
from baton.core.models.usage import MODEL, model_tool
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel

_NEXT = "output.next"


def choice_of(branch: BranchModel | None) -> dict[str, Any] | None:
    """Return the JSON Schema of an answer that chooses the next node by `choose: output.next`; else None.

    It applies if the document has no schema.
    """
    if branch is None or (branch.choose or "").strip() != _NEXT:
        return None
    ways = {"type": "array", "items": {"enum": list(branch.among)}, "description": "Where to go on."}
    return {
        "type": "object",
        "properties": {
            "next": ways,
            "reasoning": {"type": "string", "description": "Why, in a sentence or two."},
        },
        "required": ["next", "reasoning"],
        "additionalProperties": False,
    }


def unlike_choice(name: str, branch: BranchModel | None, schema: Any) -> Iterator[Problem]:
    """Yield the problem of an `output_schema` whose `next` does not name the nodes of the branch's choice."""
    if choice_of(branch) is None or branch is None or not is_plain(schema):
        return
    place, among = f"/nodes/{name}/output_schema", list(branch.among)
    listed = f"[{', '.join(among)}]"
    hint = f"write `next: {{type: array, items: {{enum: {listed}}}}}` there, or leave `output_schema` out"
    properties = schema.get("properties")
    if not isinstance(properties, dict) or "next" not in properties:
        if "next" in (schema.get("required") or ()):
            return
        yield Problem(place, "the branch chooses by `output.next`, and this has no `next`", hint)
        return
    found = properties["next"]
    for way in (found, found.get("items")) if isinstance(found, dict) else ():
        if (
            isinstance(way, dict)
            and isinstance(named := way.get("enum"), list)
            and set(among) ^ {*map(str, named)}
        ):
            said = f"the branch chooses among {listed}, and `next` can be {document_form(named)}"
            yield Problem(f"{place}/properties/next", said, hint)


WORDS = {
    "fallbacks": "fallback fallback_models models",
    "instructions": "system system_prompt persona role",
    "prompt": "input question user message messages text",
    "max_output": "max_tokens max_output_tokens max_completion_tokens",
    "thinking": "reasoning reasoning_effort effort thinking_budget budget_tokens",
    "corrections": "max_corrections",
}
SAID = {"output format": "what the answer has to be is the node's `output_schema`"}
_OF_AGENTS = (
    "tools functions signal turns max_turns steps max_steps iterations max_iterations calls max_calls"
)


class ModelModel(Asking):
    """Model, and the request to it."""

    name: ModelName = Field(description="The model, as the deployment knows it: `NAME` or `PROFILE/NAME`.")


class AsksModel(NodeDocument):
    """Base class of the kinds whose steps ask a model."""

    def tool(self, node: NodeModel) -> str:
        return MODEL

    def gives(self, known: KnownInterfaces, node: NodeModel, declared: Any) -> Any:
        return {"type": "string"} if declared is None else declared

    def answers(self, node: NodeModel) -> Any:
        return choice_of(node.branch)

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        yield from expression_texts(self.key, self.of(node))

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        yield from unlike_choice(name, node.branch, node.output_schema)
        if node.breaker in (HOST, TOOL):
            message = (
                f"`{node.breaker}` is about a tool; a model has neither its own breaker nor an argument `url`"
            )
            yield Problem(
                f"/nodes/{name}/breaker", message, "write a name, such as that of the model's provider"
            )


class AskedModel(AsksModel):
    kind = "model"
    key = "model"
    title = "Model"
    description = "Asks a model once. The output is the text of the answer, or its JSON with `output_schema`."
    icon = "◆"
    outline = ("{{", "}}")
    own = (MAP, "timeout", *FAILING)
    refusal = "a model takes no `with`: write what it is asked under `model.prompt`"
    example: ClassVar[Mapping[str, Any]] = {
        "model": {"name": "gpt-5-mini", "prompt": "Which cuisine is this? ${input.text}"},
        "output_schema": {"type": "object", "required": ["cuisine"]},
    }
    output: ClassVar[Mapping[str, Any]] = {
        "description": "The text of the answer; with `output_schema`, that."
    }
    familiar = "llm completion chat generate ask_model prompt_model"
    field = (Annotated[ModelModel | None, Given], Field(default=None))
    model = ModelModel
    inside = Words(
        keys={"name": "model id", **WORDS},
        said={
            _OF_AGENTS: "a `model` is asked once; an `agent` has it: `agent: {model: …, tools: […]}`",
            **SAID,
        },
    )

    def nearest_valid_form(self, value: Any) -> str:
        return f"write `model: {{name: {value}, prompt: …}}`" if isinstance(value, str) and value else ""

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        asking: ModelModel = self.of(node)
        step = step_of(asking, node.timeout, compiler.attempts(name, model_tool()), context="prompt")
        own = {"kind": self.kind, "breaker": node.breaker or ""}
        return {**own, "arguments": model_arguments(asking.name, asking), **step}

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"asks {node.get('model', '')}"
