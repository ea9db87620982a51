"""Commands about tools, node types and pipelines."""

from __future__ import annotations

import json
import pprint
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from baton.cli.terminal.completion import complete_kinds, complete_tools
from baton.cli.terminal.shared import (
    Shared,
    json_option,
    print_json,
    print_lines,
    print_table,
    terminal_width,
)
from baton.client.exits import REFUSED, CommandFailed
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api


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

        print_lines(tool_rows(found["tools"], terminal_width()))
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
    """List the node kinds that a document can have, or show one with an example and its schema."""
    found = shared.call(lambda api: api.node_types())
    if not kind:
        if as_json:
            print_json(found)
            return
        from baton.cli.text.tables import rows

        cells = [(node["kind"], node["description"].partition(". ")[0]) for node in found["node_types"]]
        print_lines(rows(("kind", "what it does"), cells))
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
    from baton.core.expressions import nearest, with_hint

    hint = nearest(name, (str(item[field]) for item in items))
    raise CommandFailed(REFUSED, with_hint(f"there is no {what} `{name}`", hint))


def _indented(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return plain("\n".join(f"  {line}" for line in text.splitlines()))


TOOL = "std.pipeline"
_LEAST = 2


@click.command(short_help="Find pipelines that agents have written more than once.")
@click.option(
    "--sagas",
    "most",
    default=50,
    show_default=True,
    type=click.IntRange(1, 1_000),
    help="Number of sagas of each list to read.",
)
@click.option("--workflow", default="", help="Only sagas of this workflow.")
@click.option("--promote", "chosen", metavar="HASH", help="Print the line of Python that makes a tool of it.")
@click.option("--name", default="pipeline.mine", show_default=True, help="Name of that tool.")
@json_option
@click.pass_obj
def pipelines(shared: Shared, most: int, workflow: str, chosen: str | None, name: str, as_json: bool) -> None:
    """Find pipelines that agents have written more than once, in the logs of the newest sagas.

    Two are the same if their steps are, whatever the data. With --promote, print the code for a module of the
    app.
    """
    found = shared.call(lambda api: _found(api, most, workflow))
    if chosen:
        fits = [one for one in found if one["hash"].startswith(chosen)]
        if len(fits) != 1:
            what = "no pipeline begins" if not fits else f"{len(fits)} pipelines begin"
            raise CommandFailed(REFUSED, f"{what} with {chosen}")
        click.echo(plain(tool_declaration(name, fits[0])))
    elif as_json:
        print_json({"pipelines": found})
    else:
        for one in found:
            click.echo(plain(line_of(one)))
        if not found:
            click.echo("No agent has written a pipeline twice in these sagas.")


async def _found(api: Api, most: int, workflow: str) -> list[dict[str, Any]]:
    filters = {"workflow": workflow} if workflow else {}
    kept: dict[str, dict[str, Any]] = {}
    for status in ("open", "done"):
        async for page, _ in api.sagas({**filters, "status": status}, most, None):
            for saga in page:
                async for node, arguments in calls_of(api, saga["id"]):
                    _count(kept, saga["workflow"], node, arguments)
    found = [one for one in kept.values() if one["calls"] >= _LEAST]
    return sorted(found, key=lambda one: (-int(one["calls"]), str(one["hash"])))


async def calls_of(api: Api, saga: str) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """Yield the pipelines that agents of a saga have had executed: the node and the arguments."""
    asked: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    async for entry in api.events(saga):
        for event in entry["events"]:
            if event["kind"] != "step_succeeded" or not event.get("item"):
                continue
            node, round_ = event["node"], str(event.get("iteration"))
            if event["tool"] == TOOL and (arguments := asked.get((node, round_, event["item"]))) is not None:
                yield node, arguments
            elif "-" not in event["item"]:
                answer = event["output"].get("v")
                if ref := event["output"].get("ref"):
                    answer = await api.value(saga, ref.rpartition("/")[2].partition("@")[0])
                for index, call in _pipelines_in(answer):
                    asked[node, round_, f"{event['item']}-{index}"] = call


def _pipelines_in(answer: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, call in enumerate(answer.get("calls", ()) if isinstance(answer, dict) else ()):
        arguments = call.get("arguments")
        if (
            call.get("tool") == TOOL
            and isinstance(arguments, dict)
            and isinstance(arguments.get("data"), dict)
        ):
            yield index, arguments


def _count(kept: dict[str, dict[str, Any]], workflow: str, node: str, arguments: Mapping[str, Any]) -> None:
    from baton.core.pipelines.pipeline import digest  # with all primitives

    steps, inputs = arguments.get("steps"), sorted(arguments["data"])
    same = digest(steps, inputs)
    one = kept.setdefault(same, {"hash": same, "calls": 0, "agents": [], "inputs": inputs, "steps": steps})
    one["calls"] += 1
    if (agent := f"{workflow}/{node}") not in one["agents"]:
        one["agents"].append(agent)


def line_of(one: Mapping[str, Any]) -> str:
    """Return one pipeline as a line for people."""
    operations = " | ".join(str(step.get("op")) for step in one["steps"])
    return f"{one['hash']}  {counted(one['calls'], 'call')}  {operations}  ({', '.join(one['agents'])})"


def tool_declaration(name: str, one: Mapping[str, Any]) -> str:
    """Return the lines that declare it as a tool."""
    steps = pprint.pformat(one["steps"], indent=4, width=100, sort_dicts=False)
    return f"from baton import pipeline\n\npipeline(\n    {name!r},\n    'What it is for.',\n    {steps},\n    inputs={one['inputs']!r},\n)"
