"""How the standard tools come beside an application's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import PREFIX, STANDARD, Grants, tools_for
from baton.errors import InvalidDefinition
from baton.ports import StepFailure
from baton.tools.define import REGISTRY, Registry, ToolError, tool
from baton.tools.perform import ToolPerformer
from baton.tools.standard import load_app, standard_tools, with_standard
from tests.tools.outside import context, services
from tests.tools.test_performing import run

NAMES = {
    "std.delete_resource",
    "std.describe_operations", "std.find_payment", "std.get", "std.get_object", "std.http", "std.http_pipeline", "std.named_pipeline", "std.notify",
    "std.forget", "std.recall", "std.remember",
    "std.notify_cancelled", "std.openapi", "std.pay", "std.pipeline", "std.put_object", "std.refund", "std.restore",
    "std.restore_object", "std.search_tools", "std.upsert",
}  # fmt: skip


def app() -> Registry:
    registry = Registry()

    @tool("table.hold", registry=registry)
    def hold(n: int) -> int:
        return n

    return registry


def test_they_run_where_their_services_are_are_described_and_right_about_each_other() -> None:
    tools = standard_tools()
    assert set(tools) == NAMES
    tools.check()
    for name, one in tools.items():
        assert name.startswith(PREFIX)
        assert not one.needs_process, f"{name}: it would run in a process that has no services"
        assert one.spec.description.endswith("."), name


def test_an_application_has_them_beside_its_own() -> None:
    both = with_standard(app())
    assert set(both) == set(both.specs()) == {*NAMES, "table.hold"}
    assert len(both) == len(both.specs()) == len(NAMES) + 1
    assert both.specs()["std.http"] == both["std.http"].spec
    for name in ("std.htp", "http", ""):
        assert name not in both
        assert both.specs().get(name) is None


def test_an_applications_own_tool_of_a_name_counts() -> None:
    registry = app()

    @tool("std.http", registry=registry)
    def own(x: int) -> int:
        return x

    both = with_standard(registry)
    assert both["std.http"].function is own
    assert len(both) == len(NAMES) + 1


def test_documents_are_compiled_against_them() -> None:
    text = "name: a\nnodes: {call: {tool: %s, with: {url: 'https://lantern.example'}}}"
    assert compile_document(text % "std.http", with_standard(app()).specs()).nodes[0].tool == "std.http"
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(text % "std.htpp", with_standard(app()).specs())
    assert "std.http" in str(caught.value.problems)


def test_a_tool_of_an_application_may_name_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    source = "from baton import tool\n@tool('mine.pay', effect='once', verify='%s')\nasync def pay(n: int) -> int:\n    return n\n"
    (tmp_path / "pays_by_std.py").write_text(source % "std.find_payment")
    (tmp_path / "pays_by_a_typo.py").write_text(source % "std.find_paymnt")
    try:
        load_app("pays_by_std")
        REGISTRY._tools.pop("mine.pay")
        with pytest.raises(ToolError, match=r"std\.find_payment"):
            load_app("pays_by_a_typo")
    finally:
        REGISTRY._tools.pop("mine.pay", None)


def test_where_they_are_only_declared_nothing_runs_them() -> None:
    declared = standard_tools()["std.get"]
    with pytest.raises(StepFailure, match="only declared here"):
        run(declared.function(type="a", id="b", context=context()))


def test_without_a_grant_there_are_none_and_a_grant_is_for_its_tenants() -> None:
    assert set(with_standard(app(), grants=Grants.of(""))) == {"table.hold"}
    some = with_standard(app(), grants=Grants.of("std.get std.pay=acme"))
    specs = some.specs()
    assert set(some) == set(specs) == {"table.hold", "std.get", "std.pay", "std.find_payment", "std.refund"}
    assert set(tools_for("acme", specs)) == set(specs)
    globex = tools_for("globex", specs)
    assert set(globex) == {"table.hold", "std.get"}
    assert len(globex) == 2
    assert globex.get("std.pay") is None
    with pytest.raises(InvalidDefinition) as caught:
        compile_document("name: a\nnodes: {call: {tool: std.pay}}", globex)
    assert "StandardTools" in caught.value.problems[0].suggestion


def test_a_tool_that_is_off_does_not_run_whatever_a_graph_says() -> None:
    given = {"type": "a", "id": "b"}
    for text, code in (("", "tool_missing"), ("std.get=acme", "permission_denied")):
        tools = with_standard(app(), services(), Grants.of(text))
        with pytest.raises(StepFailure, match="StandardTools") as caught:
            run(ToolPerformer(tools).perform("std.get", given, context(tenant="globex")))
        assert caught.value.code == code


def test_the_names_of_the_setting_are_those_of_the_tools() -> None:
    assert set(STANDARD) == set(standard_tools())


def test_nothing_is_imported_for_tools_that_are_not_asked_for() -> None:
    code = (
        "import sys; from baton.tools.define import Registry; from baton.tools.standard import with_standard\n"
        "specs = with_standard(Registry()).specs(); assert specs.get('table.hold') is None\n"
        "print([m for m in ('baton.tools.standard.http', 'httpx') if m in sys.modules], end=' ')\n"
        "specs['std.http']; print([m for m in ('baton.tools.standard.http', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['baton.tools.standard.http']"
