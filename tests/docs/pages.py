"""The project's pages as tests see them: text, links, headings, code.

Reading only; what must hold is in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One page. Its name is its path below the project's root."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _prose(self.text)

    def links(self) -> Iterator[str]:
        """Targets of all links and pictures, in reading order."""
        yield from _LINK.findall(self.prose)

    def anchors(self) -> set[str]:
        """What a link into this page can name, by GitHub's rule."""
        return _anchors(self.prose)

    def commands(self) -> Iterator[str]:
        """Every piece of code that is one line: code spans, and the commands of console blocks."""
        yield from (" ".join(span.split()) for span in _SPAN.findall(self.prose))
        for language, code in _FENCE.findall(self.text):
            if language == "console":
                lines = code.replace("\\\n", " ").splitlines()
                yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))

    def files(self) -> dict[str, str]:
        """The files that the page tells its reader to write, by path."""
        return dict(_FILE.findall(self.text))


@cache
def _prose(text: str) -> str:
    return _FENCE.sub("", text)


@cache
def _anchors(prose: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def pages() -> list[Page]:
    return [Page(path) for path in PAGES]


README = Page(PAGES[0])
