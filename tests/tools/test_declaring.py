"""@tool makes a tool of a function: schemas from its hints, and a clear refusal of what cannot be one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field

import baton
from baton import Context, StepFailure, builder
from baton.core.conditions.schema import violations
from baton.core.effects.toolspec import ToolSpec
from baton.ports import StepContext
from baton.tools.define import REGISTRY, Registry, Tool, ToolError, tool
from baton.tools.perform import bind, plain_json
from baton.tools.standard import load_app
from tests.kit.sentences import Says


@pytest.fixture
def registry() -> Registry:
    return Registry()


class Table(BaseModel):
    id: str
    seats: int


@dataclass
class Hold:
    id: str
    until: datetime


def declared(registry: Registry, function: Callable[..., Any], name: str = "t", **more: Any) -> Tool:
    tool(name, registry=registry, **more)(function)
    return registry[name]


def where(function: Callable[..., Any]) -> str:
    return f" (`{function.__name__}`, tests/tools/test_declaring.py:{function.__code__.co_firstlineno})"


def refusal(function: Callable[..., Any], name: str = "t", **more: Any) -> str:
    """The error without the place of the function, which stands in every one."""
    with pytest.raises(ToolError) as caught:
        declared(Registry(), function, name, **more)
    text = str(caught.value)
    assert text.endswith(where(function))
    return text.removesuffix(where(function))


def good(city: str) -> str:
    """Find a table.

    In that city.
    """
    return city


# ---- what is made of a function ------------------------------------------------------------------------------


def test_the_function_stays_what_it_was(registry: Registry) -> None:
    assert tool("t", registry=registry)(good) is good
    assert good("Wien") == "Wien"


def test_a_tool_is_specified_by_its_function_and_its_decorator(registry: Registry) -> None:
    made = declared(registry, good, "table.search", version="3", effect="pure", timeout="90s")
    assert made.spec == ToolSpec(
        name="table.search",
        version="3",
        effect="pure",
        parameters={
            "title": "table.search parameters",
            "type": "object",
            "properties": {"city": {"title": "City", "type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        result={"type": "string"},
        sees_key=False,
        timeout_ms=90_000,
        description="Find a table.\n\nIn that city.",
    )
    assert (made.is_async, made.context) == (False, "")


def test_a_tool_is_idempotent_version_1_and_takes_half_a_minute_unless_it_says_otherwise(
    registry: Registry,
) -> None:
    spec = declared(registry, good).spec
    assert (spec.effect, spec.version, spec.timeout_ms) == ("idempotent", "1", 0)
    assert declared(registry, good, timeout=0.5).spec.timeout_ms == 500


def test_defaults_and_annotations_are_part_of_the_schema(registry: Registry) -> None:
    def search(
        city: Annotated[str, Field(min_length=2)],
        *,
        kind: Literal["bar", "cafe"] = "bar",
        at: datetime | None = None,
    ) -> None: ...

    spec = declared(registry, search).spec
    assert spec.parameters["required"] == ["city"]
    assert spec.parameters["properties"]["city"]["minLength"] == 2
    assert spec.parameters["properties"]["kind"] == {
        "default": "bar", "enum": ["bar", "cafe"], "title": "Kind", "type": "string",
    }  # fmt: skip
    assert spec.result == {"type": "null"}
    assert spec.description == ""


def test_models_and_dataclasses_are_schemas_too(registry: Registry) -> None:
    def hold(table: Table) -> list[Hold]:
        raise NotImplementedError

    spec = declared(registry, hold).spec
    assert spec.parameters["properties"]["table"] == {"$ref": "#/$defs/Table"}
    assert spec.parameters["$defs"]["Table"]["required"] == ["id", "seats"]
    assert spec.result["items"] == {"$ref": "#/$defs/Hold"}


def test_another_hint_is_another_schema_hash(registry: Registry) -> None:
    def one(n: int) -> int:
        return n

    def other(n: int) -> float:
        return n

    assert (
        declared(registry, one, "one").spec.schema_hash != declared(registry, other, "other").spec.schema_hash
    )


def test_a_coroutine_function_is_known_as_one(registry: Registry) -> None:
    async def slow() -> None: ...

    assert declared(registry, slow).is_async


# ---- the context ----------------------------------------------------------------------------------------------


def test_the_parameter_with_the_context_is_no_parameter_of_the_tool(registry: Registry) -> None:
    def search(city: str, context: Context) -> None: ...

    made = declared(registry, search)
    assert made.context == "context"
    assert list(made.spec.parameters["properties"]) == ["city"]


def test_the_names_that_an_author_needs_are_at_the_front_door() -> None:
    assert baton.Context is StepContext
    assert baton.tool is tool
    assert issubclass(StepFailure, Exception)
    builds = {name for name in builder.__all__ if name[0].islower()} | {"OUTPUT", "Workflow"}
    of_tools = {"Context", "Key", "Merits", "Risk", "StepFailure", "node_kind", "pipeline", "raises", "tool"}
    of_functions = {"Agent", "Callback", "Operation", "Update", "WorkflowContext", "workflow"}
    of_callers = {"Client", "ClientError", "SagaFailed"}
    assert set(baton.__all__) - {"__version__"} == of_tools | of_functions | of_callers | builds
    with pytest.raises(AttributeError, match="nonsense"):
        _ = baton.nonsense  # type: ignore[attr-defined]  # the mistake


def test_two_parameters_cannot_both_get_the_context(says: Says) -> None:
    def search(one: Context, other: Context) -> None: ...

    says(refusal(search))


# ---- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "Table", "table.", ".hold", "table hold", "table-hold", "1st", "table.Hold", "t\n"]
)
def test_a_name_is_lower_case_with_dots(name: str, says: Says) -> None:
    says(refusal(good, name))


def test_an_effect_is_one_of_those_that_there_are(says: Says) -> None:
    says(refusal(good, effect="idempotnt"))
    says(refusal(good, effect="zzz"))


def test_the_decorator_without_its_parentheses_is_told_with_what_to_write(says: Says) -> None:
    bare: Any = tool
    with pytest.raises(ToolError) as caught:
        bare(good)
    assert str(caught.value).endswith(where(good))
    says(str(caught.value))


def test_an_error_names_the_file_from_the_top_of_its_package_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    package = tmp_path / "a_package_with_a_mistake"
    package.mkdir()
    mistake = "from baton import tool\n\n@tool('t')\ndef f(x) -> None: ...\n"
    (package / "__init__.py").touch()
    (package / "some.py").write_text(mistake)
    monkeypatch.syspath_prepend(str(tmp_path))
    with says.raised(ToolError):
        load_app(package.name)
    (package / "__init__.py").write_text(mistake)
    sys.modules.pop(package.name)
    with says.raised(ToolError):
        load_app(package.name)


def test_what_is_no_function_is_refused_without_a_place(says: Says) -> None:
    with pytest.raises(ToolError) as caught:
        tool("t", registry=Registry())(partial(good, "Wien"))
    says.within(str(caught.value))


@pytest.mark.parametrize("timeout", ["soon", "0s", -1, True, float("inf"), float("nan")])
def test_a_timeout_is_a_duration(timeout: Any) -> None:
    assert refusal(good, timeout=timeout).startswith("tool `t`: timeout: ")


def test_every_parameter_has_a_hint(says: Says) -> None:
    def search(city) -> None:  # type: ignore[no-untyped-def]  # that is what is refused
        ...

    says(refusal(search))


def test_the_result_has_a_hint(says: Says) -> None:
    def search(city: str):  # type: ignore[no-untyped-def]  # that is what is refused
        ...

    says(refusal(search))


def _args(*cities: str) -> None: ...


def _kwargs(**cities: str) -> None: ...


def _positional(city: str, /) -> None: ...


@pytest.mark.parametrize("function", [_args, _kwargs, _positional])
def test_parameters_are_ordinary_named_ones(function: Callable[..., Any], says: Says) -> None:
    says(refusal(function))


@pytest.mark.parametrize("hint", ["Nowhere", "list[", "1 + 'a'"])
def test_a_hint_that_cannot_be_resolved_is_told(hint: str, says: Says) -> None:
    def search(city: Any) -> None: ...

    search.__annotations__["city"] = hint
    says.within(refusal(search))


@pytest.mark.parametrize("hint", [Callable, Iterator[int], Context | None, 5])
def test_a_hint_that_json_knows_nothing_of_is_told(hint: Any, says: Says) -> None:
    def search(city: Any) -> None: ...

    search.__annotations__["city"] = hint
    says.within(refusal(search))


def test_a_result_that_json_knows_nothing_of_is_told(says: Says) -> None:
    def search() -> Callable[[], int]:
        raise NotImplementedError

    says.within(refusal(search))


def _private(_city: str) -> None: ...


def _config(model_config: str) -> None: ...


@pytest.mark.parametrize("function", [_private, _config])
def test_a_name_that_would_get_lost_is_refused(function: Callable[..., Any], says: Says) -> None:
    says(refusal(function))


def test_a_parameter_may_have_a_name_that_pydantic_uses_itself(registry: Registry) -> None:
    def send(json: str, copy: bool, schema: int, model_name: str) -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = declared(registry, send)
    assert list(made.spec.parameters["properties"]) == ["json", "copy", "schema", "model_name"]


# ---- the registry --------------------------------------------------------------------------------------------------


def test_a_registry_is_a_mapping_of_names_to_tools(registry: Registry) -> None:
    declared(registry, good, "b")
    declared(registry, good, "a")
    assert (list(registry), len(registry), "a" in registry, registry.get("c")) == (["b", "a"], 2, True, None)
    assert registry.specs() == {"b": registry["b"].spec, "a": registry["a"].spec}


def test_one_name_is_one_function(registry: Registry, says: Says) -> None:
    def other(city: str) -> str:
        return city

    declared(registry, good)
    with pytest.raises(ToolError) as caught:
        declared(registry, other)
    says(str(caught.value))
    assert registry["t"].function is good


def test_a_module_that_is_imported_again_declares_its_tools_again(registry: Registry) -> None:
    first = declared(registry, good)
    assert declared(registry, good) is not first
    assert len(registry) == 1


# ---- the app ------------------------------------------------------------------------------------------------------


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that is there to be imported, as `layers/app` has one."""
    name = "an_app_of_this_test"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    tool("this_test.tool")(good)
    yield name
    REGISTRY._tools.pop("this_test.tool")


def test_importing_the_app_gives_the_tools_of_the_process(app: str) -> None:
    assert load_app(app) is REGISTRY
    assert "this_test.tool" in REGISTRY


def test_every_module_of_an_app_package_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "a_package_of_this_test"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "some.py").write_text(
        "from baton import tool\n@tool('this_test.some')\ndef some() -> None: ...\n"
    )
    (package / "_not.py").write_text("raise RuntimeError('private')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "this_test.some" in load_app(package.name)
    REGISTRY._tools.pop("this_test.some")


def test_an_app_that_is_not_there_is_told_with_what_to_set(says: Says) -> None:
    with pytest.raises(ToolError) as caught:
        load_app("no_such_app")
    says(str(caught.value))


@pytest.mark.parametrize(
    "raises",
    [
        {"KeyError": "not_listed"},
        {int: "not_listed"},
        {StepFailure: "not_listed"},
        {KeyError: ""},
        {KeyError: 3},
        {KeyError: ("not_listed", "permanant")},
        {KeyError: ("not_listed", "permanent", "x")},
    ],
)
def test_the_codes_of_errors_are_checked(raises: Any, says: Says) -> None:
    with says.raised(ToolError):

        @tool("t.find", raises=raises, registry=Registry())
        def find() -> None: ...

    with pytest.raises(ToolError, match=r"test_declaring.py:\d+"):
        baton.raises(raises, registry=Registry())


def test_decimals_stay_exact_in_both_directions_and_their_schema_is_one_that_the_engine_takes(
    registry: Registry,
) -> None:
    @tool("add", registry=registry)
    async def add(price: Decimal, rates: dict[str, Decimal]) -> Decimal:
        return price + rates["tax"]

    schema = registry["add"].spec.parameters
    assert violations(schema, {"price": "1.10", "rates": {"tax": 0.2}}) == ()
    assert violations(schema, {"price": "1,10", "rates": {"tax": 0.2}}) != ()
    given = bind(registry["add"], {"price": "0.10", "rates": {"tax": "0.20"}}, cast("Any", None))
    assert given["price"] + given["rates"]["tax"] == Decimal("0.30")
    assert plain_json(registry["add"], Decimal("0.30")) == "0.30"
