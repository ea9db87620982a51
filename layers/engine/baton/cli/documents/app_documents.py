"""The documents of an application that `baton up` runs: compiled before anything starts, registered when something changed.

One document is in check.py and workflows.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from baton.cli.documents.check import Report, compile_locally
from baton.cli.documents.neighbours import children_first
from baton.cli.documents.sources import Source
from baton.cli.documents.standard import off_note, tools_off
from baton.cli.documents.workflows import register
from baton.client.exits import NO, REFUSED, Failed
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api


def check_documents(
    sources: Sequence[Source], app: str, template: Path, parameters: Mapping[str, str], tenant: str
) -> None:
    """Print every problem of every document. Raises Failed if there is one."""
    reports = compile_locally(sources, app, _standard_tools(template, parameters), tenant)
    bad = [report for report in reports if report.problems]
    if not bad:
        return
    _print(bad)
    problems = [problem for report in bad for problem in report.problems]
    off = tools_off(problems)
    found = f"{counted(len(problems), 'problem')} in {len(bad)} of {counted(len(reports), 'document')}"
    raise Failed(NO, f"{found}: not started", *([off_note(off)] if off else ()))


async def take_up(api: Api, sources: Sequence[Source], app: str) -> str:
    """Register the documents that are sound, print what is wrong with the others; a line that says which is which.

    Raises Failed if the API cannot be asked.
    """
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
            answer = await register(api, source)
        except Failed as failure:
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


def name_of(source: Source) -> str | None:
    """What a document calls its workflow; None if it cannot be read or says nothing."""
    from baton.core.documents.text import parse_document
    from baton.errors import MalformedDocument

    try:
        value = parse_document(source.text, json_only=source.is_json).value
    except MalformedDocument:
        return None
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


async def _tell_broken(api: Api, source: Source, app: str) -> None:
    """Say it if the version that is registered would be refused now: a tool has changed under it."""
    name = name_of(source)
    try:
        found = await api.workflow(name) if name else {}
    except Failed:
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
    """The setting `StandardTools`; None where the template does not say, which is for others to report."""
    from baton.local.processes.problems import LocalRunError
    from baton.local.template.template import defaults

    try:
        return parameters.get("StandardTools", defaults(template).get("StandardTools"))
    except LocalRunError:
        return None


def _print(reports: Sequence[Report]) -> None:
    for report in reports:
        for line in report.lines():
            click.echo(line, err=True)
