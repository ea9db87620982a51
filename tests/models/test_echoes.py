"""An answer that repeats the credential of its request is stored without it."""

from __future__ import annotations

import pytest

from baton.adapters.models.answers import answer_without, redact_credential
from baton.ports.models import ModelAnswer, ModelCall

KEY = 'k-4711"of\\the provider'
AS_JSON = 'k-4711\\"of\\\\the provider'


def test_text_and_arguments_come_without_the_credential() -> None:
    call = ModelCall(id="1", name="t", arguments=f'{{"key": "{AS_JSON}"}}')
    found = answer_without(ModelAnswer(text=f"I was called with {KEY}.", calls=(call,)), KEY)
    assert found.text == "I was called with [redacted]."
    assert found.calls[0] == ModelCall(id="1", name="t", arguments='{"key": "[redacted]"}')


@pytest.mark.parametrize("credential", ["", "abc", "another-key"])
def test_any_other_answer_stays_as_it_is(credential: str) -> None:
    answer = ModelAnswer(text="abc")
    assert answer_without(answer, credential) is answer


def test_an_answer_that_was_fetched_comes_without_it_too() -> None:
    data = {"output": [{"text": f"{KEY} {KEY}", "n": 1}], "none": None}
    assert redact_credential(data, KEY) == {
        "output": [{"text": "[redacted] [redacted]", "n": 1}],
        "none": None,
    }
