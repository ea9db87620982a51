"""The credential of a profile in what its provider or a proxy before it answers: cut out before it is stored or told to anyone."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from baton.core.failures.secret_names import REDACTED
from baton.ports.models import ModelAnswer

_SECRET: Final = 6  # a shorter one is no secret, and may stand in any text


def answer_without(answer: ModelAnswer, credential: str) -> ModelAnswer:
    """The answer without the credential, as it is and as JSON writes it."""
    if not any(form in part for form in _forms(credential) for part in _parts(answer)):
        return answer
    calls = tuple(replace(call, arguments=without(call.arguments, credential)) for call in answer.calls)
    return replace(answer, text=without(answer.text, credential), calls=calls)


def without(value: Any, credential: str) -> Any:
    """The same of JSON."""
    if isinstance(value, str):
        for form in _forms(credential):
            value = value.replace(form, REDACTED)
        return value
    if isinstance(value, list):
        return [without(one, credential) for one in value]
    if isinstance(value, dict):
        return {name: without(one, credential) for name, one in value.items()}
    return value


def _parts(answer: ModelAnswer) -> tuple[str, ...]:
    return answer.text, *(call.arguments for call in answer.calls)


def _forms(credential: str) -> tuple[str, ...]:
    if len(credential) < _SECRET:
        return ()
    return tuple(dict.fromkeys((credential, msgspec.json.encode(credential).decode()[1:-1])))
