"""Values on the command line: JSON, numbers, times and durations."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from baton.client.exits import USAGE, CommandFailed

_GUESSED = 80  # characters that a person typed; longer texts come from a program


def read_value(given: str | None, option: str) -> Any:
    """Return the value: `-` is standard input, `@FILE` a file (JSON or YAML), anything else JSON itself."""
    if given is None:
        return None
    if given == "-":
        return _parse(sys.stdin.read(), "standard input", option)
    if given.startswith("@"):
        path = Path(given[1:])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(_unread(path, error), param_hint=option) from error
        if path.suffix in (".yaml", ".yml"):
            return _yaml(text, str(path), option)
        return _parse(text, str(path), option)
    return _parse(given, given if len(given) < 40 else given[:37] + "...", option, _meant(given, option))


def read_pairs(pairs: tuple[str, ...], option: str) -> dict[str, Any]:
    """Return the pairs, such as `party=4`. A value is JSON if it is valid JSON, else the text itself."""
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
    """Return the content of a text file. Raises `CommandFailed`."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(USAGE, _unread(file, error)) from error


def text_hints(pairs: Sequence[str], problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the text form of `--set` values that were read as JSON, if the API has problems with them."""
    paths = [str(problem.get("path", "")).split("/") for problem in problems]
    hints = []
    for pair in pairs:
        name, _, text = pair.partition("=")
        if any(name in path for path in paths) and not isinstance(read_pairs((pair,), "--set")[name], str):
            quoted = shlex.quote(f"{name}={json.dumps(text, ensure_ascii=False)}")
            hints.append(f"{text} was read as JSON; as a text it is written --set {quoted}")
    return hints


def _unread(file: Path, error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no file {file}"
    return f"{file}: {error.strerror if isinstance(error, OSError) else f'no text in UTF-8: {error}'}"


def _meant(given: str, option: str) -> str:
    """Return the shell form of invalid JSON that looks like a file, a word, or YAML or Python."""
    if len(given) > _GUESSED or not given:
        return ""
    if Path(given).suffix in (".json", ".yaml", ".yml") or Path(given).is_file():
        return f" (a file is written {option} {shlex.quote(f'@{given}')})"
    value: Any = given
    if given.lstrip()[:1] in ("{", "[", '"'):
        from baton.core.documents.text import parse_document
        from baton.errors import MalformedDocument

        try:
            value = parse_document(given).value
        except MalformedDocument:
            return ""
    return f" (write {option} {shlex.quote(json.dumps(value, ensure_ascii=False))})"


def _parse(text: str, source: str, option: str, hint: str = "") -> Any:
    try:
        return _strict(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise click.BadParameter(
            f"{source}: not JSON at {where}: {error.msg}{hint}", param_hint=option
        ) from error
    except ValueError as error:
        raise click.BadParameter(f"{source}: {error}", param_hint=option) from error


def _strict(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _yaml(text: str, source: str, option: str) -> Any:
    from baton.core.documents.text import parse_document
    from baton.errors import MalformedDocument

    try:
        return parse_document(text).value
    except MalformedDocument as error:
        raise click.BadParameter(f"{source}: {error.detail}", param_hint=option) from error


class Whole(click.IntRange):
    """An integer from `min` up, or up to `max`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            to = "up" if self.max is None else f"to {self.max}"
            self.fail(f"{value!r} is not a whole number from {self.min} {to}", param, ctx)


class Duration(click.ParamType):
    """Seconds, from a duration or a number without a unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from baton.core.expressions import parse_duration  # what help and completion do without

        try:
            return parse_duration(value if isinstance(value, float) else _bare(value)) / 1000
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Moment(click.ParamType):
    """A time in ISO 8601, as text. A duration means that long ago. A time without zone is in UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return _iso(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        try:
            from baton.core.expressions import parse_duration

            ago = timedelta(milliseconds=parse_duration(value))
        except ValueError:
            self.fail(
                f"`{value[:40]}` is neither a duration such as 2h nor a time such as 2026-11-22T10:00:00Z",
                param,
                ctx,
            )
        return _iso(datetime.now(UTC) - ago)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _bare(text: str) -> str | float:
    """Return a number without a unit, in seconds."""
    try:
        return float(text)
    except ValueError:
        return text
