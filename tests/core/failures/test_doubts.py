"""Whether what a failed attempt was to do may have happened."""

from __future__ import annotations

import pytest

from baton.core.failures.codes import BY_CODE, CODES, leaves_doubt


@pytest.mark.parametrize(
    "code",
    ["timeout", "connection_failed", "server_error", "service_unavailable", "invalid_response", "tool_crashed",
     "tool_error", "database_down", "result_invalid", "result_too_large", "rows_refused", "network_error", "of_its_own",
     "conflict"],
)  # fmt: skip
def test_without_an_answer_it_may_have_happened(code: str) -> None:
    assert leaves_doubt(code)


@pytest.mark.parametrize(
    "code",
    ["rate_limited", "too_many_requests", "bad_request", "validation_failed", "business_rule", "unauthorized",
     "not_found", "deadlock", "quota_exceeded", "login_required", "tool_missing", "input_invalid"],
)  # fmt: skip
def test_what_was_refused_has_not_happened(code: str) -> None:
    assert not leaves_doubt(code)


def test_a_class_says_it_of_an_unknown_code() -> None:
    assert not leaves_doubt("card_declined", "permanent")
    assert not leaves_doubt("card_blocked", "user_resolvable")
    assert leaves_doubt("terminal_lost", "transient")
    assert not leaves_doubt("rate_limited", "transient"), "what is known of a code says more than its class"


def test_what_the_tool_says_counts_before_all() -> None:
    assert leaves_doubt("bad_request", "permanent", happened=True)
    assert not leaves_doubt("timeout", "transient", happened=False)


def test_every_code_that_is_named_is_one_and_differs_from_its_class() -> None:
    for code, doubt in BY_CODE.items():
        assert code in CODES
        assert leaves_doubt("?", CODES[code].class_) != doubt
