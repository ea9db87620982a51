"""The commands about registered workflows: deploy-workflow, workflows.

What is wrong with a document, check.py says.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from baton.cli.documents.app import app_option, load_app
from baton.cli.documents.check import Report, compile_locally, drawing
from baton.cli.documents.neighbours import children_first
from baton.cli.documents.sources import Source, read_source
from baton.cli.documents.standard import off_note, tools_off
from baton.cli.terminal.completion import complete_workflows, documents_argument
from baton.cli.terminal.numbers import Whole
from baton.cli.terminal.shared import (
    Shared,
    console,
    gathered,
    json_option,
    print_json,
    print_table,
    progress,
    terminal_width,
)
from baton.client.exits import NO, REFUSED, Failed
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api

LISTED = 50


@click.command("deploy-workflow", short_help="Check workflow documents and register them.")
@documents_argument
@click.option("--no-check", is_flag=True, help="Let only the API check, with the tools that it has.")
@app_option
@json_option
@click.pass_obj
def deploy_workflow(
    shared: Shared, documents: tuple[str, ...], no_check: bool, app: str, as_json: bool
) -> None:
    """Check workflow documents and make them known to the API. With --json: a line for each.

    A document is a file, or a workflow built in Python: `sagas.dinner:evening`. One that the API knows
    already changes nothing. If one has problems here, none is sent. Those that others start are sent first.
    """
    sources = [read_source(document, app) for document in documents]
    reports = [] if no_check else _check(sources, app, as_json)
    sources = children_first(sources, {report.file: (report.name, report.starts) for report in reports})

    async def run(api: Api) -> list[Failed]:
        refusals = []
        with progress() as say:
            for number, source in enumerate(sources, 1):
                say(f"{source.name} ({number} of {len(sources)})")
                if refusal := await _deploy(api, source, as_json):
                    refusals.append(refusal)
        return refusals

    if refusals := shared.call(run):
        if not as_json:
            older = ": the API may have older tools than this directory; restart `make up`, or deploy them"
            is_unexplained = any(not tools_off(refusal.problems()) for refusal in refusals)
            refused = f"{counted(len(refusals), 'document')} of {len(sources)} refused"
            click.echo(refused + (older if reports and is_unexplained else ""), err=True)
        raise click.exceptions.Exit(REFUSED)


@click.command(short_help="List registered workflows, or draw one.")
@click.argument("workflow", required=False, metavar="[NAME[@VERSION]]", shell_complete=complete_workflows)
@click.option("--limit", type=Whole(min=1), default=LISTED, show_default=True, help="At most this many.")
@click.option("--all", "everything", is_flag=True, help="All of them, however many.")
@click.option("--document", is_flag=True, help="Print the document as it was registered, and nothing else.")
@json_option
@click.pass_obj
def workflows(
    shared: Shared, workflow: str | None, limit: int, everything: bool, document: bool, as_json: bool
) -> None:
    """List registered workflows, or show one: its versions, and a drawing of its graph."""
    if not workflow:
        if document:
            raise click.UsageError("--document needs the NAME of a workflow")
        _list(shared, None if everything else limit, as_json)
        return
    if document and as_json:
        raise click.UsageError(
            "--document prints the text and nothing else, --json has it in `document`: give one of them"
        )
    name, at, version = workflow.partition("@")
    found = shared.call(lambda api: api.workflow(name, version if at else None))
    if document:
        text = str(found["document"])
        click.echo(plain(text) if sys.stdout.isatty() else text, nl=not text.endswith("\n"))
    elif as_json:
        print_json(found)
    else:
        from baton.cli.text.tables import version_rows, workflow_table

        print_table(workflow_table(found))
        if len(found.get("versions", ())) > 1:
            click.echo()
            for line in version_rows(found["versions"], terminal_width()):
                console().print(line)
        click.echo()
        for text in drawing(found):
            click.echo(f"  {text}")


def _list(shared: Shared, limit: int | None, as_json: bool) -> None:
    found, after = shared.call(lambda api: gathered(api.workflows(limit, None), "workflow"))
    if as_json:
        print_json({"workflows": found, "next": after})
        return
    from baton.cli.text.tables import version_rows

    for line in version_rows(found, terminal_width()):
        console().print(line)
    if not found:
        click.echo("no workflows yet", err=True)
    if after:
        click.echo("There are more: --limit N or --all.", err=True)


def _check(sources: list[Source], app: str, as_json: bool) -> list[Report]:
    """Compile all documents here where their tools can be loaded, or say that they cannot (no report). Ends the command
    if there are problems.
    """
    try:
        load_app(app)
    except Failed as why:
        click.echo(f"Not checked here, only by the API: {why.message}", err=True)
        return []
    reports = compile_locally(sources, app)
    found = sum(len(report.problems) for report in reports)
    if not found:
        return reports
    for report in reports:
        if as_json and report.problems:
            print_json({"file": report.file, "problems": list(report.problems)}, line=True)
        elif not as_json:
            for line in report.lines():
                click.echo(line, err=True)
    if not as_json:
        click.echo(
            f"{counted(found, 'problem')} in {counted(len(sources), 'document')}: nothing was deployed. "
            "If the API has other tools than this directory: --no-check",
            err=True,
        )
    raise click.exceptions.Exit(NO)


async def _deploy(api: Api, source: Source, as_json: bool) -> Failed | None:
    """None if the API took one document. What it refuses is shown, so that the next one gets its turn."""
    try:
        answer = await register(api, source)
    except Failed as error:
        if error.exit_code != REFUSED:
            raise
        if as_json:
            print_json({"file": source.name, "problems": error.problems()}, line=True)
        else:
            error.show()
        return error
    if as_json:
        print_json({"file": source.name, **answer}, line=True)
    else:
        news = "new" if answer["new"] else "known already"
        click.echo(plain(f"{source.name}: {answer.get('name')}@{answer.get('version')}, {news}"))
        for note in answer.get("notes", ()):
            click.echo(plain(f"{source.name}: note: {note}"))
    return None


async def register(api: Api, source: Source) -> dict[str, Any]:
    """Register one document; the failure names it."""
    try:
        return await api.register(source.text, is_json=source.is_json)
    except Failed as error:
        off = tools_off(error.problems())
        raise error.about(source.name).hinting(*([off_note(off)] if off else ())) from error
