"""A tool that is declared again: what pydantic made of its hints is kept for as long as they are the same."""

from __future__ import annotations

import json
from inspect import Parameter, Signature
from typing import Any

import pytest

from baton.tools.define import Registry, Tool, tool


@pytest.mark.parametrize(
    "changed",
    [
        {"seats": (str, 2), "city": (str, "Kiel")},
        {"seats": (int, 3), "city": (str, "Kiel")},
        {"seats": (int, 2.0), "city": (str, "Kiel")},
        {"city": (str, "Kiel"), "seats": (int, 2)},
        {"seats": (int, 2)},
    ],
    ids=["a type", "a default", "a default that is equal", "the order", "one less"],
)
def test_a_tool_that_is_declared_again_otherwise_has_another_schema(changed: dict[str, Any]) -> None:
    def declared(parameters: dict[str, Any]) -> Tool:
        def hold() -> None: ...

        given = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for name, (hint, default) in parameters.items()
        ]
        vars(hold)["__signature__"] = Signature(given)
        hold.__annotations__ = {name: hint for name, (hint, _) in parameters.items()} | {"return": None}
        registry = Registry()
        tool("table.hold", registry=registry)(hold)
        return registry["table.hold"]

    first = {"seats": (int, 2), "city": (str, "Kiel")}
    before = declared(first)
    assert declared(first).parameters is before.parameters  # what pydantic made is kept
    schema = declared(changed).spec.parameters
    assert json.dumps(schema) != json.dumps(before.spec.parameters)
    assert [*schema["properties"]] == [*changed]
