"""`baton up` takes up a changed file of the application: new processes, the documents registered anew.

Whether the application loads, and what its documents are, is asked in a process of its own (this module as a
program), because modules that were imported cannot be taken back.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import click

from baton.cli.documents.app import LAYER, load_app
from baton.client.connection import Connection
from baton.client.exits import Failed
from baton.local.processes.problems import LocalRunError
from baton.local.run import LocalRun
from baton.words.text import plain

EVERY_S = 0.5
_WATCHED = (LAYER, Path("functions"))
_TOKEN = "BATON_RELOAD_TOKEN"  # noqa: S105  # a name
Files = Mapping[Path, tuple[int, int]]


def files_of(folders: Iterable[Path]) -> Files:
    """Time and size of every file below, but for what programs leave behind: hidden ones, bytecode, copies of editors."""
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


def changed(before: Files, after: Files) -> list[Path]:
    """What is there or not, or another, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


async def changes(folders: Iterable[Path], every_s: float = EVERY_S) -> AsyncIterator[list[Path]]:
    """The files that changed, each time that some did and nothing has followed since."""
    folders = list(folders)
    taken = seen = files_of(folders)
    while True:
        await asyncio.sleep(every_s)
        now = await asyncio.to_thread(files_of, folders)
        if now == seen and now != taken:
            yield changed(taken, now)
            taken = now
        seen = now


async def reload_on_change(local: LocalRun, connection: Connection, root: Path, app: str) -> None:
    """Until it is cancelled. An application that does not load changes nothing: what runs goes on."""
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


async def _ask(what: str, connection: Connection, root: Path, app: str) -> bool:
    """Whether the program below was content; what it says is for the same eyes."""
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
    """Load the application and, to `register`, give its documents to the API, and say which it has taken.

    Exit status 1 with what is wrong, if it is not one document or the other.
    """
    from baton.cli.documents.app_documents import take_up
    from baton.cli.documents.registering import check_names
    from baton.cli.documents.sources import sources_of
    from baton.client.api import Api

    async def register() -> None:
        async with Api(Connection(url, os.environ[_TOKEN])) as api:
            click.echo(plain(await take_up(api, sources, app)), err=True)

    try:
        sources = sources_of(load_app(app, Path(root)))
        check_names(sources)
        if what == "register":
            asyncio.run(register())
    except Failed as failure:
        failure.show()
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
