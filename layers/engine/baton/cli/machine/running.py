"""`baton up` from beginning to end: start, announce, reload, stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from baton.cli.documents.app import LAYER, load_app, set_environment, sources_of
from baton.cli.documents.workflows import check_documents, check_names, register_all
from baton.cli.machine.example import GUEST, PAGE, ROLES, Services, example_programs
from baton.cli.machine.project import rendered
from baton.cli.terminal.shared import print_json
from baton.cli.text.tables import printed_lines
from baton.client.api import Api
from baton.client.connection import (
    LOCAL_FILE,
    TEMPLATE,
    Connection,
    Owner,
    command_line,
    other_run,
    remove_local,
    write_local,
)
from baton.client.exits import NO, REFUSED, CommandFailed
from baton.core.conditions.document import example_of
from baton.local import debugging
from baton.local.functions import parameters_of, variables_of
from baton.local.logs import WORKER_LOG, LogFile
from baton.local.processes import LocalRunError, Tasks
from baton.local.run import PROCESSES, LocalRun, run_directory
from baton.settings import variable_of
from baton.words.text import plain

FIRST = "dinner"  # the example of this project, whose services are started with it


@dataclass(frozen=True, slots=True)
class Trial:
    """A first workflow to try, and its input as the only item. None if no valid input is known."""

    workflow: str
    given: tuple[Any] | None


async def to_try(api: Api, names: Sequence[str]) -> Trial | None:
    """Return the first workflow for which an input can be made, else the first one, or None."""
    first: Trial | None = None
    for name in sorted(names, key=lambda name: name != FIRST):
        schema = (await api.workflow(name))["input"]
        trial = Trial(name, ({},) if schema is None else example_of(schema))
        if trial.given is not None:
            return trial
        first = first or trial
    return first


@dataclass(frozen=True, slots=True)
class Bus:
    """The bus from which events are received, with their sources and their tenant."""

    sources: Sequence[str]
    tenant: str
    name: str

    @classmethod
    def of(cls, parameters: Mapping[str, str | list[str]]) -> Bus | None:
        """Return the bus, or None if no events are received. `parameters` are those of the template."""
        tenant = parameters.get("EventTenant")
        if not tenant:
            return None
        return cls(list(parameters["EventSources"]), str(tenant), str(parameters["EventSourceBus"]))

    def entry(self) -> str:
        """Return a request of PutEvents for the first source that is not one of AWS."""
        source = next((source for source in self.sources if not source.startswith("aws.")), "SOURCE")
        entry = {"Source": source, "DetailType": "TYPE", "Detail": "{}", "EventBusName": self.name}
        return json.dumps({"Entries": [entry]})


KILLED = (
    "The run before was killed. Tables are written when `up` ends, so what its sagas did since its start is lost, "
    "also the claims of calls that are made once."
)


@dataclass(frozen=True, slots=True)
class Running:
    """A running local deployment, with its addresses.

    `outside` contains services by name. `owner` is an earlier run in this directory. `data` is the folder of
    the sagas, if they are kept. `page` is that of the example's guest. `scripted`: true if its model is
    scripted.
    """

    connection: Connection
    endpoint: str
    logs: Path
    workflows: Sequence[str]
    outside: Mapping[str, str]
    owner: Owner | None
    data: Path | None = None
    page: str = ""
    scripted: bool = False
    bus: Bus | None = None

    def lines(self) -> Iterator[str]:
        """Yield lines with all addresses."""
        none_yet = f"none yet: put a .yaml file into your app, or `{command_line('deploy-workflow FILE')}`"
        where = f"also in {LOCAL_FILE}, where the baton command finds it"
        if self.owner:
            where = f"see below: {LOCAL_FILE} belongs to {self.owner.url}, process {self.owner.pid}, where commands go by themselves"
        yield "Baton is running. Ctrl-C stops it."
        yield f"  API            {self.connection.url}   (AWS endpoint {self.endpoint})"
        yield f"  console        {self.connection.url}/console"
        for name, url in self.outside.items():
            yield f"  {name:<14} {url}/books"
        if self.page:
            yield f"  dinner page    {self.page}   asks for an evening in words, as the user guest"
        if self.scripted:
            yield "  model          scripted, because OPENAI_API_KEY is not set: it plans evenings and nothing else"
        yield f"  workflows      {', '.join(self.workflows) or none_yet}"
        if self.bus:
            bus = self.bus
            yield f"  events         of {', '.join(bus.sources)} on the bus {bus.name} reach workflows of the tenant {bus.tenant}; one that the rule does not take is told here"
        yield f"  token          {where}"
        yield f"  other users    {command_line('token NAME --group GROUP')} prints a token of theirs, to show with --token"
        yield f"  logs           {self.logs}"
        if self.data:
            yield f"  data           {self.data}; a saga whose step was cut off by the last stop goes on when its lease is over, in a minute or two"

    def commands(self, trial: Trial | None) -> Iterator[str]:
        """Yield lines for a shell. Each can be run unchanged, unless a comment names a missing part."""
        url, show = self.connection.url, '-H "Authorization: Bearer $BATON_TOKEN"'
        yield f"export BATON_TOKEN={self.connection.token}"
        if self.owner:
            yield f"export BATON_URL={url}"
        if trial is None:
            yield f"curl -s {url}/workflows {show}"
            yield from self._put_event()
            return
        name, given = trial.workflow, (trial.given or ({},))[0]
        if trial.given is None:
            yield f"# `{name}` needs an input: {command_line(f'workflows {shlex.quote(name)}')} describes it"
        body = json.dumps({"workflow": name, "input": given})
        yield f"curl -s {url}/sagas {show} -H 'Content-Type: application/json' -d {_quoted(body)}"
        yield f"curl -s {url}/sagas {show}"
        yield from self._put_event()
        yield ""
        option = f" --input {_quoted(json.dumps(given))}" if given != {} or trial.given is None else ""
        yield command_line(f"start {shlex.quote(name)} --watch") + option

    def _put_event(self) -> Iterator[str]:
        if self.bus:
            yield "# an event of EventBridge; put in the type and the data that a rule of yours is for"
            headers = "-H 'X-Amz-Target: AWSEvents.PutEvents' -H 'Content-Type: application/x-amz-json-1.1'"
            yield f"curl -s {self.endpoint} {headers} -d {_quoted(self.bus.entry())}"


def farewell(data: Path | None) -> tuple[str, str]:
    """Return the messages about work that remains after a stop. `data`: the folder of kept sagas."""
    if data is None:
        sagas = f"The sagas are forgotten; to keep them the next time: {command_line('up --data DIR')}"
    else:
        again = command_line(f"up --data {shlex.quote(str(data))}")
        sagas = f"The sagas are kept in {data}, and the open ones go on with: {again}"
    return "Stopping the functions and the AWS; a step that is under way is cut off …", sagas


def _quoted(text: str) -> str:
    return shlex.quote(plain(text))


EVERY_S = 0.5
_WATCHED = (LAYER, Path("functions"))
_TOKEN = "BATON_RELOAD_TOKEN"  # noqa: S105  # a name
Files = Mapping[Path, tuple[int, int]]


def files_of(folders: Iterable[Path]) -> Files:
    """Return time and size of every file below the folders, but for bytecode and editors' copies."""
    found = {}
    for folder in folders:
        for place, names, files in os.walk(folder):
            names[:] = [name for name in names if not name.startswith((".", "__pycache__"))]
            for name in files:
                if name.startswith((".", "#")) or name.endswith(("~", ".pyc", ".tmp")):
                    continue
                try:
                    stat = Path(place, name).stat()
                except OSError:
                    continue  # it is gone already
                found[Path(place, name)] = (stat.st_mtime_ns, stat.st_size)
    return found


def changed_files(before: Files, after: Files) -> list[Path]:
    """Return the files that were added, removed or changed, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


async def changes(folders: Iterable[Path], every_s: float = EVERY_S) -> AsyncIterator[list[Path]]:
    """Yield the changed files, after each series of changes has ended."""
    folders = list(folders)
    taken = seen = files_of(folders)
    while True:
        await asyncio.sleep(every_s)
        now = await asyncio.to_thread(files_of, folders)
        if now == seen and now != taken:
            yield changed_files(taken, now)
            taken = now
        seen = now


async def reload_on_change(local: LocalRun, connection: Connection, root: Path, app: str) -> None:
    """Reload on changes until cancelled. An application that does not load changes nothing."""
    async for paths in changes([root / folder for folder in _WATCHED]):
        click.echo(f"Changed: {', '.join(str(path.relative_to(root)) for path in paths)}", err=True)
        if not await _ask("check", connection, root, app):
            click.echo("Not taken up; what ran before goes on.", err=True)
            continue
        try:
            await local.reload()
        except LocalRunError as error:
            click.echo(plain(f"baton: {error}"), err=True)
            click.echo("Not taken up: the functions fail until this is mended.", err=True)
            continue
        if not await _ask("register", connection, root, app):
            click.echo("Taken up: the code; not registered: the documents.", err=True)


LINES_EVERY_S = 0.2


async def show_lines(source: LogFile, every_s: float = LINES_EVERY_S) -> None:
    """Show what tools print and log, and the tracebacks of what they raise, until cancelled."""
    while True:
        for line in await asyncio.to_thread(lambda: list(source.read())):
            if line.of_tool:
                for text in printed_lines(line):
                    click.echo(text, err=True)
        await asyncio.sleep(every_s)


async def _ask(what: str, connection: Connection, root: Path, app: str) -> bool:
    """Run the program and return true if it succeeded. Its output goes to the same terminal."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, what, str(root), app, connection.url),
        env={**os.environ, _TOKEN: connection.token},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=sys.stderr,
    )
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()


def main(what: str, root: str, app: str, url: str) -> None:
    """Load the application and, to `register`, register its documents and report the accepted ones. Exit
    status 1 with the faults, unless only some documents are refused.
    """
    from baton.cli.documents.app import sources_of
    from baton.cli.documents.workflows import check_names, take_up
    from baton.client.api import Api

    async def register() -> None:
        async with Api(Connection(url, os.environ[_TOKEN])) as api:
            click.echo(plain(await take_up(api, sources, app)), err=True)

    try:
        sources = sources_of(load_app(app, Path(root)))
        check_names(sources)
        if what == "register":
            asyncio.run(register())
    except CommandFailed as failure:
        failure.show()
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])


DEBUGGED = {"WorkerTimeout": "900", "WakeVisibility": "960"}
"""Parameters of a run with `--debug`: an invocation has as much time as Lambda can give to one."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `baton up`."""

    root: Path
    port: int
    aws_port: int
    tenant: str
    user: str
    parameters: dict[str, str]
    app: str
    data: Path | None
    keep_logs: bool
    as_json: bool
    debug: bool = False


def template_of(root: Path) -> tuple[Path, dict[str, str]]:
    """Return the template of a project, and its secrets' values on this machine. Raises `CommandFailed`."""
    set_environment(root)
    config = rendered(root)
    if config is None:
        return root / TEMPLATE, {}
    from baton.project.deployment import LOCAL_TEMPLATE
    from baton.project.deployment import TEMPLATE as RENDERED

    found = {name: os.environ.get(name, "") for name in config.secrets}
    if missing := [name for name, value in found.items() if not value]:
        raise CommandFailed(
            REFUSED,
            f"baton.toml: secrets.{missing[0]}: the secret has no value on this machine",
            f"Set the variable {missing[0]} in this shell, or write `{missing[0]}=…` into .env.",
            *(f"So has not: secrets.{name}" for name in missing[1:]),
        )
    if found:
        found[variable_of("secrets")] = ""  # the values are here: no function looks for them
    return root / (LOCAL_TEMPLATE if config.functions.package == "image" else RENDERED), found


async def run_until_stopped(wanted: RunOptions) -> None:
    """Start, announce, wait for the end, stop. Raises `CommandFailed`."""
    root = wanted.root
    template, own = template_of(root)
    sources = sources_of(load_app(wanted.app, root))
    check_names(sources)
    check_documents(sources, wanted.app, template, wanted.parameters, wanted.tenant)
    async with contextlib.AsyncExitStack() as stack:
        # Callers of a local run show its own tokens, whatever a deployment wants of them.
        given = {"AppModule": wanted.app, "AuthMode": "jwt"} | parameters_of(os.environ)
        if wanted.parameters.get("EventSources"):
            given["EventTenant"] = wanted.tenant
        outside: dict[str, str] = {}
        variables, page, scripted = variables_of(os.environ) | own, "", False
        if wanted.debug:
            given |= DEBUGGED
            hook = os.environ.get("PYTHONBREAKPOINT", debugging.HOOK)
            variables |= {debugging.TERMINAL: os.ttyname(sys.stdin.fileno()), "PYTHONBREAKPOINT": hook}
        services: Services | None = None
        if Services.exist(root):
            parts = example_programs(root, wanted.app, wanted.parameters, os.environ)
            services = await stack.enter_async_context(Services(root, parts.modules))
            given |= parts.parameters(services)
            variables |= parts.variables
            outside, scripted = services.urls, parts.scripted
            page = outside.pop(PAGE, "")
        local = LocalRun(
            template,
            run_dir=run_directory(root),
            parameters=given | wanted.parameters,
            variables=variables,
            api_port=wanted.port,
            aws_port=wanted.aws_port,
            data=wanted.data,
            process_limit=1 if wanted.debug else PROCESSES,
            signs_in=(wanted.user, wanted.tenant),
        )
        if not wanted.keep_logs:
            stack.push(_removal_of(local.run_dir))
        try:
            await stack.enter_async_context(local)
        except LocalRunError as error:
            hints = [*_logs_hints(local.run_dir), *_port_hints(str(error), wanted.port)]
            raise CommandFailed(NO, str(error), *hints) from error
        _say_what_a_bus_does_not_hand_on(stack)
        connection = Connection(local.url, local.token(wanted.user, wanted.tenant))
        async with Api(connection) as api:
            names = await register_all(api, sources)
            tried = await to_try(api, names)
        if page and services is not None:
            guest = local.token(GUEST, wanted.tenant, roles=ROLES)
            await services.tell(PAGE, {"url": local.url, "token": guest})
        # Another run may have been quicker while everything started.
        owner = other_run(root)
        if owner is None:
            write_local(root, connection, local.run_dir / "logs")
            stack.callback(remove_local, root)
        if wanted.as_json:
            print_json(
                {
                    "url": local.url,
                    "endpoint": local.endpoint,
                    "file": None if owner else str(root / LOCAL_FILE),
                    "workflows": names,
                    "services": outside,
                    "page": page or None,
                    "logs": str(local.run_dir / "logs"),
                }
            )
        else:
            logs = local.run_dir / "logs"
            running = Running(
                connection,
                local.endpoint,
                logs,
                names,
                outside,
                owner,
                wanted.data,
                page,
                scripted,
                Bus.of(local.parameters),
            )
            for line in (*running.lines(), "", *running.commands(tried)):
                click.echo(line)
        if local.was_killed:
            click.echo(KILLED, err=True)
        beside = Tasks("the reload")
        stack.push_async_callback(beside.cancelled)
        beside.start(reload_on_change(local, connection, root, wanted.app))
        beside.start(show_lines(LogFile(local.run_dir / "logs" / WORKER_LOG)))
        await _until_stopped()
        for line in farewell(wanted.data):
            click.echo(line, err=True)


def _say_what_a_bus_does_not_hand_on(stack: contextlib.AsyncExitStack) -> None:
    handler, log = logging.StreamHandler(), logging.getLogger("baton.local.bus")
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)


def _removal_of(run_dir: Path) -> Callable[[type[BaseException] | None, object, object], None]:
    """Return a function that removes the logs of a run that did not fail, or had a refused document."""

    def remove(kind: type[BaseException] | None, error: object, _trace: object) -> None:
        is_refused = isinstance(error, CommandFailed) and error.exit_code == REFUSED
        if kind is None or is_refused or not issubclass(kind, Exception):
            shutil.rmtree(run_dir, ignore_errors=True)

    return remove


def _logs_hints(run_dir: Path) -> tuple[str, ...]:
    """Return hints to the logs of a failed start. A directory without files is removed."""
    if any(file.stat().st_size for file in run_dir.rglob("*.log")):
        return (f"The logs are in {run_dir / 'logs'}.",)
    shutil.rmtree(run_dir, ignore_errors=True)
    return ()


def _port_hints(why: str, port: int) -> tuple[str, ...]:
    """Return hints for a port that another program uses."""
    return (f"To take any free port: {command_line('up --port 0')}",) if port and str(port) in why else ()


async def _until_stopped() -> None:
    """Wait for Ctrl-C, SIGTERM or the end of the terminal. The starter of processes ends them."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup wants it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
