"""Wrong shapes of what decides where a saga goes and how far, each with the one problem that is told of it.

Values only: (what is wrong, document, path, message, suggestion). Those of the rest are in test_compile_problems.py.
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
_EITHER = "write either `rules` (a list of `if` and `then`) or `choose` with `among`"
_BOTH = "`choose` (an expression) and `among` (the nodes it may name) go together"
_COUNT = "write `all`, `any`, or the number of nodes to wait for"
_SHARE = 'write a number of failures, or a share of the nodes such as "25%", up to 100%'
_ONE_WAIT = "write exactly one of `for` (a duration), `until` (a time) and `signal` (a name)"
_TIME = "is not a time with its offset; write for example 2026-12-01T09:00:00Z"
_DURATION = "is not a duration; write for example 500ms, 5s, 10m, 1h or 2d"

_IN_NODE: list[tuple[str, str, str, str, str]] = [
    # ---- branch
    ("a branch without anything", "branch: {}", "/branch", _EITHER, ""),
    ("a branch with only a default", "branch: {default: b}", "/branch", _EITHER, ""),
    ("a branch that is a name", "branch: b", "/branch", "must be an object", ""),
    ("a branch begun and forgotten", "branch: ", "/branch", LEAVE_OUT, ""),
    ("both ways of a branch", "branch: {rules: [{if: x, then: b}], choose: x}", "/branch", _EITHER, ""),
    ("an expression without names", "branch: {choose: output}", "/branch", _BOTH, ""),
    ("names without an expression", "branch: {among: [b]}", "/branch", _BOTH, ""),
    ("an expression that is a list", "branch: {choose: [x], among: b}", "/branch/choose", "must be a string", ""),
    ("no rules", "branch: {rules: []}", "/branch/rules", "a branch has at least one rule", ""),
    ("one rule without a list", "branch: {rules: {if: x, then: b}}", "/branch/rules", "must be a list", ""),
    ("a rule that is a name", "branch: {rules: [b]}", "/branch/rules/0", "must be an object", ""),
    ("a rule without its nodes", "branch: {rules: [{if: x}]}", "/branch/rules/0/then", "`then` is missing", ""),
    ("a rule without its condition", "branch: {rules: [{then: b}]}", "/branch/rules/0/if", "`if` is missing", ""),
    ("a condition forgotten", "branch: {rules: [{if: , then: b}]}", "/branch/rules/0/if", NOTHING, ""),
    ("nodes forgotten", "branch: {rules: [{if: x, then: }]}", "/branch/rules/0/then", NOTHING, ""),
    ("a rule that leads nowhere", "branch: {rules: [{if: x, then: []}]}", "/branch/rules/0/then",
     "name at least one node", ""),
    ("a rule that leads there twice", "branch: {rules: [{if: x, then: [b, b]}]}", "/branch/rules/0/then",
     "`b` is there twice", ""),
    ("a rule that leads to a number", "branch: {rules: [{if: x, then: [b, 5]}]}", "/branch/rules/0/then/1",
     "must be a string", ""),
    ("an unknown key of a branch", "branch: {rules: [{if: x, then: b}], defualt: b}", "/branch/defualt",
     "`defualt` is not known here", "did you mean `default`?"),
    ("an unknown key of a rule", "branch: {rules: [{if: x, thn: b}]}", "/branch/rules/0/thn",
     "`thn` is not known here", "did you mean `then`?"),
    ("an unknown key of a rule like none", "branch: {rules: [{if: x, then: b, qq: 1}]}", "/branch/rules/0/qq",
     "`qq` is not known here", ""),
    # ---- loop
    ("a loop that is a condition", "loop: output.x", "/loop", "must be an object", "write `loop: {while: output.x}`"),
    ("a loop without its condition", "loop: {}", "/loop/while", "`while` is missing", ""),
    ("a loop with its condition forgotten", "loop: {while: }", "/loop/while", NOTHING, ""),
    ("no rounds", "loop: {while: x, max_iterations: 0}", "/loop/max_iterations",
     "`0` must be between 1 and 1,000,000", ""),
    ("too many rounds", "loop: {while: x, max_iterations: 1000001}", "/loop/max_iterations",
     "`1000001` must be between 1 and 1,000,000", ""),
    ("half a round", "loop: {while: x, max_iterations: 1.5}", "/loop/max_iterations",
     "`1.5` is not a whole number", ""),
    ("rounds as text", "loop: {while: x, max_iterations: '5'}", "/loop/max_iterations", "`5` is not a whole number", ""),
    ("rounds that are true", "loop: {while: x, max_iterations: true}", "/loop/max_iterations",
     "`true` is not a whole number", ""),
    ("rounds forgotten", "loop: {while: x, max_iterations: }", "/loop/max_iterations", LEAVE_OUT, ""),
    ("back to several", "loop: {while: x, back_to: [a]}", "/loop/back_to", "must be a string", ""),
    ("a way out that leads nowhere", "loop: {while: x, break_path: []}", "/loop/break_path",
     "name at least one node", ""),
    ("a way out that is no name", "loop: {while: x, timeout_path: {b: 1}}", "/loop/timeout_path",
     "must be a list", ""),
    ("an unknown key of a loop", "loop: {while: x, max_iteration: 5}", "/loop/max_iteration",
     "`max_iteration` is not known here", "did you mean `max_iterations`?"),
    # ---- join
    ("a join like none", "join: most", "/join", _COUNT, ""),
    ("a join for no edge", "join: 0", "/join", "`0` must be between 1 and 10,000", ""),
    ("a join for half of one", "join: 0.5", "/join", "`0.5` is not a whole number", ""),
    ("a join that is a list", "join: [b]", "/join", _COUNT, ""),
    ("a join that is true", "join: true", "/join", _COUNT, ""),
    ("a join forgotten", "join: ", "/join", LEAVE_OUT, ""),
    ("a join with a number as text", "join: {wait_for: '2'}", "/join/wait_for", _COUNT, ""),
    ("failures below none", "join: {tolerated_failures: -1}", "/join/tolerated_failures",
     "`-1` must be between 0 and 10,000", ""),
    ("more failures than all", "join: {tolerated_failures: 101%}", "/join/tolerated_failures", _SHARE, ""),
    ("failures like none", "join: {tolerated_failures: some}", "/join/tolerated_failures", _SHARE, ""),
    ("a rest like none", "join: {rest: cancle}", "/join/rest", "must be `cancel` or `run`", "did you mean `cancel`?"),
    ("a rest that is a number", "join: {rest: 5}", "/join/rest", "must be `cancel` or `run`", ""),
    ("an unknown key of a join", "join: {wait: any}", "/join/wait", "`wait` is not known here",
     "did you mean `wait_for`?"),
    # ---- failures
    ("retries like none", "retry: criticl", "/retry",
     "must be `critical`, `standard`, `quick`, `rate_limited`, `immediate` or `none`", "did you mean `critical`?"),
    ("retries forgotten", "retry: ", "/retry", LEAVE_OUT, ""),
    ("an unknown key of retries", "retry: {max_attemts: 3}", "/retry/max_attemts", "`max_attemts` is not known here",
     "did you mean `max_attempts`?"),
    ("retries without their pauses", "retry: {backoff: custom}", "/retry", "`backoff: custom` needs a `schedule`: a list of pauses",
     ""),
    ("no pauses", "retry: {schedule: []}", "/retry/schedule", "there may be 1 to 99 pauses here", ""),
    ("a code that is none", "retry: {on: a b}", "/retry/on", "`a b` is not a code; write for example timeout, rate_limited or 503",
     ""),
    ("half a code", "retry: {on: [1.5]}", "/retry/on/0", "`1.5` is not a code; write for example timeout, rate_limited or 503", ""),
    ("a reaction like none", "on_failure: 5", "/on_failure", "must be an object", ""),
    ("a strategy like none", "on_failure: {TIMEOUT: esclate}", "/on_failure/TIMEOUT",
     "must be `retry`, `replan`, `ask_user`, `rollback`, `escalate`, `ask` or `fail`", "did you mean `escalate`?"),
    ("an unknown key of a reaction", "on_failure: {503: {hint: x}}", "/on_failure/503/hint", "`hint` is not known here",
     "did you mean `hints`?"),
    ("an unknown strategy", "on_failure: {any: {at_most: {retries: 1}}}", "/on_failure/any/at_most/retries",
     "`retries` is not known here", "did you mean `retry`?"),
    ("a policy alone", "failover: {name: p, then: rollback}", "/failover", "must be a list", ""),
    ("a policy without its name", "failover: [{then: rollback}]", "/failover/0/name", "`name` is missing", ""),
    ("a policy that changes nothing", "failover: [{name: p, then: replan}]", "/failover/0/then",
     "a replan says what is different: `hint`, `tool` or `with`", ""),
    ("a policy that goes on elsewhere", "failover: [{name: p, then: {to: b}}]", "/failover/0/then/to", "`to` is not known here",
     "did you mean `tool`?"),
    ("an unknown key of a time", "failover: [{name: p, when: {time: {form: '22:00'}}, then: rollback}]",
     "/failover/0/when/time/form", "`form` is not known here", "did you mean `from`?"),
    ("a time of day that is none", "failover: [{name: p, when: {time: {to: '24:00'}}, then: rollback}]",
     "/failover/0/when/time/to", '`24:00` is not a time of day; write for example "22:00"', ""),
    ("a handler that is a number", "catch: 5", "/catch", "must be an object", ""),
    ("no handler", "catch: []", "/catch", "name at least one node", ""),
    ("a handler twice", "catch: [b, b]", "/catch", "`b` is there twice", ""),
    ("a handler among rules", "catch: [{then: b}, b]", "/catch", "write names of nodes, or rules with `then`, not both in one list",
     ""),
    ("a rule without its handler", "catch: [{code: timeout}]", "/catch/0/then", "`then` is missing", ""),
    ("an unknown key of a rule of failures", "catch: {cod: timeout, then: b}", "/catch/cod", "`cod` is not known here",
     "did you mean `code`?"),
    ("handlers forgotten", "catch: ", "/catch", LEAVE_OUT, ""),
    # ---- when, output_schema
    ("a condition of a node forgotten", "when: ", "/when", LEAVE_OUT, ""),
    ("a schema that is a number", "output_schema: 5", "/output_schema",
     "write a JSON Schema, or the name of one under `schemas`", ""),
    ("a schema forgotten", "output_schema: ", "/output_schema", LEAVE_OUT, ""),
    # ---- limits
    ("limits that are a number", "limits: 5", "/limits", "must be an object", ""),
    ("limits forgotten", "limits: ", "/limits", LEAVE_OUT, ""),
    ("an unknown limit", "limits: {hop: 5}", "/limits/hop", "`hop` is not known here", "did you mean `hops`?"),
    ("a limit forgotten", "limits: {hops: }", "/limits/hops", LEAVE_OUT, ""),
    ("a limit of nothing", "limits: {fan_out: 0}", "/limits/fan_out",
     "`0` must be between 1 and 1,000,000,000,000", ""),
    ("a limit that is a name", "limits: {bytes: many}", "/limits/bytes", "`many` is not a whole number", ""),
    ("a limit without its number", "limits: {hops: {then: throttle}}", "/limits/hops/max", "`max` is missing", ""),
    ("an unknown key of a limit", "limits: {hops: {max: 5, than: throttle}}", "/limits/hops/than",
     "`than` is not known here", "did you mean `then`?"),
    ("a limit that does something else", "limits: {hops: {max: 5, then: stop}}", "/limits/hops/then",
     "must be `terminate` or `throttle`", ""),
    ("a limit of hops that summarises", "limits: {hops: {max: 5, then: summarise}}", "/limits/hops/then",
     "must be `terminate` or `throttle`: `summarise` goes with `bytes`", ""),
    ("a limit of dollars that summarises", "limits: {cost_usd: {max: 5, then: summarise}}", "/limits/cost_usd/then",
     "must be `terminate` or `throttle`: `summarise` goes with `bytes`", ""),
    ("a limit of time that throttles", "limits: {wall_time: {max: 2h, then: throttle}}", "/limits/wall_time/then",
     "must be `terminate`: time cannot be held up", ""),
    ("a limit of bytes that does something else", "limits: {bytes: {max: 5, then: sumarise}}", "/limits/bytes/then",
     "must be `terminate`, `throttle` or `summarise`", "did you mean `summarise`?"),
    ("a limit of time that is none", "limits: {wall_time: soon}", "/limits/wall_time", f"`soon` {_DURATION}", ""),
    ("dollars as text", "limits: {cost_usd: $5}", "/limits/cost_usd",
     "`$5` is not an amount of dollars; write for example 1.5", ""),
    ("no dollars", "limits: {cost_usd: 0}", "/limits/cost_usd",
     "`0` must be between 0.000001 and 1,000,000 dollars", ""),
    ("too many dollars", "limits: {cost_usd: {max: 1000000.5}}", "/limits/cost_usd/max",
     "`1000000.5` must be between 0.000001 and 1,000,000 dollars", ""),
]  # fmt: skip

_ELSEWHERE: list[tuple[str, str, str, str, str]] = [
    # ---- waits
    ("a wait for nothing at all", _WAIT % "{}", "/nodes/a/wait", _ONE_WAIT, ""),
    ("a wait for two things", _WAIT % '{for: 1s, until: "2026-12-01T09:00:00Z"}', "/nodes/a/wait", _ONE_WAIT, ""),
    ("a time with a timeout", _WAIT % '{until: "2026-12-01T09:00:00Z", timeout: 1s}', "/nodes/a/wait",
     "`timeout` goes with `signal`", ""),
    ("a time that is none", _WAIT % "{until: tomorrow}", "/nodes/a/wait/until", f"`tomorrow` {_TIME}", ""),
    ("a time that is a number", _WAIT % "{until: 5}", "/nodes/a/wait/until", f"`5` {_TIME}", ""),
    ("a time without its offset", _WAIT % '{until: "2026-12-01T09:00:00"}', "/nodes/a/wait/until",
     f"`2026-12-01T09:00:00` {_TIME}", ""),
    ("a time forgotten", _WAIT % "{until: }", "/nodes/a/wait/until", LEAVE_OUT, ""),
    ("a text that only looks like an expression", _WAIT % "{for: '$${x}'}", "/nodes/a/wait/for",
     f"`$${{x}}` {_DURATION}", ""),
    ("a time as the wait itself", _WAIT % '"2026-12-01T09:00:00Z"', "/nodes/a/wait", "must be an object",
     "write `wait: {until: 2026-12-01T09:00:00Z}`"),
    # ---- kinds
    ("a value with arguments", _KIND % "value: 1, with: {}", "/nodes/a",
     "a `value` takes neither `with` nor `timeout`; write what it gives under `value`", ""),
    ("a value and a tool", _KIND % "value: , tool: t", "/nodes/a",
     "a node has exactly one of tool, wait, workflow, graph, value, fail, end, human, model, agent; found tool and value", ""),
    ("an agent that is a name", _KIND % "agent: x", "/nodes/a/agent", "must be an object",
     "write `agent: {model: x, prompt: …}`"),
    ("an agent forgotten", _KIND % "agent: ", "/nodes/a/agent", LEAVE_OUT, ""),
    ("an agent with a number as a tool", _KIND % "agent: {model: m, prompt: p, tools: [5]}", "/nodes/a/agent/tools/0",
     "must be a string", ""),
    ("an agent with a number as its model", _KIND % "agent: {model: 5, prompt: p}", "/nodes/a/agent/model",
     "must be a string", ""),
    ("a map over nothing", _KIND % "value: 1, map: {}", "/nodes/a/map/over", "`over` is missing", ""),
    ("a map with its list forgotten", _KIND % "value: 1, map: {over: }", "/nodes/a/map/over", NOTHING, ""),
    ("a question that is a text", _KIND % "human: Really?", "/nodes/a/human", "must be an object", "write `human: {title: Really?}`"),
    # ---- the document
    ("an owner that is a number", _TOP % "owner: 5", "/owner", "must be a string", ""),
    ("an owner forgotten", _TOP % "owner:", "/owner", LEAVE_OUT, ""),
    ("metadata that is no text", _TOP % "metadata: {a: 5}", "/metadata/a", "must be a string", ""),
    ("metadata forgotten", _TOP % "metadata: {a: }", "/metadata/a", NOTHING, ""),
    ("a timeout that is none", _TOP % "timeout: soon", "/timeout", f"`soon` {_DURATION}", ""),
    ("the same time twice", _TOP % "timeout: 2h\nlimits: {wall_time: 3h}", "/timeout",
     "`timeout` and `limits.wall_time` say the same; write one of them", ""),
    ("schemas that are a list", _TOP % "schemas: [a]", "/schemas", "must be an object", ""),
    ("a schema that is a name", _TOP % "schemas: {done: other}", "/schemas/done", "write a JSON Schema: an object", ""),
    ("a bad name of a schema", _TOP % "schemas: {a b: {}}", "/schemas/a b", "`a b` is not a name", NAMES),
    ("an unknown key of guardrails", _TOP % "guardrails: {allowed_tool: t}", "/guardrails/allowed_tool",
     "`allowed_tool` is not known here", "did you mean `allowed_tools`?"),
    ("guardrails that are a list", _TOP % "guardrails: [t]", "/guardrails", "must be an object", ""),
    ("an allowed tool that is a number", _TOP % "guardrails: {allowed_tools: [5]}", "/guardrails/allowed_tools/0",
     "must be a string", ""),
    ("an allowed tool twice", _TOP % "guardrails: {allowed_tools: [t, t]}", "/guardrails/allowed_tools",
     "`t` is there twice", ""),
    ("an allowed way of a bad name", _TOP % "guardrails: {allowed_transitions: {a b: []}}",
     "/guardrails/allowed_transitions/a b", "`a b` is not a name", NAMES),
    ("an allowed way to a number", _TOP % "guardrails: {allowed_transitions: {a: 5}}",
     "/guardrails/allowed_transitions/a", "must be a list", ""),
    ("an allowed way forgotten", _TOP % "guardrails: {allowed_transitions: {a: }}",
     "/guardrails/allowed_transitions/a", NOTHING, ""),
]  # fmt: skip

SHAPES = [
    *((what, _NODE % text, f"/nodes/a{path}", message, hint) for what, text, path, message, hint in _IN_NODE),
    *_ELSEWHERE,
]
# What the reader refuses and a schema cannot.
BEYOND = (
    ("no such day", _WAIT % '{until: "2026-02-30T09:00:00Z"}', "/nodes/a/wait/until",
     "`2026-02-30T09:00:00Z`: there is no such day", ""),
    ("less than the least money", _NODE % "limits: {cost_usd: 0.0000015}", "/nodes/a/limits/cost_usd",
     "`1.5e-06` is finer than a millionth of a dollar", ""),
    ("a duration too long", _WAIT % "{for: 400d}", "/nodes/a/wait/for", "`400d` must be between 1 ms and 366 days", ""),
)  # fmt: skip
