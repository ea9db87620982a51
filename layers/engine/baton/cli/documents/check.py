"""`baton check`: compile workflow documents on this machine, draw them, and report all faults.

`compile_locally` is the only caller of the compiler.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from baton.cli.documents.app import Source, app_option, load_app, read_file, sources_at, sources_of
from baton.cli.terminal.completion import documents_argument
from baton.cli.terminal.shared import Shared, console, is_unicode, json_option, print_json, terminal_width
from baton.cli.terminal.values import read_text
from baton.cli.text.graph import (
    draw_all,
    layers,
    mermaid,
    model_line,
    model_nodes,
    models_in_background,
    models_to_price,
    shape_of,
)
from baton.client.connection import command_line
from baton.client.exits import NO, CommandFailed, line_of
from baton.words.text import attempts, counted, course, plain

if TYPE_CHECKING:
    from baton.core.effects.toolspec import ToolSpec
    from baton.core.graph.graph import Graph

_KINDS = (".yaml", ".yml", ".json")
_MOST_FILES = 1_000


def known_workflows(sources: Sequence[Source], app: ModuleType) -> dict[str, Any]:
    """Return input schemas by name, of documents given, beside one, or of the app, if any has children."""
    if not any(word in source.text for source in sources for word in ("workflow", "function")):
        return {}
    return dict(_named([*_beside(sources), *_of_app(app), *sources]))


def children_first(
    sources: Sequence[Source], started: Mapping[str, tuple[str, Sequence[str]]]
) -> list[Source]:
    """Return the documents, children before parents. `started`: by source, its workflow and its children."""
    by_name = {started[source.name][0]: source for source in sources if source.name in started}
    ordered: dict[str, Source] = {}

    def visit(source: Source, above: tuple[str, ...]) -> None:
        if source.name in ordered or source.name in above:
            return
        for child in started.get(source.name, ("", ()))[1]:
            if child in by_name:
                visit(by_name[child], (*above, source.name))
        ordered[source.name] = source

    for source in sources:
        visit(source, ())
    return list(ordered.values()) if len(ordered) == len(sources) else list(sources)


def _beside(sources: Sequence[Source]) -> Iterator[Source]:
    folders = dict.fromkeys(Path(source.name).parent for source in sources if Path(source.name).is_file())
    for folder in folders:
        files = sorted(file for file in folder.iterdir() if file.suffix in _KINDS)
        for file in files[:_MOST_FILES]:
            with suppress(CommandFailed):
                yield read_file(file)


def _of_app(app: ModuleType) -> Sequence[Source]:
    with suppress(
        CommandFailed
    ):  # what is wrong with a workflow of another module is told when that is checked
        return sources_of(app)
    return ()


def _named(sources: Sequence[Source]) -> Iterator[tuple[str, Any]]:
    from baton.core.documents.text import parse_document
    from baton.errors import MalformedDocument

    for source in sources:
        try:
            value = parse_document(source.text, json_only=source.is_json).value
        except MalformedDocument:
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str) and "nodes" in value:
            schema = value.get("input")
            yield value["name"], schema if isinstance(schema, dict) else None


_NAME = re.compile(r"`(std\.\w+)`")
# What a tool cannot do without, besides being named.
_PARAMETERS = {
    "std.http": ("HttpHosts",),
    "std.http_pipeline": ("HttpHosts",),
    "std.notify": ("MailFrom", "SigningKey"),
    "std.openapi": ("HttpHosts", "OpenApis"),
    "std.pay": ("HttpHosts", "SigningKey"),
    "std.find_payment": ("HttpHosts", "SigningKey"),
    "std.refund": ("HttpHosts", "SigningKey"),
    "std.delete_resource": ("HttpHosts",),
    "std.notify_cancelled": ("MailFrom", "SigningKey"),
    "std.remember": ("Facts",),
    "std.recall": ("Facts",),
}


def tools_off(problems: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the standard tools that `StandardTools` does not enable, sorted."""
    said = (str(p.get("message")) for p in problems if "`StandardTools`" in str(p.get("suggestion")))
    return sorted({found[1] for message in said if (found := _NAME.search(message))})


def switching_on(names: Iterable[str]) -> str:
    """Return the command that runs everything locally with these tools."""
    names = list(names)
    needed = dict.fromkeys(parameter for name in names for parameter in _PARAMETERS.get(name, ()))
    pairs = [shlex.quote(f"StandardTools={' '.join(names)}"), *(f"{parameter}=…" for parameter in needed)]
    return command_line("up " + " ".join(f"--parameter {pair}" for pair in pairs))


def off_note(names: Iterable[str]) -> str:
    """Return a warning for the author of a document that uses these tools."""
    names = list(names)
    are = "is" if len(names) == 1 else "are"
    them = "it" if len(names) == 1 else "them"
    return (
        f"{', '.join(names)} {are} off unless the deployment's StandardTools names {them} "
        f"(locally: {switching_on(names)})"
    )


@dataclass(frozen=True, slots=True)
class Report:
    """The compiler's report about one file: its problems, or its graph as in `GET /workflows/{name}`.

    `notes` are warnings for the author. `on_failure`: action after a permanent failure of a step. `starts`:
    names of its children. `models`: model, limits and costs of each node that asks one. `text`: the document.
    """

    file: str
    problems: tuple[Mapping[str, Any], ...] = ()
    name: str = ""
    graph: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    on_failure: Mapping[str, Any] = field(default_factory=dict)
    starts: tuple[str, ...] = ()
    models: tuple[Mapping[str, Any], ...] = ()
    text: str = ""

    def document(self) -> dict[str, Any]:
        """Return the report for programs."""
        shape = {key: self.graph.get(key, []) for key in ("nodes", "edges", "risk", "graphs")}
        return {
            "file": self.file,
            "name": self.name,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "on_failure": dict(self.on_failure),
            "models": list(self.models),
            "failure_handler": self.graph.get("failure_handler"),
            **shape,
        }

    def lines(self) -> list[str]:
        """Return each problem as one line with file, position, path and suggestion."""
        return [plain(line_of(problem, self.file)) for problem in self.problems]


@click.command(short_help="Find all problems of documents, draw their graphs.")
@documents_argument
@click.option("-q", "--quiet", is_flag=True, help="Only problems and notes.")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the graphs as Mermaid flowcharts.")
@click.option(
    "--against",
    metavar="URL|FILE|WORKFLOW",
    help="Address of an API, or logs by `events --json`: which open sagas would stop with the code that is here? Or a "
    "registered workflow, NAME, NAME@VERSION or NAME@TAG: which changes are breaking?",
)
@click.option(
    "--sagas",
    "most",
    default=1_000,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="With --against URL: the most sagas that are looked at, those that changed last.",
)
@app_option
@json_option
@click.pass_obj
def check(
    shared: Shared,
    documents: tuple[str, ...],
    quiet: bool,
    as_mermaid: bool,
    against: str | None,
    most: int,
    app: str,
    as_json: bool,
) -> None:
    """Find all problems of workflow documents and draw their graphs, without any API.

    A document is a file, a workflow in Python (`sagas.dinner:evening`), or the name of a workflow of the
    application. Without any, all of the application. With --json: a list with the problems, nodes and edges
    of each.
    """
    reports = [_with_models(report) for report in compile_locally(sources_at(documents, app), app)]
    if against is not None and _is_reference(against):
        _check_version(shared, reports, against, as_json=as_json)
        return
    if against is not None:
        api = replace(shared, url=against) if against.startswith(("http://", "https://")) else None
        _check_against(reports, api or Path(against), most, quiet=quiet, as_json=as_json)
        return
    if as_json:
        print_json([report.document() for report in reports])
    else:
        for report in reports:
            _print(report, quiet=quiet, as_mermaid=as_mermaid)
    found = sum(len(report.problems) for report in reports)
    if found:
        if not as_json:
            click.echo(f"{counted(found, 'problem')} in {counted(len(reports), 'document')}", err=True)
        raise click.exceptions.Exit(NO)


def _is_reference(text: str) -> bool:
    """Return true for a reference of a workflow that is no file."""
    from baton.core.graph.graph import WORKFLOW_REFERENCE  # loads a library

    return re.fullmatch(WORKFLOW_REFERENCE, text) is not None and not Path(text).exists()


def _check_version(shared: Shared, reports: Sequence[Report], reference: str, *, as_json: bool) -> None:
    """Say which changes of a document are breaking for a registered version of its workflow."""
    from baton.core.documents.changes import VersionChange, version_changes
    from baton.core.documents.text import parse_document

    name, _, version = reference.partition("@")
    mine = [one for one in reports if one.name in ("", name)]
    if len(mine) != 1 or mine[0].problems:
        for line in (line for one in mine for line in one.lines()):
            click.echo(line, err=True)
        why = f"none of the documents is the workflow `{name}`" if not mine else "it has problems"
        raise CommandFailed(NO, f"nothing is compared with {reference}: {why}")
    known = shared.call(lambda api: api.workflow(name, version or None))
    outputs = [parse_document(text).value.get("output") for text in (known["document"], mine[0].text)]
    found: list[VersionChange] = version_changes(known, mine[0].graph, (outputs[0], outputs[1]))
    breaking = sum(one.is_breaking for one in found)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            word = "breaking" if one.is_breaking else "compatible"
            click.echo(plain(f"{mine[0].file}: {word}: {one.message} (at {one.path})"))
        at = f"{name}@{known['version']}"
        click.echo(
            f"{counted(breaking, 'breaking change')} since {at}, {len(found) - breaking} compatible", err=True
        )
    if breaking:
        raise click.exceptions.Exit(NO)


def _check_against(
    reports: Sequence[Report], against: Shared | Path, most: int, *, quiet: bool, as_json: bool
) -> None:
    """Say which open sagas, of an API or in a file of logs, would stop with the code that is here."""
    from baton.cli.documents.against import GOES_ON, STOPS, Here, check_open, logs_in, verdicts
    from baton.tools.define import REGISTRY
    from baton.tools.functions import ApplicationFunctions
    from baton.tools.standard import with_standard

    nodes = [(report.name, node) for report in reports for node in report.graph.get("nodes", ())]
    known = {
        (name, node["name"]): (node["function"], node["tools"])
        for name, node in nodes
        if node.get("function")
    }
    registry = with_standard(REGISTRY)
    functions = ApplicationFunctions(registry)
    if isinstance(against, Path):
        logs, has_more = logs_in(read_text(against)), False
        found, looked_at = [one for log in logs for one in verdicts(log, known, functions)], len(logs)
    else:

        def problems(document: str) -> Sequence[Mapping[str, Any]]:
            return document_problems(Source("", document), registry.specs(), {})[1]

        here = Here(problems, known, functions, registry)
        found, looked_at, has_more = against.call(lambda api: check_open(api, here, most))
    stopped = {one.saga for one in found if one.verdict == STOPS}
    if as_json:
        print_json([asdict(one) for one in found])
    for one in found if not as_json else ():
        if not quiet or one.verdict != GOES_ON:
            click.echo(plain(one.line()))
    if not as_json:
        click.echo(f"{len(stopped)} of {counted(looked_at, 'open saga')} would stop", err=True)
    if has_more:
        click.echo(f"more sagas are open than these {most}: --sagas looks at more", err=True)
    if stopped:
        raise click.exceptions.Exit(NO)


def compile_locally(
    sources: Sequence[Source], app: str, standard: str | None = None, tenant: str = ""
) -> list[Report]:
    """Compile documents against the tools of the application, as `POST /workflows` does.

    `standard`: the setting `StandardTools` of this tenant; None enables all of them. Child workflows are
    searched among the documents, beside them, and in the application.
    """
    module = load_app(app)
    from baton.core.effects.toolspec import EVERYTHING, Grants, tools_for
    from baton.tools.define import REGISTRY
    from baton.tools.standard import with_standard

    grants = EVERYTHING if standard is None else Grants.of(standard)
    tools = tools_for(tenant, with_standard(REGISTRY, grants=grants).specs())
    known = known_workflows(sources, module)
    without = with_standard(REGISTRY, grants=Grants({})).specs()
    return [_compiled(source, tools, known, without) for source in sources]


def document_problems(
    source: Source, tools: Mapping[str, ToolSpec], known: Mapping[str, Any]
) -> tuple[Graph | None, tuple[Mapping[str, Any], ...]]:
    """Return the graph of a document, or its problems."""
    from baton.core.documents.compile import compile_document
    from baton.errors import InvalidDefinition, MalformedDocument
    from baton.tools.define import NODE_KINDS

    try:
        return compile_document(
            source.text, tools, json_only=source.is_json, children=known, kinds=NODE_KINDS
        ), ()
    except (InvalidDefinition, MalformedDocument) as error:
        return None, tuple(asdict(problem) for problem in error.problems)


def _compiled(
    source: Source, tools: Mapping[str, ToolSpec], known: Mapping[str, Any], without: Mapping[str, ToolSpec]
) -> Report:
    from msgspec import structs

    from baton.core.decide.program import Program
    from baton.core.documents.compile import children_of, no_such_child, notes_of
    from baton.core.limits import Limits
    from baton.core.nodes.registry import KINDS
    from baton.core.read.definition_views import by_class, foretold, graph_view
    from baton.errors import Problem

    graph, problems = document_problems(source, tools, known)
    if graph is None:
        return Report(source.name, problems)
    if in_code := _problems_of_code(graph):
        return Report(source.name, tuple(asdict(Problem("", text)) for text in in_code))
    off = tools_off(document_problems(source, without, known)[1]) if "std." in source.text else []
    children, graphs = children_of(graph), {"": graph, **dict(sorted(graph.graphs.items()))}
    unknown = {
        child: no_such_child(child, known) for child in children if child.partition("@")[0] not in known
    }
    programs = {name: Program(one, KINDS) for name, one in graphs.items()}
    return Report(
        source.name,
        name=graph.name,
        graph=graph_view(graph),
        notes=(
            *notes_of(graph, tools, invocation_ms=Limits().worker_timeout_s * 1_000, unknown=unknown),
            *([off_note(off)] if off else ()),
            *_notes_of_code(graph, known),
        ),
        on_failure=_on_failure({name: structs.asdict(foretold(one)) for name, one in programs.items()})
        | {"by_class": _on_failure({name: by_class(one) for name, one in programs.items()})},
        starts=tuple(child.partition("@")[0] for child in children),
        models=tuple(model_nodes(graph)),
        text=source.text,
    )


def _with_models(report: Report) -> Report:
    """Return the report with notes on its models: those that a worker of this project does not ask so."""
    names = models_to_price(report.models)
    handed = models_in_background(report.models)
    if not names and not handed:
        return report
    from baton import settings
    from baton.core.deployment import ModelEndpoints
    from baton.project.config import NAME, read_models
    from baton.wiring import models_without_background, models_without_price

    said, region = read_models(Path(NAME))
    profiles = said or ModelEndpoints.model_profiles
    try:
        region = region or settings.region() or _ANY_REGION
        missing = models_without_price(profiles, region, names)
        waiting = models_without_background(profiles, region, handed)
    except ValueError as error:
        return replace(report, notes=(*report.notes, f"no worker starts with these `ModelProfiles`: {error}"))
    notes = [
        f"`{name}` has no price at the profile `{profile}`, so that it is not asked: write `price`, or another of the"
        f" profiles before its name ({profiles})"
        for name, profile in missing
    ]
    notes += [
        f"`{name}` is not asked in the background: the profile `{profile}` has no such requests. Leave `background` out,"
        f" or write another of the profiles before its name ({profiles})"
        for name, profile in waiting
    ]
    return replace(report, notes=(*report.notes, *notes))


_ANY_REGION = "us-east-1"  # prices hardly differ


def _problems_of_code(graph: Graph) -> list[str]:
    """Return the mistakes in the code of the functions that a workflow runs."""
    if not (names := _functions_of(graph)):
        return []
    from baton.tools.define import REGISTRY
    from baton.tools.functions.notes import function_problems
    from baton.tools.standard import with_standard

    registry = with_standard(REGISTRY)
    return [text for name in names for text in function_problems(registry[name], registry)]


def _notes_of_code(graph: Graph, known: Collection[str]) -> list[str]:
    """Return notes about the code of the functions that a workflow runs, and of its tools."""
    from baton.tools.define import REGISTRY
    from baton.tools.functions.notes import code_notes, function_notes
    from baton.tools.standard import with_standard

    registry = with_standard(REGISTRY)
    notes = [
        note for name in _functions_of(graph) for note in function_notes(registry[name], registry, known)
    ]
    return [*notes, *code_notes(graph, registry)]


def _functions_of(graph: Graph) -> list[str]:
    """Return the names of the workflow functions that a graph runs."""
    return [node.function.name for node in graph.nodes if node.function is not None]


def _calls_of_functions(graph: Mapping[str, Any]) -> list[str]:
    """Return a line for each function of a workflow: the tools that its code names."""
    return [
        f"{one['name']} may call: {', '.join(one['tools']) or 'no tool'}"
        for one in graph["nodes"]
        if one.get("function")
    ]


def _on_failure(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the action after a permanent failure, by graphs. The document's own have no prefix."""
    usual = next((one["steps"] for one in found.values() if one["steps"]), "")
    nodes: dict[str, Any] = {}
    for graph, one in found.items():
        if graph and one["steps"] and one["steps"] != usual:
            nodes[f"graph {graph}"] = one["steps"]
        nodes |= {f"{graph}/{name}" if graph else name: words for name, words in one["nodes"].items()}
    return {"steps": usual, "nodes": nodes}


def drawing(workflow: Mapping[str, Any]) -> list[str]:
    """Return the graphs of a workflow as lines that fit this terminal with an indentation of two."""
    width = terminal_width()
    return draw_all(
        shape_of(workflow), console().width if width is None else width - 2, plain=not is_unicode()
    )


def _when_a_step_fails(foretold: Mapping[str, Any]) -> list[str]:
    first, *others = course(foretold)
    lines = [f"if a step fails for good: {first}".rstrip(), *others] if first or others else []
    return lines + attempts(foretold["by_class"])


def _print(report: Report, *, quiet: bool, as_mermaid: bool) -> None:
    for line in report.lines():
        click.echo(line)
    if report.problems:
        return
    shape = shape_of(report.graph)
    if as_mermaid:
        click.echo(mermaid(shape))
        return
    deep, named = max(layers(shape.boxes).values()), len(shape.parts) - 1
    size = f"{counted(len(shape.boxes), 'node')} in {counted(deep, 'layer')}"
    click.echo(
        f"{report.file}: ok, {report.name} with {size}"
        + (f", and {counted(named, 'named graph')}" if named else "")
    )
    for note in report.notes:
        click.echo(plain(f"{report.file}: note: {note}"))
    if not quiet:
        for line in _when_a_step_fails(report.on_failure):
            click.echo(plain(line))
        from baton.words.event_words import undo_declarations  # it loads msgspec, which `--help` does without

        if words := undo_declarations(report.graph):
            click.echo(plain(f"what undoes it: {words}"))
        if shape.handler:
            click.echo(plain(f"when a saga has failed: {shape.handler}"))
        if rules := report.graph["risk"]:
            click.echo(plain(f"asks by risk: {'; '.join(rules)}"))
        for line in (*_calls_of_functions(report.graph), *map(model_line, report.models)):
            click.echo(plain(line))
        for line in ("", *drawing(report.graph), ""):
            click.echo(f"  {line}".rstrip())
