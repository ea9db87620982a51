"""Limits, guardrails, schemas, and kinds that cannot be run: what is stored, and what is told."""

from __future__ import annotations

import pytest

from baton.core.graph.graph import Cap
from tests.core.compiling import compiled, node, told
from tests.kit.sentences import Says

SAID = "`guardrails.allowed_tools` does not name it"
WRONG: list[tuple[str, str, str, str]] = [
    ("a tool that may not run", "a: {}", "guardrails: {allowed_tools: ['u.*']}", "/nodes/a/tool"),
    ("a tool that no one knows", "a: {}", "guardrails: {allowed_tools: [t, tt]}", "/guardrails/allowed_tools/1"),
    ("a way that may not be taken", "a: {}, b: {after: a}, c: {after: [b, a]}", "guardrails: {allowed_transitions: {a: b}}",
     "/nodes/c/after/1"),
    ("a way back that may not be taken", "a: {loop: {AGAIN}}, b: {after: a}", "guardrails: {allowed_transitions: {a: b}}",
     "/nodes/a/loop"),
    ("a written way back that may not be taken", "h: {}, a: {after: h, loop: {AGAIN, back_to: h}}",
     "guardrails: {allowed_transitions: {a: [a]}}", "/nodes/a/loop/back_to"),
    ("a guardrail for no node", "a: {}", "guardrails: {allowed_transitions: {q: a}}", "/guardrails/allowed_transitions/q"),
    ("a guardrail to no node", "a: {}", "guardrails: {allowed_transitions: {a: [q]}}", "/guardrails/allowed_transitions/a"),
    ("more than a node may send", "a: {limits: {fan_out: 1}}, b: {after: a}, c: {after: a}", "", "/nodes/a/limits/fan_out"),
    ("more than any node may send", "a: {}, b: {after: a}, c: {after: a}, d: {after: a}", "limits: {fan_out: 2}",
     "/limits/fan_out"),
    ("a schema that is none", "a: {output_schema: {type: nope}}", "", "/nodes/a/output_schema/type"),
    ("a named schema that is none", "a: {}", "schemas: {s: {type: nope}}", "/schemas/s/type"),
    ("a schema that is nowhere", "a: {output_schema: doen}", "schemas: {done: {}}", "/nodes/a/output_schema"),
    ("a condition that cannot be read", "a: {when: 'input.x >'}", "", "/nodes/a/when"),
    ("an agent without a prompt", "a: {agent: {model: m}}", "", "/nodes/a/agent/prompt"),
    ("an agent with too many calls in a turn", "a: {agent: {model: m, prompt: p, calls_in_a_turn: 65}}", "",
     "/nodes/a/agent/calls_in_a_turn"),
    ("a model that is hot", "a: {model: {name: m, prompt: p, temperature: 3}}", "", "/nodes/a/model/temperature"),
    ("a model whose price is a word", "a: {model: {name: m, prompt: p, price: {input: free, output: 1}}}", "",
     "/nodes/a/model/price/input"),
    ("a temperature that is a word", "a: {model: {name: m, prompt: p, temperature: hot}}", "",
     "/nodes/a/model/temperature"),
    ("no name of a model", "a: {model: {name: 'a model', prompt: p}}", "", "/nodes/a/model/name"),
    ("a decision without options", "a: {human: {title: x, type: decision}}", "", "/nodes/a/human"),
    ("an input without a schema", "a: {human: {title: x, type: input}}", "", "/nodes/a/human"),
    ("a takeover of nothing", "a: {human: {title: x, type: takeover}}", "", "/nodes/a/human"),
    ("options of an input", "a: {human: {title: x, type: input, schema: {}, options: [{id: b}]}}", "",
     "/nodes/a/human/options"),
    ("no option", "a: {human: {title: x, options: []}}", "", "/nodes/a/human/options"),
    ("an option twice", "a: {human: {title: x, options: [{id: b}, {id: b}]}}", "", "/nodes/a/human/options/1/id"),
    ("two defaults", "a: {human: {title: x, options: [{id: b, default: true}, {id: c, default: true}]}}", "",
     "/nodes/a/human/options/1/default"),
    ("an approval by default", "a: {human: {title: x, type: approval, options: [{id: approve, default: true}, {id: reject}]}}", "",
     "/nodes/a/human/options/0/default"),
    ("an approval of something else", "a: {human: {title: x, type: approval, options: [{id: yes}]}}", "",
     "/nodes/a/human/options"),
    ("a question's schema that is none", "a: {human: {title: x, schema: {type: nope}}}", "", "/nodes/a/human/schema/type"),
    ("a question's schema that is too large", "a: {human: {title: x, schema: {description: %s}}}" % ("x" * 16_400), "",
     "/nodes/a/human/schema"),
    ("a takeover that is not safe", "a: {human: {title: x, takeover: {url: 'http://a'}}}", "", "/nodes/a/human/takeover/url"),
    ("a picture that is not safe", "a: {human: {title: x, takeover: {url: '${input.u}', picture: 'data:x'}}}", "",
     "/nodes/a/human/takeover/picture"),
    ("no person to ask", "a: {human: {title: x, to: {}}}", "", "/nodes/a/human/to"),
    ("a word for whom to ask", "a: {human: {title: x, to: boss}}", "", "/nodes/a/human/to"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "more", "path"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_is_told(nodes: str, more: str, path: str, says: Says) -> None:
    ((found, *said),) = told(nodes, more)
    assert found == path
    says(said)


def test_what_would_be_right_is_told_with_it(says: Says) -> None:
    says(told("a: {}, b: {after: a}", "guardrails: {allowed_transitions: {a: [a, b]}, allowed_tools: [u.v]}"))  # fmt: skip
    ((*_, hint),) = told(
        "a: {}, b: {after: a}, c: {after: a}", "guardrails: {allowed_transitions: {a: [a, b]}}"
    )
    says(hint)
    ((*_, hint),) = told("a: {limits: {fan_out: 1}}, b: {after: a}, c: {after: a}")
    says(hint)


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        ("a: {}", "guardrails: {allowed_tools: ['*', 'q.*']}"),
        ("a: {}, b: {after: a}", "guardrails: {allowed_transitions: {a: [b]}}"),
        ("a: {limits: {fan_out: {max: 1, then: throttle}}}, b: {after: a}, c: {after: a}", ""),
        (
            "a: {limits: {fan_out: 1}, branch: {rules: [{if: output.score > 1, then: [b, c]}], default: b}}, b: {}, c: {}",
            "",
        ),
        ("a: {output_schema: true}, b: {output_schema: s}", "schemas: {s: {type: object}}"),
    ],
)
def test_what_is_allowed(nodes: str, more: str) -> None:
    assert told(nodes, more) == []


AGENT = "a: {agent: {model: m, prompt: p, tools: %s}, branch: {choose: output, among: [b], default: c}}, b: {}, c: {}, d: {%s}"


def test_an_agent_goes_on_only_to_what_it_may_choose(says: Says) -> None:
    assert told(AGENT % ("[t]", "")) == []
    found = told(AGENT % ("[t]", "after: [c, a]"))
    says(found)


@pytest.mark.parametrize("kind", ["agent: {model: m", "model: {name: m"])
def test_a_model_that_chooses_the_next_node_is_asked_for_it_and_for_its_reason(kind: str) -> None:
    nodes = f"a: {{{kind}, prompt: p}}, branch: {{choose: output.next, among: [b, c]}}}}, b: {{}}, c: {{}}"
    warm = nodes.replace("prompt: p}", "prompt: p, temperature: 0.5}")
    assert node("a", warm).arguments["temperature"] == 0.5
    schema = node("a", nodes).output_schema
    assert schema["properties"]["next"]["items"] == {"enum": ["b", "c"]}
    assert schema["required"] == ["next", "reasoning"]
    own = nodes.replace("prompt: p}", "prompt: p}, output_schema: {required: [next]}")
    assert node("a", own).output_schema == {"required": ["next"]}
    assert node("a", f"a: {{{kind}, prompt: p}}}}").output_schema is None


def test_an_agent_may_call_only_tools_that_may_run(says: Says) -> None:
    allowed = "guardrails: {allowed_tools: [t]}"
    assert [path for path, _, _ in told(AGENT % ("[t, tt]", ""))] == ["/nodes/a/agent/tools/1"]
    says(told(AGENT % ("['*']", ""), allowed))


def test_limits_are_stored_by_their_names_and_a_timeout_is_one() -> None:
    graph = compiled(
        "a: {limits: {hops: {max: 3, then: throttle}}}", "limits: {cost_usd: 1.5}", "timeout: 2h"
    )
    assert graph.limits == {"cost": Cap(most=1_500_000), "wall_time": Cap(most=7_200_000)}
    assert graph.nodes[0].limits == {"hops": Cap(most=3, then="throttle")}
    assert compiled("a: {}", "limits: {wall_time: 1h}").limits == {"wall_time": Cap(most=3_600_000)}


def test_a_schema_is_stored_where_it_is_used() -> None:
    assert node("a", "a: {output_schema: s}", "schemas: {s: {type: object}}").output_schema == {
        "type": "object"
    }
    assert node("a", "a: {output_schema: false}").output_schema is False


def test_a_value_and_a_time_are_stored_as_they_are_written() -> None:
    found = node("a", "a: {value: {x: '${input}'}}")
    assert (found.kind, found.value) == ("pass", {"x": "${input}"})
    found = node("a", "a: {wait: {until: '2026-12-01T09:00:00Z'}}")
    assert (found.kind, found.wait_until, found.wait_ms, found.wait_for) == (
        "wait",
        "2026-12-01T09:00:00Z",
        None,
        None,
    )
    found = node("a", "a: {wait: {for: '${input.x}'}}")
    assert (found.wait_for, found.wait_ms) == ("${input.x}", None)


def test_a_condition_on_a_node_is_stored_with_it() -> None:
    found = node("a", "a: {when: {jsonpath: '$.x'}}").when
    assert getattr(found, "of", "") == "input"
