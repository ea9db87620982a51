"""The table of codes: every code that the engine can write is in it, with words for people."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from baton import errors
from baton.core.conditions import CODES as CONDITION_CODES
from baton.core.failures.codes import ALIASES, CLASSES, CODES, advice_for, class_of
from baton.core.failures.names import code_of
from baton.core.log.folding import workflow_limits
from tests.kit.sentences import Says

ENGINE = Path(__file__).parents[3] / "layers/engine/baton"
# What makes a failure, and what else writes a code that people see; the keyword that may be used for it.
MAKERS = {"failed_with", "Failure", "StepFailure", "ConditionError", "RouteError", "Parked"}


@lru_cache(maxsize=1)
def written() -> list[tuple[str, ast.expr]]:
    """The first argument of every call that makes a failure."""
    found = []
    for file in sorted(ENGINE.rglob("*.py")):
        text = file.read_text("utf-8")
        # An answer of the web has the same name; and most files make no failure, and need not be parsed.
        if file.is_relative_to(ENGINE / "web") or not any(f"{maker}(" in text for maker in MAKERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "code")]
                if name in MAKERS and given:
                    found.append((f"{file.relative_to(ENGINE)}:{node.lineno}", given[0]))
    return found


def test_every_code_that_the_sources_write_is_in_the_table() -> None:
    strange = []
    for where, value in written():
        if isinstance(value, ast.Constant):
            found = {str(value.value)}
        elif isinstance(value, ast.JoinedStr):
            assert ast.unparse(value) == "f'limit_{name}'", where
            found = {f"limit_{name}" for name in workflow_limits._SHOWN}
        else:
            # A code that is passed on, or one of the conditions' own constants; or one, if there is nothing to pass on.
            parts = [
                *getattr(value, "values", ()),
                getattr(value, "body", None),
                getattr(value, "orelse", None),
            ]
            found = {str(one.value) for one in parts if isinstance(one, ast.Constant)}
        strange += [f"{where}: {code}" for code in found if code not in CODES]
    assert strange == []


def test_the_search_finds_the_codes_that_there_are() -> None:
    found = {value.value for _, value in written() if isinstance(value, ast.Constant)}
    assert found >= {"tool_error", "timeout", "input_unbound", "join_failed", "rows_refused", "worker_killed"}


def test_every_code_of_a_condition_is_in_the_table() -> None:
    assert set(CONDITION_CODES) <= CODES.keys()


def test_every_refusal_that_a_child_can_meet_is_in_the_table() -> None:
    refusals = [
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")
    ]
    assert len(refusals) >= 10
    assert [code for code in refusals if code_of(code) not in CODES] == []


def test_every_code_has_a_class_a_sentence_and_advice() -> None:
    for code in CODES:
        assert class_of(code) in CLASSES, code
        says, advice = advice_for(code)
        assert says.endswith("."), code
        assert advice.endswith("."), code
        assert code_of(code.upper().replace("_", "-")) == code


def test_an_unknown_code_is_told_by_its_name(says: Says) -> None:
    assert class_of("no_tables") == "unknown"
    says(advice_for("no_tables").says)


def test_other_spellings_lead_to_codes_of_the_table() -> None:
    assert set(ALIASES.values()) <= CODES.keys()
    assert not ALIASES.keys() & CODES.keys()
