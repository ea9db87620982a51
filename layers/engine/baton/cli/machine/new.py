"""`baton new`: a project of one's own.

What a project is and how it is made is in baton.scaffold.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from baton.cli.terminal.shared import json_option, print_json
from baton.client.exits import USAGE, Failed
from baton.words.text import plain

if TYPE_CHECKING:
    from baton.scaffold.make import Project

# What to look at first; the rest is the deployment.
_SHOWN = {
    "README.md": "what is where",
    "layers/app/sagas/order.yaml": "a workflow",
    "layers/app/sagas/order.py": "its tools",
    "tests/test_order.py": "its tests",
    "template.yaml": "the deployment",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def new(directory: Path, as_json: bool) -> None:
    """Make a project of your own.

    DIRECTORY is made, and its last part is the project's name, such as my-sagas: a workflow with its tools, tests that
    pass, and everything that it takes to run it on this machine and to deploy it.
    """
    from baton.scaffold.make import CannotMakeError, make_project
    from baton.scaffold.sources import SourceError

    try:
        project = make_project(directory)
    except CannotMakeError as error:
        raise Failed(USAGE, str(error), error.hint) from error
    except SourceError as error:
        raise Failed(USAGE, str(error)) from error
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
    width = max(map(len, _SHOWN))
    for path, what in _SHOWN.items():
        click.echo(f"  {path:<{width}}  {what}")
    click.echo(f"  … {len(project.files)} files in all\n\nNext:")
    for step in steps:
        click.echo(plain(f"  {step}"))


def _steps(project: Project, directory: Path) -> list[str]:
    there = [] if project.folder == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    return [*there, "make test", "make up"]
