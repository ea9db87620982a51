"""Wrong shapes of what decides where a saga goes and how far, each with the one problem that is told of it.

Values only: (what is wrong, document, path). Those of the rest are in test_compile_problems.py.
"""

from __future__ import annotations

_NODE = "name: w\nnodes:\n  a: {tool: t, %s}\n  b: {tool: t}\n"
_WAIT = "name: w\nnodes: {a: {wait: %s}}\n"
_TOP = "name: w\nnodes: {a: {tool: t}}\n%s\n"
_KIND = "name: w\nnodes: {a: {%s}}\n"

NOTHING = "there is no value here; write one"
LEAVE_OUT = f"{NOTHING}, or leave the field out"
NAMES = (
    "write `a_b`: names of nodes, signals and schemas have letters, digits and `_`, do not begin with a digit, and have at "
    "most 64 characters"
)

_IN_NODE: list[tuple[str, str, str]] = [
    # ---- branch
    ("a branch without anything", "branch: {}", "/branch"),
    ("a branch with only a default", "branch: {default: b}", "/branch"),
    ("a branch that is a name", "branch: b", "/branch"),
    ("a branch begun and forgotten", "branch: ", "/branch"),
    ("both ways of a branch", "branch: {rules: [{if: x, then: b}], choose: x}", "/branch"),
    ("an expression without names", "branch: {choose: output}", "/branch"),
    ("names without an expression", "branch: {among: [b]}", "/branch"),
    ("an expression that is a list", "branch: {choose: [x], among: b}", "/branch/choose"),
    ("no rules", "branch: {rules: []}", "/branch/rules"),
    ("one rule without a list", "branch: {rules: {if: x, then: b}}", "/branch/rules"),
    ("a rule that is a name", "branch: {rules: [b]}", "/branch/rules/0"),
    ("a rule without its nodes", "branch: {rules: [{if: x}]}", "/branch/rules/0/then"),
    ("a rule without its condition", "branch: {rules: [{then: b}]}", "/branch/rules/0/if"),
    ("a condition forgotten", "branch: {rules: [{if: , then: b}]}", "/branch/rules/0/if"),
    ("nodes forgotten", "branch: {rules: [{if: x, then: }]}", "/branch/rules/0/then"),
    ("a rule that leads nowhere", "branch: {rules: [{if: x, then: []}]}", "/branch/rules/0/then"),
    ("a rule that leads there twice", "branch: {rules: [{if: x, then: [b, b]}]}", "/branch/rules/0/then"),
    ("a rule that leads to a number", "branch: {rules: [{if: x, then: [b, 5]}]}", "/branch/rules/0/then/1"),
    ("an unknown key of a branch", "branch: {rules: [{if: x, then: b}], defualt: b}", "/branch/defualt"),
    ("an unknown key of a rule", "branch: {rules: [{if: x, thn: b}]}", "/branch/rules/0/thn"),
    ("an unknown key of a rule like none", "branch: {rules: [{if: x, then: b, qq: 1}]}", "/branch/rules/0/qq"),
    # ---- loop
    ("a loop that is a condition", "loop: output.x", "/loop"),
    ("a loop without its condition", "loop: {}", "/loop/while"),
    ("a loop with its condition forgotten", "loop: {while: }", "/loop/while"),
    ("no rounds", "loop: {while: x, max_iterations: 0}", "/loop/max_iterations"),
    ("too many rounds", "loop: {while: x, max_iterations: 1000001}", "/loop/max_iterations"),
    ("half a round", "loop: {while: x, max_iterations: 1.5}", "/loop/max_iterations"),
    ("rounds as text", "loop: {while: x, max_iterations: '5'}", "/loop/max_iterations"),
    ("rounds that are true", "loop: {while: x, max_iterations: true}", "/loop/max_iterations"),
    ("rounds forgotten", "loop: {while: x, max_iterations: }", "/loop/max_iterations"),
    ("back to several", "loop: {while: x, back_to: [a]}", "/loop/back_to"),
    ("a way out that leads nowhere", "loop: {while: x, break_path: []}", "/loop/break_path"),
    ("a way out that is no name", "loop: {while: x, timeout_path: {b: 1}}", "/loop/timeout_path"),
    ("an unknown key of a loop", "loop: {while: x, max_iteration: 5}", "/loop/max_iteration"),
    # ---- join
    ("a join like none", "join: most", "/join"),
    ("a join for no edge", "join: 0", "/join"),
    ("a join for half of one", "join: 0.5", "/join"),
    ("a join that is a list", "join: [b]", "/join"),
    ("a join that is true", "join: true", "/join"),
    ("a join forgotten", "join: ", "/join"),
    ("a join with a number as text", "join: {wait_for: '2'}", "/join/wait_for"),
    ("failures below none", "join: {tolerated_failures: -1}", "/join/tolerated_failures"),
    ("more failures than all", "join: {tolerated_failures: 101%}", "/join/tolerated_failures"),
    ("failures like none", "join: {tolerated_failures: some}", "/join/tolerated_failures"),
    ("a rest like none", "join: {rest: cancle}", "/join/rest"),
    ("a rest that is a number", "join: {rest: 5}", "/join/rest"),
    ("an unknown key of a join", "join: {wait: any}", "/join/wait"),
    # ---- failures
    ("retries like none", "retry: criticl", "/retry"),
    ("retries forgotten", "retry: ", "/retry"),
    ("an unknown key of retries", "retry: {max_attemts: 3}", "/retry/max_attemts"),
    ("retries without their pauses", "retry: {backoff: custom}", "/retry"),
    ("no pauses", "retry: {schedule: []}", "/retry/schedule"),
    ("a code that is none", "retry: {on: a b}", "/retry/on"),
    ("half a code", "retry: {on: [1.5]}", "/retry/on/0"),
    ("a reaction like none", "on_failure: 5", "/on_failure"),
    ("a strategy like none", "on_failure: {TIMEOUT: esclate}", "/on_failure/TIMEOUT"),
    ("an unknown key of a reaction", "on_failure: {503: {hint: x}}", "/on_failure/503/hint"),
    ("an unknown strategy", "on_failure: {any: {at_most: {retries: 1}}}", "/on_failure/any/at_most/retries"),
    ("a policy alone", "failover: {name: p, then: rollback}", "/failover"),
    ("a policy without its name", "failover: [{then: rollback}]", "/failover/0/name"),
    ("a policy that changes nothing", "failover: [{name: p, then: replan}]", "/failover/0/then"),
    ("a policy that goes on elsewhere", "failover: [{name: p, then: {to: b}}]", "/failover/0/then/to"),
    ("an unknown key of a time", "failover: [{name: p, when: {time: {form: '22:00'}}, then: rollback}]",
     "/failover/0/when/time/form"),
    ("a time of day that is none", "failover: [{name: p, when: {time: {to: '24:00'}}, then: rollback}]",
     "/failover/0/when/time/to"),
    ("a handler that is a number", "catch: 5", "/catch"),
    ("no handler", "catch: []", "/catch"),
    ("a handler twice", "catch: [b, b]", "/catch"),
    ("a handler among rules", "catch: [{then: b}, b]", "/catch"),
    ("a rule without its handler", "catch: [{code: timeout}]", "/catch/0/then"),
    ("an unknown key of a rule of failures", "catch: {cod: timeout, then: b}", "/catch/cod"),
    ("handlers forgotten", "catch: ", "/catch"),
    # ---- when, output_schema
    ("a condition of a node forgotten", "when: ", "/when"),
    ("a schema that is a number", "output_schema: 5", "/output_schema"),
    ("a schema forgotten", "output_schema: ", "/output_schema"),
    # ---- limits
    ("limits that are a number", "limits: 5", "/limits"),
    ("limits forgotten", "limits: ", "/limits"),
    ("an unknown limit", "limits: {hop: 5}", "/limits/hop"),
    ("a limit forgotten", "limits: {hops: }", "/limits/hops"),
    ("a limit of nothing", "limits: {fan_out: 0}", "/limits/fan_out"),
    ("a limit that is a name", "limits: {bytes: many}", "/limits/bytes"),
    ("a limit without its number", "limits: {hops: {then: throttle}}", "/limits/hops/max"),
    ("an unknown key of a limit", "limits: {hops: {max: 5, than: throttle}}", "/limits/hops/than"),
    ("a limit that does something else", "limits: {hops: {max: 5, then: stop}}", "/limits/hops/then"),
    ("a limit of hops that summarises", "limits: {hops: {max: 5, then: summarise}}", "/limits/hops/then"),
    ("a limit of dollars that summarises", "limits: {cost_usd: {max: 5, then: summarise}}", "/limits/cost_usd/then"),
    ("a limit of time that throttles", "limits: {wall_time: {max: 2h, then: throttle}}", "/limits/wall_time/then"),
    ("a limit of bytes that does something else", "limits: {bytes: {max: 5, then: sumarise}}", "/limits/bytes/then"),
    ("a limit of time that is none", "limits: {wall_time: soon}", "/limits/wall_time"),
    ("dollars as text", "limits: {cost_usd: $5}", "/limits/cost_usd"),
    ("no dollars", "limits: {cost_usd: 0}", "/limits/cost_usd"),
    ("too many dollars", "limits: {cost_usd: {max: 1000000.5}}", "/limits/cost_usd/max"),
]  # fmt: skip

_ELSEWHERE: list[tuple[str, str, str]] = [
    # ---- waits
    ("a wait for nothing at all", _WAIT % "{}", "/nodes/a/wait"),
    ("a wait for two things", _WAIT % '{for: 1s, until: "2026-12-01T09:00:00Z"}', "/nodes/a/wait"),
    ("a time with a timeout", _WAIT % '{until: "2026-12-01T09:00:00Z", timeout: 1s}', "/nodes/a/wait"),
    ("a time that is none", _WAIT % "{until: tomorrow}", "/nodes/a/wait/until"),
    ("a time that is a number", _WAIT % "{until: 5}", "/nodes/a/wait/until"),
    ("a time without its offset", _WAIT % '{until: "2026-12-01T09:00:00"}', "/nodes/a/wait/until"),
    ("a time forgotten", _WAIT % "{until: }", "/nodes/a/wait/until"),
    ("a text that only looks like an expression", _WAIT % "{for: '$${x}'}", "/nodes/a/wait/for"),
    ("a time as the wait itself", _WAIT % '"2026-12-01T09:00:00Z"', "/nodes/a/wait"),
    # ---- kinds
    ("a value with arguments", _KIND % "value: 1, with: {}", "/nodes/a"),
    ("a value and a tool", _KIND % "value: , tool: t", "/nodes/a"),
    ("an agent that is a name", _KIND % "agent: x", "/nodes/a/agent"),
    ("an agent forgotten", _KIND % "agent: ", "/nodes/a/agent"),
    ("an agent with a number as a tool", _KIND % "agent: {model: m, prompt: p, tools: [5]}", "/nodes/a/agent/tools/0"),
    ("an agent with a number as its model", _KIND % "agent: {model: 5, prompt: p}", "/nodes/a/agent/model"),
    ("a map over nothing", _KIND % "value: 1, map: {}", "/nodes/a/map/over"),
    ("a map with its list forgotten", _KIND % "value: 1, map: {over: }", "/nodes/a/map/over"),
    ("a question that is a text", _KIND % "human: Really?", "/nodes/a/human"),
    # ---- the document
    ("an owner that is a number", _TOP % "owner: 5", "/owner"),
    ("an owner forgotten", _TOP % "owner:", "/owner"),
    ("metadata that is no text", _TOP % "metadata: {a: 5}", "/metadata/a"),
    ("metadata forgotten", _TOP % "metadata: {a: }", "/metadata/a"),
    ("a timeout that is none", _TOP % "timeout: soon", "/timeout"),
    ("the same time twice", _TOP % "timeout: 2h\nlimits: {wall_time: 3h}", "/timeout"),
    ("schemas that are a list", _TOP % "schemas: [a]", "/schemas"),
    ("a schema that is a name", _TOP % "schemas: {done: other}", "/schemas/done"),
    ("a bad name of a schema", _TOP % "schemas: {a b: {}}", "/schemas/a b"),
    ("an unknown key of guardrails", _TOP % "guardrails: {allowed_tool: t}", "/guardrails/allowed_tool"),
    ("guardrails that are a list", _TOP % "guardrails: [t]", "/guardrails"),
    ("an allowed tool that is a number", _TOP % "guardrails: {allowed_tools: [5]}", "/guardrails/allowed_tools/0"),
    ("an allowed tool twice", _TOP % "guardrails: {allowed_tools: [t, t]}", "/guardrails/allowed_tools"),
    ("an allowed way of a bad name", _TOP % "guardrails: {allowed_transitions: {a b: []}}",
     "/guardrails/allowed_transitions/a b"),
    ("an allowed way to a number", _TOP % "guardrails: {allowed_transitions: {a: 5}}",
     "/guardrails/allowed_transitions/a"),
    ("an allowed way forgotten", _TOP % "guardrails: {allowed_transitions: {a: }}",
     "/guardrails/allowed_transitions/a"),
]  # fmt: skip

SHAPES = [
    *((what, _NODE % text, f"/nodes/a{path}") for what, text, path in _IN_NODE),
    *_ELSEWHERE,
]
# What the reader refuses and a schema cannot.
BEYOND = (
    ("no such day", _WAIT % '{until: "2026-02-30T09:00:00Z"}', "/nodes/a/wait/until"),
    ("less than the least money", _NODE % "limits: {cost_usd: 0.0000015}", "/nodes/a/limits/cost_usd"),
    ("a duration too long", _WAIT % "{for: 400d}", "/nodes/a/wait/for"),
)  # fmt: skip
