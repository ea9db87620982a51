"""Adapters for code and agents of other libraries. A saga that uses none imports none of it."""

from contextvars import ContextVar

CALL_KEY: ContextVar[str] = ContextVar("call_key", default="")
"""Idempotency key of the call that runs for an agent of another library."""


def idempotency_key() -> str:
    """Return the key of the call that a tool of an agent makes: the same whenever the call is made again.

    Empty outside of a recorded call.
    """
    return CALL_KEY.get()
