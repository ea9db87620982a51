"""Registers all documents of an application, when everything starts and when a file of it has changed.

One document is in workflows.py, finding them in sources.py.
"""

from __future__ import annotations

from baton.cli.documents.app_documents import name_of
from baton.cli.documents.sources import Source
from baton.cli.documents.workflows import register
from baton.client.api import Api
from baton.client.exits import NO, Failed


async def register_all(api: Api, sources: list[Source]) -> list[str]:
    """Register the application's documents; their names. Raises Failed."""
    return [str((await register(api, source))["name"]) for source in sources]


def check_names(sources: list[Source]) -> None:
    """Raises Failed for two documents of one name. One that cannot be read has none."""
    found: dict[str, str] = {}
    for source in sources:
        name = name_of(source)
        if name is None:
            continue
        if name in found:
            twice = f"the workflow `{name}` is there twice: {found[name]} and {source.name}"
            raise Failed(NO, twice, "Rename one of them, or take it away.")
        found[name] = source.name
