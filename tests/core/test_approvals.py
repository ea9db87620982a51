"""A call that has to be approved: the question, what each answer comes to, and how it is shown.

What the runtime says before a call is given here as an outcome; no clock and no tools. For which calls an approval holds
is in test_approved_calls.py.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import Approval
from baton.core.expressions import iso
from baton.core.log import events as ev
from baton.core.log.questions import MOST_ITEMS, open_questions, visible_arguments
from baton.core.log.records import Option
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import status_of
from baton.core.read.definition_views import graph_view
from baton.core.read.views import saga_view
from tests.core.approving import (
    AFTER,
    TOOLS,
    WITH,
    asking,
    compiled,
    paying,
    request_of,
    run,
    spec,
    unapproved,
)
from tests.core.asked import notices_of, steps_of
from tests.core.build import T0, Saga, done, ready
from tests.core.nodes.asking import DAY, answer
from tests.core.told import why
from tests.kit.sentences import Says
from tests.kit.views import as_json

# ---- the question


def test_a_call_that_is_risky_asks_and_holds_only_its_own_step(says: Says) -> None:
    saga = paying(more=AFTER + "\n  side: {tool: t}")
    step = next(one for one in steps_of(saga.go()) if one.slot == "pay")
    decision = saga.go(unapproved(saga, step), running=["side"])
    assert saga.kinds == ["question_opened", "notice_due"]
    ((slot, ask),) = open_questions(saga.state)
    assert (slot, ask.type, ask.kind, ask.actions) == ("pay", "approval", "approval", ("approve", "reject"))
    says(ask.title)
    says(ask.message)
    says(ask.details)
    request = request_of(step)
    assert request is not None
    assert (ask.risk, ask.digest, ask.severity) == ("critical", request.digest, "")
    assert ask.id == f"0.pay.{request.digest[:12]}"
    assert (ask.to, ask.asked_at, ask.expires_at) == ("", T0, T0 + DAY)
    assert decision.due == T0 + DAY
    (notice,) = notices_of(decision)
    assert (notice.to, notice.code, notice.severity) == ("user", "approval", "critical")
    assert status_of(saga.state, saga.program) == "running"
    saga.go(done("side", 1))
    assert status_of(saga.state, saga.program) == "suspended"
    assert decode_state(encode_state(saga.state)) == saga.state


def test_the_document_says_whom_it_is_for_and_in_which_words() -> None:
    words = "requires_approval: {title: 'Pay ${input.amount}?', message: '${ctx.first.output.note}', to: {group: '${input.group}'}, expires: 4h}"
    saga = Saga(
        compiled(
            f"tool: pay, {WITH}, after: first, {words}", "\n  first: {tool: t}\n  mid: {tool: t, after: pay}"
        ),
        {"amount": 1, "group": "finance"},
    )
    saga.go()
    saga.go(done("first", {"note": "For the wine."}))
    ask = asking(saga)
    assert (ask.title, ask.message, ask.to) == ("Pay 1?", "For the wine.", "group:finance")
    assert (ask.expires_at, ask.risk) == (T0 + DAY // 6, "high")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("to: {user: '${input.who}'}", "to.user: it must be a name"),
        ("title: '${input.nothing}'", "`input.nothing`: there is no `nothing`"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_step_and_nothing_is_done(words: str, message: str) -> None:
    saga = paying({"amount": 1, "who": 7}, node=f"tool: pay, {WITH}, requires_approval: {{{words}}}", more="")
    (step,) = steps_of(saga.go())
    saga.go(unapproved(saga, step))
    assert saga.state.failure is not None
    assert saga.state.failure.code == "question_invalid"
    assert message.partition(":")[0] in saga.state.failure.message


def test_words_that_are_a_blob_are_fetched_first() -> None:
    node = f"tool: pay, {WITH}, after: first, requires_approval: {{message: '${{ctx.first.output.note}}'}}"
    saga = Saga(compiled(node, "\n  first: {tool: t}"), {"amount": 1})
    saga.go()
    saga.go(done("first", ref="cas://x"))
    (step,) = steps_of(saga.go(blobs={"cas://x": {"note": "n"}}))
    saga.go(unapproved(saga, step))
    assert not saga.state.open
    saga.go(unapproved(saga, step), blobs={"cas://x": {"note": "n"}})
    ((_, ask),) = open_questions(saga.state)
    assert ask.message == "n"


SECRET = {
    "api_key": "sk-live-0123456789abcdefghij",
    "note": "x" * 900,
    "to": ["bob"] * 60,
    "n": 1,
    "pin": None,
}


def test_what_is_shown_has_no_secrets_and_is_cut() -> None:
    found = visible_arguments({**SECRET, "password": {"a": "b"}, "deep": [[[[[[[1]]]]]]], "token": ["tok"], "many": dict.fromkeys(map(str, range(60)), 1)})  # fmt: skip
    assert found["api_key"] == found["password"] == found["token"] == "[redacted]"
    assert found["note"] == "x" * 500 + "…"
    assert (len(found["to"]), found["to"][-1]) == (MOST_ITEMS + 1, "… 10 more")
    assert (found["n"], found["pin"], found["deep"]) == (1, None, [[[[["…"]]]]])
    assert found["many"]["…"] == "10 more"


def test_arguments_that_are_too_many_to_be_shown_are_named() -> None:
    node = "tool: wipe, with: {amount: '${input.amount}', to: '${input.to}'}"
    ask = asking(paying({"amount": ["y" * 400] * 50, "to": "bob"}, node=node, more=""))
    assert ask.details["arguments"] == {"amount": "…", "to": "…"}


# ---- what an answer comes to


def test_an_approved_call_is_made_with_exactly_what_was_approved() -> None:
    saga = paying()
    ask = asking(saga)
    answer(saga, "approve")
    step = run(saga)
    assert saga.kinds == ["question_closed"]
    assert (step.attempt, step.arguments, step.approved) == (1, {"amount": 600, "to": "bob"}, (ask.digest,))
    assert (saga.state.open, saga.state.signals) == ({}, ())
    assert status_of(saga.state, saga.program) == "running"
    assert decode_state(encode_state(saga.state)) == saga.state
    saga.go(done("pay", 1))
    assert saga.state.approved == {}


@pytest.mark.parametrize("comment", ["Too dear.", ""])
def test_a_rejection_takes_its_path(comment: str, says: Says) -> None:
    saga = paying()
    asking(saga)
    answer(saga, "reject", **({"comment": comment} if comment else {}))
    saga.go()
    assert saga.kinds[:2] == ["question_closed", "step_failed"]
    passed = [one for entry in saga.entries for one in entry.events if isinstance(one, ev.NodePassed)]
    says(passed[-1].output.v)


def test_a_rejection_without_a_path_fails_for_good_and_no_person_is_asked_again() -> None:
    saga = paying(node=f"tool: pay, {WITH}", more="")
    asking(saga)
    saga.tell()
    answer(saga, "reject")
    saga.go()
    assert saga.state.ended is not None
    failure = saga.state.ended.failure
    assert failure is not None
    assert (failure.code, failure.node, saga.state.failing) == ("rejected", "pay", {})


def test_a_question_that_expires_is_rejected(says: Says) -> None:
    saga = paying(node=f"tool: pay, {WITH}", more="")
    asking(saga)
    assert ready(saga.go(after_ms=DAY - 1)) == []
    saga.tell()
    saga.go(after_ms=1)
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "rejected"
    says(saga.state.ended.failure.message)


@pytest.mark.parametrize(("amount", "level"), [(1, "high"), (600, "critical")])
def test_what_is_high_or_critical_is_never_approved_without_a_person(amount: int, level: str) -> None:
    saga = paying({"amount": amount})
    ask = asking(saga)
    assert ask.risk == level
    by_default = msgspec.structs.replace(ask, options=(Option(id="approve", default=True), "reject"))
    work = msgspec.structs.replace(saga.state.open["pay"], ask=by_default)
    saga.state = msgspec.structs.replace(saga.state, open={"pay": work})
    saga.go(after_ms=DAY)
    assert (saga.state.approved, saga.kinds[:2]) == ({}, ["question_closed", "step_failed"])


# ---- how it is shown


def test_an_open_question_is_shown_with_its_risk_and_what_the_step_waits_for(says: Says) -> None:
    saga = paying()
    ask = asking(saga)
    view = as_json(saga_view(saga.state, saga.program, TOOLS))
    (question,) = view["questions"]
    assert (question["risk"], question["digest"], question["arguments"]) == ("critical", ask.digest, None)
    assert view["active"] == [
        {"node": "pay", "iteration": [], "state": "asking", "ask": ask.id, "until": iso(T0 + DAY)}
    ]
    says(why(saga, "pay"))
    answer(saga, "approve")
    saga.go()
    assert "is ready" in why(saga, "pay")
    saga.go(done("pay", 1))
    assert "ran" in why(saga, "pay")


@pytest.mark.parametrize(
    ("said", "audience"), [("", None), ("to: starter", {}), ("to: {group: g}", {"group": "g"})]
)
def test_a_node_names_its_own_audience_in_place_of_that_of_its_tool(said: str, audience: Any) -> None:
    tools = {
        "wipe": spec("wipe", requires_approval=True, approval=Approval(says={"to": {"group": "support"}}))
    }
    node = f"tool: wipe, with: {{amount: 1}}, requires_approval: {{title: Wipe?, {said}}}"
    asks = compile_document(f"name: w\nnodes: {{a: {{{node}}}}}", tools).nodes[0].approval
    assert asks is not None
    assert (asks.says or {}).get("to") == audience


def test_a_graph_says_which_nodes_ask_and_by_which_rules(says: Says) -> None:
    text = "name: w\nnodes: {a: {tool: pay, with: {amount: 1}}, b: {tool: t, requires_approval: true}, c: {tool: wipe}, d: {tool: t}, e: {tool: pay, with: {amount: 1}, requires_approval: {always: false, to: {group: g}}}}"
    view = graph_view(compile_document(text, TOOLS))
    assert {node["name"]: (node.get("approval"), node.get("action")) for node in view["nodes"]} == {
        "a": ("by_risk", "payment"), "b": ("always", None), "c": ("always", None), "d": (None, None), "e": ("by_risk", "payment"),
    }  # fmt: skip
    says(view["risk"][0])
    rules = (
        "name: w\nrisk: [{level: high, action: payment, above: 9.5, currency: EUR}]\nnodes: {d: {tool: t}}"
    )
    says(graph_view(compile_document(rules, TOOLS))["risk"])
    assert graph_view(compile_document("name: w\nnodes: {d: {tool: t}}", TOOLS))["risk"] == []
    off = graph_view(compile_document(text.replace("\n", "\nrisk: []\n", 1), TOOLS))
    assert [node.get("approval") for node in off["nodes"]] == [None, "always", "always", None, None]
