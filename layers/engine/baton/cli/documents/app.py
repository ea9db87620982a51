"""The application of the command line: its module, its tools, its documents."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import click

from baton.cli.terminal.values import read_text
from baton.client.connection import CONFIG
from baton.client.exits import REFUSED, USAGE, CommandFailed

LAYER = Path("layers/app")
DEFAULT_APP = "sagas"
"""Default package of an application, which is also that of the example."""


def _configured_app() -> str:
    """Return AppModule of the nearest baton.toml, empty without one: the file is checked elsewhere."""
    import tomllib

    with suppress(OSError, ValueError, AttributeError):
        found = tomllib.loads((_nearest_project() / CONFIG).read_text("utf-8"))
        return str(found.get("parameters", {}).get("AppModule", ""))
    return ""


app_option = click.option(
    "--app",
    metavar="MODULE",
    default=lambda: os.environ.get("BATON_APP") or _configured_app() or DEFAULT_APP,
    help="Python package of your tools and workflows.  [default: BATON_APP, else AppModule of baton.toml, else sagas]",
)


def load_app(name: str, root: Path | None = None) -> ModuleType:
    """Import the application of the project `root`, by default this one or above. Raises `CommandFailed`."""
    from baton.tools.standard import import_tools  # pydantic is for those who need tools

    base = root or _nearest_project()
    set_environment(base)
    for directory in (str(base), str(base / LAYER)):
        if Path(directory).is_dir() and directory not in sys.path:
            sys.path.insert(0, directory)
    try:
        module = importlib.import_module(name)
        import_tools(name)
        return module
    except ModuleNotFoundError as error:
        if _is_of(name, error):
            raise CommandFailed(
                USAGE,
                f"there is no module {name!r}",
                f"It was looked for in {base / LAYER} and where Python looks.",
            ) from error
        raise import_failure(name, error, name) from error
    except Exception as error:
        raise import_failure(name, error, name) from error


def _is_of(app: str, error: ModuleNotFoundError) -> bool:
    """Return true if the module of the application itself is not there."""
    return error.name is not None and (app == error.name or app.startswith(error.name + "."))


def set_environment(project: Path) -> None:
    """Set the variables of baton.toml and .env; those of the shell come first. Raises `CommandFailed`."""
    if not (project / CONFIG).is_file():
        return
    from baton.project.config import ConfigError
    from baton.project.deployment import known_variables, project_config, read_env

    try:
        for variables in (read_env(project), known_variables(project_config(project))):
            for name, value in variables.items():
                os.environ.setdefault(name, value)
    except ConfigError as error:
        raise CommandFailed(REFUSED, error.problems[0], *error.problems[1:]) from error


_PACKAGES = {
    "agents": "openai-agents",
    "langchain_core": "langgraph",
    "langchain_openai": "langchain-openai",
    "pydantic_ai": "pydantic-ai-slim[openai]",
}
"""Packages with another name than what is imported from them."""


def import_failure(what: str, error: Exception, app: str) -> CommandFailed:
    """Return the failure of a module's import: the error, and the line of the application that caused it."""
    said = f"{type(error).__name__}: {error}"
    hints: tuple[str, ...] = ()
    if isinstance(error, SyntaxError):
        said = f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, ModuleNotFoundError):
        said = str(error)
        if error.name and not error.name.startswith(f"{app}."):
            named = _PACKAGES.get(error.name.partition(".")[0], "")
            which = f"It is in the package `{named}`:" if named else "If it is a package,"
            hints = (f"{which} write it into {LAYER / 'requirements.txt'} and install that.",)
    return CommandFailed(USAGE, f"{what} does not import: {said}{_place(error)}", *hints)


def _place(error: Exception) -> str:
    """Return the last line that ran in the project's own files, in brackets, empty without one."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    layers = [Path(place).resolve() for place in sys.path if Path(place).parts[-2:] == LAYER.parts]
    for name, line in reversed(frames):
        file = Path(name).resolve()
        if any(file.is_relative_to(layer) for layer in layers):
            here = Path.cwd()
            return f" ({file.relative_to(here) if file.is_relative_to(here) else file}:{line})"
    return ""


def _nearest_project() -> Path:
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / LAYER).is_dir()), here)


def documents(app: ModuleType) -> list[Path]:
    """Return the workflow documents in the application's package, sorted by name."""
    places = [Path(place) for place in getattr(app, "__path__", ())]
    return sorted(path for place in places for kind in ("*.yaml", "*.yml") for path in place.glob(kind))


# `sagas.dinner`, but no name of a document.
_is_name = re.compile("[a-z][a-z0-9-]*").fullmatch
_DOTTED = re.compile(r"(?!.*\.(?:ya?ml|json)$)[^\W\d]\w*(?:\.[^\W\d]\w*)+")


@dataclass(frozen=True, slots=True)
class Source:
    """A document's text, and its name for people."""

    name: str
    text: str
    is_json: bool = False


def read_file(file: Path) -> Source:
    """Return the source in a file. Raises `CommandFailed`."""
    return Source(str(file), read_text(file), file.suffix == ".json")


def read_source(given: str, app: str) -> Source:
    """Return the source in a file, at `module:attribute`, or of the application's workflow of that name.

    Raises `CommandFailed`.
    """
    file = Path(given)
    if file.suffix == ".py" or (_DOTTED.fullmatch(given) and not file.exists()):
        raise _no_document(file, app)
    if file.exists():
        return read_file(file)
    if ":" not in given:
        return _named(given, app) or read_file(file)
    load_app(app)  # puts the application on the path
    from baton.builder.found import load_document
    from baton.errors import UserError

    try:
        return Source(given, load_document(given))
    except UserError as error:
        raise CommandFailed(USAGE, f"{given}: {error.detail}", *_lines(error)) from error
    except Exception as error:
        raise import_failure(given.partition(":")[0], error, app) from error


def _named(name: str, app: str) -> Source | None:
    """Return the workflow of an application with this name, None if there can be none.

    Raises `CommandFailed` for an unknown name, and for an application that does not load.
    """
    from baton.core.expressions import nearest

    known: dict[str | None, Source] = {}
    if _is_name(name):
        try:
            known = {workflow_name(source): source for source in sources_of(load_app(app))}
        except CommandFailed as why:
            if not isinstance(why.__cause__, ModuleNotFoundError) or not _is_of(app, why.__cause__):
                raise
    if not known:  # only files can be meant
        return None
    if name not in known:
        names = sorted(one for one in known if one)
        hint = nearest(name, names) or f"The workflows of {app} are: {', '.join(names)}"
        raise CommandFailed(USAGE, f"there is no file {name}, and {app} has no workflow {name}", hint)
    return known[name]


def workflow_name(source: Source) -> str | None:
    """Return the name of a document's workflow, or None if it is unreadable or has none."""
    from baton.core.documents.text import parse_document
    from baton.errors import MalformedDocument

    try:
        value = parse_document(source.text, json_only=source.is_json).value
    except MalformedDocument:
        return None
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def sources_at(given: Sequence[str], app: str) -> list[Source]:
    """Return the sources at these places; without any, all of the application. Raises `CommandFailed`."""
    if given:
        return [read_source(one, app) for one in given]
    found = sources_of(load_app(app))
    if not found:
        raise CommandFailed(USAGE, f"{app} has no workflow", "Put a .yaml file or a function into it.")
    return found


def sources_of(app: ModuleType) -> list[Source]:
    """Return all documents of an application, those in files first. Raises `CommandFailed`."""
    from baton.builder.found import documents as built
    from baton.builder.found import python_workflows
    from baton.errors import UserError

    try:
        texts = built(app)
        addresses = {name: address for address, name, _ in reversed([*python_workflows(app)])}
        made = [Source(addresses[name], text) for name, text in texts.items()]
    except UserError as error:
        raise CommandFailed(USAGE, error.detail, *_lines(error)) from error
    here = Path.cwd()
    files = (file.relative_to(here) if file.is_relative_to(here) else file for file in documents(app))
    return [read_file(file) for file in files] + made


def _no_document(given: Path, app: str) -> CommandFailed:
    """Return the failure for a Python file or a module without the workflow, with the correct form."""
    from baton.builder.found import workflows_in

    is_python = given.suffix == ".py"
    name = str(given)
    if is_python:
        parts = given.with_suffix("").parts
        name = ".".join(parts[parts.index(app) :]) if app in parts else f"{app}.{given.stem}"
    with suppress(CommandFailed):  # then there is no module to look into
        load_app(app)
    module = sys.modules.get(name)
    found = sorted(workflows_in(module)) if module else []
    write = f"{name if module else 'MODULE'}:NAME"
    right = f"A workflow in Python is written {write}."
    if not is_python:
        message = f"there is no file {given}"
    elif given.exists():
        message = f"{given} is a module of Python, not a document"
    else:
        message = f"there is no file {given}, and a file of Python is no document"
    return CommandFailed(USAGE, message, right, *([f"There are: {', '.join(found)}"] if found else []))


def _lines(error: Exception) -> list[str]:
    problems = getattr(error, "problems", ())
    return [f"{p.path}: {p.message}. {p.suggestion}".rstrip(". ") for p in problems]
