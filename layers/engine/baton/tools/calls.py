"""What goes into a tool's function and what comes out of it: types from JSON, JSON from types, failures as text.

The same wherever the function runs: in the loop, in a thread, or in a helper process.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from traceback import format_exception
from typing import Any

import msgspec
from pydantic import ValidationError

from baton.core.failures import LONGEST, sanitised
from baton.core.failures.codes import CODES
from baton.core.failures.evidence import Evidence, evidence_of
from baton.ports import StepContext, StepFailure
from baton.tools.define import Tool
from baton.tools.unfit import check_keys, check_numbers

TRACEBACK = 20_000
MOST_OF_A_HEADER = 100

logger = logging.getLogger("baton.tools")

_encode = msgspec.json.Encoder().encode
_may_hide_nan = re.compile(rb'null|"-?(?:None|nan|NaN|inf|Inf)').search
"""In JSON a number that is none, or is infinite, is null; as a name it is a word."""


class RaisedElsewhere(Exception):
    """The cause of a step's failure whose tool ran in another process: what was known there of what it raised."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(*evidence.exceptions[:1])
        self.evidence = evidence


def bind(tool: Tool, arguments: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
    """The function's arguments as the types of its hints. Raises `StepFailure`."""
    try:
        if tool.reads_json:
            valid = tool.parameters.model_validate_json(_encode(dict(arguments)))
        else:
            valid = tool.parameters.model_validate(dict(arguments))
    except ValidationError as error:
        raise StepFailure("input_invalid", f"`{tool.spec.name}`: {_first(error)}") from error
    except Exception as error:  # a type's own code runs in there
        raise StepFailure("input_invalid", text(f"`{tool.spec.name}`: {error}")) from error
    call = dict(valid.__dict__)
    if tool.context:
        call[tool.context] = context
    return call


def plain(tool: Tool, value: Any) -> Any:
    """The value as JSON types. What the log would change without a word (NaN, a key) or choke on is refused."""
    try:
        valid = tool.result.validator.validate_python(value)
        result = tool.result.serializer.to_python(valid, mode="json", by_alias=True)
        if _may_hide_nan(_encode(result)):
            check_numbers(tool.result.dump_python(valid))
        if tool.keys_may_meet:
            check_keys(valid)
    except ValidationError as error:
        message = f"`{tool.spec.name}` returned what its hints do not allow: {_first(error)}"
        raise StepFailure("result_invalid", message) from error
    except Exception as error:  # a type's own code runs in there
        raise not_json(tool.spec.name, error) from error
    return result


def not_json(tool: str, error: BaseException) -> StepFailure:
    """The failure of a tool whose result no log can hold."""
    is_bytes = isinstance(error, UnicodeDecodeError) or "invalid utf-8" in str(error)
    hint = (
        "; let a model with `ser_json_bytes` and `val_json_bytes` write bytes as base64" if is_bytes else ""
    )
    return StepFailure("result_invalid", text(f"`{tool}` returned what JSON cannot hold: {error}{hint}"))


def evidence_for(error: BaseException) -> Evidence:
    """What is known of what a tool raised; of a `StepFailure`, what is known of the error that it was raised from."""
    if not isinstance(error, StepFailure):
        return evidence_of(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return Evidence() if cause is None else evidence_of(cause)


def failure_of(error: BaseException, tool: Tool, evidence: Evidence | None = None) -> StepFailure:
    """The failure of a step whose tool raised this: its code, class and status, and the pause it asks for.

    What the tool itself says counts first. Of any other error the message says which line of the application raised it.
    """
    found = evidence_for(error) if evidence is None else evidence
    code, kind, retry_after, message = "", "", "", f"{type(error).__name__}: {error}{_place(error, tool)}"
    happened: bool | None = None
    unsent = False  # a tool may call several services: that one cannot be reached says nothing of the others
    if isinstance(error, StepFailure):
        code, kind, message = str(error.code), str(error.kind), str(error.message)
        retry_after, happened, unsent = str(error.retry_after), error.happened, error.unsent
        if type(error.status) is int and error.status:
            found = msgspec.structs.replace(found, status=error.status)
    else:
        code = next((tool.raises[kind] for kind in type(error).__mro__ if kind in tool.raises), "")
    if not isinstance(error, StepFailure) and not found.status:
        # The name of an exception says nothing of the outside: it may be about the answer to what was done.
        happened = True
    if code not in CODES and sanitised(code) != code:
        code = ""  # a code is stored, too, and in letters in which nothing would be known for a secret
    verdict = found.verdict(text(code), kind)
    return StepFailure(
        verdict.code,
        text(message),
        kind=verdict.kind,
        status=verdict.status,
        retry_after=text(retry_after or found.retry_after)[:MOST_OF_A_HEADER],
        happened=happened,
        unsent=unsent,
    )


def _place(error: BaseException, tool: Tool) -> str:
    """The innermost line of the tool's own package; empty for the engine's own tools.

    The file is named by its module, so that no directory of a machine gets into a log.
    """
    package = str(getattr(tool.function, "__module__", "")).partition(".")[0]
    place, at = "", error.__traceback__
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == package != "baton":
            file = module.replace(".", "/") + ("/__init__" if "__path__" in at.tb_frame.f_globals else "")
            place = f" ({file}.py:{at.tb_lineno} in {at.tb_frame.f_code.co_name})"
        at = at.tb_next
    return place


def traceback_of(error: BaseException) -> str:
    """Where it was raised, for the worker's log: without secrets, and cut to a readable length."""
    # As text, because half a character in it would keep the whole line from being written.
    # Sanitised before it is cut: half a secret is not known for one.
    whole = "".join(format_exception(error))
    clean = sanitised(text(whole[-2 * TRACEBACK :]))
    return (clean if len(whole) <= 2 * TRACEBACK else clean[LONGEST:])[-TRACEBACK:]


def report(traceback: str, tool: str, context: StepContext) -> None:
    """The entry holds what was raised. The author finds the traceback in the worker's log."""
    logger.warning("a tool raised: %s", traceback, extra=where(tool, context))


def where(tool: str, context: StepContext) -> dict[str, Any]:
    """The fields of a log line about a step."""
    return {"tool": tool, "saga": context.saga, "node": context.node, "attempt": context.attempt}


def text(text: str) -> str:
    """Text that UTF-8 can hold: messages quote whatever the outside sent."""
    return text.encode(errors="replace").decode()


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False)
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    pointer = "".join(f"/{step}" for step in details[0]["loc"])
    return f"at {pointer or '/'}: {details[0]['msg']}{rest}"
