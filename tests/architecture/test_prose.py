"""Prose names who acts: worker, caller, operator, author, relay. Indefinite pronouns are found in code, pages and YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_house_rules import ROOT

# Quotations: a line of a document that is an example.
QUOTED = {("docs/documents.md", 'careful.value("drop", "nobody liked it")')}
WORD = re.compile(r"(?<![a-z])(somebody|someone|nobody|whoever|anybody)(s|'s)?(?![a-z])", re.IGNORECASE)
# On pages: what the generator takes from the code, and names of tests, which are found where they are written.
ELSEWHERE = re.compile(r"(?s)<!-- generated: (\w+) -->.*?<!-- end: \1 -->|::\w+")
ROOMS = (".ci", "benchmarks", "docs", "examples", "functions", "layers", "tests")
KINDS = {".py", ".md", ".yaml", ".yml"}


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Path and text of all prose that is held to this; what a page has from elsewhere is blank."""
    files = [*root.iterdir(), *(file for room in ROOMS for file in (root / room).rglob("*"))]
    for file in sorted(file for file in files if file.suffix in KINDS):
        path = file.relative_to(root).as_posix()
        if file.name in ("CHANGELOG.md", Path(__file__).name):
            continue
        text = file.read_text(encoding="utf-8")
        yield path, ELSEWHERE.sub(_blank, text) if file.suffix == ".md" else text


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def indefinite(root: Path) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts(root)
        if WORD.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if WORD.search(line) and (path, line.strip()) not in QUOTED
    ]


def test_prose_names_who_acts() -> None:
    assert indefinite(ROOT) == []


def test_what_is_quoted_is_still_there() -> None:
    assert {quoted for quoted in QUOTED if quoted[1] not in (ROOT / quoted[0]).read_text("utf-8")} == set()


def test_a_word_is_found_on_its_line_in_names_too(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text('"""Fine: nobodying."""\n\ndef test_whoever_asks(): ...\n')
    (tmp_path / "docs").mkdir()
    page = "<!-- generated: x -->\nNobody\n<!-- end: x -->\n`a.py::test_nobody`\n**Nobody's** turn.\n"
    (tmp_path / "docs/page.md").write_text(page)
    (tmp_path / "template.yaml").write_text("# Someone\n")
    assert indefinite(tmp_path) == [
        "docs/page.md:5: **Nobody's** turn.",
        "template.yaml:1: # Someone",
        "tests/test_it.py:3: def test_whoever_asks(): ...",
    ]
