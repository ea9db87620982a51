"""Labels of sagas: what is one, how many there may be, and how a list is asked for them."""

from __future__ import annotations

import pytest

from baton.core.documents.compile import compile_document
from baton.core.log.labels import LONGEST_NAME, LONGEST_VALUE, MOST, label_problems, read_labels
from baton.errors import InvalidDefinition
from tests.kit.secrets import SHAPED, X


def test_labels_as_people_give_them() -> None:
    assert (
        label_problems(
            {"customer": "4711", "a.b/c-d_e": 'Ünïcode: "quoted" = fine', "x": "y" * LONGEST_VALUE}
        )
        == []
    )


@pytest.mark.parametrize(
    ("labels", "path", "said"),
    [
        ({f"n{number}": "v" for number in range(MOST + 1)}, "/labels", "at most 10 labels; these are 11"),
        ({"4711": "v"}, "/labels", "a letter first"),
        ({"n" * (LONGEST_NAME + 1): "v"}, "/labels", "at most 63"),
        ({"a/b": ""}, "/labels/a~1b", "1 to 128 characters"),
        ({"a": "x" * (LONGEST_VALUE + 1)}, "/labels/a", "1 to 128 characters"),
        ({"a": "x,y"}, "/labels/a", "a comma"),
        ({"a": "x\n"}, "/labels/a", "a line break"),
        ({"db/password": "hunter"}, "/labels/db~1password", "looks like a secret"),
        ({"contrasena": "x"}, "/labels/contrasena", "looks like a secret"),
        ({"api_key": X}, "/labels/api_key", "looks like a secret"),
        ({"customer": SHAPED["github"]}, "/labels/customer", "looks like a secret"),
        ({"customer": SHAPED["jwt"]}, "/labels/customer", "looks like a secret"),
    ],
)
def test_what_is_no_label_is_told(labels: dict[str, str], path: str, said: str) -> None:
    (found,) = label_problems(labels)
    assert found.path == path
    assert said in found.message
    assert X not in found.message
    assert "hunter" not in found.message


@pytest.mark.parametrize(
    "labels",
    [
        {"session_id": "550e8400-e29b-41d4-a716-446655440000", "webhook": "stripe", "auth": "sso", "token_type": "bearer"},
        {"order": "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "patient": "pat-000123456789", "branch": "sk-region-2026-north"},
        {"webhook": "orders-of-2026-Q3", "card": "4111111111111111", "sha": "9f86d081884c7d659a2feaa0c55ad015"},
    ],
)  # fmt: skip
def test_ids_that_resemble_secrets_are_labels(labels: dict[str, str]) -> None:
    assert label_problems(labels) == []


def test_several_are_written_with_commas() -> None:
    assert read_labels("a=1,b=x=y") == {"a": "1", "b": "x=y"}
    for wrong in ("", "a", "=1", "a=1,", "a=1,,b=2"):
        with pytest.raises(ValueError, match="write name=value"):
            read_labels(wrong)


def test_the_labels_of_a_schedule_are_checked_with_the_document() -> None:
    text = "name: w\nnodes: {a: {value: 1}}\nschedule: {rate: 1h, labels: {team: books, '5': x}}\n"
    with pytest.raises(InvalidDefinition, match="a letter first"):
        compile_document(text, {})
    graph = compile_document(text.replace(", '5': x", ""), {})
    assert graph.schedule is not None
    assert graph.schedule.labels == {"team": "books"}
