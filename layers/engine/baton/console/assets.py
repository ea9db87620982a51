"""The files beside the pages: style sheet, scripts, icon. Each has an address that changes with its content.

htmx is not in the repository: shipping/htmx.py fetches it. Where it is not, pages do not renew themselves.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from baton.console.exchange import ROOT

_HERE: Final = Path(__file__).parent / "static"
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#0b57a4"/>'
    '<path d="M4 12 12 4" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>'
)
_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES: Final = ("console.css", "console.js", "htmx.min.js")


@dataclass(frozen=True)
class Asset:
    """version: the name of this very text."""

    text: str
    kind: str
    version: str


@cache
def asset(name: str) -> Asset | None:
    """None for a file that there is not."""
    file = _HERE / name
    if name == "icon.svg":
        text = _ICON
    elif name in _FILES and file.is_file():
        text = file.read_text("utf-8")
    else:
        return None
    kind = f"{_KINDS[name.rpartition('.')[2]]}; charset=utf-8"
    return Asset(text, kind, hashlib.sha256(text.encode()).hexdigest()[:16])


def address(name: str) -> str:
    """Where a page finds the file; nothing where there is none."""
    found = asset(name)
    return f"{ROOT}/static/{name}?v={found.version}" if found else ""
