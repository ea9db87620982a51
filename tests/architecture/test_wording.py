"""The golden list of wording: every phrase of the product, one a line, so that a changed sentence is one changed line.

wording.txt is sorted and names no file: a phrase that moves changes nothing. `{}` stands for what a phrase is filled with.
`python -m tests.architecture.test_wording` renews it. Other tests hold codes, paths and structure, not sentences.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_house_rules import ROOT
from tests.kit import sentences

GOLDEN = Path(__file__).with_name("wording.txt")
# Two words beside each other: neither a name nor a path nor a lone placeholder.
PHRASE = re.compile(r"[a-z][`'\"»)}]*[,;:.]? +[`'\"({]*[A-Za-z{]")
# Of a template of the console: what is no text. A value is written as in an f-string.
MARKUP = re.compile(r"(?s)<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>|\{[%#].*?[%#]\}")
VALUE = re.compile(r"(?s)\{\{.*?\}\}")


def texts(source: str) -> Iterator[str]:
    """String literals of a Python file, adjacent ones as one; no docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    others = {node.value for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    others |= {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and node not in others and isinstance(node.value, str):
            yield node.value


def texts_of_page(source: str) -> Iterator[str]:
    """Between the tags and statements of a template."""
    for text in MARKUP.split(VALUE.sub("{}", source)):
        yield " ".join(text.split())


def phrases(root: Path) -> set[str]:
    """All of the product."""
    read = {".py": texts, ".html": texts_of_page}
    return {
        line.strip()
        for file in sorted((root / "layers").rglob("*"))
        if file.suffix in read
        for text in read[file.suffix](file.read_text(encoding="utf-8"))
        for line in text.split("\n")
        if PHRASE.search(line)
    }


def golden() -> set[str]:
    return set(GOLDEN.read_text(encoding="utf-8").split("\n")) - {""}


def test_wording_is_that_of_the_list() -> None:
    now, known = phrases(ROOT), golden()
    changed = [f"- {one}" for one in sorted(known - now)] + [f"+ {one}" for one in sorted(now - known)]
    assert changed == [], "run `python -m tests.architecture.test_wording` if the change is meant"


def test_a_phrase_is_found_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers/a.py").write_text(
        '"""No docstring."""\n\nprint("this is " "one", f"and {len(\'ab\')} is "\n    f"one", "one\\n  and two lines", "no-phrase")\n'
    )
    (tmp_path / "layers/a.html").write_text(
        '<style>a of b</style><p class="is no text">\n Is {{ one }}\n  a text?{% if it is %}</p>'
    )
    assert phrases(tmp_path) == {"this is one", "and {} is one", "and two lines", "Is {} a text?"}


def test_the_list_of_what_tests_hear_has_no_test_that_is_gone() -> None:
    assert sentences.stale() == [], "run `pytest -n 0 --renew-sentences` with any test that has `says`"


def test_a_test_hears_what_the_list_has() -> None:
    says = sentences.Says(["one", ["a", 1]])
    says("one")
    with pytest.raises(AssertionError, match="renew"):
        says.is_over()
    says(("a", 1))
    says.is_over()
    with pytest.raises(AssertionError, match="renew"):
        says("more than the list has")
    with pytest.raises(AssertionError, match="renew"):
        sentences.Says(["one"])("another")


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(sorted(phrases(ROOT))) + "\n", encoding="utf-8")
