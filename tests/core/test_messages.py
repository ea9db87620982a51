"""The golden list of messages: what is told of each document, and that no place which tells something is without one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from baton.core.documents import compile as compiler
from baton.core.documents import text
from baton.core.documents.familiar import WORDS, plainly
from tests.core import messages
from tests.kit.sentences import Says

CASES = messages.cases()
CORE = Path(compiler.__file__).parents[2]
FILES = [
    *CORE.glob("documents/compile/*.py"),
    *CORE.glob("documents/*.py"),
    *CORE.glob("documents/nodes/*.py"),
    *CORE.glob("documents/parts/*.py"),
    CORE / "expressions.py",
    *(CORE / f"conditions/{name}.py" for name in ("cel", "celnames", "compare", "document", "jsonpath")),
    *(CORE / f"conditions/{name}.py" for name in ("matches", "python", "schemafaults")),
]
TELLING = {
    "BadSchema", "Fault", "Problem", "Refused", "_NoSchema", "_Unfit", "_malformed", "refuse", "say",
}  # fmt: skip
ELSEWHERE = {
    "Problem(f\"/patch/{number}\"": "patches of documents are in runtime/test_versions.py",
    "Problem(error.place, _TAKES_LONG": "documents that take so long are in test_hostile_documents.py",
    "Problem(\"\", message, \"give the kind another name": "a kind of a taken name is in test_own_kinds.py",
    "are not installed\"": "a library that is missing is in conditions/test_not_installed.py",
    "is not known in a condition": "the library of CEL refuses unknown names first",
    "cannot be used in a condition": "the same of functions",
    "`{call.function}` cannot": "the same of functions",
    "write `workflow: {spec.name}`": "agents of functions are in nodes/test_function.py",
    "{index}/callback": "a tool without a context is in test_delegate_documents.py",
    "it is nested too deeply": "documents are refused at a smaller depth",
    "has more than {caps.SCHEMA_BYTES}": "too large for a list",
    "the input of a schedule has at most": "too large for a list",
    "what a rule says here has at most": "too large for a list",
    "lead to too many places": "too large for a list",
    "more than {MAX_VALUES}": "too large for a list",
    "MAX_DEPTH} levels\", 1, 1": "too large for a list",
    "Problem(place + problem.path, problem.message": "what is wrong with pipelines is in pipelines/",
    "[Problem(\"\", f\"not a JSON Schema": "what the library refuses has words in schemafaults.py",
}  # fmt: skip
"""Places that are tested where they stand, and why."""


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_what_is_told_stands_in_the_list(case: dict[str, Any]) -> None:
    assert messages.told(case) == case["told"], "run `python -m tests.core.messages` if the change is meant"


def _telling(file: Path) -> list[tuple[int, str]]:
    """(line, source) of each call that makes a problem."""
    source = file.read_text(encoding="utf-8")
    lines = source.splitlines()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        (call.lineno, "\n".join(lines[call.lineno - 1 : call.end_lineno]))
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in TELLING
    ]


def telling() -> dict[tuple[str, int], str]:
    """By file and line."""
    return {(str(file), number): text for file in FILES for number, text in _telling(file)}


def test_the_list_is_written_as_it_is_read() -> None:
    """A part of it: each case is written by itself."""
    assert all(messages.written([case]) in messages.GOLDEN.read_text("utf-8") for case in CASES[::20])


@pytest.mark.no_cover
def test_every_place_that_tells_a_problem_has_a_case() -> None:
    measured = Coverage(data_file=None, include=[*map(str, FILES)], config_file=False)
    with measured.collect():
        for case in CASES:
            messages.told(case)
    lines = {str(file): set(measured.get_data().lines(str(file)) or ()) for file in FILES}
    missing = [text for (file, line), text in telling().items() if line not in lines[file]]
    assert [text for text in missing if not any(part in text for part in ELSEWHERE)] == []


def test_every_word_for_a_parsers_message_has_a_case() -> None:
    says = {one["says"] for case in CASES for one in case["told"] if "says" in one}
    words = {message for _, message, _ in (*text.OF_YAML, *text.OF_JSON)}
    assert len(words - says) == 1, "a comma before the closing bracket: said by newer parsers of JSON"


@pytest.mark.parametrize("of", ["yaml", "json"])
def test_what_a_parser_says_that_is_not_known_is_not_passed_on(of: str, says: Says) -> None:
    said = text.of_yaml("zzz", "", "") if of == "yaml" else text.of_json("zzz")
    says(said[0])


def test_every_familiar_word_leads_to_a_key_that_there_is() -> None:
    for model, words in WORDS.items():
        known = {field.alias or name for name, field in model.model_fields.items()}
        assert set(words.keys) <= known, model
        listed = [word for part in (*words.keys.values(), *words.said) for word in part.split()]
        assert not known & set(listed), f"{model}: these are keys themselves"
        assert len({word.replace("_", "") for word in listed}) == len(listed), (
            f"{model}: a word is there twice"
        )
        assert all(plainly(word) == word for word in listed)
