"""Sagas that are named by the beginning of their ids, as `baton list` shortens them.

Pure. The API knows whole ids only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from baton.client.exits import USAGE, Failed
from baton.words.text import plain

SHORTEST = 4
RECENT = 1_000  # sagas, the latest change first, among which a beginning is looked up
_NAMED = 10


def whole(given: str, sagas: Iterable[Mapping[str, Any]]) -> str | None:
    """The only id that `given` can mean; None where none begins so. Raises `Failed` with those that do.

    `ke86` means a saga and not its children, whose ids go on with a dot; `ke86.0.send` is a child of it.
    """
    root, dot, rest = given.partition(".")
    found: dict[str, str] = {}
    for saga in sagas:
        own, _, below = str(saga["id"]).partition(".")
        if own.startswith(root) and (not dot or below.startswith(rest)):
            name = f"{own}.{below}" if dot else own
            told = (
                f"{saga['workflow']}, {saga['status']}" if name == saga["id"] else "its children are listed"
            )
            found[name] = told if name == saga["id"] else found.get(name, told)
    exact = [name for name in found if dot and name.partition(".")[2] == rest]
    if len(exact) == 1 or len(found) == 1:
        return (exact or list(found))[0]
    if not found:
        return None
    lines = [plain(f"{name}  {told}") for name, told in list(found.items())[:_NAMED]]
    if len(found) > _NAMED:
        lines.append(f"and {len(found) - _NAMED} more")
    raise Failed(
        USAGE, f"`{given}` is the beginning of {len(found)} ids: write more of the one you mean", *lines
    )
