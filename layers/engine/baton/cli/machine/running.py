"""What `baton up` does: start the local run, say how to reach it, stop it again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from baton.cli.documents.app import load_app
from baton.cli.documents.app_documents import check_documents
from baton.cli.documents.registering import check_names, register_all
from baton.cli.documents.sources import sources_of
from baton.cli.machine.announcing import Bus, Running, farewell, to_try
from baton.cli.machine.example import GUEST, ROLES, parts_of
from baton.cli.machine.reloading import reload_on_change
from baton.cli.machine.services import PAGE, Services
from baton.cli.terminal.shared import print_json
from baton.client.api import Api
from baton.client.connection import (
    LOCAL_FILE,
    TEMPLATE,
    Connection,
    owner_of,
    remove_local,
    write_local,
)
from baton.client.exits import NO, REFUSED, Failed
from baton.client.program import typed
from baton.local.functions.model_keys import parameters_of, variables_of
from baton.local.processes.problems import LocalRunError
from baton.local.processes.tasks import Tasks
from baton.local.run import LocalRun


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line said."""

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


async def run_until_stopped(wanted: Wanted) -> None:
    """Start, announce, wait for the end, stop. Raises `Failed`."""
    root = wanted.root
    sources = sources_of(load_app(wanted.app, root))
    check_names(sources)
    check_documents(sources, wanted.app, root / TEMPLATE, wanted.parameters, wanted.tenant)
    async with contextlib.AsyncExitStack() as stack:
        given = {"AppModule": wanted.app} | parameters_of(os.environ)
        if wanted.parameters.get("EventSources"):
            given["EventTenant"] = wanted.tenant
        outside: dict[str, str] = {}
        variables, page, scripted = variables_of(os.environ), "", False
        services: Services | None = None
        if Services.exist(root):
            parts = parts_of(root, wanted.app, wanted.parameters, os.environ)
            services = await stack.enter_async_context(Services(root, parts.modules))
            given |= parts.parameters(services)
            variables |= parts.variables
            outside, scripted = services.urls, parts.scripted
            page = outside.pop(PAGE, "")
        local = LocalRun(
            root / TEMPLATE,
            parameters=given | wanted.parameters,
            variables=variables,
            api_port=wanted.port,
            aws_port=wanted.aws_port,
            data=wanted.data,
            signs_in=(wanted.user, wanted.tenant),
        )
        if not wanted.keep_logs:
            stack.push(_removal_of(local.run_dir))
        try:
            await stack.enter_async_context(local)
        except LocalRunError as error:
            hints = [*_logs_hints(local.run_dir), *_port_hints(str(error), wanted.port)]
            raise Failed(NO, str(error), *hints) from error
        _say_what_a_bus_does_not_hand_on(stack)
        connection = Connection(local.url, local.token(wanted.user, wanted.tenant))
        async with Api(connection) as api:
            names = await register_all(api, sources)
            tried = await to_try(api, names)
        if page and services is not None:
            guest = local.token(GUEST, wanted.tenant, roles=ROLES)
            await services.tell(PAGE, {"url": local.url, "token": guest})
        # Another run may have been quicker while everything started.
        owner = owner_of(root)
        if owner is None:
            write_local(root, connection)
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
        reloading = Tasks("the reload")
        stack.push_async_callback(reloading.cancelled)
        reloading.start(reload_on_change(local, connection, root, wanted.app))
        await _until_stopped()
        for line in farewell(wanted.data):
            click.echo(line, err=True)


def _say_what_a_bus_does_not_hand_on(stack: contextlib.AsyncExitStack) -> None:
    handler, log = logging.StreamHandler(), logging.getLogger("baton.local.bus")
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)


def _removal_of(run_dir: Path) -> Callable[[type[BaseException] | None, object, object], None]:
    """Removes the logs of a run that its user ended, or that ended because a document was refused.

    Those of any other failure are needed.
    """

    def remove(kind: type[BaseException] | None, error: object, _trace: object) -> None:
        is_refused = isinstance(error, Failed) and error.exit_code == REFUSED
        if kind is None or is_refused or not issubclass(kind, Exception):
            shutil.rmtree(run_dir, ignore_errors=True)

    return remove


def _logs_hints(run_dir: Path) -> tuple[str, ...]:
    """Where to read why it did not start; a directory in which nothing was written is removed."""
    if any(file.stat().st_size for file in run_dir.rglob("*.log")):
        return (f"The logs are in {run_dir / 'logs'}.",)
    shutil.rmtree(run_dir, ignore_errors=True)
    return ()


def _port_hints(why: str, port: int) -> tuple[str, ...]:
    """What to do about a port that another program listens on."""
    return (f"To take any free port: {typed('up --port 0')}",) if port and str(port) in why else ()


async def _until_stopped() -> None:
    """Wait for Ctrl-C, a polite end or the end of the terminal; the processes that were started are ended by who started them."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup wants it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
