"""Workflow documents wherever they are: in files, or built in Python as `module:attribute`.

Belongs here: finding them and reading their text. What a document is, the compiler knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from baton.cli.app import documents, load_app
from baton.cli.exits import USAGE, Failed
from baton.cli.values import read_text


@dataclass(frozen=True, slots=True)
class Source:
    """A document's text, and what a person calls it."""

    name: str
    text: str
    is_json: bool = False


def read_file(file: Path) -> Source:
    """Raises Failed."""
    return Source(str(file), read_text(file), file.suffix == ".json")


def read_source(given: str, app: str) -> Source:
    """A file, or the `Workflow` at `module:attribute`. Raises Failed."""
    if ":" not in given or Path(given).exists():
        return read_file(Path(given))
    load_app(app)  # puts the application on the path
    from baton.builder.found import load_workflow
    from baton.errors import UserError

    try:
        return Source(given, load_workflow(given).to_yaml())
    except UserError as error:
        raise Failed(USAGE, f"{given}: {error.detail}", *_lines(error)) from error
    except Exception as error:
        raise Failed(USAGE, f"{given} does not import: {type(error).__name__}: {error}") from error


def sources_of(app: ModuleType) -> list[Source]:
    """All documents of an application: those in files, then those built in Python. Raises Failed."""
    from baton.builder.found import documents as built
    from baton.errors import UserError

    try:
        made = [Source(f"{app.__name__}: {name}", text) for name, text in built(app).items()]
    except UserError as error:
        raise Failed(USAGE, error.detail, *_lines(error)) from error
    return [read_file(file) for file in documents(app)] + made


def _lines(error: Exception) -> list[str]:
    problems = getattr(error, "problems", ())
    return [f"{p.path}: {p.message}. {p.suggestion}".rstrip(". ") for p in problems]
