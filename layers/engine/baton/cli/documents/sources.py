"""Workflow documents wherever they are: in files, or built in Python as `module:attribute`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from baton.cli.documents.app import documents, import_failure, load_app
from baton.cli.terminal.values import read_text
from baton.client.exits import USAGE, Failed

# `sagas.dinner`, but no name of a document.
_DOTTED = re.compile(r"(?!.*\.(?:ya?ml|json)$)[^\W\d]\w*(?:\.[^\W\d]\w*)+")


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
    file = Path(given)
    if file.suffix == ".py" or (_DOTTED.fullmatch(given) and not file.exists()):
        raise _no_document(file, app)
    if ":" not in given or file.exists():
        return read_file(file)
    load_app(app)  # puts the application on the path
    from baton.builder.found import load_workflow
    from baton.errors import UserError

    try:
        return Source(given, load_workflow(given).to_yaml())
    except UserError as error:
        raise Failed(USAGE, f"{given}: {error.detail}", *_lines(error)) from error
    except Exception as error:
        raise import_failure(given.partition(":")[0], error, app) from error


def sources_of(app: ModuleType) -> list[Source]:
    """All documents of an application: those in files, then those built in Python. Raises Failed."""
    from baton.builder.found import documents as built
    from baton.errors import UserError

    try:
        made = [Source(_address(app, name), text) for name, text in built(app).items()]
    except UserError as error:
        raise Failed(USAGE, error.detail, *_lines(error)) from error
    here = Path.cwd()
    files = (file.relative_to(here) if file.is_relative_to(here) else file for file in documents(app))
    return [read_file(file) for file in files] + made


def _address(app: ModuleType, name: str) -> str:
    """The first place where the application has the workflow of that name."""
    from baton.tools.define import modules_of

    found = (
        address for module in modules_of(app.__name__) for address, its in _workflows(module) if its == name
    )
    return next(found)


def _workflows(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Address and name of each workflow that a module holds."""
    from baton.builder import Workflow

    for attribute, value in vars(module).items():
        if isinstance(value, Workflow):
            yield f"{module.__name__}:{attribute}", value.name


def _no_document(given: Path, app: str) -> Failed:
    """What to write instead of a file of Python, or of a module without the workflow in it."""
    is_python = given.suffix == ".py"
    name = str(given)
    if is_python:
        parts = given.with_suffix("").parts
        name = ".".join(parts[parts.index(app) :]) if app in parts else f"{app}.{given.stem}"
    with suppress(Failed):  # then there is no module to look into
        load_app(app)
    module = sys.modules.get(name)
    found = sorted(address for address, _ in _workflows(module)) if module else []
    write = f"{name if module else 'MODULE'}:NAME"
    right = f"A workflow that is built in Python is written {write}."
    if not is_python:
        message = f"there is no file {given}"
    elif given.exists():
        message = f"{given} is a module of Python, not a document"
    else:
        message = f"there is no file {given}, and a file of Python is no document"
    return Failed(USAGE, message, right, *([f"There are: {', '.join(found)}"] if found else []))


def _lines(error: Exception) -> list[str]:
    problems = getattr(error, "problems", ())
    return [f"{p.path}: {p.message}. {p.suggestion}".rstrip(". ") for p in problems]
