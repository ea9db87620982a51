"""Commands that start sagas and read them: start, intend, show, events, logs, explain, list, cost, value."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from baton.cli.terminal.completion import complete_nodes, saga_argument, workflow_argument
from baton.cli.terminal.shared import (
    Listing,
    Shared,
    gather_pages,
    json_option,
    key_option,
    list_options,
    print_json,
    print_lines,
    print_more,
    print_table,
    terminal_width,
    title_and_command,
)
from baton.cli.terminal.values import Duration, Moment, Whole, read_pairs, read_value, text_hints
from baton.client.connection import (
    CONFIG,
    LOCAL_FILE,
    SHORTEST,
    Connection,
    command_line,
    is_here,
    local_logs,
)
from baton.client.exits import REFUSED, USAGE, CommandFailed, Interrupted
from baton.words.text import plain

if TYPE_CHECKING:
    from baton.client.api import Api
    from baton.local.logs import LogLine


class Start(click.Command):
    """Command `start`, with a hint for misplaced arguments such as `name=Ada`."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            many = "s" if len(rest) > 1 else ""
            are_pairs = all("=" in each.lstrip("=") for each in rest)
            pairs = " ".join(f"--set {shlex.quote(pair)}" for pair in rest)
            hint = f": write {pairs}" if are_pairs else ""
            ctx.fail(f"Got unexpected extra argument{many} ({' '.join(rest)}){hint}")
        return rest


input_option = click.option(
    "--input", "given", metavar="JSON", help="The input: JSON, @FILE (JSON or YAML), or - for standard input."
)
set_option = click.option(
    "--set",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="Property of the input; repeat the option for more.",
)
label_option = click.option(
    "--label",
    "labels",
    metavar="NAME=VALUE",
    multiple=True,
    help="Label by which lists find it; repeat the option for more.",
)
correlation_option = click.option(
    "--correlation-key",
    "correlation",
    default="",
    help="Key by which events from outside find it. The workflow has one saga for each key.",
)


def given_input(given: str | None, pairs: tuple[str, ...]) -> Any:
    """Return the input of `--input` and `--set`."""
    value = read_value(given, "--input")
    if pairs:
        if value is not None and not isinstance(value, dict):
            raise click.BadParameter("can only be added to an input that is an object", param_hint="--set")
        value = (value or {}) | read_pairs(pairs, "--set")
    return {} if value is None else value


def given_labels(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of `--label`."""
    from baton.core.log.labels import read_labels

    found: dict[str, str] = {}
    for pair in pairs:
        try:
            found |= read_labels(pair)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--label") from None
    return found


every_option = click.option(
    "--every",
    type=Duration(),
    help="Interval between requests. Default: after 1s, and up to 15s while nothing changes.",
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
    """Start a saga of a registered workflow, NAME, NAME@VERSION or NAME@TAG."""
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
    """Start a saga of the deployment's intention workflow with WORDS.

    The parameter IntentionWorkflow names the workflow. Give its further input with --set or --input.
    """
    value = given_input(given, pairs)
    if not isinstance(value, dict):
        raise click.BadParameter("the words can only be added to an object", param_hint="--input")
    _begin(shared, lambda api: api.intend(words, value, key), pairs, watch, every, as_json)


@click.command(cls=Start, short_help="Call a tool ahead of the steps that need it.")
@click.argument("name", metavar="TOOL")
@input_option
@set_option
@_watch_option
@every_option
@json_option
@click.pass_obj
def warm(
    shared: Shared,
    name: str,
    given: str | None,
    pairs: tuple[str, ...],
    watch: bool,
    every: float | None,
    as_json: bool,
) -> None:
    """Call a TOOL that declares a cache, ahead of the steps that need its result.

    Give its arguments with --set or --input. Steps of your sagas that call it with equal ones take the
    result, while it is kept.
    """
    value = given_input(given, pairs)
    if not isinstance(value, dict):
        raise click.BadParameter("arguments are an object", param_hint="--input")
    _begin(shared, lambda api: api.warm(name, value), pairs, watch, every, as_json)


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
        except CommandFailed as refusal:
            raise refusal.hinting(*text_hints(pairs, refusal.problems())) from refusal
        if as_json and not watch:
            print_json(saga)
        elif not as_json:
            click.echo(f"{saga['id']}  {saga['workflow']}, {saga['status']}")
            if not watch:
                click.echo("Follow it with: " + command_line(f"show {saga['id']} --watch"), err=True)
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
    """Show the state of a saga. With --json --watch: a line of JSON for each change."""
    if watch:
        _watch(shared, saga, every, as_json)
        return
    found = shared.call(lambda api: api.show(saga))
    if as_json:
        print_json(found)
    else:
        from baton.cli.terminal.watching import now
        from baton.cli.text.render import helping, saga_table

        if found.get("failing"):
            shared.call(lambda api: _add_inputs(api, found))
        print_table(saga_table(found, now(), terminal_width()))
        # Until its repair, which the table begins with, the saga accepts nothing else.
        for why, command in () if found.get("unreadable") or found.get("missing_graph") else helping(found):
            click.echo(title_and_command(f"{why}:", command), err=True)


async def _add_inputs(api: Api, saga: Mapping[str, Any]) -> None:
    """Give each step that has failed and goes on its present input."""
    found: dict[Any, Any] = {}
    async for page in api.steps(saga["id"], after=saga["version"]):
        found |= {_place(run): run["input"] for run in page["steps"] if run["outcome"] == "open"}
    for step in saga["failing"]:
        step["input"] = found.get(_place(step))


def _place(step: Mapping[str, Any]) -> tuple[Any, ...]:
    return step["node"], *step["iteration"], step.get("item")


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
    from baton.words.event_words import unreadable_line
    from baton.words.text import plain

    lines = EventLines(terminal_width())

    def print_entry(entry: Mapping[str, Any]) -> None:
        if as_json:
            print_json(entry, line=True)
        else:
            print_lines(lines.of(entry))

    async def run(api: Api) -> None:
        if follow:
            from baton.cli.terminal import watching

            await watching.follow_entries(api, saga, after or 0, every, print_entry)
            return
        lost: list[dict[str, Any]] = []
        async for entry in api.events(saga, after, limit, lost):
            print_entry(entry)
        for one in lost:
            click.echo(plain(unreadable_line(one)), err=True)

    try:
        shared.call(run)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None


EVERY_S = 2.0
LOCAL_EVERY_S = 0.3


class _Source(Protocol):
    def read(self) -> Iterator[LogLine]: ...


@click.command(short_help="Show what the tools of a saga print and log.")
@saga_argument
@click.option("--follow", is_flag=True, help="Stay for new lines, until the saga ends.")
@click.option(
    "--since", type=Moment(), help="Only lines since: so long ago (2h), or a time. Default: its start."
)
@click.option(
    "--stack",
    envvar="BATON_STACK",
    help="Name of the deployment's stack. Default: that of baton.toml.  [env: BATON_STACK]",
)
@json_option
@click.pass_obj
def logs(
    shared: Shared, saga: str, follow: bool, since: str | None, stack: str | None, as_json: bool
) -> None:
    """Show what the tools of a saga and of its children print and log, and the tracebacks of what they raise.

    Of the local run it reads the file that `baton up` keeps, of a deployment CloudWatch Logs, with your AWS
    credentials, which need the permission logs:FilterLogEvents.
    """
    from baton.client import transport
    from baton.core.log.state import FINISHED
    from baton.words.text import epoch_ms

    connection = shared.connection()

    async def run(api: Api) -> bool:
        found = await api.show(saga)
        name, begin = str(found["id"]), epoch_ms(since) or epoch_ms(found["created_at"]) or 0
        source, is_shown = _source_of(connection, name, begin, stack), False
        pause_s = LOCAL_EVERY_S if local_logs(connection) else EVERY_S
        while True:
            is_over = found["status"] in FINISHED
            for line in _lines(source):
                at = epoch_ms(line.at)  # to the second, in the files of a local run
                if line.is_about(name) and (at is None or at // 1_000 >= begin // 1_000):
                    _show(line, as_json=as_json)
                    is_shown = True
            if not follow or is_over:
                return is_shown
            await transport.pause(pause_s)
            found = await api.show(name)

    try:
        is_shown = shared.call(run)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None
    if not is_shown and not as_json:
        click.echo("It has no lines here.", err=True)


def _lines(source: _Source) -> Iterator[LogLine]:
    from baton.local.processes import LocalRunError

    try:
        yield from source.read()
    except LocalRunError as error:
        raise CommandFailed(REFUSED, str(error)) from error


def _source_of(connection: Connection, saga: str, since: int, stack: str | None) -> _Source:
    from baton.local.logs import WORKER_LOG, CloudWatchLog, LogFile
    from baton.local.processes import LocalRunError

    folder = local_logs(connection)
    if folder is not None and stack is None:
        return LogFile(folder / WORKER_LOG)
    if stack is None and is_here(connection.url):
        raise CommandFailed(
            USAGE,
            f"{connection.url} is another run than that of {LOCAL_FILE}, and its logs are not known here",
            "`baton up` prints their folder.",
        )
    name, region = (stack, "") if stack else _stack_here()
    try:
        return CloudWatchLog(name, connection.region or region, saga, since)
    except LocalRunError as error:
        raise CommandFailed(REFUSED, str(error)) from error


def _stack_here() -> tuple[str, str]:
    """Return name and region of the stack in baton.toml."""
    import tomllib

    for directory in (Path.cwd(), *Path.cwd().parents):
        if (directory / CONFIG).is_file():
            try:
                found = tomllib.loads((directory / CONFIG).read_text("utf-8"))
                return str(found["stack"]), str(found.get("region", ""))
            except (OSError, ValueError, KeyError) as error:
                raise CommandFailed(USAGE, f"{directory / CONFIG} has no `stack`: {error}") from error
    raise CommandFailed(
        USAGE, "the stack of the deployment is not known", "Write --stack NAME, or set BATON_STACK."
    )


def _show(line: LogLine, *, as_json: bool) -> None:
    if as_json:
        fields = ("at", "saga", "slot", "attempt", "level", "text")
        print_json({name: getattr(line, name) for name in fields}, line=True)
        return
    from baton.cli.text.tables import printed_lines

    for text in printed_lines(line, with_time=True):
        click.echo(text)


@click.command(short_help="Show what the models of a saga are writing.")
@saga_argument
@every_option
@json_option
@click.pass_obj
def live(shared: Shared, saga: str, every: float | None, as_json: bool) -> None:
    """Show the texts that the models of a saga are generating, until the saga ends. With --json: a line for
    each change.
    """
    from baton.cli.terminal import watching

    def print_document(found: Mapping[str, Any]) -> None:
        print_json(found, line=True)

    show = print_document if as_json else watching.Writer(lambda text: click.echo(text, nl=False)).show
    try:
        shared.call(lambda api: watching.live(api, saga, every, show))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None
    if not as_json:
        click.echo()


@click.command(short_help="Show the messages to the agents of a saga, and their answers.")
@saga_argument
@click.option("--after", type=Whole(min=0), help="Only messages of entries with a version above this.")
@json_option
@click.pass_obj
def messages(shared: Shared, saga: str, after: int | None, as_json: bool) -> None:
    """Show the messages to the agents of a saga, and their answers. With --json: one message per line."""
    from baton.words.text import plain

    async def run(api: Api) -> None:
        async for page in api.messages(saga, after):
            for one in page["messages"]:
                if as_json:
                    print_json(one, line=True)
                    continue
                text = "ends the conversation" if one["ends"] and one["by"] else one["text"]
                unread = "" if one["heard"] else "  (not read yet)"
                click.echo(plain(f"{one['at'][11:19]}  {one['node'] or one['by']}: {text}{unread}"))

    shared.call(run)


@click.command(short_help="Show the attempts of a saga, with inputs and outputs.")
@saga_argument
@click.option(
    "--kind",
    type=click.Choice(["step", "undo", "alternative"]),
    help="Only attempts of steps, of inverses, or of a model's alternatives.",
)
@click.option("--after", type=Whole(min=0), help="Only attempts that ended by a version above this.")
@click.option("--limit", type=Whole(min=1), help="About this many. Default: all.")
@json_option
@click.pass_obj
def steps(
    shared: Shared, saga: str, kind: str | None, after: int | None, limit: int | None, as_json: bool
) -> None:
    """Show the attempts of a saga in the order of its log, each with its input and output. Secrets are
    masked, and long texts are cut. With --json: {"steps": […], "next": VERSION or null}.
    """
    from baton.cli.text.render import run_lines

    async def run(api: Api) -> None:
        found: list[Any] = []
        page: dict[str, Any] = {}
        async for page in api.steps(saga, kind or "", after, limit):
            found += page["steps"]
            for one in () if as_json else page["steps"]:
                print_lines(run_lines(one, terminal_width()))
        if as_json:
            print_json(page | {"steps": found})
        elif page["next"] is not None:
            click.echo(f"There is more: --after {page['next']}", err=True)

    shared.call(run)


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
    """Show the path of a saga: its nodes in the order in which they were settled. With NODE: why it ran or
    did not run, in each of its rounds, down to the cause.
    """
    if node is not None:
        if after is not None or limit is not None:
            raise click.UsageError("--after and --limit are for the way of a saga, without NODE")
        if "/" in node:  # an operation in a task: its name in the log has none
            from baton.tools.functions.loop import item_of

            node = item_of(node)
        found = shared.call(lambda api: api.explain(saga, node))
        if as_json:
            print_json(found)
            return
        from baton.cli.text.render import node_lines

        print_lines(node_lines(found, terminal_width()))
        return
    from baton.cli.text.render import rest_lines, start_lines, step_lines

    async def run(api: Api) -> None:
        steps: list[Any] = []
        page: dict[str, Any] = {}
        start: str | None = None
        async for page in api.way(saga, after, limit):
            if as_json:
                steps, start = steps + page["steps"], start or page.get("start")
                continue
            lines = (*start_lines(page, terminal_width()), *step_lines(page["steps"], terminal_width()))
            print_lines(lines)
        if as_json:
            print_json(page | {"start": start, "steps": steps})
            return
        print_lines(rest_lines(page, terminal_width()))
        if page["next"] is not None:
            click.echo(f"There is more: --after {page['next']}", err=True)

    shared.call(run)


@click.command("list")
@click.option(
    "--status",
    metavar="STATUS",
    help="Only these: running, waiting, suspended, parked, paused, completed, failed, cancelled, or a group: open, done.",
)
@click.option("--workflow", metavar="NAME", help="Only sagas of this workflow.")
@click.option("--user", metavar="NAME", help="Only sagas of this user.")
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
@list_options("sagas")
@json_option
@click.pass_obj
def list_sagas(
    shared: Shared,
    status: str | None,
    workflow: str | None,
    user: str | None,
    labels: tuple[str, ...],
    since: str | None,
    listing: Listing,
    as_json: bool,
) -> None:
    """List sagas, ordered by latest change of status. With --json: {"sagas": […], "next": CURSOR or null}."""
    wanted = ",".join(f"{name}={value}" for name, value in given_labels(labels).items())
    filters = {"status": status, "workflow": workflow, "user": user, "label": wanted, "since": since}
    given = {name: value for name, value in filters.items() if value}
    found, after = shared.call(
        lambda api: gather_pages(api.sagas(given, listing.most, listing.cursor), "saga")
    )
    if as_json:
        print_json({"sagas": found, "next": after})
        return
    from baton.cli.text.tables import saga_rows

    print_lines(saga_rows(found, terminal_width()))
    if not found:
        why = shared.call(lambda api: _missing(api, workflow)) if workflow else ""
        click.echo(("no such sagas" if given else "no sagas yet") + why, err=True)
    print_more(after)


async def _missing(api: Api, workflow: str) -> str:
    """Return the API's message about an unknown workflow, empty for a known one."""
    try:
        await api.workflow(workflow)
    except CommandFailed as failure:
        if failure.exit_code == REFUSED and failure.problem.get("detail"):
            return plain(f": {failure.problem['detail']}")
    return ""


def _watch(shared: Shared, saga: str, every: float | None, as_json: bool) -> None:
    from baton.cli.terminal import watching

    try:
        shared.call(lambda api: watching.watch(api, saga, every, as_json=as_json))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the saga itself goes on") from None


SCHEME = "cas://sha256/"
_WHOLE = 64
_DIGITS = re.compile(rf"[0-9a-f]{{{SHORTEST},{_WHOLE}}}")


@click.command(short_help="Print a value that the log names by cas://….")
@saga_argument
@click.argument("reference")
@json_option
@click.pass_obj
def value(shared: Shared, saga: str, reference: str, as_json: bool) -> None:  # it is JSON anyway
    """Print a value that a saga's log refers to as cas://sha256/…, as JSON.

    REFERENCE can be truncated, as `baton events` truncates it in a narrow terminal.
    """
    digits = reference.removeprefix(SCHEME).partition("@")[0].rstrip("….")
    if not _DIGITS.fullmatch(digits):
        raise click.UsageError(f"a reference is {SCHEME} and {SHORTEST} to {_WHOLE} hexadecimal digits")

    async def run(api: Api) -> Any:
        whole = digits if len(digits) == _WHOLE else await _begun_with(api, saga, digits)
        return await api.value(saga, whole)

    print_json(shared.call(run))


async def _begun_with(api: Api, saga: str, digits: str) -> str:
    """Return the one digest in the saga's log with this beginning. Raises `CommandFailed`."""
    begun = SCHEME + digits
    found = {
        ref.partition("@")[0]
        async for entry in api.events(saga)
        for ref in _references(entry)
        if ref.startswith(begun)
    }
    if not found:
        raise CommandFailed(REFUSED, f"the log of {saga} names no value {begun}…")
    if len(found) > 1:
        raise CommandFailed(
            USAGE, f"{begun}… is the beginning of {len(found)} values: write more", *sorted(found)[:10]
        )
    return found.pop().removeprefix(SCHEME)


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(ref := part.get("ref"), str) and ref.startswith(SCHEME):
            yield ref
        for item in part.values():
            yield from _references(item)
    elif isinstance(part, list):
        for item in part:
            yield from _references(item)
