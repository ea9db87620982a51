"""What a request for a model looks like in the chat completions API. Pure; who sends it is openai_exchange.py."""

from __future__ import annotations

from typing import Any, Final

from baton.ports.models import ModelRequest

# Of JSON Schema, what providers enforce while they write (OpenAI's guide to structured outputs).
_ENFORCED: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title",
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
})  # fmt: skip


def body_of(request: ModelRequest, model: str) -> dict[str, Any]:
    """The body. What the requests of one conversation share comes first, so that their bytes begin alike."""
    body: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    if request.schema is not None:
        answer = {"name": "answer", "schema": request.schema, "strict": is_enforced(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": answer}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.most_output:
        body["max_completion_tokens"] = request.most_output
    body["messages"] = list(request.messages)
    return body


def is_enforced(schema: Any, depth: int = 0) -> bool:
    """Whether providers take this schema as a rule and not only as a hint: they refuse the others.

    An object at the top, in each object every property required and no other allowed, nothing beyond the words above.
    """
    if not isinstance(schema, dict) or not schema.keys() <= _ENFORCED or depth > 5:
        return False
    is_object = "properties" in schema or schema.get("type") == "object"
    if depth == 0 and schema.get("type") != "object":
        return False
    properties = schema.get("properties", {})
    if is_object and (
        schema.get("additionalProperties") is not False
        or not isinstance(properties, dict)
        or set(properties) != set(schema.get("required", ()))
    ):
        return False
    inner = [*properties.values(), *schema.get("anyOf", ())]
    if "items" in schema:
        inner.append(schema["items"])
    return all(is_enforced(one, depth + 1) for one in inner)
