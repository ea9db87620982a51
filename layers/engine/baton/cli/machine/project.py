"""Commands for a project of one's own: new, render, upgrade."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from baton.cli.documents.app import LAYER, app_option, set_environment
from baton.cli.terminal.shared import Shared, json_option, print_json
from baton.client.connection import project_root
from baton.client.exits import NO, REFUSED, USAGE, CommandFailed
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api
    from baton.core.effects.toolspec import Pins
    from baton.project.config import Config, ConfigError
    from baton.project.upgrade import Upgrade
    from baton.scaffold.make import Project

# What to look at first; the rest is the deployment.
_SHOWN = {
    "README.md": "what is where",
    "baton.toml": "what it needs from its deployment",
    "layers/app/sagas/order.yaml": "a workflow",
    "layers/app/sagas/workflows.py": "a workflow",
    "layers/app/sagas/order.py": "its tools",
    "tests/test_order.py": "its tests",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--ci", type=click.Choice(["github"]), help="Add a file for this service of continuous integration."
)
@click.option("--functions", is_flag=True, help="The workflow is a Python function instead of a document.")
@json_option
def new(directory: Path, ci: str | None, functions: bool, as_json: bool) -> None:
    """Create a project of your own.

    DIRECTORY is created, and its last part is the project's name, such as my-sagas: a workflow with its
    tools, tests that pass, and everything that is needed to run it on this machine and to deploy it.
    """
    from baton.project.deployment import SourceError
    from baton.scaffold.make import DOCUMENT, FUNCTION, CannotMakeError, make_project

    try:
        project = make_project(directory, ci or "", workflow=FUNCTION if functions else DOCUMENT)
    except CannotMakeError as error:
        raise CommandFailed(USAGE, str(error), error.hint) from error
    except SourceError as error:
        raise CommandFailed(USAGE, str(error)) from error
    steps = _steps(project, directory)
    if as_json:
        print_json(
            {
                "name": project.name,
                "directory": str(project.folder),
                "files": list(project.files),
                "next": steps,
            }
        )
        return
    click.echo(plain(f"{project.name} is made, in {project.folder}:"))
    shown = {path: what for path, what in _SHOWN.items() if path in project.files}
    width = max(map(len, shown))
    for path, what in shown.items():
        click.echo(f"  {path:<{width}}  {what}")
    click.echo(f"  … {len(project.files)} files in all\n\nNext:")
    for step in steps:
        click.echo(plain(f"  {step}"))


def _steps(project: Project, directory: Path) -> list[str]:
    there = [] if project.folder == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    return [*there, "make test", "make up"]


@click.command()
@click.option("--check-account", is_flag=True, help="Look in the AWS account whether the secrets are there.")
@json_option
def render(check_account: bool, as_json: bool) -> None:
    """Check baton.toml, and make deployment/ of it.

    The folder has the template, the functions and the settings of sam. `make build` and `baton up` make it
    too.
    """
    root = project_root()
    config = rendered(root)
    if config is None:
        raise CommandFailed(USAGE, f"there is no baton.toml in {root}", "`baton upgrade` makes one.")
    if check_account:
        from baton.local.account import check_template, missing_secrets
        from baton.local.processes import LocalRunError
        from baton.project.deployment import TEMPLATE

        try:
            check_template(root / TEMPLATE)
            missing = list(missing_secrets(config.secrets, config.region))
        except LocalRunError as error:
            raise CommandFailed(REFUSED, str(error)) from error
        if missing:
            raise CommandFailed(REFUSED, missing[0], *missing[1:])
    if as_json:
        print_json({"stack": config.stack, "baton": config.baton, "deployment": str(root / "deployment")})
        return
    click.echo(plain(f"baton.toml: ok, {config.stack}; deployment/ is up to date"))


def rendered(root: Path) -> Config | None:
    """Make the deployment of a project, and return its configuration; None without baton.toml.

    Raises `CommandFailed`.
    """
    from baton.project.config import NAME, ConfigError
    from baton.project.deployment import SourceError, write_deployment

    if not (root / NAME).is_file():
        return None
    try:
        return write_deployment(root)
    except ConfigError as error:
        raise _refused(error) from error
    except SourceError as error:
        raise CommandFailed(USAGE, str(error)) from error


@click.command(short_help="Pin the tools of the MCP servers of baton.toml.")
@click.option(
    "--check", "is_check", is_flag=True, help="Say what has changed at the servers, and write nothing."
)
@app_option
@json_option
def mcp(is_check: bool, app: str, as_json: bool) -> None:
    """Fetch the tools of the MCP servers of baton.toml, and write mcp.lock.json beside your tools.

    The file has the schemas of the tools that baton.toml lists. Documents are checked by it, and workers call
    a tool only while its server has these schemas. With --check the command exits with 1 if a server has
    others.
    """
    from baton.project.config import NAME, ConfigError
    from baton.project.deployment import project_config
    from baton.tools.define import ToolError
    from baton.tools.standard import PINS
    from baton.tools.standard.mcp import PinError, changed_pins, read_pins, write_pins

    root = project_root()
    if not (root / NAME).is_file():
        raise CommandFailed(USAGE, f"there is no baton.toml in {root}", "`baton upgrade` makes one.")
    path = root / LAYER / app.replace(".", "/") / PINS
    if not path.parent.is_dir():
        raise CommandFailed(
            USAGE, f"there is no folder {path.parent}", "The file of the pins lies beside your tools."
        )
    set_environment(root)
    try:
        pins = _pinned(project_config(root))
        try:
            before = read_pins(path) if path.is_file() else None
        except ToolError:  # it is written anew
            if is_check:
                raise
            before = None
    except ConfigError as error:
        raise _refused(error) from error
    except (PinError, ToolError) as error:
        raise CommandFailed(REFUSED, str(error)) from error
    changes = changed_pins(before, pins)
    if not is_check and (before is not None or pins.servers):
        path.write_text(write_pins(pins), "utf-8")
    if as_json:
        print_json({"file": str(path), "changes": changes, "written": not is_check})
    for line in changes if not as_json else ():
        click.echo(plain(line))
    if not as_json:
        count = sum(len(one.tools) for one in pins.servers.values())
        click.echo(
            plain(
                f"{path.relative_to(root)}: {counted(count, 'pinned tool')}, {counted(len(changes), 'change')}"
            )
        )
    if is_check and changes:
        raise click.exceptions.Exit(NO)


def _pinned(config: Config) -> Pins:
    """Return the pins of the servers. Raises `PinError`."""
    import asyncio

    from baton.core.effects.toolspec import Pins
    from baton.settings import local_key, local_key_variable
    from baton.tools.standard.mcp import PinError, WantedServer, WantedTool, pin_server
    from baton.wiring import operators_post

    async def pinned() -> Pins:
        servers = {}
        for name, one in config.mcp.items():
            key = local_key("API", name)
            if one.credential and not key:
                raise PinError(
                    f"`{name}`: there is no credential; set {local_key_variable('API', name)} in the shell or in .env"
                )
            tools = {
                tool: WantedTool(said.effect, said.requires_approval) for tool, said in one.tools.items()
            }
            wanted = WantedServer(
                url=one.url, credential=one.credential, trust_hints=one.trust_hints, tools=tools
            )
            servers[name] = await pin_server(name, wanted, operators_post(one.url), key)
        return Pins(servers=servers)

    return asyncio.run(pinned())


def _refused(error: ConfigError) -> CommandFailed:
    return CommandFailed(REFUSED, error.problems[0], *error.problems[1:])


@click.command(short_help="Move this project to the Baton that runs.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--undo", is_flag=True, help="Put back the files as they were before the last upgrade.")
@click.option("--full", is_flag=True, help="Show the whole difference of the template.")
@json_option
@click.pass_obj
def upgrade(shared: Shared, yes: bool, dry_run: bool, undo: bool, full: bool, as_json: bool) -> None:
    """Move this project to the Baton that runs, and show what changes.

    Shows the difference of the template, new parameters, and open sagas. Then writes baton.toml,
    requirements.txt and deployment/. Nothing is installed or deployed. A project of a release without
    baton.toml gets one, with what was added to its template. The Baton that runs may be an older one. The
    files before are kept in .baton/before-upgrade. With --json nothing is written without --yes.
    """
    from baton.project.config import ConfigError
    from baton.project.upgrade import CannotUpgradeError, apply_upgrade, plan_upgrade, undo_upgrade
    from baton.scaffold.make import project_files, requirement

    root = project_root()
    try:
        if undo:
            before = undo_upgrade(root)
            click.echo(f"The files are those of Baton {before} again. Next: {_after(before)}")
            return
        line = requirement("local")
        planned = plan_upgrade(root, line, project_files({"NAME": root.name, "BATON": line, "VERSION": ""}))
    except ConfigError as error:
        raise _refused(error) from error
    except CannotUpgradeError as error:
        raise CommandFailed(USAGE, str(error), *filter(None, [error.hint])) from error
    sagas, unknown = _open_sagas(shared)
    if not as_json:
        for text in (*_lines(planned, full), "", *_sagas(sagas, unknown)):
            click.echo(plain(text))
    is_meant = not dry_run and (yes or (not as_json and click.confirm("\nWrite these files?", default=True)))
    if is_meant:
        try:
            apply_upgrade(root, planned)
        except OSError as error:
            raise CommandFailed(NO, f"{error.filename} cannot be written: {error.strerror}") from error
    if as_json:
        found = {**asdict(planned), "files": list(planned.files), "open_sagas": sagas, "written": is_meant}
        print_json(found)
        return
    if not is_meant:
        click.echo("Nothing is changed.")
        return
    click.echo(
        f"The project is of Baton {planned.after}. Next: {_after(planned.before)}\nBack: baton upgrade --undo"
    )


def _after(before: str) -> str:
    """Return the commands that follow. The distribution had another name before there was a baton.toml."""
    from baton.project.upgrade import UNVERSIONED

    install = "rm -rf .venv, make install" if before == UNVERSIONED else "make install"
    return f"{install}, make test, make deploy"


_DIFF_LINES = 40


def _lines(planned: Upgrade, full: bool) -> Iterator[str]:
    yield f"From Baton {planned.before} to {planned.after}"
    for title, found in (("Parameters", planned.parameters), ("Resources", planned.resources)):
        yield f"\n{title}{'' if found else ': no change'}"
        yield from (f"  {one}" for one in found)
    yield f"\nTemplate{'' if planned.diff else ': no change'}"
    shown = planned.diff if full else planned.diff[:_DIFF_LINES]
    yield from (f"  {one}" for one in shown)
    if len(shown) < len(planned.diff):
        yield f"  … {len(planned.diff) - len(shown)} more lines: --full"
    if planned.left:
        yield "\nFor you to carry over by hand"
        yield from (f"  {one}" for one in planned.left)
    yield f"\nFiles{'' if planned.files or planned.removed else ': no change'}"
    yield from (f"  write   {path}" for path in planned.files)
    yield from (f"  remove  {path}" for path in planned.removed)


def _open_sagas(shared: Shared) -> tuple[dict[str, int] | None, str]:
    """Return the open sagas of the deployment that the commands speak to, by workflow; else why not."""

    async def statuses(api: Api) -> Counter[str]:
        found: Counter[str] = Counter()
        async for page, _ in api.sagas({"status": "open"}, None, None):
            found.update(str(saga["workflow"]) for saga in page)
        return found

    try:
        return dict(shared.call(statuses).most_common()), ""
    except CommandFailed as failure:
        return None, failure.message


def _sagas(found: dict[str, int] | None, unknown: str) -> Iterator[str]:
    if found is None:
        yield f"Open sagas: not known ({unknown})"
        return
    yield f"Open sagas: {sum(found.values()) or 'none'}"
    yield from (f"  {count:>5}  {name}" for name, count in found.items())
    if found:
        yield "  They go on with the other release, which reads their logs. A step under way is run again."
