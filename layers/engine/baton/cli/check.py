"""`baton check`: compile workflow documents on this machine and say everything that is wrong.

Belongs here: files in, problems out. What a problem is, the compiler knows. `compile_locally` is the
only place that knows how the compiler is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from baton.cli.app import app_option, load_app
from baton.cli.exits import NO, line_of
from baton.cli.shared import json_option, print_json
from baton.cli.text import counted, plain
from baton.cli.values import read_text


@dataclass(frozen=True, slots=True)
class Report:
    """What the compiler said about one file; `nodes` is 0 when there are problems."""

    file: str
    problems: tuple[Mapping[str, Any], ...]
    name: str = ""
    nodes: int = 0


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@app_option
@json_option
def check(files: tuple[Path, ...], app: str, as_json: bool) -> None:
    """Find all problems of workflow documents, without any API."""
    reports = [_check(file, app) for file in files]
    if as_json:
        print_json(
            [{"file": r.file, "name": r.name, "nodes": r.nodes, "problems": r.problems} for r in reports]
        )
    else:
        for report in reports:
            _print(report)
    found = sum(len(report.problems) for report in reports)
    if found:
        if not as_json:
            click.echo(f"{counted(found, 'problem')} in {counted(len(reports), 'file')}", err=True)
        raise click.exceptions.Exit(NO)


def _check(file: Path, app: str) -> Report:
    return compile_locally(read_text(file), str(file), app)


def compile_locally(text: str, filename: str, app: str) -> Report:
    """Compile one document against the tools of the application, as `POST /workflows` would."""
    load_app(app)
    from baton.core.compile import compile_document
    from baton.errors import InvalidDefinition, MalformedDocument
    from baton.tools.define import REGISTRY

    try:
        graph = compile_document(text, REGISTRY.specs(), json_only=filename.endswith(".json"))
    except (InvalidDefinition, MalformedDocument) as error:
        return Report(filename, tuple(asdict(problem) for problem in error.problems))
    return Report(filename, (), graph.name, len(graph.nodes))


def _print(report: Report) -> None:
    if not report.problems:
        click.echo(f"{report.file}: ok, {report.name} with {counted(report.nodes, 'node')}")
    for problem in report.problems:
        click.echo(plain(line_of(problem, report.file)))
