"""`retry`, `on_failure` and `failover` as documents write them: read, refused, and valid under the published schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from baton.core.conditions.model import Cel
from baton.core.conditions.schema import violations
from baton.core.documents.compile.source import policies_of, policy_rules, strange_names
from baton.core.documents.parts.failing import Failover, OnFailure, Retry
from baton.core.documents.schema import document_schema
from baton.core.documents.text import parse_document
from baton.core.failures.failover import Action, Match, Policy, Window
from baton.core.failures.policy import PolicyChange, RetryChange
from tests.core.build import MORE, PROPERTY
from tests.kit.sentences import Says

DEFINITIONS = document_schema()["$defs"]


class Node(BaseModel):
    """A node that has nothing but these fields."""

    model_config = ConfigDict(extra="forbid")
    retry: Retry = None
    on_failure: OnFailure = {}
    failover: Failover = []


SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "retry": {"$ref": "#/$defs/retry"},
        "on_failure": {"$ref": "#/$defs/onFailure"},
        "failover": {"$ref": "#/$defs/failover"},
    },
    "$defs": document_schema()["$defs"],
}


def read(**fields: Any) -> Node:
    return Node.model_validate(fields)


def rules(**fields: Any) -> dict[str, PolicyChange]:
    node = read(**fields)
    assert violations(SCHEMA, fields) == ()
    return policy_rules(node.retry, node.on_failure)


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        read(**fields)
    return str(caught.value.errors()[0]["msg"])


# ---- retry -------------------------------------------------------------------------------------------------------


def test_a_preset_is_written_by_its_name() -> None:
    assert rules(retry="critical") == {"any": PolicyChange(retry=RetryChange(preset="critical"))}


def test_everything_that_can_be_said_of_retries() -> None:
    said = {
        "preset": "quick",
        "max_attempts": 4,
        "backoff": "exponential_jitter",
        "base": "2s",
        "multiplier": 3,
        "max_delay": "1m",
        "jitter": 0.25,
        "budget": "5m",
        "on": ["503", "TIMEOUT", 429, "transient"],
        "never": "conflict",
    }
    (change,) = rules(retry=said).values()
    assert change.retry == RetryChange(
        preset="quick",
        max_attempts=4,
        backoff="exponential_jitter",
        base_ms=2_000,
        multiplier=3.0,
        max_delay_ms=60_000,
        jitter=0.25,
        budget_ms=300_000,
        on=("service_unavailable", "timeout", "rate_limited", "transient"),
        never=("conflict",),
    )


def test_a_schedule_lists_the_pauses() -> None:
    node = read(retry={"backoff": "custom", "schedule": ["1s", 60, "1h"]})
    assert node.retry is not None
    assert node.retry.change() == RetryChange(backoff="custom", schedule=(1_000, 60_000, 3_600_000))


@pytest.mark.parametrize(
    ("retry", "words"),
    [
        ("criticla", "must be `critical`, `standard`"),
        ({"backoff": "custom"}, "needs a `schedule`"),
        ({"backoff": "fixed", "schedule": ["1s"]}, "`schedule` goes with"),
        ({"backoff": "fixed", "jitter": 0.5}, "`jitter` goes with"),
        ({"backoff": "linear", "multiplier": 2}, "`multiplier` goes with"),
        ({"jitter": 1.5}, "between 0 and 1"),
        ({"jitter": True}, "between 0 and 1"),
        ({"max_attempts": 0}, "between 1 and 100"),
        ({"on": ["timeout"], "never": ["TIMEOUT"]}, "under `on` and under `never`"),
        ({"on": ["not a code"]}, "is not a code"),
        ({"on": [True]}, "is not a code"),
        ({"base": "soon"}, "is not a duration"),
    ],
)
def test_what_is_wrong_with_retries_is_said(retry: Any, words: str) -> None:
    assert words in refusal(retry=retry)


# ---- on_failure --------------------------------------------------------------------------------------------------


def test_one_strategy_stands_for_itself_and_those_above_it() -> None:
    assert rules(on_failure="ask_user") == {"any": PolicyChange(ladder=("ask_user", "rollback", "escalate"))}
    assert rules(on_failure={"timeout": "rollback"}) == {
        "timeout": PolicyChange(ladder=("rollback", "escalate"))
    }


def test_an_incident_leaves_it_to_be_undone() -> None:
    assert rules(on_failure="escalate") == {"any": PolicyChange(ladder=("escalate", "rollback"))}
    assert rules(on_failure={"timeout": "escalate"}) == {
        "timeout": PolicyChange(ladder=("escalate", "rollback"))
    }
    assert rules(on_failure=["escalate"]) == {"any": PolicyChange(ladder=("escalate",))}


@pytest.mark.parametrize("on_failure", ["rollback", {"any": "rollback"}, {"any": {"ladder": "rollback"}}])
def test_rollback_for_all_failures_leaves_the_retries(on_failure: object) -> None:
    assert rules(on_failure=on_failure) == {"any": PolicyChange(last="rollback")}


def test_rollback_of_a_list_or_for_one_failure_is_done_at_once() -> None:
    assert rules(on_failure=["rollback"]) == {"any": PolicyChange(ladder=("rollback",))}
    assert rules(on_failure={"sold_out": "rollback"}) == {
        "sold_out": PolicyChange(ladder=("rollback", "escalate"))
    }


@pytest.mark.parametrize("word", ["ask", "fail"])
def test_ask_and_fail_say_what_comes_after_the_retries_and_other_ways(word: str) -> None:
    assert rules(on_failure=word) == {"any": PolicyChange(last=word)}
    assert rules(on_failure={"timeout": {"ladder": word, "message": "x"}}) == {
        "timeout": PolicyChange(last=word, message="x")
    }


def test_in_a_list_ask_is_a_question_and_fail_the_end() -> None:
    assert rules(on_failure=["retry", "ask", "fail"]) == {"any": PolicyChange(ladder=("retry", "ask_user"))}
    assert rules(on_failure=["fail"]) == {"any": PolicyChange(ladder=())}


def test_a_list_is_the_ladder() -> None:
    assert rules(on_failure=["retry", "escalate"]) == {"any": PolicyChange(ladder=("retry", "escalate"))}


def test_everything_that_can_be_said_of_a_failure() -> None:
    said = {
        "class": "transient",
        "ladder": ["retry", "ask_user"],
        "at_most": {"retry": 2, "rollback": 0},
        "retry": "quick",
        "hints": ["fallback_model", "models.switch"],
        "before_retry": "clear_cache",
        "message": "The bank does not answer.",
        "question": "input",
        "severity": "high",
        "may_change": "hour",
        "escalate": [{"after": "1h", "remind": True}, {"after": "2h", "hand_on": {"group": "leads"}}],
    }
    assert rules(on_failure={"TIMEOUT": said, "503": {"at_most": {}}}) == {
        "timeout": PolicyChange(
            kind="transient",
            ladder=("retry", "ask_user"),
            at_most={"retry": 2, "rollback": 0},
            retry=RetryChange(preset="quick"),
            hints=("fallback_model", "models.switch"),
            before_retry=("clear_cache",),
            message="The bank does not answer.",
            question="input",
            severity="high",
            may_change=("hour",),
            escalate=(
                {"remind": True, "after_ms": 3_600_000},
                {"hand_on": {"group": "leads"}, "after_ms": 7_200_000},
            ),
        ),
        "service_unavailable": PolicyChange(),
    }


def test_the_retry_of_a_node_holds_for_any_failure_unless_on_failure_says_otherwise() -> None:
    found = rules(retry="critical", on_failure={"any": {"message": "x"}})
    assert found == {"any": PolicyChange(retry=RetryChange(preset="critical"), message="x")}
    found = rules(retry="critical", on_failure={"any": {"retry": "quick"}})
    assert found == {"any": PolicyChange(retry=RetryChange(preset="quick"))}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("retyr", "must be `retry`"),
        ("fial", "must be `retry`, `replan`, `ask_user`, `rollback`, `escalate`, `ask` or `fail`"),
        (["fail", "retry"], "`fail` comes last"),
        (["ask", "ask_user"], "`ask_user` is there twice"),
        ([], "at least one"),
        (["retry", "retry"], "twice"),
        ({"timeout": "a", "TIMEOUT": "b"}, "another spelling of `timeout`"),
        ({"not a code": "retry"}, "is not a code"),
        ({"timeout": {"at_most": {"rollback": 2}}}, "between 0 and 1"),
        ({"timeout": {"class": "bad"}}, "must be `transient`"),
        (7, "valid dictionary"),
    ],
)
def test_what_is_wrong_with_a_reaction_is_said(value: Any, words: str) -> None:
    assert words in refusal(on_failure=value)


def test_unknown_names_are_found(says: Says) -> None:
    said = {"timeout": {"hints": ["falback_model", "models.switch"], "before_retry": ["clear_cash"]}}
    says(list(strange_names(rules(on_failure=said), {"models.switch"})))


# ---- failover ----------------------------------------------------------------------------------------------------

POLICY = {
    "name": "full",
    "when": {
        "node": "book*",
        "tool": ["table.*"],
        "domain": "external_api",
        "code": [503, "timeout"],
        "class": "transient",
        "attempt": {"from": 2, "to": 3},
        "time": {"from": "22:00", "to": "06:00", "days": ["sun", "sat", "sun"], "utc_offset": "-02:30"},
        "parameters": {"party": 4, "table.kind": ["window", "terrace"]},
        "if": "last_error.attempt > 1",
    },
    "then": {"tool": "delivery.order", "with": {"hour": 20}},
    "message": "No table; food is brought instead.",
    "at_most": 2,
}


def test_everything_that_can_be_said_of_a_policy() -> None:
    policies = [
        POLICY,
        {"name": "rest", "then": "escalate"},
        {"name": "third", "when": {"attempt": 3}, "then": {"hint": "w"}},
    ]
    assert violations(SCHEMA, {"failover": policies}) == ()
    first, rest, third = policies_of(
        read(failover=policies).failover, lambda index, text: Cel(expression=f"{index}: {text}")
    )
    assert first == Policy(
        name="full",
        when=Match(
            nodes=("book*",),
            tools=("table.*",),
            domains=("external_api",),
            codes=("service_unavailable", "timeout"),
            kinds=("transient",),
            attempt=(2, 3),
            times=(Window(begins=1_320, ends=360, days=(5, 6), offset=-150),),
            parameters={"party": (4,), "table.kind": ("window", "terrace")},
            condition=Cel(expression="0: last_error.attempt > 1"),
        ),
        then=Action(tool="delivery.order", arguments={"hour": 20}),
        message="No table; food is brought instead.",
        at_most=2,
    )
    assert rest == Policy(name="rest", then=Action(strategy="escalate"))
    assert third == Policy(name="third", when=Match(attempt=(3, 0)), then=Action(hint="w"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"then": {"strategy": "escalate", "tool": "a"}}, "`tool` goes with"),
        ({"then": "replan"}, "says what is different"),
        ({"when": {"attempt": {"from": 3, "to": 2}}}, "must not be below"),
        ({"when": {"time": {"from": "24:00"}}}, "not a time of day"),
        ({"when": {"time": {"utc_offset": "2h"}}}, "not an offset"),
        ({"when": {"parameters": 7}}, "valid dictionary"),
        ({"at_most": 0}, "between 1 and 100"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(change: dict[str, Any], words: str) -> None:
    assert words in refusal(failover=[{**POLICY, **change}])


def test_two_policies_have_two_names(says: Says) -> None:
    says(refusal(failover=[POLICY, POLICY]))


def test_what_the_page_shows_can_be_read() -> None:
    page = (Path(__file__).parents[3] / "docs/failures.md").read_text("utf-8")
    _, _, rest = page.partition("```yaml\nretry: critical")
    shown = parse_document("retry: critical" + rest.partition("```")[0]).value
    assert violations(SCHEMA, shown) == ()
    node = read(**shown)
    assert policy_rules(node.retry, node.on_failure)["no_tables"].ladder == ("replan", "escalate")
    assert [policy.name for policy in node.failover] == ["full", "late"]


# ---- the schema --------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(
    ["retry", "rollback", "timeout", "TIMEOUT", "503", "any", "critical", "custom", "fixed", "x y", "1s", ""]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 101) | st.floats(-1, 2) | _WORDS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([*DEFINITIONS["retry"]["anyOf"][1]["properties"], "ladder", "at_most", "retry", "timeout", "name", "then", "when"]),
        inner,
        max_size=4,
    ),
    max_leaves=6,
)  # fmt: skip


@settings(PROPERTY, max_examples=40 * MORE)
@given(field=st.sampled_from(["retry", "on_failure", "failover"]), value=_VALUES)
def test_the_schema_refuses_nothing_that_can_be_read(field: str, value: Any) -> None:
    try:
        read(**{field: value})
    except ValidationError:
        return
    assert violations(SCHEMA, {field: value}) == ()


def test_every_field_of_the_schema_has_a_meaning_and_most_an_example() -> None:
    for name in ("retry", "reaction"):
        for field, schema in DEFINITIONS[name]["anyOf"][1]["properties"].items():
            assert "description" in schema or "$ref" in schema, field
