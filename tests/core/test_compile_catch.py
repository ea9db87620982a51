"""`catch`: what a graph keeps of it, what is told of handlers that can be none, and what can be read behind them."""

from __future__ import annotations

import pytest

from baton.core.conditions.model import Cel
from baton.core.graph.graph import Catch
from tests.core.compiling import compiled, node, reads, told
from tests.kit.sentences import Says

# ---- what is kept ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch", "rules"),
    [
        ("h", [Catch(then=("h",))]),
        ("[h, k]", [Catch(then=("h", "k"))]),
        ("{code: 503, then: h}", [Catch(codes=("service_unavailable",), then=("h",))]),
        (
            "[{class: transient, if: 'last_error.attempt > 2', then: [h]}, {then: k}]",
            [
                Catch(kinds=("transient",), condition=Cel(expression="last_error.attempt > 2"), then=("h",)),
                Catch(then=("k",)),
            ],
        ),
    ],
)
def test_the_rules_are_stored_in_their_order(catch: str, rules: list[Catch]) -> None:
    assert node("a", f"a: {{catch: {catch}}}, h: {{}}, k: {{}}").catch == tuple(rules)


@pytest.mark.parametrize("kind", ["tool: t", "wait: {for: 1}", "workflow: other", "value: 1"])
def test_a_node_of_any_kind_can_have_handlers(kind: str) -> None:
    a, b, h = compiled(f"a: {{{kind}, catch: h}}, b: {{after: a}}, h: {{}}").nodes
    assert (a.after, b.before, h.before) == (("b", "h"), ("a",), ("a",))
    assert a.catch == (Catch(then=("h",)),)


# ---- what is told ------------------------------------------------------------------------------------------------

HANDLED = "a failure is handled by what comes after"
LOOPING = "to try the same again write `retry`; to go round again, `loop`"
IN_BETWEEN = (
    "in `catch`, write `to_h` in place of `h`; add `to_h: {value: null}` to the nodes, and `to_h` to `after` "
)
LOOP = "h: {}, m: {after: h, %s}, a: {after: m, loop: {AGAIN, back_to: h}}, z: {after: a}"
WRONG: list[tuple[str, str, str]] = [
    ("no node", "a: {catch: hadnler}, handler: {}", "/nodes/a/catch"),
    ("no node in a list", "a: {catch: [h, q]}, h: {}", "/nodes/a/catch/1"),
    ("no node in a rule", "a: {catch: [{then: [h, q]}]}, h: {}", "/nodes/a/catch/0/then/1"),
    ("the node itself", "a: {catch: a}", "/nodes/a/catch"),
    ("a node before it", "a: {}, b: {after: a, catch: [{then: a}]}", "/nodes/b/catch/0/then"),
    ("the first node of its loop", LOOP.replace("back_to: h}", "back_to: h}, catch: h") % "", "/nodes/a/catch"),
    ("a node of its branch", "a: {catch: h, branch: {rules: [{if: 'output.score > 1', then: h}]}}, h: {}", "/nodes/a/catch"),
    ("its timeout path", "a: {catch: [{then: h}], loop: {AGAIN, timeout_path: h}}, h: {}", "/nodes/a/catch/0/then"),
    ("its break path", "a: {catch: h, loop: {AGAIN, break_path: h}}, h: {}", "/nodes/a/catch"),
    ("a node after it", "a: {catch: h}, h: {after: a}", "/nodes/h/after"),
    ("a rule that is never asked", "a: {catch: [{then: h}, {code: timeout, then: k}, {then: k}]}, h: {}, k: {}",
     "/nodes/a/catch/1"),
    ("both inside and outside", "h: {}, m: {after: h, catch: [k, z]}, k: {}, a: {after: [m, k], loop: {AGAIN, back_to: h}}, z: {}",
     "/nodes/m/catch/1"),
    ("its own output", "a: {catch: [{if: output.score > 1, then: h}]}, h: {}", "/nodes/a/catch/0/if"),
    ("what it was not called with", "a: {catch: [{if: last_error.parameters.x == 1, then: h}]}, h: {}", "/nodes/a/catch/0/if"),
    ("a condition that is none", "a: {catch: [{if: [], then: h}]}, h: {}", "/nodes/a/catch/0/if"),
    ("a join that can never fire", "a: {catch: h}, h: {}, b: {after: a}, j: {after: [b, h], join: 2}", "/nodes/j/join"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "path"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_is_told(nodes: str, path: str, says: Says) -> None:
    ((found, *said),) = told(nodes)
    assert found == path
    says(said)


def test_of_a_handler_in_a_circle_only_the_circle_is_told() -> None:
    nodes = "x: {catch: y}, d: {after: x, loop: {AGAIN, back_to: x}}, y: {after: i}, i: {after: y}"
    assert [path for path, _, _ in told(nodes)] == ["/nodes/i/after"]


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        # A failure leaves the loop, like a branch.
        (LOOP % "catch: k" + ", k: {}", ""),
        # Within it, a handler leads back to the last node; that of the last node is outside.
        ("h: {}, m: {after: h, catch: k}, k: {}, a: {after: [m, k], loop: {AGAIN, back_to: h}}, z: {after: a}", ""),
        ("a: {loop: {AGAIN}, catch: z}, b: {after: a}, z: {}", ""),
        # Its failure is what ends a loop that has no other end.
        ("a: {loop: {while: 'true'}, catch: z}, z: {}", ""),
        ("h: {catch: z}, a: {after: h, loop: {while: 'true', back_to: h}}, z: {}", ""),
        # Handlers are no nodes to which it sends when it is done.
        ("a: {limits: {fan_out: 1}, catch: [h, k]}, b: {after: a}, h: {}, k: {}", ""),
        ("a: {catch: h}, b: {after: a}, h: {}", "guardrails: {allowed_transitions: {a: [b, h]}}"),
        ("a: {catch: [{code: timeout, then: h}, {then: h}]}, h: {}", ""),
    ],
)  # fmt: skip
def test_what_is_right(nodes: str, more: str) -> None:
    assert told(nodes, more) == []


@pytest.mark.parametrize(
    ("nodes", "remedied"),
    [
        ("a: {catch: h, branch: {rules: [{if: output.score > 1, then: h}]}}, h: {}",
         "a: {catch: to_h, branch: {rules: [{if: output.score > 1, then: h}]}}, h: {after: to_h}, to_h: {value: null}"),
        ("a: {catch: h, branch: {rules: [{if: output.score > 1, then: h}]}}, h: {fail: {code: c, message: m}}",
         "a: {catch: to_h, branch: {rules: [{if: output.score > 1, then: h}]}}, h: {fail: {code: c, message: m}, after: to_h}, to_h: {value: null}"),
        ("a: {catch: [{then: h}], loop: {AGAIN, timeout_path: h}}, h: {}",
         "a: {catch: [{then: to_h}], loop: {AGAIN, timeout_path: h}}, h: {after: to_h}, to_h: {value: null}"),
        ("a: {catch: h, loop: {AGAIN, break_path: h}}, h: {}",
         "a: {catch: to_h, loop: {AGAIN, break_path: h}}, h: {after: to_h}, to_h: {value: null}"),
        ("a: {catch: h}, h: {after: a}", "a: {catch: h}, h: {}"),
        ("a: {catch: h}, h: {after: a}", "a: {catch: to_h}, h: {after: [a, to_h]}, to_h: {value: null}"),
    ],
)  # fmt: skip
def test_what_a_hint_about_a_handler_says_word_for_word_is_right(nodes: str, remedied: str) -> None:
    ((_, _, hint),) = told(nodes)
    assert IN_BETWEEN in hint
    assert told(remedied) == []


def test_a_node_in_between_has_a_name_that_is_free(says: Says) -> None:
    ((_, _, hint),) = told("a: {catch: h}, h: {after: a}, to_h: {}, to_h_2: {}")
    says(hint)


def test_a_handler_is_a_node_that_comes_next(says: Says) -> None:
    ((path, message, _),) = told(
        "a: {catch: h}, b: {after: a}, h: {}", "guardrails: {allowed_transitions: {a: b}}"
    )
    assert path == "/nodes/a/catch"
    says(message)


def test_handlers_of_an_agent_need_not_be_among_what_it_chooses() -> None:
    nodes = "a: {agent: {model: m, prompt: p, tools: [t]}, branch: {choose: output, among: [b]}, catch: h}, b: {}, h: {}"
    assert told(nodes) == []


# ---- what can be read behind a failure -----------------------------------------------------------------------------

PLAIN = "s: {}, a: {after: s, catch: h}, b: {after: a}, h: {}, j: {after: [b, h]}"
RULES = "s: {}, a: {after: s, catch: [{code: timeout, then: h}, {code: bad_request, then: k}]}, h: {}, k: {}, b: {after: a}"
SOME = "s: {}, a: {after: s, catch: [{code: timeout, then: [h, k]}, {then: k}]}, h: {}, k: {}, j: {after: [h, k]}"
EARLY = "u: {}, v: {after: u}, s: {after: u}, x: {}, a: {after: [s, x], join: {tolerated_failures: 0}, catch: h}, h: {}"
CUT = (
    "f: {}, m: {after: f, catch: z}, p: {after: f}, t: {after: [m, p], loop: {AGAIN, back_to: f}}, "
    "y: {after: t}, z: {}, w: {after: [y, z]}"
)
TOLERANT = "s: {}, x: {}, a: {after: [s, x], join: {tolerated_failures: 1}, catch: h}, h: {}, b: {after: a}"

SHIP = "reserve: {}, charge: {catch: tell}, tell: {}, ship: {after: [reserve, charge]}, thank: {after: ship}"
QUOTE = (
    "quote: {catch: no_quote}, no_quote: {%s}, sum_up: {after: [quote, no_quote]}, side: {}, "
    "other: {after: [side, sum_up]}, last: {after: [side, other]}"
)
LONGER = (
    "quote: {catch: sorry}, sorry: {}, log: {after: sorry}, sum_up: {after: [quote, log]}, side: {}, "
    "other: {after: [side, sum_up]}, last: {after: [side, other]}"
)
EITHER = (
    "a: {catch: [{code: timeout, then: h}, {then: k}]}, h: {}, k: {}, s: {after: [h, k]}, x: {}, j: {after: [a, s]}, "
    "m: {after: [a, h]}, y: {after: [x, m]}"
)
SHARED = (
    "a: {catch: h}, b: {catch: h}, x: {}, h: {}, c: {after: [x, a]}, d: {after: [c, h]}, e: {after: [x, d]}"
)
MET = "a: {catch: h}, p: {after: a}, h: {after: p}, x: {}, j: {after: [x, h]}"
COUNTING = "a: {catch: h}, h: {}, x: {}, y: {}, j: {after: [a, x], join: {tolerated_failures: 1}}, k: {after: [y, j]}"
STRICT = "a: {catch: h}, h: {}, x: {}, j: {after: [a, x], join: {tolerated_failures: 0}}"
LEFT = (
    "x: {}, f: {}, m: {after: f, catch: z}, t: {after: m, loop: {AGAIN, back_to: f}}, z: {}, y: {after: [x, t]}, "
    "w: {after: [x, z]}"
)
FALLBACKS = (
    "a: {catch: fa}, fa: {}, b: {catch: fb}, fb: {}, j: {after: [a, fa, b, fb]}, x: {}, k: {after: [x, j]}"
)
NESTED = "a: {catch: b}, b: {catch: c}, c: {}, j: {after: [a, b, c]}"
UNDONE = (
    "r: {catch: ur}, c: {after: r, catch: uc}, s: {after: c, catch: us}, us: {}, uc: {after: us}, ur: {after: uc}, "
    "j: {after: [s, ur]}"
)
REFUSED = "a: {catch: ha}, ha: {}, j: {after: a, join: {tolerated_failures: 0}, catch: hj}, hj: {}, d: {after: [a, j, hj]}"
STOPPED = "a: {catch: h}, h: {}, x: {}, b: {after: [a, x]}, j: {after: [b, x], join: any}, k: {after: [j, x]}"


@pytest.mark.parametrize(
    ("reader", "name", "nodes", "expected"),
    [
        # What a caught failure is lost to does not run: what runs has it; what comes at the end cannot count on it.
        ("ship", "charge", SHIP, True),
        ("ship", "reserve", SHIP, True),
        ("thank", "charge", SHIP, True),
        ("", "reserve", SHIP, True),
        ("", "ship", SHIP, False),
        ("", "thank", SHIP, False),
        # Where a handler comes back to the way, everything goes on.
        ("", "sum_up", QUOTE % "", True),
        ("", "last", QUOTE % "", True),
        ("sum_up", "quote", QUOTE % "", False),
        ("", "last", QUOTE % "when: input.x", False),
        ("", "last", LONGER, True),
        ("", "j", EITHER, True),
        ("", "m", EITHER, False),
        ("", "y", EITHER, False),
        ("c", "a", SHARED, True),
        ("", "d", SHARED, True),
        ("", "e", SHARED, True),
        ("", "j", FALLBACKS, True),
        ("", "k", FALLBACKS, True),
        ("", "j", FALLBACKS.replace("fa: {}", "fa: {when: input.x}"), False),
        ("", "j", NESTED, True),
        ("", "j", UNDONE, True),
        # A join that tolerates nothing fails by what is lost, and its handler is no sign of success.
        ("", "d", REFUSED, False),
        ("hj", "a", REFUSED, False),
        ("j", "a", REFUSED, True),
        ("", "j", MET, True),
        ("j", "h", MET, True),
        # A join that tolerates failures fires all the same, maybe with nothing.
        ("", "j", COUNTING, True),
        ("", "k", COUNTING, True),
        ("k", "x", COUNTING, False),
        ("j", "a", COUNTING, False),
        ("j", "a", STRICT, True),
        ("", "j", STRICT, True),
        # The edges out of a loop that a caught failure leaves.
        ("y", "t", LEFT, True),
        ("", "y", LEFT, False),
        ("", "w", LEFT, True),
        ("k", "j", STOPPED, True),
        ("", "k", STOPPED, False),
        ("h", "a", PLAIN, False),
        ("h", "s", PLAIN, True),
        ("b", "a", PLAIN, True),
        ("j", "a", PLAIN, False),
        ("j", "s", PLAIN, True),
        ("j", "b", PLAIN, False),
        ("j", "h", PLAIN, False),
        ("", "a", PLAIN, False),
        ("", "s", PLAIN, True),
        ("", "j", PLAIN, True),
        # A failure that no rule fits ends the saga: whatever is complete has been through one of them.
        ("", "b", RULES, False),
        ("k", "a", RULES, False),
        ("j", "k", SOME, True),
        ("j", "h", SOME, False),
        ("", "k", "s: {}, a: {after: s, catch: [{code: timeout, then: [h, k]}]}, k: {}, h: {}", False),
        # A join that tolerates failures may have failed before the others ended.
        ("h", "s", TOLERANT, False),
        ("b", "a", TOLERANT, True),
        ("h", "u", EARLY, False),
        ("v", "u", EARLY, True),
        # In a loop: this round, and seen from outside.
        ("w", "p", CUT, False),
        ("y", "p", CUT, True),
        ("w", "f", CUT, True),
        ("t", "m", "f: {}, m: {after: f, catch: k}, k: {}, t: {after: [m, k], loop: {AGAIN, back_to: f}}, z: {after: t}", False),
        ("z", "m", "f: {}, m: {after: f, catch: k}, k: {}, t: {after: [m, k], loop: {AGAIN, back_to: f}}, z: {after: t}", False),
        ("z", "t", "f: {}, m: {after: f, catch: k}, k: {}, t: {after: [m, k], loop: {AGAIN, back_to: f}}, z: {after: t}", True),
        ("k", "f", "f: {}, m: {after: f, catch: k}, t: {after: m, loop: {AGAIN, back_to: f}}, k: {}, z: {after: t}", True),
        ("k", "m", "f: {}, m: {after: f, catch: k}, t: {after: m, loop: {AGAIN, back_to: f}}, k: {}, z: {after: t}", False),
        ("y", "t", "f: {}, m: {after: f, catch: k}, t: {after: m, loop: {AGAIN, back_to: f}}, k: {}, z: {after: t}, y: {after: [z, k]}", False),
        ("z", "t", "t: {loop: {AGAIN}, catch: k}, k: {}, y: {after: t}, z: {after: [y, k]}", False),
        ("k", "t", "f: {}, t: {after: f, loop: {AGAIN, back_to: f}, catch: k}, k: {}, y: {after: t}", False),
        ("y", "t", "f: {}, t: {after: f, loop: {AGAIN, back_to: f}, catch: k}, k: {}, y: {after: t}", True),
    ],
)  # fmt: skip
def test_what_can_be_counted_on(reader: str, name: str, nodes: str, *, expected: bool) -> None:
    assert reads(reader, name, nodes) == expected


def test_a_join_that_counts_does_not_count_on_a_node_that_may_be_caught() -> None:
    nodes = "a: {catch: h}, b: {}, c: {}, h: {}, j: {after: [a, b, c], join: 2}"
    assert reads("", "j", nodes)
    assert not reads("", "j", nodes.replace("b: {}", "b: {catch: h}").replace("c: {}", "c: {catch: h}"))


def test_a_join_behind_does_not_name_what_a_caught_node_gave(says: Says) -> None:
    nodes = "a: {catch: h}, b: {}, h: {after: b, with: {x: '${join.outputs.a}'}}"
    ((path, message, _),) = told(nodes)
    assert path == "/nodes/h/with/x"
    says(message)
    assert told(nodes.replace("outputs.a", "arrived")) == []


def test_a_tolerated_failure_that_no_rule_fits_is_tolerated_still() -> None:
    nodes = "a: {catch: [{code: timeout, then: h}]}, b: {}, h: {}, j: {after: [a, b, h], join: {tolerated_failures: 1}}"
    assert told(nodes) == []
    assert not reads("j", "a", nodes)
    assert not reads("j", "h", nodes)


def test_what_is_wrong_with_a_rule_does_not_take_its_edges_away(says: Says) -> None:
    nodes = "a: {catch: [{cde: timeout, then: h}, {code: 'a b', then: k}]}, h: {with: {x: '${ctx.a.output?}'}}, k: {}"
    says([(path, message) for path, message, _ in told(nodes)])
    assert [path for path, _, _ in told("a: {catch: 5}, h: {}")] == ["/nodes/a/catch"]
    assert [path for path, _, _ in told("a: {catch: [h, h]}, h: {with: {x: '${ctx.a.output?}'}}")] == [
        "/nodes/a/catch"
    ]


def test_what_reads_behind_a_join_that_a_caught_failure_skips_is_told_why(says: Says) -> None:
    ((path, message, hint),) = told(SHIP, "output: '${ctx.ship.output}'")
    assert path == "/output"
    says(message)
    says(hint)
    assert told(SHIP, "output: '${ctx.ship.output?}'") == []


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ("a: {catch: h}, h: {when: input.x}, j: {after: [a, h]}", "j"),
        ("a: {catch: h}, b: {}, h: {}, j: {after: [a, b], join: any, when: input.x}", "j"),
        # What a failure does not keep from running is not said to be kept by it.
        (f"{FALLBACKS}, z: {{after: j, when: input.x}}", "z"),
        (f"{FALLBACKS.replace('fb]', 'fb], when: input.x')}", "j"),
        ("a: {}, b: {catch: h}, h: {}, j: {after: [a, b, h], join: {tolerated_failures: 0}, catch: k}, k: {}", "j"),
    ],
)  # fmt: skip
def test_a_failure_is_told_as_the_cause_where_it_can_be(nodes: str, name: str, says: Says) -> None:
    ((_, _, hint),) = told(nodes, f"output: '${{ctx.{name}.output}}'")
    assert hint is not None
    says(hint)


@pytest.mark.parametrize(
    ("nodes", "is_told"),
    [
        ("a: {}, j: {after: a, join: {tolerated_failures: 0}, catch: RULE}, h: {}", True),
        ("a: {}, j: {after: a, join: {wait_for: any, tolerated_failures: 1}, catch: RULE}, h: {}", True),
        ("a: {catch: k}, k: {}, j: {after: a, join: {tolerated_failures: 0}, catch: RULE}, h: {}", True),
        ("a: {}, b: {after: a}, j: {after: b, join: {tolerated_failures: 0}, catch: RULE}, h: {}", True),
        ("a: {}, j: {after: a, catch: RULE}, h: {}", False),
    ],
)
def test_a_rule_of_a_join_that_has_failed_counts_on_nothing_that_may_have_failed_before(
    nodes: str, *, is_told: bool, says: Says
) -> None:
    rule = "{if: 'ctx.a.output.score > 1', then: h}"
    found = [(path, text) for path, text, _ in told(nodes.replace("RULE", rule))]
    says(found)
