"""The page of the standard tools: every tool with every parameter is on it, and its document compiles."""

from __future__ import annotations

import json
import re

from baton.core.documents.compile import compile_document
from baton.core.documents.text import parse_document
from baton.core.pipelines import pipeline
from baton.tools.define import Registry
from baton.tools.standard import standard_tools, with_standard
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/tools.md")
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_its_document_compiles() -> None:
    source, *_ = YAML.findall(PAGE.text)
    graph = compile_document(source, with_standard(Registry()).specs())
    assert {node.tool for node in graph.nodes} == {"std.http", "std.pay", "std.upsert", "std.notify"}


def test_its_pipeline_is_a_node_and_does_what_the_page_says() -> None:
    *_, source = YAML.findall(PAGE.text)
    node = parse_document(source).value["cheapest"]
    ask = {"tool": "std.http", "with": {"url": "https://lantern.example"}}
    text = json.dumps(
        {
            "name": "a",
            "nodes": {"search": ask, "airlines": ask, "cheapest": {**node, "after": ["search", "airlines"]}},
        }
    )
    compile_document(text, with_standard(Registry()).specs())
    steps = node["with"]["steps"]
    flights = [{"carrier": "DL", "price": {"total": total}} for total in (300, 200, 500)]
    data = {"flights": flights, "airlines": [{"code": "DL", "name": "Delta"}]}
    made = pipeline.run_pipeline(pipeline.read_pipeline(steps, data), data, most_bytes=10_000)
    assert made.value == [{"name": "Delta", "low": 200, "flights": 2}]
    assert made.notes == []


def test_every_tool_and_every_parameter_is_on_it() -> None:
    for name, tool in standard_tools().items():
        assert f"`{name}`" in PAGE.text, name
        parts = PAGE.text.split("\n## ")[1:]
        (part,) = (part for part in parts if name in part.partition("\n")[0].replace(",", " ").split())
        for parameter in tool.spec.parameters["properties"]:
            assert f"`{parameter}`" in part, f"{name}: {parameter}"
