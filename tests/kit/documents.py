"""The documents that the scenarios of the corpus run.

Their tools and drivers are in corpus.py; documents whose steps fail on purpose in every way are in mishaps.py.
"""

from __future__ import annotations

_CHANGING = "on_failure: {any: {may_change: n}}"  # so that a person's answer can change what it is about


def chain_of(length: int, seconds: float = 0.4) -> str:
    lines = ["name: chain", _CHANGING, "nodes:"]
    for i in range(length):
        source = "${input.n}" if i == 0 else f"${{ctx.s{i - 1}.output.n}}"
        after = f"after: s{i - 1}, " if i else ""
        lines.append(f"  s{i}: {{tool: work, {after}with: {{n: '{source}', seconds: {seconds}}}}}")
    lines.append(f"output: {{n: '${{ctx.s{length - 1}.output.n}}'}}")
    return "\n".join(lines)


def fan_of(width: int, seconds: float = 0.4) -> str:
    lines = ["name: fan", _CHANGING, "nodes:", "  first: {tool: work, with: {n: 0}}"]
    lines += [
        f"  b{i}: {{tool: work, after: first, with: {{n: '${{ctx.first.output.n}}', seconds: {seconds + i % 3 / 10}}}}}"
        for i in range(width)
    ]
    numbers = ", ".join(f"'${{ctx.b{i}.output.n}}'" for i in range(width))
    after = ", ".join(f"b{i}" for i in range(width))
    lines.append(f"  join: {{tool: add, after: [{after}], with: {{numbers: [{numbers}]}}}}")
    lines.append("output: '${ctx.join.output}'")
    return "\n".join(lines)


WAITING = """
name: waiting
nodes:
  before: {tool: work, with: {n: 1}}
  pause: {wait: {for: 90s}, after: before}
  answer: {wait: {signal: answer, timeout: 2h}, after: before}
  after: {tool: work, after: [pause, answer], with: {n: '${ctx.before.output.n}'}}
output: {said: '${ctx.answer.output}', n: '${ctx.after.output.n}'}
"""
LONG_WAIT = """
name: long-wait
nodes:
  pause: {wait: {for: 40m}}
  after: {tool: work, after: pause, with: {n: 1}}
output: '${ctx.after.output}'
"""
BIG = """
name: big
nodes:
  fill: {tool: fill, with: {size: 30000}}
  measure: {tool: measure, after: fill, with: {text: '${ctx.fill.output.text}'}}
output: {n: '${ctx.measure.output.n}', text: '${ctx.fill.output.text}'}
"""
PARENT = """
name: parent
nodes:
  left: {workflow: chain, with: {n: 10}}
  right: {workflow: chain, with: {n: 20}}
  sum: {tool: add, after: [left, right], with: {numbers: ['${ctx.left.output.n}', '${ctx.right.output.n}']}}
output: '${ctx.sum.output}'
"""
REPORTING = """
name: reporting
nodes:
  early: {workflow: chain, with: {n: 1}}
  late: {workflow: chain, after: early, with: {n: 2}}
  busy: {tool: work, with: {n: 3, seconds: 2.5}}
  sum: {tool: add, after: [late, busy], with: {numbers: ['${ctx.late.output.n}']}}
output: '${ctx.sum.output}'
"""
ROWS = """
name: rows
nodes:
  one: {tool: seat, with: {guest: ada}}
  two: {tool: seat, after: one, with: {guest: '${ctx.one.output}-and-bob'}}
  three: {tool: seat, after: one, with: {guest: cyd}}
"""
ROUTES = """
name: routes
nodes:
  try: {tool: work, with: {n: '${loop.iteration}', seconds: 0.5}}
  check:
    value: {n: '${ctx.try.output.n}', before: '${ctx.check.previous.n}'}
    after: try
    loop: {while: 'output.n < 3', back_to: try, max_iterations: 4, break_path: fast, timeout_path: lost}
  lost: {tool: refuse}
  fast:
    tool: work
    with: {n: 10, seconds: 0.3}
    branch: {rules: [{if: 'output.n > 10', then: first}], default: lost}
  slow: {tool: work, after: check, with: {n: 20, seconds: 30}}
  pause: {wait: {for: 1h}, after: check}
  child: {workflow: slow, after: check}
  first: {tool: work, after: [slow, pause, child], join: any, with: {n: 30, seconds: 0.2}}
  bad: {tool: refuse, after: check}
  good: {tool: work, after: check, with: {n: 40, seconds: 0.2}}
  both: {value: '${join.errors[0].code}', after: [bad, good], join: {tolerated_failures: 1}}
  end:
    tool: work
    after: [first, both]
    when: {python: 'def evaluate(output, context): return context["both"]["output"] == "tool_error"', needs: [ctx.both.output]}
    with: {n: '${ctx.check.output.n}'}
output: {end: '${ctx.end.output?}', last: '${ctx.check.output}', first: '${ctx.first.output?}', why: '${ctx.both.output?}'}
"""
LIMITED = """
name: limited
limits: {hops: 2}
nodes:
  one: {tool: work, with: {n: 1}, limits: {wall_time: 1h}}
  two: {tool: work, after: one, with: {n: 2}}
  three: {tool: work, after: two, with: {n: 3}}
"""
FAILING = """
name: failing
on_failure: [rollback, escalate]
nodes:
  slow: {tool: work, with: {n: 1, seconds: 2}}
  bad: {tool: refuse}
  never: {tool: work, after: [slow, bad], with: {n: 1}}
"""
LOSERS = """
name: losers
nodes:
  quick: {tool: work, with: {n: 1, seconds: 0.3}}
  early: {tool: meter, with: {begins: 0.1}}
  late: {tool: meter, with: {begins: 0.3005}}
  later: {tool: meter, with: {begins: 0.3015}}
  first: {tool: work, after: [quick, early, late, later], join: any, with: {n: 2}}
output: '${ctx.first.output}'
"""
LOSERS_AT_THE_END = """
name: losers
nodes:
  quick: {tool: work, with: {n: 1, seconds: 0.3}}
  late: {tool: meter, with: {begins: 0.3005}}
  later: {tool: meter, with: {begins: 0.3015}}
  first: {value: done, after: [quick, late, later], join: any}
output: '${ctx.first.output}'
"""
EARLY_END = """
name: early
nodes:
  search: {tool: work, with: {n: 1, seconds: 0.5}}
  count: {tool: meter, with: {begins: 0.1}}
  never: {wait: {signal: never}}
  child: {workflow: slow}
  stop: {end: {result: {n: '${ctx.search.output.n}'}}, after: search}
  late: {tool: work, after: [count, never, child], with: {n: 9}}
output: '${ctx.late.output}'
"""
CROWD = """
name: crowd
nodes:
  hear: {wait: {signal: word}}
  count: {value: '${loop.iteration}', after: hear, loop: {while: 'output < 7', back_to: hear, max_iterations: 30}}
output: '${ctx.count.output}'
"""
CHATTER = """
name: chatter
nodes:
  hear: {wait: {signal: word, timeout: 30s}}
  again: {value: 1, after: hear, loop: {while: 'loop.iteration < 60', back_to: hear, max_iterations: 90}}
  work: {tool: work, with: {n: 1, seconds: 1}}
  haul: {tool: haul, after: work, with: {load: sand}}
  enough: {wait: {signal: enough}}
  done: {value: done, after: [haul, enough]}
output: '${ctx.done.output}'
"""


QUESTIONS = """
name: questions
nodes:
  before: {tool: work, with: {n: 1}}
  approve: {human: {title: 'Go on with ${ctx.before.output.n}?'}, after: before}
  form: {human: {title: How many?, schema: {type: object, properties: {n: {type: integer}}}}, after: approve}
  how: {human: {title: How?, options: [{id: b, default: true}, {id: a}], expires: 90s}, after: approve}
  after: {tool: work, with: {n: '${ctx.form.output.data.n}'}, after: [form, how]}
output: {n: '${ctx.after.output.n}', how: '${ctx.how.output.answer}', by: '${ctx.approve.output.by}'}
"""
"""An approval and data that a person gives, and a decision that is left to its default."""
ESCALATED = """
name: escalated
nodes:
  who:
    human:
      title: Who?
      to: {group: hosts}
      options: [{id: x}, {id: y}]
      escalate: [{after: 5s, remind: true}, {after: 10s, hand_on: {group: leads}}, {after: 30s, decide: y}]
  late: {human: {title: Late?, risk: low, escalate: [{after: 5s, remind: true}, {after: 20s, decide: approve}]}}
  after: {tool: work, with: {n: 1}, after: [who, late]}
output: {n: '${ctx.after.output.n}', who: '${ctx.who.output.answer}', late: '${ctx.late.output.answer}'}
"""
"""A question that is claimed, handed on and decided by its escalation, and one whose answer comes just before that."""
LEFT_ALONE = """
name: left
nodes:
  lent:
    tool: work
    with: {n: 2}
    requires_approval: {to: {group: hosts}, escalate: [{after: 5s, hand_on: {group: leads}}, {after: 15s, decide: reject}]}
    catch: {code: rejected, then: kept}
  kept: {value: 1}
  broken:
    tool: refuse
    on_failure: {any: {ladder: [ask_user], escalate: [{after: 5s, remind: true}, {after: 15s, decide: fail}]}}
    catch: {code: tool_error, then: mended}
  mended: {value: 1}
output: {kept: '${ctx.kept.output?}', mended: '${ctx.mended.output?}'}
"""
"""Questions about a call and about a failed step, which no person answers: their escalation decides them."""
HAULED = """
name: w
nodes:
  wait: {tool: work, with: {n: 1, seconds: 1}}
  haul: {tool: haul, after: wait, with: {load: sand}}
"""

TWICE_HAULED = """
name: w
nodes:
  haul: {tool: haul, key: "load of sand", with: {load: sand}}
"""

RETRIED = """
name: w
limits: {retries: 5, retry_time: 1h}
retry: {max_attempts: 9, backoff: fixed, base: 3s, on: tool_error}
nodes:
  a: {tool: refuse, catch: [{code: limit_retries, then: b}, {code: tool_error, then: d}]}
  b: {value: limited}
  c: {tool: refuse, catch: [{code: limit_retries, then: d}, {code: tool_error, then: d}]}
  d: {value: refused}
output: "${ctx.b.output?}"
"""

APPROVED = """
name: approved
nodes:
  before: {tool: work, with: {n: 1}}
  pay:
    tool: remit
    after: before
    with: {amount: 600}
    failover: [{name: less, when: {code: declined}, then: {strategy: replan, with: {amount: 400}}}]
  after: {tool: work, after: pay, with: {n: 2}}
output: '${ctx.pay.output.receipt}'
"""
"""A payment that is approved, declined, and approved again with another amount."""

SUMS = """
name: sums
nodes:
  a: {tool: add, with: {numbers: ['${input.n}']}}
  b: {tool: add, after: a, with: {numbers: ['${ctx.a.output.n}', 1]}}
  c: {tool: add, after: b, with: {numbers: ['${ctx.b.output.n}', 1]}}
  d: {tool: work, after: c, with: {n: '${ctx.c.output.n}'}}
  e: {tool: add, after: d, with: {numbers: ['${ctx.d.output.n}', 1]}}
  f: {tool: add, after: e, with: {numbers: ['${ctx.e.output.n}', 1]}}
  g: {tool: measure, after: e, with: {text: abc, seconds: 0.6}}
  h: {tool: add, after: g, with: {numbers: ['${ctx.g.output.n}', 1]}}
  go: {wait: {signal: go}}
  sum: {tool: add, after: [e, h, go], with: {numbers: ['${ctx.e.output.n}', '${ctx.h.output.n}']}}
  last: {tool: work, after: sum, with: {n: '${ctx.sum.output.n}'}}
output: '${ctx.last.output.n}'
"""
