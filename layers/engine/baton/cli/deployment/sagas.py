"""The commands that start sagas and look at them: start, intend, show, events, explain, list, cost.

How an answer looks is in text/render.py, how long a command stays with a saga in terminal/watching.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from baton.cli.deployment.starting import (
    Start,
    correlation_option,
    given_input,
    given_labels,
    input_option,
    label_option,
    set_option,
)
from baton.cli.terminal.completion import complete_nodes, saga_argument, workflow_argument
from baton.cli.terminal.durations import Duration, Moment
from baton.cli.terminal.numbers import Whole
from baton.cli.terminal.shared import (
    Shared,
    console,
    gathered,
    json_option,
    key_option,
    paired,
    print_json,
    print_table,
    terminal_width,
)
from baton.cli.terminal.values import text_hints
from baton.client.exits import REFUSED, Failed, Interrupted
from baton.client.program import typed
from baton.words.text import plain

if TYPE_CHECKING:
    from baton.client.api import Api

LISTED = 50

every_option = click.option(
    "--every",
    type=Duration(),
    help="How often to look. Default: after 1s, and up to 15s while nothing changes.",
)


_watch_option = click.option("--watch", is_flag=True, help="Go on as `baton show --watch` does.")


@click.command(cls=Start, short_help="Start a saga of a registered workflow.")
@workflow_argument
@input_option
@set_option
@label_option
@correlation_option
@_watch_option
@every_option
@key_option
@json_option
@click.pass_obj
def start(
    shared: Shared,
    workflow: str,
    given: str | None,
    pairs: tuple[str, ...],
    labels: tuple[str, ...],
    correlation: str,
    watch: bool,
    every: float | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Start a saga of a registered workflow, NAME or NAME@VERSION."""
    value = given_input(given, pairs)
    named = given_labels(labels)
    _begin(
        shared, lambda api: api.start(workflow, value, key, named, correlation), pairs, watch, every, as_json
    )


@click.command(cls=Start, short_help="Start a saga from words.")
@click.argument("words")
@input_option
@set_option
@_watch_option
@every_option
@key_option
@json_option
@click.pass_obj
def intend(
    shared: Shared,
    words: str,
    given: str | None,
    pairs: tuple[str, ...],
    watch: bool,
    every: float | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Say in WORDS what you want: starts a saga of the deployment's workflow for that.

    Its parameter IntentionWorkflow names it. What the workflow needs besides is given with --set or --input.
    """
    value = given_input(given, pairs)
    if not isinstance(value, dict):
        raise click.BadParameter("the words can only be added to an object", param_hint="--input")
    _begin(shared, lambda api: api.intend(words, value, key), pairs, watch, every, as_json)


def _begin(
    shared: Shared,
    starts: Callable[[Api], Awaitable[dict[str, Any]]],
    pairs: tuple[str, ...],
    watch: bool,
    every: float | None,
    as_json: bool,
) -> None:
    async def run(api: Api) -> str:
        try:
            saga = await starts(api)
        except Failed as refusal:
            raise refusal.hinting(*text_hints(pairs, refusal.problems())) from refusal
        if as_json and not watch:
            print_json(saga)
        elif not as_json:
            click.echo(f"{saga['id']}  {saga['workflow']}, {saga['status']}")
            if not watch:
                click.echo("Follow it with: " + typed(f"show {saga['id']} --watch"), err=True)
        return str(saga["id"])

    saga = shared.call(run)
    if watch:
        _watch(shared, saga, every, as_json)


@click.command()
@saga_argument
@click.option(
    "--watch", is_flag=True, help="Stay until the saga ends or needs a person; status 1 unless it completed."
)
@every_option
@json_option
@click.pass_obj
def show(shared: Shared, saga: str, watch: bool, every: float | None, as_json: bool) -> None:
    """Show where a saga is. With --json --watch: a line of JSON for each change."""
    if watch:
        _watch(shared, saga, every, as_json)
        return
    found = shared.call(lambda api: api.show(saga))
    if as_json:
        print_json(found)
    else:
        from baton.cli.terminal.watching import now
        from baton.cli.text.render import saga_table
        from baton.cli.text.waiting import helping

        print_table(saga_table(found, now(), terminal_width()))
        for why, command in helping(found):
            click.echo(paired(f"{why}:", command), err=True)


@click.command()
@saga_argument
@click.option("--after", type=Whole(min=0), help="Only entries with a version above this.")
@click.option("--limit", type=Whole(min=1), help="At most this many entries. Default: all.")
@click.option(
    "--follow",
    is_flag=True,
    help="Stay for new entries until the saga ends or needs a person; status 1 unless it completed.",
)
@every_option
@json_option
@click.pass_obj
def events(
    shared: Shared,
    saga: str,
    after: int | None,
    limit: int | None,
    follow: bool,
    every: float | None,
    as_json: bool,
) -> None:
    """Show the log of a saga. With --json: one entry per line."""
    if follow and limit:
        raise click.UsageError("--follow has no end for --limit to set: give one of them")
    from baton.cli.text.render import EventLines

    lines = EventLines(terminal_width())

    def print_entry(entry: Mapping[str, Any]) -> None:
        if as_json:
            print_json(entry, line=True)
        else:
            for line in lines.of(entry):
                console().print(line)

    async def run(api: Api) -> None:
        if follow:
            from baton.cli.terminal import watching

            await watching.follow(api, saga, after or 0, every, print_entry)
            return
        async for entry in api.events(saga, after, limit):
            print_entry(entry)

    try:
        shared.call(run)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None


@click.command(short_help="Show what the models of a saga are writing.")
@saga_argument
@every_option
@json_option
@click.pass_obj
def live(shared: Shared, saga: str, every: float | None, as_json: bool) -> None:
    """Show what the models of a saga are writing, while they write it, until the saga ends. With --json: a line for each change."""
    from baton.cli.terminal import living

    def print_document(found: Mapping[str, Any]) -> None:
        print_json(found, line=True)

    show = print_document if as_json else living.Writer(lambda text: click.echo(text, nl=False)).show
    try:
        shared.call(lambda api: living.live(api, saga, every, show))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None
    if not as_json:
        click.echo()


@click.command(short_help="Show which way a saga went, or why a node did not run.")
@saga_argument
@click.argument("node", required=False, shell_complete=complete_nodes)
@click.option("--after", type=Whole(min=0), help="Only nodes settled by a version above this.")
@click.option("--limit", type=Whole(min=1), help="About this many nodes. Default: all.")
@json_option
@click.pass_obj
def explain(
    shared: Shared, saga: str, node: str | None, after: int | None, limit: int | None, as_json: bool
) -> None:
    """Show which way a saga went: its nodes in the order in which they were settled. With NODE: why it ran or did
    not, in each of its rounds, followed to the cause.
    """
    if node is not None:
        if after is not None or limit is not None:
            raise click.UsageError("--after and --limit are for the way of a saga, without NODE")
        found = shared.call(lambda api: api.explain(saga, node))
        if as_json:
            print_json(found)
            return
        from baton.cli.text.explained import node_lines

        for line in node_lines(found, terminal_width()):
            console().print(line)
        return
    from baton.cli.text.explained import rest_lines, start_lines, step_lines

    async def run(api: Api) -> None:
        steps: list[Any] = []
        page: dict[str, Any] = {}
        start: str | None = None
        async for page in api.way(saga, after, limit):
            if as_json:
                steps, start = steps + page["steps"], start or page.get("start")
                continue
            lines = (*start_lines(page, terminal_width()), *step_lines(page["steps"], terminal_width()))
            for line in lines:
                console().print(line)
        if as_json:
            print_json(page | {"start": start, "steps": steps})
            return
        for line in rest_lines(page, terminal_width()):
            console().print(line)
        if page["next"] is not None:
            click.echo(f"There is more: --after {page['next']}", err=True)

    shared.call(run)


@click.command("list")
@click.option(
    "--status",
    metavar="STATUS",
    help="Only these: running, waiting, suspended, parked, completed, failed, cancelled, or a group: open, done.",
)
@click.option("--workflow", metavar="NAME", help="Only sagas of this workflow.")
@click.option(
    "--label",
    "labels",
    metavar="NAME=VALUE",
    multiple=True,
    help="Only sagas with this label; repeat it for all of several.",
)
@click.option(
    "--since",
    type=Moment(),
    help="Only those that began to run, to wait or ended since: 2h, 3d, or a time in ISO 8601.",
)
@click.option(
    "--limit", type=Whole(min=1), default=LISTED, show_default=True, help="At most this many sagas."
)
@click.option("--all", "everything", is_flag=True, help="All of them, however many.")
@click.option(
    "--cursor", metavar="CURSOR", help="Go on where an earlier list stopped: `next` of its --json answer."
)
@json_option
@click.pass_obj
def list_sagas(
    shared: Shared,
    status: str | None,
    workflow: str | None,
    labels: tuple[str, ...],
    since: str | None,
    limit: int,
    everything: bool,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List sagas, the latest change of status first. With --json: {"sagas": […], "next": CURSOR or null}."""
    wanted = ",".join(f"{name}={value}" for name, value in given_labels(labels).items())
    filters = {"status": status, "workflow": workflow, "label": wanted, "since": since}
    given = {name: value for name, value in filters.items() if value}

    most = None if everything else limit
    found, after = shared.call(lambda api: gathered(api.sagas(given, most, cursor), "saga"))
    if as_json:
        print_json({"sagas": found, "next": after})
        return
    from baton.cli.text.tables import saga_rows

    for line in saga_rows(found, terminal_width()):
        console().print(line)
    if not found:
        why = shared.call(lambda api: _missing(api, workflow)) if workflow else ""
        click.echo(("no such sagas" if given else "no sagas yet") + why, err=True)
    if after:
        click.echo("There are more: --limit N or --all.", err=True)


async def _missing(api: Api, workflow: str) -> str:
    """What the API says of a workflow that it has not; nothing of one that it has."""
    try:
        await api.workflow(workflow)
    except Failed as failure:
        if failure.exit_code == REFUSED and failure.problem.get("detail"):
            return plain(f": {failure.problem['detail']}")
    return ""


def _watch(shared: Shared, saga: str, every: float | None, as_json: bool) -> None:
    from baton.cli.terminal import watching

    try:
        shared.call(lambda api: watching.watch(api, saga, every, as_json=as_json))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None
