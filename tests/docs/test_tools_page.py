"""The page of the standard tools: every tool with every parameter is on it, and its document compiles."""

from __future__ import annotations

import re

from baton.core.documents.compile import compile_document
from baton.tools.define import Registry
from baton.tools.standard import standard_tools, with_standard
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/tools.md")


def test_its_document_compiles() -> None:
    (source,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.text, re.MULTILINE | re.DOTALL)
    graph = compile_document(source, with_standard(Registry()).specs())
    assert {node.tool for node in graph.nodes} == {"std.http", "std.pay", "std.upsert", "std.notify"}


def test_every_tool_and_every_parameter_is_on_it() -> None:
    for name, tool in standard_tools().items():
        assert f"`{name}`" in PAGE.text, name
        parts = PAGE.text.split("\n## ")[1:]
        (part,) = (part for part in parts if name in part.partition("\n")[0].split())
        for parameter in tool.spec.parameters["properties"]:
            assert f"`{parameter}`" in part, f"{name}: {parameter}"
