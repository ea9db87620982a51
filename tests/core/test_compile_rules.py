"""Rules for failures that can do nothing: each is told with its place, the reason, and what would be right."""

from __future__ import annotations

import pytest

from baton.core.failures.codes import ALIASES, CLASSES, CODES
from baton.core.failures.names import SERVICES, exception_meant, near
from tests.core.compiling import told
from tests.kit.sentences import Says

NEVER = "this can do nothing: what is done about such a failure is %s, and never %s"
RIGHT = "write `%s`, or leave this out"
UNDO = "rollback, escalate"
LADDER = RIGHT % "ladder: [retry, rollback, escalate]"
CALLED = "`%s` is what an exception is called, and no failure has it as its code"
IDLE: list[tuple[str, str, str]] = [
    ("a: {retry: quick, on_failure: {any: [rollback]}}", "", "/nodes/a/retry"),
    ("a: {retry: {schedule: [1s, 1m]}}", "on_failure: [rollback]", "/nodes/a/retry"),
    ("a: {}, v: {value: 1}", "retry: critical\non_failure: [rollback]", "/retry"),
    ("a: {on_failure: {bad_request: {retry: quick}}}", "", "/nodes/a/on_failure/bad_request/retry"),
    ("a: {on_failure: {permanent: {retry: quick}}}", "", "/nodes/a/on_failure/permanent/retry"),
    ("a: {retry: quick, on_failure: [fail]}", "", "/nodes/a/retry"),
    ("a: {on_failure: {sold_out: {ladder: rollback, retry: quick}}}", "", "/nodes/a/on_failure/sold_out/retry"),
    ("a: {on_failure: {timeout: {ladder: [ask_user], retry: quick}}}", "", "/nodes/a/on_failure/timeout/retry"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "more", "path"), IDLE)
def test_a_rule_for_a_strategy_that_is_in_no_ladder_is_told(
    nodes: str, more: str, path: str, says: Says
) -> None:
    ((found, *said),) = told(nodes, more)
    assert found == path
    says(said)


def test_hints_and_hooks_without_their_strategy_are_told(says: Says) -> None:
    rule = "on_failure: {any: {ladder: [rollback], hints: [u.v], before_retry: [u.v]}}"
    found = told(f"a: {{{rule}}}")
    says(sorted((path, message) for path, message, _ in found))


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        ("a: {retry: quick, on_failure: {any: [retry, rollback]}}", ""),
        ("a: {retry: quick, on_failure: rollback}", ""),
        ("a: {retry: quick}", "on_failure: rollback"),
        ("a: {retry: quick, on_failure: fail}", "on_failure: ask\nretry: critical"),
        ("a: {retry: quick, on_failure: {any: rollback, timeout: retry}}", ""),
        ("a: {retry: quick, on_failure: {any: rollback, sold_out: retry}}", ""),
        ("a: {retry: {on: timeout}, on_failure: rollback}", ""),
        ("a: {retry: none, on_failure: rollback}", "on_failure: rollback\nretry: {max_attempts: 1}"),
        ("a: {on_failure: rollback}, b: {}", "retry: quick"),
        ("v: {value: 1}", "retry: quick\non_failure: rollback"),
        ("a: {on_failure: {conflict: {retry: quick}, recoverable: {retry: quick}}}", ""),
        ("a: {on_failure: {sold_out: {retry: quick, class: transient}}}", ""),
        ("a: {on_failure: {any: {ladder: rollback, at_most: {retry: 2}}}}", ""),
    ],
)
def test_a_rule_that_some_failure_comes_to_is_right(nodes: str, more: str) -> None:
    assert told(nodes, more) == []


STRANGE: list[tuple[str, str]] = [
    ("on_failure: {timeuot: retry}", "/nodes/a/on_failure/timeuot"),
    ("on_failure: {transent: retry}", "/nodes/a/on_failure/transent"),
    ("on_failure: {any: {retry: {never: [servce_unavailble]}}}", "/nodes/a/on_failure/any/retry/never"),
    ("retry: {on: [timeout, too_many_request]}", "/nodes/a/retry/on/1"),
    ("retry: {on: limit_hops}", "/nodes/a/retry/on"),
    ("retry: {on: any}", "/nodes/a/retry/on"),
    ("retry: {on: TransientError}", "/nodes/a/retry/on"),
    ("retry: {never: [httpx.ReadTimeout]}", "/nodes/a/retry/never/0"),
    ("catch: {code: [time_out, x], then: h}", "/nodes/a/catch/code/0"),
    ("catch: [{code: transient, then: h}, {then: h}]", "/nodes/a/catch/0/code"),
    ("catch: {code: conection_failed, then: h}", "/nodes/a/catch/code"),
    ("failover: [{name: p, when: {code: rate_limitted}, then: rollback}]", "/nodes/a/failover/0/when/code"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path"), STRANGE)
def test_a_code_that_no_failure_has_is_told(rule: str, path: str, says: Says) -> None:
    ((place, *said),) = told(f"a: {{{rule}}}, h: {{}}")
    assert path.startswith(place)
    says(said)


@pytest.mark.parametrize(
    "code", ["sold_out", "no_tables", "SOLD-OUT", "Declined", "soldout", "hotel_unavailable", "device_unavailable", "price_changed", "E42", "api_error"]
)  # fmt: skip
def test_a_code_of_a_tools_own_may_stand_everywhere(code: str) -> None:
    rules = f"on_failure: {{{code}: ask_user}}, catch: {{code: [{code}, limit_hops], then: h}}, retry: {{on: {code}}}"
    assert told(f"a: {{{rules}}}, h: {{}}") == []


@pytest.mark.parametrize(
    "field",
    ["catch: {code: CardDeclined, then: h}", "retry: {on: CardDeclined}", "on_failure: {CardDeclined: fail}"],
)
def test_the_name_of_a_class_is_no_code_anywhere(field: str, says: Says) -> None:
    ((_, message, meant),) = told(f"a: {{{field}}}, h: {{}}")
    assert message == CALLED % "CardDeclined"
    says(meant)


@pytest.mark.parametrize(
    ("condition", "text", "literal", "hint"),
    [
        ("last_error.code == 'OutOfStock'", "last_error.code", '"OutOfStock"', 'write "outofstock"'),
        ("last_error.code != 'TIMEOUT'", "last_error.code", '"TIMEOUT"', 'write "timeout"'),
        ("'503' == last_error.code", "last_error.code", '"503"', 'write "service_unavailable"'),
        (
            "last_error.code in ['Sold-Out', 'rate_limit']",
            "last_error.code",
            '"Sold-Out"',
            'write "sold_out"',
        ),
        (
            "last_error.errors[0].code == 'Timeout'",
            "last_error.errors[0].code",
            '"Timeout"',
            'write "timeout"',
        ),
        ("last_error.class == 'Transient'", "last_error.class", '"Transient"', 'write "transient"'),
        (
            "last_error.class == 'fatal'",
            "last_error.class",
            '"fatal"',
            f"the classes are {', '.join(CLASSES)}",
        ),
    ],
)
def test_a_condition_names_codes_and_classes_as_they_are_spelled(
    condition: str, text: str, literal: str, hint: str
) -> None:
    ((_, message, meant),) = told(f'a: {{catch: {{if: "{condition}", then: h}}}}, h: {{}}')
    assert (message, meant) == (f"`{text}` is never {literal}", hint)


@pytest.mark.parametrize(
    "condition",
    [
        "last_error.code == 'timeout'",
        "last_error.code in ['Sold-Out', 'sold_out']",
        "last_error.class != 'permanent'",
        "last_error.code == ''",
        "last_error.code == last_error.class",
        "last_error.message == 'Sold Out'",
    ],
)
def test_what_a_condition_may_say_of_a_failure(condition: str) -> None:
    assert told(f'a: {{catch: {{if: "{condition}", then: h}}}}, h: {{}}') == []


def test_no_known_code_or_class_is_a_near_miss_of_another() -> None:
    assert [code for code in CODES if near(code)] == []
    assert [kind for kind in CLASSES if near(kind, CLASSES)] == []
    assert {exception_meant(code) for code in (*CODES, *ALIASES, *CLASSES)} == {None}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TimeoutError", "timeout"),
        ("openai.RateLimitError", "rate_limited"),
        ("ThrottlingException", "rate_limited"),
        ("RateLimitError", "rate_limited"),
        ("NotFoundError", "not_found"),
        ("PermanentError", "permanent"),
        ("TransentError", "transient"),
    ],
)
def test_the_name_of_an_exception_leads_to_what_it_is_called_here(name: str, meant: str) -> None:
    assert exception_meant(name) == f"write `{meant}`"


def test_an_unknown_exception_leads_to_a_code_of_the_tools_own(says: Says) -> None:
    says(exception_meant("SoldOutError"))
    says(exception_meant("SoldOut"))
    says(exception_meant("shop.SoldOut"))
    assert {exception_meant(name) for name in ("sold_out", "Soldout", "NETWORK_ERROR", "ETIMEDOUT")} == {None}
    assert "api_error" in SERVICES


def test_a_swapped_letter_is_a_slip_and_another_word_is_none() -> None:
    assert near("confilct") == "conflict"
    assert near("not_foundd") == "not_found"
    assert near("conflicting") == near("never_heard_of") == near("con") == ""


def test_a_childs_own_failure_is_not_caught_by_its_code(says: Says) -> None:
    child = "a: {workflow: kid, catch: [{code: %s, then: h}, {then: h}]}, h: {}"
    says(told(child % "card_declined"))
    says(told(child % "[child_failed, not_found]"))
    assert told(child % "[child_failed, timeout]") == []
    assert told(child % "[child_failed, join_failed, output_invalid]") == []
    mixed = child.replace("{then: h}", "h") % "card_declined"
    assert [path for path, _, _ in told(mixed)] == ["/nodes/a/catch"]
