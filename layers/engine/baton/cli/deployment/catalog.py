"""The commands about what workflows are made of: tools, node-types."""

from __future__ import annotations

import json
from typing import Any

import click

from baton.cli.terminal.completion import complete_kinds, complete_tools
from baton.cli.terminal.shared import Shared, console, json_option, print_json, print_table, terminal_width
from baton.client.exits import REFUSED, Failed
from baton.words.text import plain


@click.command(short_help="List tools, or show one with its schemas.")
@click.argument("name", required=False, shell_complete=complete_tools)
@json_option
@click.pass_obj
def tools(shared: Shared, name: str | None, as_json: bool) -> None:
    """List the tools that workflows can use, or show one with the schemas of its input and output."""
    found = shared.call(lambda api: api.tools())
    if not name:
        if as_json:
            print_json(found)
            return
        from baton.cli.text.tables import tool_rows

        for line in tool_rows(found["tools"], terminal_width()):
            console().print(line)
        return
    tool = _pick(found["tools"], "name", name, "tool")
    if as_json:
        print_json(tool)
        return
    from baton.cli.text.tables import tool_table

    print_table(tool_table(tool))
    for title in ("input", "output"):
        click.echo(f"\n{title}")
        click.echo(_indented(tool.get(title)))


@click.command("node-types", short_help="List kinds of nodes, or show one with its schema.")
@click.argument("kind", required=False, shell_complete=complete_kinds)
@json_option
@click.pass_obj
def node_types(shared: Shared, kind: str | None, as_json: bool) -> None:
    """List the kinds of nodes that a document can have, or show one with an example and its schema."""
    found = shared.call(lambda api: api.node_types())
    if not kind:
        if as_json:
            print_json(found)
            return
        from baton.cli.text.tables import rows

        cells = [(node["kind"], node["description"].partition(". ")[0]) for node in found["node_types"]]
        for line in rows(("kind", "what it does"), cells):
            console().print(line)
        return
    node = _pick(found["node_types"], "kind", kind, "kind of node")
    if as_json:
        print_json(node)
        return
    import yaml

    click.echo(plain(f"{node['kind']}: {node['description']}"))
    example = yaml.safe_dump(node["example"], sort_keys=False, allow_unicode=True, default_flow_style=None)
    click.echo("\nexample")
    click.echo(plain("".join(f"  {line}\n" for line in example.splitlines())), nl=False)
    click.echo("\nschema")
    click.echo(_indented(node["schema"]))


def _pick(items: list[dict[str, Any]], field: str, name: str, what: str) -> dict[str, Any]:
    for item in items:
        if item[field] == name:
            return item
    from baton.core.expressions.spelling import hinted, nearest

    hint = nearest(name, (str(item[field]) for item in items))
    raise Failed(REFUSED, hinted(f"there is no {what} `{name}`", hint))


def _indented(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return plain("\n".join(f"  {line}" for line in text.splitlines()))
