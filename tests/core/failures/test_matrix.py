"""The failure matrix, entry by entry, as it is to be: written by hand here, and never read from the data."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from baton.core.decide.outcomes import Outcome
from baton.core.failures.alternatives import Alternative
from baton.core.failures.codes import CLASSES, CODES
from baton.core.failures.matrix import DEFAULTS, GENERAL, MATRIX
from baton.core.failures.names import classify, code_of
from baton.core.failures.policy import (
    BACKOFFS,
    DOMAINS,
    HINTS,
    HOOKS,
    PRESETS,
    QUESTIONS,
    SEVERITIES,
    PolicyChange,
    PolicyEntry,
    RetryChange,
    Rules,
)
from baton.core.failures.strategies.base import FailureContext, History
from baton.core.failures.strategies.ladder import entry_of, merge, next_step
from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.log import events as ev
from tests.core.asked import steps_of
from tests.core.build import Saga, program, task


def leads(code: str, domain: str = "") -> PolicyEntry:
    verdict = classify(code=code)
    return entry_of(verdict.code, verdict.kind, domain)


# Strategy, retries, back-off, base and longest pause, and what else the entry says.
MODEL = "model_call"
BROWSER = "browser_action"
FILE = "file_operation"
API = "external_api"
DB = "database"
TABLE: list[tuple[str, str, str, int, str, int, int, dict[str, Any]]] = [
    (MODEL, "timeout", "retry", 5, "exponential", 1_000, 30_000, {}),
    (MODEL, "connection_failed", "retry", 5, "exponential", 1_000, 30_000, {}),
    (MODEL, "server_error", "retry", 5, "exponential", 1_000, 30_000, {}),
    (MODEL, "rate_limited", "retry", 10, "fixed", 60_000, 60_000, {}),
    (MODEL, "context_length_exceeded", "replan", 0, "", 0, 0, {"hint": "truncate_context"}),
    (MODEL, "content_filtered", "ask_user", 0, "", 0, 0, {"message": "Content was filtered. Please rephrase your request."}),
    (MODEL, "model_unavailable", "replan", 0, "", 0, 0, {"hint": "fallback_model"}),
    (MODEL, "answer_invalid", "retry", 3, "fixed", 0, 0, {}),
    (BROWSER, "element_not_found", "retry", 3, "fixed", 2_000, 2_000, {"hooks": ("refresh_page",)}),
    (BROWSER, "navigation_timeout", "retry", 2, "fixed", 5_000, 5_000, {}),
    (BROWSER, "captcha_detected", "ask_user", 0, "", 0, 0, {"message": "CAPTCHA detected. Please solve it manually.", "question": "browser_takeover"}),
    (BROWSER, "login_required", "ask_user", 0, "", 0, 0, {"message": "Login required. Please authenticate.", "question": "browser_takeover"}),
    (BROWSER, "blocked_by_site", "replan", 0, "", 0, 0, {"hint": "alternative_source"}),
    (FILE, "permission_denied", "rollback", 0, "", 0, 0, {"message": "Insufficient permissions"}),
    (FILE, "disk_full", "escalate", 0, "", 0, 0, {"severity": "critical"}),
    (FILE, "file_not_found", "replan", 0, "", 0, 0, {"hint": "alternative_path"}),
    (FILE, "file_locked", "retry", 5, "exponential", 500, 10_000, {}),
    (API, "authentication_failed", "replan", 0, "", 0, 0, {"hint": "refresh_credentials"}),
    (API, "quota_exceeded", "ask_user", 0, "", 0, 0, {"message": "API quota exceeded. Please upgrade or wait."}),
    (API, "service_unavailable", "retry", 5, "exponential", 5_000, 60_000, {}),
    (API, "invalid_response", "retry", 2, "exponential", 1_000, 30_000, {"hooks": ("clear_cache",)}),
    (DB, "connection_failed", "retry", 10, "exponential", 1_000, 30_000, {}),
    (DB, "deadlock", "retry", 3, "exponential_jitter", 100, 1_000, {}),
    (DB, "constraint_violation", "rollback", 0, "", 0, 0, {"message": "Data integrity violation"}),
    (DB, "timeout", "retry", 2, "exponential", 1_000, 30_000, {"hooks": ("optimize_query",)}),
    # Whatever it is about: by status.
    ("", "401", "replan", 0, "", 0, 0, {"hint": "refresh_credentials"}),
    ("", "403", "replan", 0, "", 0, 0, {"hint": "refresh_credentials"}),
    ("", "404", "replan", 0, "", 0, 0, {"hint": "find_alternative_resource"}),
    ("", "409", "retry", 4, "exponential", 1_000, 30_000, {"hooks": ("refresh_and_retry",)}),
    ("", "422", "ask_user", 0, "", 0, 0, {}),
    ("", "429", "retry", 9, "exponential_jitter", 5_000, 120_000, {}),
    ("", "400", "rollback", 0, "", 0, 0, {}),
    ("", "451", "rollback", 0, "", 0, 0, {}),
    ("", "502", "retry", 5, "exponential", 1_000, 30_000, {}),
    ("", "503", "retry", 5, "exponential", 1_000, 30_000, {}),
    ("", "504", "retry", 5, "exponential", 1_000, 30_000, {}),
    ("", "500", "retry", 3, "exponential", 1_000, 30_000, {}),
    ("", "599", "retry", 3, "exponential", 1_000, 30_000, {}),
    # Whatever it is about: unknown failures, and the system underneath.
    ("", "never_heard_of", "retry", 3, "exponential", 1_000, 30_000, {}),
    ("", "tool_error", "retry", 3, "exponential", 1_000, 30_000, {}),
    ("", "validation_failed", "rollback", 0, "", 0, 0, {}),
    ("", "database_down", "escalate", 0, "", 0, 0, {"severity": "critical"}),
    ("", "out_of_memory", "escalate", 0, "", 0, 0, {"severity": "critical"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("domain", "code", "strategy", "retries", "backoff", "base", "longest", "more"),
    TABLE,
    ids=[f"{domain or 'any'}-{code}" for domain, code, *_ in TABLE],
)
def test_every_cell_leads_where_it_should(
    domain: str,
    code: str,
    strategy: str,
    retries: int,
    backoff: str,
    base: int,
    longest: int,
    more: dict[str, Any],
) -> None:
    entry = leads(code, domain)
    ways = [Alternative(name=hint, hints=(hint,)) for hint in entry.hints]
    step = next_step(
        FailureContext(entry=entry, history=History(), code=code_of(code), now=1, alternatives=ways)
    )
    assert step.strategy == strategy == entry.ladder[0]
    if retries:
        policy = entry.policy
        assert (policy.max_attempts - 1, policy.backoff) == (retries, backoff)
        assert (policy.base_ms, policy.max_delay_ms) == (base, longest)
    assert step.hint == more.get("hint", "")
    assert step.hooks == more.get("hooks", ())
    assert entry.message == more.get("message", "")
    assert entry.question == more.get("question", "error_resolution")
    assert entry.severity == more.get("severity", "medium")


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("domain", "code", "strategy", "retries", "backoff", "base", "longest", "more"),
    TABLE,
    ids=[f"{domain or 'any'}-{code}" for domain, code, *_ in TABLE],
)
def test_the_engine_does_what_the_cell_says(
    domain: str,
    code: str,
    strategy: str,
    retries: int,
    backoff: str,
    base: int,
    longest: int,
    more: dict[str, Any],
) -> None:
    """With a tool for every hint and every hook, and a failure that comes again and again."""
    ways = tuple(Alternative(name=hint, hints=(hint,), tool=hint) for hint in HINTS)
    node = task("a", domain=domain, ways=ways, hooks={hook: f"{hook}.tool" for hook in HOOKS})
    saga = Saga(program(node, failures={}))
    verdict = classify(code=code)
    pauses: list[int] = []
    chosen: list[ev.StrategyChosen] = []
    for attempt in itertools.count(1):
        failure = ev.Failure(verdict.code, "it broke", "a", kind=verdict.kind)
        failed = Outcome(slot="a", attempt=attempt, started_at=saga.now, ended_at=saga.now, failure=failure)
        saga.go(failed)
        chosen = [e for e in saga.entries[-1].events if isinstance(e, ev.StrategyChosen)]
        if not chosen or chosen[0].strategy != "retry":
            break
        assert chosen[0].hooks == tuple(f"{hook}.tool" for hook in more.get("hooks", ()))
        pauses.append(chosen[0].due_at - saga.now)
        assert steps_of(saga.go(after_ms=pauses[-1]))[0].attempt == attempt + 1
    assert len(pauses) == retries
    assert pauses == sorted(pauses) or "jitter" in backoff
    assert all(pause <= longest for pause in pauses)
    if pauses and "jitter" not in backoff:
        assert pauses[0] == base
    if strategy == "retry":
        return  # what comes after the retries is the ladder's
    assert [event.strategy for event in chosen] == ([] if strategy == "rollback" else [strategy])
    if strategy == "rollback":
        assert saga.state.ended is not None
        assert saga.state.ended.status == "failed"
        return
    assert (chosen[0].hint, chosen[0].severity) == (more.get("hint", ""), more.get("severity", ""))
    if strategy == "replan":
        assert [step.way and step.way.tool for step in steps_of(saga.decision)] == [more["hint"]]
        return
    assert chosen[0].ask is not None
    assert chosen[0].ask.kind == more.get("question", "error_resolution")
    assert more.get("message", "") in chosen[0].ask.message
    assert (saga.state.parked is not None) == (strategy == "escalate")


def test_every_entry_of_the_data_is_in_the_table_above() -> None:
    classes = {MODEL: {"transient"}}
    for domain, cells in MATRIX.items():
        tried = {code_of(code) for there, code, *_ in TABLE if there == domain}
        assert cells.keys() - classes.get(domain, set()) <= tried


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("transient", "retry"),
        ("recoverable", "replan"),
        ("user_resolvable", "ask_user"),
        ("permanent", "rollback"),
        ("catastrophic", "escalate"),
        ("unknown", "retry"),
    ],
)
def test_a_class_begins_with_its_strategy(kind: str, first: str) -> None:
    assert entry_of("mine", kind).ladder[0] == first


def test_what_is_catastrophic_is_escalated_and_then_undone() -> None:
    entry = leads("database_down")
    assert entry.ladder == ("escalate", "rollback")
    assert entry.at_most == {"escalate": 1}


def test_a_class_that_can_be_climbed_goes_up_the_whole_ladder() -> None:
    assert DEFAULTS["transient"].ladder == tuple(STRATEGIES)
    assert DEFAULTS["recoverable"].ladder == tuple(STRATEGIES)[1:]


def test_everything_that_the_data_name_exists() -> None:
    assert DEFAULTS.keys() == CLASSES.keys()
    assert DOMAINS.keys() == MATRIX.keys()
    for rules in (GENERAL, *MATRIX.values()):
        assert rules.keys() <= CODES.keys() | CLASSES.keys()
        for change in rules.values():
            assert set(change.hints or ()) <= HINTS.keys()
            assert set(change.before_retry or ()) <= HOOKS.keys()
            assert change.question in {None, *QUESTIONS}
            assert change.severity in {None, *SEVERITIES}
            assert change.retry is None or change.retry.backoff in {None, *BACKOFFS}


def test_a_hint_that_shortens_the_context_is_followed_by_the_others() -> None:
    assert leads("context_exceeded", MODEL).hints == (
        "truncate_context",
        "summarise_context",
        "chunk_context",
        "fallback_model",
    )


# ---- a document's rules ------------------------------------------------------------------------------------------


def test_the_code_counts_more_than_the_class_and_the_node_more_than_the_document() -> None:
    document = {
        "timeout": PolicyChange(message="document, code"),
        "any": PolicyChange(message="document, any"),
    }
    node = {"transient": PolicyChange(message="node, class")}
    assert entry_of("timeout", "transient", DB, (document, {})).message == "document, code"
    assert entry_of("deadlock", "transient", DB, (document, {})).message == "document, any"
    assert entry_of("timeout", "transient", DB, (document, node)).message == "node, class"
    kept = entry_of("timeout", "transient", DB, (document, node))
    assert kept.before_retry == ("optimize_query",)


def test_a_rule_that_gives_another_class_brings_its_ladder() -> None:
    rules = ({"any": PolicyChange(kind="transient")}, {"no_tables": PolicyChange(kind="permanent")})
    entry = entry_of("no_tables", "unknown", "", rules)
    assert (entry.kind, entry.ladder) == ("permanent", ("rollback", "escalate"))
    assert entry_of("else", "unknown", "", rules).kind == "transient"


def test_a_rule_says_how_it_is_tried_again() -> None:
    rules: tuple[Rules, ...] = (
        {},
        {
            "any": PolicyChange(retry=RetryChange(preset="critical")),
            "timeout": PolicyChange(retry=RetryChange(max_attempts=2)),
        },
    )
    assert entry_of("deadlock", "transient", "", rules).policy == PRESETS["critical"]
    found = entry_of("timeout", "transient", "", rules).policy
    assert (found.max_attempts, found.base_ms) == (2, 100)


def test_caps_are_added_to_those_that_are_there() -> None:
    entry = merge(leads("database_down"), PolicyChange(at_most={"rollback": 0}))
    assert entry.at_most == {"escalate": 1, "rollback": 0}


def test_where_the_graph_goes_on_from_a_failure_no_person_is_asked_and_nothing_undone_unless_the_document_says_so() -> (
    None
):
    assert entry_of("timeout", "transient", "", (), is_handled=True).ladder == ("retry", "replan")
    assert entry_of("bad_request", "permanent", "", (), is_handled=True).ladder == ()
    rules: tuple[Rules, ...] = ({}, {"any": PolicyChange(ladder=("ask_user",))})
    assert entry_of("timeout", "transient", "", rules, is_handled=True).ladder == ("ask_user",)
