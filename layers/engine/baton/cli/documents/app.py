"""The application layer as the command line finds it: its module, its tools, its documents."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

import click

from baton.client.exits import USAGE, Failed

LAYER = Path("layers/app")
DEFAULT_APP = "sagas"
"""The package of an application, where nothing else is said; that of the example, too."""

app_option = click.option(
    "--app",
    metavar="MODULE",
    default=lambda: os.environ.get("BATON_APP") or DEFAULT_APP,
    help="Python package of your tools and workflows.  [default: BATON_APP, else sagas]",
)


def load_app(name: str, root: Path | None = None) -> ModuleType:
    """Import the application, with `layers/app` of the project on the path. Raises Failed.

    `root` is the project; without it the directory that has `layers/app`, this one or the nearest above it.
    """
    from baton.tools.standard.loading import import_tools  # pydantic is for those who need tools

    base = root or _nearest_project()
    for directory in (str(base), str(base / LAYER)):
        if Path(directory).is_dir() and directory not in sys.path:
            sys.path.insert(0, directory)
    try:
        module = importlib.import_module(name)
        import_tools(name)
        return module
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise Failed(
                USAGE,
                f"there is no module {name!r}",
                f"It was looked for in {base / LAYER} and where Python looks.",
            ) from error
        raise import_failure(name, error, name) from error
    except Exception as error:
        raise import_failure(name, error, name) from error


def import_failure(what: str, error: Exception, app: str) -> Failed:
    """Why a module does not import: the error, and the line of the application that it comes from."""
    said = f"{type(error).__name__}: {error}"
    hints: tuple[str, ...] = ()
    if isinstance(error, SyntaxError):
        said = f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, ModuleNotFoundError):
        said = str(error)
        if error.name and not error.name.startswith(f"{app}."):
            hints = (f"If it is a package, write it into {LAYER / 'requirements.txt'} and install that.",)
    return Failed(USAGE, f"{what} does not import: {said}{_place(error)}", *hints)


def _place(error: Exception) -> str:
    """The last line that ran of the project's own files, in brackets; nothing if it was in none of them."""
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
    """The workflow documents that lie in the application's package, sorted by name."""
    places = [Path(place) for place in getattr(app, "__path__", ())]
    return sorted(path for place in places for kind in ("*.yaml", "*.yml") for path in place.glob(kind))
