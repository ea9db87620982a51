"""What an answer of a model comes to: calls as the log has them, or data as the schema has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton.core.conditions.schema import violations
from baton.core.effects.operations import API, NOT_LISTED, OPERATION, refusal
from baton.core.failures import quoted
from baton.core.log.agents import call_digest
from baton.core.models import messages as said
from baton.core.models.tool import REFUSED
from baton.ports import StepFailure
from baton.ports.models import LENGTH, ModelAnswer, ModelCall
from baton.runtime.models.model_memory import Offered

MOST_TOLD = 3  # of the problems of an answer
MOST_SHOWN = 200  # characters of arguments that are no object


def calls_of(asked: Sequence[ModelCall], offered: Offered, made: Mapping[str, str]) -> list[dict[str, Any]]:
    """The calls of an answer as the log has them. `made` are the calls of older turns."""
    return [_repeating(_call(call, offered), made) for call in asked]


def data_of(answer: ModelAnswer, schema: Any) -> Any:
    """What the answer gives: text, or JSON as the schema has it. Raises `StepFailure` for what it must not be."""
    check_whole(answer)
    if schema is None:
        return answer.text
    try:
        data = said.parsed(answer.text)
    except ValueError as error:
        raise StepFailure(REFUSED, f"it is no JSON, as the schema of the answer asks for: {error}") from error
    if problems := violations(schema, data):
        told = "; ".join(f"at {one.path or '/'}: {one.message}" for one in problems[:MOST_TOLD])
        raise StepFailure(REFUSED, f"it does not match the schema of the answer: {told}")
    return data


def check_whole(answer: ModelAnswer) -> None:
    """Raises `StepFailure` for an answer that was cut off: of the calls that it asks for, some are missing."""
    if answer.finish == LENGTH:
        raise StepFailure(
            REFUSED, "it was cut off at the most tokens that it may have; answer in fewer words"
        )


def _call(call: ModelCall, offered: Offered) -> dict[str, Any]:
    """A call as the log has it: its tool and arguments, or why it is not made."""
    tool, parameters = offered.tools.get(call.name, ("", b""))
    if not tool:
        known = ", ".join(offered.tools) or "none"
        why = f"there is no tool `{call.name[:64]}`; there are: {known}"
        return _refused(call, call.name, "call_not_allowed", why)
    try:
        arguments = said.parsed(call.arguments or "{}")
    except ValueError as error:
        return _refused(call, tool, "input_invalid", f"the arguments are no JSON: {error}{_written(call)}")
    if isinstance(arguments, dict) and (why := _unlisted(tool, arguments, offered)):
        return _refused(call, tool, NOT_LISTED, why)
    problems = violations(parameters, arguments)
    if not isinstance(arguments, dict) or problems:
        told = (
            "; ".join(f"at {one.path or '/'}: {one.message}" for one in problems[:MOST_TOLD])
            or "they are no object"
        )
        told += "" if isinstance(arguments, dict) else _written(call)
        return _refused(call, tool, "input_invalid", told)
    return {"tool": tool, "arguments": arguments}


def _unlisted(tool: str, arguments: Mapping[str, Any], offered: Offered) -> str:
    """Why an operation of an API cannot be called; empty for one that can, and for other tools."""
    if tool not in offered.listing or API not in arguments or OPERATION not in arguments:
        return ""
    return refusal(offered.operations, arguments[API], arguments[OPERATION])


def _repeating(call: dict[str, Any], made: Mapping[str, str]) -> dict[str, Any]:
    """A call, and which one of an older turn it repeats: those of newer ones are in the state."""
    if not made or "error" in call:
        return call
    first = made.get(call_digest(call["tool"], call["arguments"]))
    return call if first is None else {**call, "repeats": first}


def _written(call: ModelCall) -> str:
    """What the model wrote for an object: it is not shown that otherwise."""
    return f"; you wrote: {quoted(call.arguments, MOST_SHOWN)}"


def _refused(call: ModelCall, tool: str, code: str, message: str) -> dict[str, Any]:
    return {
        "tool": tool[:64],
        "arguments": {},
        "text": call.arguments,
        "error": {"code": code, "message": message},
    }
