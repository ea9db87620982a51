"""Times and lengths of time as options: `500ms`, `2h`, a number of seconds, or a moment in ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click


class Duration(click.ParamType):
    """Seconds, from a duration; a number without a unit is seconds already."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from baton.core.expressions.durations import parse_duration  # what help and completion do without

        try:
            return parse_duration(value if isinstance(value, float) else _bare(value)) / 1000
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Moment(click.ParamType):
    """A moment in ISO 8601, as text; a duration is so long ago. Without a zone it is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return _iso(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        try:
            from baton.core.expressions.durations import parse_duration

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
    """A number without a unit is seconds."""
    try:
        return float(text)
    except ValueError:
        return text
