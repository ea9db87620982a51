"""Which standard tools a deployment has switched on, and for whom."""

from __future__ import annotations

import re

import pytest

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import EVERYTHING, PATTERN, STANDARD, Grants, off, tools_for
from baton.errors import InvalidDefinition

# The setting, a tool, a tenant (None: any), and whether it may use it.
CASES = [
    ("", "std.http", None, False),
    ("std.http", "std.http", None, True),
    ("std.http", "std.http", "acme", True),
    ("std.http", "std.pay", None, False),
    ("std.*", "std.pay", "acme", True),
    ("std.pay=acme,globex", "std.pay", "acme", True),
    ("std.pay=acme,globex", "std.pay", "globex", True),
    ("std.pay=acme,globex", "std.pay", "acme2", False),
    ("std.pay=acme,globex", "std.pay", "acm", False),
    ("std.pay=acme", "std.pay", None, True),
    ("std.pay=acme", "std.find_payment", "acme", True),
    ("std.pay=acme", "std.find_payment", "globex", False),
    ("std.find_payment", "std.pay", None, False),
    ("std.*", "std.htp", None, False),
    ("std.*", "mine", None, False),
    ("std.*=acme std.get", "std.get", "globex", True),
    ("std.*=acme std.get", "std.pay", "globex", False),
    ("std.*=acme std.get", "std.pay", "acme", True),
    ("std.get=acme std.get=globex", "std.get", "globex", True),
    ("std.get std.get=globex", "std.get", "acme", True),
    ("std.get=globex std.get", "std.get", "acme", True),
    ("std.get=a=b|c:d@e", "std.get", "a=b|c:d@e", True),
]


@pytest.mark.parametrize(("text", "tool", "tenant", "may"), CASES)
def test_a_tool_is_used_by_whom_the_setting_names(
    text: str, tool: str, tenant: str | None, may: bool
) -> None:
    assert re.search(PATTERN, text)
    assert Grants.of(text).allows(tool, tenant) is may


@pytest.mark.parametrize("text", ["http", "std.htp", "std.", "std.pay=", "std.pay=a,,b", "std.pay,std.get", "*", " std.pay", "std.pay=a/b"])  # fmt: skip
def test_what_is_no_such_list_is_refused(text: str) -> None:
    assert not re.search(PATTERN, text)


def test_where_nothing_is_said_everything_may_be_used() -> None:
    assert all(EVERYTHING.allows(name, "acme") for name in STANDARD)


def test_a_document_is_told_that_a_standard_tool_is_off() -> None:
    text = "name: a\nnodes: {call: {tool: %s}}"
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(text % "std.pay", {})
    assert "`StandardTools`" in caught.value.problems[0].suggestion
    assert off("std.htp") == off("mine") == ""


def test_tools_that_are_for_every_tenant_are_the_same_for_each() -> None:
    tools: dict[str, object] = {}
    assert tools_for("acme", tools) is tools  # type: ignore[arg-type]
