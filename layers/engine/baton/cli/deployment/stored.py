"""The command that fetches what an entry only names: `value`.

The reference as it is typed may be the beginning of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from baton.cli.terminal.completion import saga_argument
from baton.cli.terminal.shared import Shared, json_option, print_json
from baton.client.exits import REFUSED, USAGE, Failed
from baton.client.prefixes import SHORTEST

if TYPE_CHECKING:
    from baton.client.api import Api

SCHEME = "cas://sha256/"
_WHOLE = 64
_DIGITS = re.compile(rf"[0-9a-f]{{{SHORTEST},{_WHOLE}}}")


@click.command(short_help="Print a value that the log names by cas://….")
@saga_argument
@click.argument("reference")
@json_option
@click.pass_obj
def value(shared: Shared, saga: str, reference: str, as_json: bool) -> None:  # it is JSON anyway
    """Print a value that a saga's log names by cas://sha256/…, as JSON.

    REFERENCE can be cut, as `baton events` cuts it in a narrow terminal.
    """
    digits = reference.removeprefix(SCHEME).partition("@")[0].rstrip("….")
    if not _DIGITS.fullmatch(digits):
        raise click.UsageError(f"a reference is {SCHEME} and {SHORTEST} to {_WHOLE} hexadecimal digits")

    async def run(api: Api) -> Any:
        whole = digits if len(digits) == _WHOLE else await _begun_with(api, saga, digits)
        return await api.value(saga, whole)

    print_json(shared.call(run))


async def _begun_with(api: Api, saga: str, digits: str) -> str:
    """The digest in the saga's log that begins so. Raises `Failed` unless there is exactly one."""
    begun = SCHEME + digits
    found = {
        ref.partition("@")[0]
        async for entry in api.events(saga)
        for ref in _references(entry)
        if ref.startswith(begun)
    }
    if not found:
        raise Failed(REFUSED, f"the log of {saga} names no value {begun}…")
    if len(found) > 1:
        raise Failed(
            USAGE, f"{begun}… is the beginning of {len(found)} values: write more", *sorted(found)[:10]
        )
    return found.pop().removeprefix(SCHEME)


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(ref := part.get("ref"), str) and ref.startswith(SCHEME):
            yield ref
        for item in part.values():
            yield from _references(item)
    elif isinstance(part, list):
        for item in part:
            yield from _references(item)
