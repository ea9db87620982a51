"""The golden list of wording: every phrase of the product, one a line, so that a changed sentence is one changed line.

wording.txt is sorted and names no file: a phrase that moves changes nothing. `{}` stands for what a phrase is filled with.
`python -m tests.architecture.test_wording` renews it. Other tests hold codes, paths and structure, and sentences in
tests/sentences/ alone: what they assert themselves is counted here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tests.architecture.law import nodes_of
from tests.architecture.test_house_rules import ROOT
from tests.kit import sentences

GOLDEN = Path(__file__).with_name("wording.txt")
# Two words beside each other: neither a name nor a path nor a lone placeholder.
PHRASE = re.compile(r"[a-z][`'\"»)}]*[,;:.]? +[`'\"({]*[A-Za-z{]")
# Of a template of the console: what is no text. A value is written as in an f-string.
MARKUP = re.compile(r"(?s)<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>|\{[%#].*?[%#]\}")
VALUE = re.compile(r"(?s)\{\{.*?\}\}")
# An assertion with all its lines, or what the words of an exception must match.
ASSERTION = re.compile(
    r"(?m)^( +)assert .*(?:\n(?:\1 .*|\1[)\]}].*|))*|(?<=match=)[rf]{0,2}\"(?:[^\"\\\n]|\\.)*\""
)
WORD = re.compile(r"[a-z][\w'-]*|[^\s`\w]+")
# May only go down. Inputs that read like the product's words, code, figures' names, words of libraries and of tests' own
# helpers, pages held against code; and what real processes say, whose tests take too long to be renewed with the others.
ASSERTED = 37


def texts(source: str) -> Iterator[str]:
    """String literals of a Python file, adjacent ones as one; no docstrings."""
    nodes = nodes_of(source)
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


def in_a_row(text: str) -> set[tuple[str, ...]]:
    """Each three words beside each other."""
    words = [word if word[0].isalpha() else "" for word in WORD.findall(text.lower())]
    return {three for three in zip(words, words[1:], words[2:], strict=False) if all(three)}


def asserted(source: str, known: set[tuple[str, ...]]) -> Iterator[str]:
    """Sentences in the assertions of a test that have three words in a row of the product."""
    for found in ASSERTION.finditer(source):
        if in_a_row(found[0]) & known:
            node = ast.parse(dedent(found[0])).body[0]
            looked_at = ast.unparse(node.test) if isinstance(node, ast.Assert) else found[0]
            for text in texts(f"f({looked_at})"):
                if len(text) >= 20 and PHRASE.search(text) and in_a_row(text) & known:
                    yield text


def test_no_more_sentences_are_asserted_outside_of_the_list() -> None:
    known = set().union(*map(in_a_row, golden()))
    found = [
        f"{file.relative_to(ROOT)}: {sentence}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for sentence in asserted(file.read_text(encoding="utf-8"), known)
    ]
    assert len(found) <= ASSERTED, ["give it to `says`: see tests/kit/sentences.py", *found]


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


def test_of_a_page_a_test_hears_the_sentences_of_the_list() -> None:
    page = "Payments. It is closed. Calls go through."
    says = sentences.Says(["It is closed.", "Calls go through."])
    says.within(page, 2)
    says.is_over()
    with pytest.raises(AssertionError, match="renew"):
        sentences.Says(["It is open."]).within(page)
    with pytest.raises(AssertionError, match="write the sentence"):
        sentences.Says([]).within(page)


def test_a_changed_sentence_of_a_page_is_renewed_by_what_is_most_like_it() -> None:
    page = ["Payments.", "It is shut now. Calls go through."]
    says = sentences.Says(["It is closed now.", "Calls go through."], renews=True)
    says.within(page, 2)
    assert says.heard == ["It is shut now.", "Calls go through."]
    with pytest.raises(AssertionError, match="nothing is like"):
        sentences.Says(["no such words at all"], renews=True).within(page)


def test_what_differs_with_each_run_is_not_of_the_sentence() -> None:
    says = sentences.Says(["TMP/a.py:… at http://127.0.0.1:…: see `baton show`"], folder="/tmp/pytest-1/t0")
    says("/tmp/pytest-1/t0/a.py:31 at http://127.0.0.1:43121: see `.venv/bin/baton show`")
    says.is_over()


def test_an_asserted_sentence_is_counted_and_a_reason_is_not() -> None:
    # Not as it would stand in a test: this file is looked at, too.
    source = """
def test_a() -> None:
    -assert told() == [
        ("/a", "there is no node `b` here"),
    ], "and there is no node `c` here"
    with pytest.raises(E, match-=r"there is no node `d`"):
        given("there is no node `e` here")
"""
    known = in_a_row("there is no node")
    found = asserted(source.replace("-a", "a").replace("-=", "="), known)
    assert [one.removeprefix("there is no node ") for one in found] == ["`b` here", "`d`"]


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(sorted(phrases(ROOT))) + "\n", encoding="utf-8")
