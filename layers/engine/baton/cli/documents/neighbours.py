"""Workflows that a document may start, as far as they can be found on this machine.

What is registered, the API knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from baton.cli.documents.sources import Source, read_file, sources_of
from baton.client.exits import Failed

_KINDS = (".yaml", ".yml", ".json")
_MOST_FILES = 1_000


def known_workflows(sources: Sequence[Source], app: ModuleType) -> dict[str, Any]:
    """By name: the input schema of each document that is given, lies beside one, or is the application's.

    Nothing is looked for if no document starts another workflow.
    """
    if not any("workflow" in source.text for source in sources):
        return {}
    return dict(_named([*_beside(sources), *_of_app(app), *sources]))


def children_first(
    sources: Sequence[Source], started: Mapping[str, tuple[str, Sequence[str]]]
) -> list[Source]:
    """The documents in an order in which each comes after those that it starts, and else as they are given.

    `started`: by the name of a source, the name of its workflow and those that it starts.
    """
    by_name = {started[source.name][0]: source for source in sources if source.name in started}
    ordered: dict[str, Source] = {}

    def visit(source: Source, above: tuple[str, ...]) -> None:
        if source.name in ordered or source.name in above:
            return
        for child in started.get(source.name, ("", ()))[1]:
            if child in by_name:
                visit(by_name[child], (*above, source.name))
        ordered[source.name] = source

    for source in sources:
        visit(source, ())
    return list(ordered.values()) if len(ordered) == len(sources) else list(sources)


def _beside(sources: Sequence[Source]) -> Iterator[Source]:
    folders = dict.fromkeys(Path(source.name).parent for source in sources if Path(source.name).is_file())
    for folder in folders:
        files = sorted(file for file in folder.iterdir() if file.suffix in _KINDS)
        for file in files[:_MOST_FILES]:
            with suppress(Failed):
                yield read_file(file)


def _of_app(app: ModuleType) -> Sequence[Source]:
    with suppress(Failed):  # what is wrong with a workflow of another module is told when that is checked
        return sources_of(app)
    return ()


def _named(sources: Sequence[Source]) -> Iterator[tuple[str, Any]]:
    from baton.core.documents.text import parse_document
    from baton.errors import MalformedDocument

    for source in sources:
        try:
            value = parse_document(source.text, json_only=source.is_json).value
        except MalformedDocument:
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str) and "nodes" in value:
            schema = value.get("input")
            yield value["name"], schema if isinstance(schema, dict) else None
