"""A child whose failure is taken above does not ask first; and what a deployment does in place of a question."""

from __future__ import annotations

import pytest

from baton.core.conditions.model import Cel
from baton.core.decide.handler import takes_failure
from baton.core.decide.program import Program
from baton.core.failures.policy import PolicyChange
from baton.core.graph.graph import Catch, Join, Node
from baton.core.log.state import Origin, State, status_of
from tests.core.build import Saga, child, program, task
from tests.core.failing import broken, chosen, one
from tests.core.strategies import ASK_USER, ESCALATE, RETRY

FAILS = {"any": PolicyChange(last="fail")}
ASKS = {"any": PolicyChange(last="ask")}


def parent(*rules: Catch, **more: object) -> Program:
    node = child("c")
    caught = {name: True for rule in rules for name in rule.then}
    return program(
        Node(name="c", kind="workflow", workflow=node.workflow, arguments={}, catch=rules),
        *(task(name, "c") for name in caught),
        failures={},
        **more,
    )


def taken(graph: Program, *, handled: bool = False) -> bool:
    return takes_failure(graph, State(origin=Origin(handled=handled)), "c")


@pytest.mark.parametrize(
    ("rules", "is_taken"),
    [
        ((), False),
        ((Catch(then=("h",)),), True),
        ((Catch(codes=("child_failed",), kinds=("permanent",), then=("h",)),), True),
        ((Catch(codes=("timeout",), then=("h",)), Catch(then=("g",))), True),
        ((Catch(codes=("timeout",), then=("h",)),), False),
        ((Catch(kinds=("transient",), then=("h",)),), False),
        ((Catch(condition=Cel(expression="last_error.attempt > 2"), then=("h",)),), False),
    ],
)
def test_a_parent_takes_the_failure_that_a_rule_of_catch_fits_whatever_it_is(
    rules: tuple[Catch, ...], is_taken: bool
) -> None:
    assert taken(parent(*rules)) is is_taken


def test_a_parent_takes_the_failure_that_a_join_tolerates() -> None:
    lone = program(child("c"), task("j", "c"), failures={})
    tolerant = program(child("c"), task("j", "c", join=Join(tolerated=0)), failures={})
    assert (taken(lone), taken(tolerant)) == (False, True)


def test_in_a_loop_the_rounds_of_a_child_are_taken_alike() -> None:
    assert takes_failure(parent(Catch(then=("h",))), State(), "c@2")


def test_nothing_is_known_of_a_child_that_was_left_behind() -> None:
    graph = parent(Catch(then=("h",)))
    assert not takes_failure(graph, State(), "")
    assert takes_failure(graph, State(origin=Origin(handled=True)), "")


def test_a_parent_whose_own_failure_is_taken_takes_that_of_its_children() -> None:
    assert taken(parent(), handled=True)


# ---- what the child does


@pytest.mark.parametrize(
    ("code", "done"),
    [("login_required", []), ("database_down", []), ("timeout", [RETRY]), ("unknown_outcome", [ASK_USER])],
)
def test_a_child_whose_failure_is_handled_asks_only_about_what_may_have_happened(
    code: str, done: list[str]
) -> None:
    saga = Saga(program(task("a"), failures={}), handled=True)
    saga.go(broken("a", code))
    assert (chosen(saga), status_of(saga.state)) == (done, "failed" if not done else status_of(saga.state))


@pytest.mark.parametrize("rules", [ASKS, {"user_resolvable": PolicyChange(ladder=(ASK_USER,))}])
def test_what_the_document_of_such_a_child_says_of_failures_wins(rules: dict[str, PolicyChange]) -> None:
    saga = Saga(one(task("a"), **rules), handled=True)
    saga.go(broken("a", "login_required"))
    assert chosen(saga) == [ASK_USER]


# ---- what a deployment says


@pytest.mark.parametrize(
    ("last", "code", "done"),
    [
        ("", "login_required", [ASK_USER]),
        ("fail", "login_required", []),
        ("escalate", "login_required", [ESCALATE]),
        ("fail", "timeout", [RETRY]),
        ("escalate", "bad_request", []),
        ("fail", "database_down", [ESCALATE]),
        ("fail", "unknown_outcome", [ASK_USER]),
        ("escalate", "unknown_outcome", [ASK_USER]),
    ],
)
def test_a_deployment_says_what_is_done_in_place_of_a_question(last: str, code: str, done: list[str]) -> None:
    saga = Saga(program(task("a"), failures={}), last=last)
    saga.go(broken("a", code))
    assert chosen(saga) == done


def test_what_a_document_says_counts_more_than_what_its_deployment_says() -> None:
    saga = Saga(program(task("a", failures=ASKS), failures=FAILS), last="escalate")
    saga.go(broken("a", "login_required"))
    assert chosen(saga) == [ASK_USER]
    saga = Saga(program(task("a"), failures=FAILS), last="escalate")
    saga.go(broken("a", "login_required"))
    assert chosen(saga) == []
