"""Commands about workflows, their versions, and migrations to one. check.py reports faults of documents."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from baton.cli.deployment.steering import steer_many
from baton.cli.documents.app import Source, app_option, load_app, sources_at, workflow_name
from baton.cli.documents.check import Report, children_first, compile_locally, drawing, off_note, tools_off
from baton.cli.terminal.completion import complete_workflows, documents_argument, saga_argument
from baton.cli.terminal.shared import (
    Shared,
    gather_pages,
    json_option,
    key_option,
    print_json,
    print_lines,
    print_more,
    print_table,
    progress,
    terminal_width,
)
from baton.cli.terminal.values import Whole, read_text
from baton.client.exits import NO, REFUSED, USAGE, CommandFailed
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api

WORKFLOWS_LISTED = 50


@click.command("deploy-workflow", short_help="Check workflow documents and register them.")
@documents_argument
@click.option("--no-check", is_flag=True, help="Let only the API check, with the tools that it has.")
@app_option
@json_option
@click.pass_obj
def deploy_workflow(
    shared: Shared, documents: tuple[str, ...], no_check: bool, app: str, as_json: bool
) -> None:
    """Check workflow documents and register them. With --json: a line for each.

    A document is a file, a workflow in Python (`sagas.dinner:evening`), or the name of a workflow of the
    application. Without any, all of the application. A registered document changes nothing. If one has
    problems here, none is sent. Children are sent before their parents.
    """
    sources = sources_at(documents, app)
    reports = [] if no_check else _check(sources, app, as_json)
    sources = children_first(sources, {report.file: (report.name, report.starts) for report in reports})

    async def run(api: Api) -> list[CommandFailed]:
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
@click.option(
    "--limit", type=Whole(min=1), default=WORKFLOWS_LISTED, show_default=True, help="At most this many."
)
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
            print_lines(version_rows(found["versions"], terminal_width()))
        click.echo()
        for text in drawing(found):
            click.echo(f"  {text}")


@click.command(short_help="Set a tag of a workflow to a version.")
@click.argument("workflow", metavar="NAME", shell_complete=complete_workflows)
@click.argument("tag")
@click.argument("version", required=False, type=Whole(min=1))
@click.option(
    "--was", type=Whole(), help="The version that you saw, 0 for none: refused if it is another one by now."
)
@click.option("--delete", is_flag=True, help="Delete the tag. Its history stays.")
@click.option("--reason", default="", help="Reason, for its history.")
@json_option
@click.pass_obj
def tag(
    shared: Shared,
    workflow: str,
    tag: str,
    version: int | None,
    was: int | None,
    delete: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Set a tag of a workflow, such as `main`, to a version. `NAME@TAG` starts that version.

    Sagas that have begun stay with their version. Repeated, it changes nothing.
    """
    if delete == (version is not None):
        raise click.UsageError("give the VERSION that the tag is to name, or --delete")
    body = {"version": version, "was": was, "reason": reason}
    found = shared.call(lambda api: api.move_tag(workflow, tag, body))
    if as_json:
        print_json(found)
        return
    text = f"{workflow}@{tag} is version {found['version']}" if version else f"{workflow}@{tag} is deleted"
    click.echo(plain(text))


@click.command(short_help="List the tags of a workflow, with who moved them.")
@click.argument("workflow", metavar="NAME", shell_complete=complete_workflows)
@json_option
@click.pass_obj
def tags(shared: Shared, workflow: str, as_json: bool) -> None:
    """List the tags of a workflow, each with the versions that it has named, newest first."""
    found = shared.call(lambda api: api.workflow(workflow))["tags"]
    if as_json:
        print_json({"tags": found})
        return
    from baton.cli.text.tables import tag_rows

    print_lines(tag_rows(found, terminal_width()))
    if not found:
        click.echo(f"no tags yet: baton tag {workflow} main VERSION", err=True)


@click.command("patch-workflow", short_help="Register a workflow with a JSON Patch.")
@click.argument("workflow", metavar="NAME", shell_complete=complete_workflows)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--for",
    "made_for",
    type=Whole(min=1),
    help="The version that the patch was made for: refused if it is not the newest by now. Default: the newest.",
)
@click.option("--description", default="", help="Description of the change, which the new version keeps.")
@click.option("--dry-run", is_flag=True, help="Compile the patched document, and register nothing.")
@json_option
@click.pass_obj
def patch_workflow(
    shared: Shared,
    workflow: str,
    file: Path,
    made_for: int | None,
    description: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Register the newest version of a workflow with a patch as its next version.

    FILE is a JSON Patch (RFC 6902) in JSON or YAML. Sagas that have begun stay with their version. Repeated
    with --for, it changes nothing.
    """
    operations = read_patch(file)

    async def run(api: Api) -> dict[str, Any]:
        newest = made_for or int((await api.workflow(workflow))["version"])
        body = {"patch": operations, "for": newest, "description": description, "dry_run": dry_run}
        return await api.patch_workflow(workflow, body)

    answer = shared.call(run)
    if as_json:
        print_json(answer)
        return
    news = "would be registered" if dry_run else "new" if answer["new"] else "known already"
    click.echo(plain(f"{answer['name']}@{answer['version']}, {news}"))
    for note in answer.get("notes", ()):
        click.echo(plain(f"note: {note}"))


@click.command(short_help="Change the graph of a saga that runs.")
@saga_argument
@click.argument("file", metavar="[FILE|-]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--for",
    "made_for",
    metavar="GRAPH|VERSION",
    help="Graph that the patch was made for. Default: the present one.",
)
@click.option("--description", default="", help="Reason, which is written into the log.")
@click.option("--undo", is_flag=True, help="Go back to the graph before the last change.")
@click.option("--print", "prints", is_flag=True, help="Only print the document that a patch is of.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@key_option
@json_option
@click.pass_obj
def patch(
    shared: Shared,
    saga: str,
    file: Path | None,
    made_for: str | None,
    description: str,
    undo: bool,
    prints: bool,
    dry_run: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Change the document of a saga by a JSON Patch (RFC 6902), and have the saga go on with that.

    FILE has the operations (JSON or YAML), a list; - is standard input.
    """
    if [undo, prints, file is not None].count(True) != 1:
        raise click.UsageError(
            "give either a FILE with the operations of a JSON Patch, or --undo, or --print"
        )
    if prints:
        click.echo(shared.call(lambda api: api.workflow_of(saga))["document"])
        return
    if made_for is None:
        made_for = str(shared.call(lambda api: api.show(saga))["graph"])
    to = int(made_for) if made_for.isdecimal() and len(made_for) < 8 else made_for
    body: dict[str, Any] = {"for": to, "description": description, "dry_run": dry_run}
    if file is None:
        body["undo"] = True
    else:
        body["patch"] = read_patch(file)
    answer = shared.call(lambda api: api.patch(saga, body, key))
    if as_json:
        print_json(answer)
    else:
        print_lines(_patched(answer, dry_run=dry_run))
    if answer["problems"]:
        raise click.exceptions.Exit(NO)


def _patched(answer: Mapping[str, Any], *, dry_run: bool) -> list[str]:
    """Return what a patch has changed, or would change."""
    lines = [f"  {one}" for one in answer["changes"]]
    lines += [
        f"  at {one['path']}: {one['message']}" + (f"; {one['suggestion']}" if one["suggestion"] else "")
        for one in answer["problems"]
    ]
    lines += [f"  note: {one}" for one in answer["notes"]]
    if answer["problems"]:
        said = "cannot take the patch"
    elif dry_run:
        said = f"would run graph {answer['graph'][:12]}"
    else:
        said = f"runs graph {answer['graph'][:12]}" if answer["changed"] else "nothing has changed"
    return [f"{answer['id']}  {said}", *lines]


def read_patch(file: Path) -> list[Any]:
    """Return the operations of a JSON Patch in a file. Raises `CommandFailed`."""
    from baton.core.documents.text import parse_document
    from baton.errors import MalformedDocument

    try:
        text = click.get_text_stream("stdin").read() if str(file) == "-" else read_text(file)
        found = parse_document(text).value
    except MalformedDocument as error:
        raise CommandFailed(USAGE, f"{file}: {error.detail}") from error
    if not isinstance(found, list):
        hint = 'It begins with: [{"op": "replace", "path": "/nodes/NODE/…", "value": …}]'
        raise CommandFailed(USAGE, f"{file} is no JSON Patch: it is not a list of operations", hint)
    return found


@click.command(short_help="Migrate open sagas to another version of their workflow.")
@click.argument("workflow", metavar="NAME", shell_complete=complete_workflows)
@click.option("--to", required=True, metavar="VERSION|TAG", help="The version that the sagas go on with.")
@click.option("--map", "names", metavar="OLD=NEW", multiple=True, help="A node that has another name there.")
@click.option("--from", "of", type=Whole(min=1), multiple=True, help="Only sagas of this version.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="Only those with this label.")
@click.option("--dry-run", is_flag=True, help="Only say which can be migrated, and why others cannot.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before they are migrated.")
@json_option
@click.pass_obj
def migrate(
    shared: Shared,
    /,
    workflow: str,
    to: str,
    names: tuple[str, ...],
    of: tuple[int, ...],
    as_json: bool,
    **many: Any,
) -> None:
    """Migrate the open sagas of a workflow to another version of it: counted first, then asked.

    A saga moves if it can go on there from where it is. For each that cannot, the command says why. Repeated,
    it migrates those that can by then.
    """
    pairs = [pair.partition("=") for pair in names]
    if bad := next((name for name, between, after in pairs if not (name and between and after)), None):
        raise click.UsageError(f"--map is OLD=NEW, the names of a node; it is {bad}")
    wanted = {"map": {name: after for name, _, after in pairs}, "from": list(of)}
    asked = {**many, **wanted, "workflow": workflow, "to": int(to) if to.isdecimal() else to}
    steer_many(shared, "migrate", asked, {}, None, as_json=as_json)


def _list(shared: Shared, limit: int | None, as_json: bool) -> None:
    found, after = shared.call(lambda api: gather_pages(api.workflows(limit, None), "workflow"))
    if as_json:
        print_json({"workflows": found, "next": after})
        return
    from baton.cli.text.tables import version_rows

    print_lines(version_rows(found, terminal_width()))
    if not found:
        click.echo("no workflows yet", err=True)
    print_more(after)


def _check(sources: list[Source], app: str, as_json: bool) -> list[Report]:
    """Compile all documents, or report tools that cannot be loaded. Ends the command with problems."""
    try:
        load_app(app)
    except CommandFailed as why:
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


async def _deploy(api: Api, source: Source, as_json: bool) -> CommandFailed | None:
    """Register one document and return None, or show its refusal and return it."""
    try:
        answer = await register_document(api, source)
    except CommandFailed as error:
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


async def register_document(api: Api, source: Source) -> dict[str, Any]:
    """Register one document. The failure names it."""
    try:
        return await api.register(source.text, is_json=source.is_json)
    except CommandFailed as error:
        off = tools_off(error.problems())
        raise error.about(source.name).hinting(*([off_note(off)] if off else ())) from error


def check_documents(
    sources: Sequence[Source], app: str, template: Path, parameters: Mapping[str, str], tenant: str
) -> None:
    """Print every problem of every document. Raises `CommandFailed` if there is one."""
    reports = compile_locally(sources, app, _standard_tools(template, parameters), tenant)
    bad = [report for report in reports if report.problems]
    if not bad:
        return
    _print(bad)
    problems = [problem for report in bad for problem in report.problems]
    off = tools_off(problems)
    found = f"{counted(len(problems), 'problem')} in {len(bad)} of {counted(len(reports), 'document')}"
    raise CommandFailed(NO, f"{found}: not started", *([off_note(off)] if off else ()))


async def take_up(api: Api, sources: Sequence[Source], app: str) -> str:
    """Register valid documents, print the faults of others, return a summary. Raises `CommandFailed`."""
    reports = {report.file: report for report in compile_locally(sources, app)}
    named = {file: (report.name, report.starts) for file, report in reports.items() if report.name}
    new, refused = [], []
    for source in children_first(sources, named):
        if reports[source.name].problems:
            _print([reports[source.name]])
            refused.append(source.name)
            await _tell_broken(api, source, app)
            continue
        try:
            answer = await register_document(api, source)
        except CommandFailed as failure:
            if failure.exit_code != REFUSED:
                raise
            failure.show()
            refused.append(source.name)
            continue
        if answer["new"]:
            new.append(f"{answer['name']}@{answer['version']}")
    return (
        "Taken up: the code"
        + (f"; registered: {', '.join(new)}" if new else "")
        + (f"; not registered: {', '.join(refused)}" if refused else "")
        + "."
    )


async def _tell_broken(api: Api, source: Source, app: str) -> None:
    """Print a warning if the registered version would be refused now, because a tool has changed."""
    name = workflow_name(source)
    try:
        found = await api.workflow(name) if name else {}
    except CommandFailed:
        return  # there is none; and what else there is to say, registering says
    registered = Source(source.name, str(found.get("document") or ""))
    if registered.text and compile_locally([registered], app)[0].problems:
        click.echo(
            plain(
                f"{name}@{found.get('version')} is registered and does not compile with the tools as they are now: "
                "its sagas fail where they come to that"
            ),
            err=True,
        )


def _standard_tools(template: Path, parameters: Mapping[str, str]) -> str | None:
    """Return the setting `StandardTools`, or None if the template has none, which others report."""
    from baton.local.processes import LocalRunError
    from baton.local.template import defaults

    try:
        return parameters.get("StandardTools", defaults(template).get("StandardTools"))
    except LocalRunError:
        return None


def _print(reports: Sequence[Report]) -> None:
    for report in reports:
        for line in report.lines():
            click.echo(line, err=True)


async def register_all(api: Api, sources: list[Source]) -> list[str]:
    """Register the application's documents and return their names. Raises `CommandFailed`."""
    return [str((await register_document(api, source))["name"]) for source in sources]


def check_names(sources: list[Source]) -> None:
    """Raise `CommandFailed` for two documents of one name. An unreadable document has none."""
    found: dict[str, str] = {}
    for source in sources:
        name = workflow_name(source)
        if name is None:
            continue
        if name in found:
            twice = f"the workflow `{name}` is there twice: {found[name]} and {source.name}"
            raise CommandFailed(NO, twice, "Rename one of them, or take it away.")
        found[name] = source.name
