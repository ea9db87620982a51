"""JSON given on the command line: as text, as a file, as standard input, or as NAME=VALUE pairs.

Belongs here: turning arguments into JSON values, with errors that name line and column. No HTTP.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from baton.cli.exits import USAGE, Failed


def read_value(given: str | None, option: str) -> Any:
    """`-` is standard input, `@FILE` a file (JSON or YAML), anything else JSON itself."""
    if given is None:
        return None
    if given == "-":
        return _parse(sys.stdin.read(), "standard input", option)
    if given.startswith("@"):
        path = Path(given[1:])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{path}: {error}", param_hint=option) from error
        if path.suffix in (".yaml", ".yml"):
            return _yaml(text, str(path), option)
        return _parse(text, str(path), option)
    return _parse(given, given if len(given) < 40 else given[:37] + "...", option)


def read_pairs(pairs: tuple[str, ...], option: str) -> dict[str, Any]:
    """`party=4` and the like: the value is JSON where it is valid JSON, else the text as it stands."""
    result: dict[str, Any] = {}
    for pair in pairs:
        name, found, text = pair.partition("=")
        if not found or not name:
            raise click.BadParameter(f"{pair!r}: write NAME=VALUE", param_hint=option)
        try:
            result[name] = _strict(text)
        except ValueError:
            result[name] = text
    return result


def read_text(file: Path) -> str:
    """A file of text. Raises `Failed`."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(USAGE, f"{file}: {error}") from error


def _parse(text: str, source: str, option: str) -> Any:
    try:
        return _strict(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise click.BadParameter(f"{source}: not JSON at {where}: {error.msg}", param_hint=option) from error
    except ValueError as error:
        raise click.BadParameter(f"{source}: {error}", param_hint=option) from error


def _strict(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _yaml(text: str, source: str, option: str) -> Any:
    from baton.core.document import parse_document
    from baton.errors import MalformedDocument

    try:
        return parse_document(text).value
    except MalformedDocument as error:
        raise click.BadParameter(f"{source}: {error.detail}", param_hint=option) from error
