"""What an expression may count on: a node that gave something on every way that leads there, and never one that may not.

One line for each shape of a graph: the reader (empty: the saga's output), the node, and whether it is sure.
"""

from __future__ import annotations

import pytest

from baton.core.documents.compile.flow import in_most
from tests.core.compiling import reads, told
from tests.kit.sentences import Says

IF = "branch: {rules: [{if: output.score > 1, then: %s}], default: %s}"
DIAMOND = "a: {%s}, b: {}, c: {}, d: {after: [b, c]}, e: {after: d}" % (IF % ("b", "c"))
NO_DEFAULT = (
    "a: {branch: {rules: [{if: output.score > 1, then: b}]}}, b: {}, c: {after: [a, b]}, d: {after: b}"
)
PAIR = "a: {%s}, b: {}, c: {}, d: {}, e: {after: [b, c]}" % (IF % ("[b, c]", "d"))
FAN = "a: {}, b: {after: a}, c: {after: a}, d: {after: a}, j: {after: [b, c, d], join: %s}, k: {after: j}"
ENTRIES = "a: {}, b: {}, c: {after: [a, b]}, d: {after: a}"
CHOOSE = "a: {branch: {choose: output.next, among: [b, c]%s}}, b: {}, c: {}, d: {after: [b, c]}"
WHEN = "a: {}, b: {after: a, when: input.x}, c: {after: b}, d: {after: [a, b]}"
LOOP = "a: {}, h: {after: a}, m: {after: h}, n: {after: h}, t: {after: [m, n], loop: {AGAIN, back_to: h%s}}, z: {%s}, y: {}"
PLAIN = LOOP % ("", "after: t")
TIMED = LOOP % (", timeout_path: y", "after: t")
BREAKS = (
    "h: {}, m: {after: h, %s}, n: {}, o: {after: h}, t: {after: [n, o], loop: {AGAIN, back_to: h}}, z: {after: t}, "
    "y: {after: z}"
) % (IF % ("z", "n"))
RISKY = "a: {}, b: {after: a}, c: {after: b}, d: {after: a}, e: {after: a}, j: {after: [c, d], join: {tolerated_failures: %s}}, k: {after: j}"
SELF = "a: {}, h: {after: a, loop: {AGAIN}}, z: {after: h}"
FADING = "h: {when: loop.iteration < 1}, t: {after: h, loop: {AGAIN, back_to: h}}, z: {after: t}"
TWO = "a: {%s}, b: {loop: {AGAIN}}, c: {loop: {AGAIN}}, j: {after: [b, c], join: any}" % (
    IF % ("b", "[b, c]")
)
RACE = "a: {}, b: {after: a, loop: {AGAIN}}, c: {after: a, loop: {AGAIN}}, j: {after: [b, c], join: any}"
NESTED = (
    "a: {}, h: {after: a}, i: {after: h}, j: {after: i, loop: {AGAIN, back_to: i}}, t: {after: j, loop: {AGAIN, back_to: h}}, "
    "z: {after: t}"
)
OUT_OF_BOTH = (
    "h: {}, i: {after: h}, j: {after: i, %s}, k: {loop: {AGAIN, back_to: i}}, t: {after: k, loop: {AGAIN, back_to: h}}, "
    "z: {after: t}"
) % (IF % ("z", "k"))
HASTY = (
    "h: {}, m: {after: h}, n: {after: h}, j: {after: [m, n], join: {wait_for: any, rest: %s}}, "
    "t: {after: j, loop: {AGAIN, back_to: h}}, z: {after: t}"
)
TAIL_FAILS = "a: {}, t: {after: a, loop: {AGAIN}}, b: {after: a}, e: {after: a}, j: {after: [t, b], join: {tolerated_failures: 2}}"
BODY_FAILS = (
    "h: {}, m: {after: h}, t: {after: m, loop: {AGAIN, back_to: h}}, b: {}, "
    "j: {after: [t, b], join: {tolerated_failures: 2}}"
)
HEADED = "a: {}, h: {after: a}, m: {after: h, join: {tolerated_failures: 1}}, t: {after: m, loop: {AGAIN, back_to: h}}"
PASSING = (
    "a: {}, b: {}, c: {after: [a, b]%s}, d: {}, j: {after: [c, d], join: {wait_for: %s, tolerated_failures: 2}}, "
    "k: {after: j}"
)
INNER = (
    "a: {}, b: {}, c: {}, i: {after: [a, b, c], join: {wait_for: 2, tolerated_failures: 1}}, d: {}, "
    "j: {after: [i, d], join: {tolerated_failures: 1}}, k: {after: j}"
)
STOPPED = (
    "x: {}, h: {after: x}, m: {after: h, %s}, n: {}, t: {after: n, loop: {AGAIN, back_to: h}}, z: {}, y: {after: x}, "
    "j: {after: [t, y], join: any}, k: {after: [j, z]}"
) % (IF % ("z", "n"))

ROW = "a: {}, b: {after: a, loop: {AGAIN, back_to: a}}, c: {after: b}, d: {after: c, loop: {AGAIN, back_to: c}}, e: {after: d}"
INTO_NEXT = (
    "a: {%s}, b: {loop: {AGAIN, back_to: a}}, c: {after: b}, d: {after: c, loop: {AGAIN, back_to: c}}"
    % (IF % ("c", "b"))
)
LATE = (
    "f: {branch: {rules: [{if: output.score > 1, then: h}]}}, h: {}, m: {after: [f, h]}, j: {after: m, %s}, "
    "t: {after: j, loop: {AGAIN, back_to: f}}, c: {}"
) % (IF % ("c", "c"))
GAPS = "h: {}, m: {after: h, when: input.x}, t: {after: m, loop: {AGAIN, back_to: h}}, z: {after: t}"
EXIT_FAILS = (
    "h: {%s}, t: {loop: {AGAIN, back_to: h}}, z: {}, b: {}, j: {after: [t, z, b], join: {tolerated_failures: 3}}"
) % (IF % ("z", "t"))

RACES = "h: {}, a: {after: h}, b: {after: h}, t: {after: [a, b], join: any, loop: {AGAIN, back_to: h}}, z: {after: t}"
# A loop whose condition always holds is left by a branch, in a later round than this one: what that round does is not sure now.
ENDLESS = (
    "h: {branch: {rules: [{if: output.score > 5, then: z}, {if: output.score > 1, then: c}], default: d}}, c: {}, d: {}, "
    "x: {after: [c, d]}, p: {after: x, loop: {while: 'true', back_to: h}}, z: {}"
)
# A saga that ends only after a step goes on until then: what is ready meanwhile may begin.
WARNS = "a: {%s}, b: {}, w: {}, u: {after: w}, z: {after: %%s}, stop: {%%s, after: %%s}" % (IF % ("w", "b"))
AN_END, A_FAIL = "end: {}", "fail: {code: no, message: no}"
TWO_ENDS = "a: {%s}, b: {}, w: {%s}, z: {after: %%s}, s1: {end: {}}, s2: {end: {}}"
TWO_ENDS %= (IF % ("w", "b"), IF % ("s1", "s2"))
CHOOSES = "a: {%s}, k: {%s}, b: {}, o: {}, z: {after: [%%s, o]}, s: {end: {}}"
CHOOSES %= (IF % ("k", "b"), IF % ("s", "b"))
EITHER = "a: {%s}, q: {%s}, w: {}, o: {}, b: {join: any}, c: {after: b}, z: {after: [c, o]}, s: {end: {}}"
EITHER %= (IF % ("s", "b"), IF % ("b", "w"))
POLLING = "h: {branch: {rules: [{if: output.score > 5, then: z}], default: p}}, p: {loop: {while: 'true', back_to: h%s}}, z: {}%s"
"""The loop is left by its branch alone."""
GIVING_UP = POLLING % (", timeout_path: y", ", y: {fail: {code: late, message: no}}")
BESIDE = "%sj: {after: [a, b]}, w: {}, e: {after: [j, w], join: any}"
"""A join of all inside a race."""
IN_A_RACE = BESIDE % "a: {}, b: {}, "
IN_A_RACE_CHOSEN = BESIDE % ("h: {%s}, a: {after: h}, b: {}, " % (IF % ("a", "w")))
IN_A_RACE_ASKED = BESIDE % "a: {when: input.x}, b: {}, "

SURE: list[tuple[str, str, str, bool]] = [
    # a way that is taken or not
    (DIAMOND, "d", "a", True), (DIAMOND, "d", "b", False), (DIAMOND, "e", "d", True), (DIAMOND, "", "d", True),
    (DIAMOND, "", "e", True), (DIAMOND, "", "b", False), (DIAMOND, "b", "a", True),
    (NO_DEFAULT, "c", "a", True), (NO_DEFAULT, "c", "b", False), (NO_DEFAULT, "d", "b", True),
    (NO_DEFAULT, "", "c", True), (NO_DEFAULT, "", "d", False),
    (PAIR, "e", "b", True), (PAIR, "e", "c", True), (PAIR, "", "e", False),
    (CHOOSE % "", "d", "b", False), (CHOOSE % "", "", "d", False), (CHOOSE % ", default: b", "", "d", True),
    (WHEN, "c", "b", True), (WHEN, "c", "a", True), (WHEN, "d", "b", False), (WHEN, "", "b", False), (WHEN, "", "d", True),
    (ENTRIES, "c", "a", True), (ENTRIES, "c", "b", True), (ENTRIES, "", "c", True),
    # joins that do not wait for all
    (FAN % "all", "j", "c", True), (FAN % "all", "", "j", True),
    (FAN % "any", "j", "a", True), (FAN % "any", "j", "c", False), (FAN % "any", "k", "j", True),
    (FAN % "any", "", "j", True), (FAN % "any", "", "c", False),
    (FAN % "2", "", "j", True), (FAN % "2", "", "k", True), (FAN % "2", "j", "c", False), (FAN % "2", "", "b", False),
    (FAN % "3", "j", "c", True), (FAN % "{wait_for: any, rest: run}", "", "c", True),
    (FAN % "{wait_for: any, rest: run}", "k", "c", False),
    # failures that are tolerated
    (RISKY % 1, "j", "a", True), (RISKY % 1, "j", "b", False), (RISKY % 1, "j", "d", False), (RISKY % 1, "", "j", True),
    (RISKY % 1, "c", "b", True), (RISKY % 1, "k", "j", True), (RISKY % 0, "j", "d", True), (RISKY % 0, "", "b", False),
    (FAN % "{tolerated_failures: 1}", "", "j", True), (FAN % "{tolerated_failures: 1}", "j", "a", False),
    ("e: {after: a}, " + FAN % "{tolerated_failures: 1}", "j", "a", True),
    (PASSING % ("", "any"), "j", "a", False), (PASSING % ("", "all"), "k", "j", True),
    (PASSING % (", join: any", "all"), "c", "a", False), (PASSING % (", join: 2", "all"), "c", "b", True),
    (PASSING % (", when: input.x", "all"), "c", "a", True), (PASSING % (", join: any, when: input.x", "all"), "", "j", False),
    (PASSING % ("", "all"), "", "j", True),
    (INNER, "", "j", True), (INNER, "k", "j", True), (INNER, "j", "i", False), (INNER, "i", "a", False),
    # loops
    (PLAIN, "h", "a", True), (PLAIN, "t", "m", True), (PLAIN, "z", "m", True), (PLAIN, "z", "t", True),
    (PLAIN, "", "m", True), (PLAIN, "", "z", True), (PLAIN, "m", "h", True),
    (TIMED, "z", "t", True), (TIMED, "", "z", False), (TIMED, "", "t", True), (TIMED, "y", "m", True),
    (SELF, "z", "h", True), (SELF, "", "z", True), (SELF, "", "h", True),
    (FADING, "z", "t", True), (FADING, "z", "h", True), (FADING, "t", "h", True), (FADING, "", "t", False),
    (BREAKS, "z", "h", True), (BREAKS, "z", "m", True), (BREAKS, "z", "t", False), (BREAKS, "z", "o", False),
    (BREAKS, "t", "o", True), (BREAKS, "", "z", True), (BREAKS, "", "y", True), (BREAKS, "", "t", False),
    (BREAKS, "", "o", False), (BREAKS, "", "h", True),
    (NESTED, "t", "i", True), (NESTED, "z", "i", True), (NESTED, "", "z", True), (NESTED, "", "i", True),
    (OUT_OF_BOTH, "", "z", True), (OUT_OF_BOTH, "z", "i", True), (OUT_OF_BOTH, "z", "k", False),
    (OUT_OF_BOTH, "t", "k", True), (OUT_OF_BOTH, "", "k", False),
    (HASTY % "run", "z", "m", False), (HASTY % "run", "", "m", False),
    (HASTY % "cancel", "", "z", True), (HASTY % "cancel", "t", "h", True),
    (RACE, "", "j", True), (RACE, "", "b", False), (TWO, "", "j", True), (TWO, "j", "b", False),
    (TAIL_FAILS, "j", "a", True), (TAIL_FAILS, "j", "t", False),
    (BODY_FAILS, "", "j", True), (BODY_FAILS, "j", "h", False), (BODY_FAILS, "t", "m", True),
    (HEADED, "m", "h", False), (HEADED, "t", "m", True), (HEADED, "h", "a", False), (HEADED, "m", "a", False),
    (STOPPED, "k", "j", True), (STOPPED, "", "j", True), (STOPPED, "", "k", True), (STOPPED, "", "h", False),
    (LATE, "m", "f", True), (LATE, "m", "h", False),
    (INTO_NEXT, "c", "a", True), (INTO_NEXT, "c", "b", False), (INTO_NEXT, "", "d", True), (ROW, "d", "b", True), (ROW, "e", "c", True), (ROW, "", "e", True),
    (GAPS, "z", "m", True), (GAPS, "", "z", False), (GAPS, "", "h", True), (GAPS, "", "m", False),
    (EXIT_FAILS, "j", "h", False), (EXIT_FAILS, "t", "h", True), (EXIT_FAILS, "", "h", False),
    (ENDLESS, "x", "c", False), (ENDLESS, "p", "c", False), (ENDLESS, "p", "x", True), (ENDLESS, "z", "x", False),
    (ENDLESS, "", "z", True), (ENDLESS, "", "h", True), (ENDLESS, "", "c", False), (ENDLESS, "", "p", False),
    (POLLING % ("", ""), "", "z", True), (POLLING % ("", ""), "", "p", False), (POLLING % ("", ""), "z", "h", True),
    (GIVING_UP, "", "z", True), (POLLING % (", timeout_path: y", ", y: {}"), "", "z", False),
    (IN_A_RACE, "j", "a", True), (IN_A_RACE, "j", "b", True), (IN_A_RACE, "e", "a", False), (IN_A_RACE, "", "j", False),
    (IN_A_RACE_CHOSEN, "j", "a", False), (IN_A_RACE_ASKED, "j", "a", False), (IN_A_RACE_ASKED, "j", "b", True),
    (WARNS % ("[a, b]", AN_END, "w"), "z", "b", False), (WARNS % ("[a, b]", A_FAIL, "w"), "z", "b", False),
    (WARNS % ("[a, b, w]", AN_END, "w"), "z", "b", True), (WARNS % ("[a, b, w]", A_FAIL, "w"), "z", "b", True),
    (WARNS % ("[a, b, w]", AN_END, "u"), "z", "b", False), (WARNS % ("[a, b, u]", AN_END, "u"), "z", "b", True),
    (WARNS % ("[a, b]", AN_END, "u"), "", "b", True), (WARNS % ("[a, b]", AN_END, "w"), "z", "a", True),
    (TWO_ENDS % "[a, b]", "z", "b", False), (TWO_ENDS % "[a, b, w]", "z", "b", True), (TWO_ENDS % "[a, b]", "", "b", True),
    (CHOOSES % "b", "z", "b", True), (CHOOSES % "b", "z", "k", False), (EITHER, "z", "b", True), (EITHER, "z", "c", True),
    (STOPPED, "n", "m", True), (STOPPED, "", "t", False),
    (RACES, "", "t", True), (RACES, "z", "t", True), (RACES, "", "a", False), (RACES, "t", "a", False),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "reader", "name", "is_sure"), SURE)
def test_an_output_is_there_on_every_way_or_is_refused(
    nodes: str, reader: str, name: str, is_sure: bool
) -> None:
    assert reads(reader, name, nodes) is is_sure


def test_a_join_of_very_many_is_judged_by_what_all_its_edges_have_in_common() -> None:
    assert in_most([1, 3, 7], 2) == 3
    assert in_most([1, 3, 7], 3) == 1
    assert in_most([1] * 100 + [3] * 300, 300) == 1


def test_what_is_not_there_can_be_asked_for_with_a_question_mark(says: Says) -> None:
    assert told(DIAMOND, "output: '${ctx.b.output?.score}'") == []
    says(told(DIAMOND, "output: '${ctx.b.output.score}'"))


def test_a_reader_that_may_begin_before_the_saga_ends_is_told_what_to_wait_for(says: Says) -> None:
    reads_b = "a: {%s}, b: {}, w: {}, u: {after: w}, z: {after: [a, b]%%s, with: {x: '${ctx.b.output}'}}, e: {end: {}, after: %%s}"
    reads_b %= IF % ("w", "b")
    says(told(reads_b % ("", "w")))
    ((_, _, hint),) = told(reads_b % ("", "u"))
    assert "add `u` to `after`" in hint
    ((_, _, hint),) = told(reads_b % (", join: any", "w"))
    says(hint)  # waiting does not help a join of any
    ((_, _, hint),) = told(reads_b.replace("a: {", "a: {after: h, ") % ("", "w") + ", h: {}")[-1:]
    assert "add `w` to `after`" in hint
    in_between = reads_b.replace("w: {}", "w: {after: [a, z]}") % ("", "w")
    ((_, _, hint),) = told(in_between)
    says(hint)  # `w` comes after the reader


def test_a_reader_is_told_what_to_write(says: Says) -> None:
    nodes = "a: {%s}, b: {}, c: {%s}, d: {after: [b, c], with: {x: '${ctx.b.output}'}%s}"
    says(told(nodes % (IF % ("b", "c"), "", "")))
    further = "a: {%s}, b: {}, c: {}, d: {after: [b, c]}, e: {after: d, with: {x: '${ctx.b.output}'}}"
    says(told(further % (IF % ("b", "c"))))
    asked = "a: {%s}, b: {}, c: {}, d: {after: [b, c], when: 'ctx.b.output.score > 1'}"
    ((path, _, suggestion),) = told(asked % (IF % ("b", "c")))
    assert path == "/nodes/d/when"
    says(suggestion)
    guarded = "a: {%s}, b: {}, c: {}, d: {after: [b, c], when: 'has(ctx.b.output) && ctx.b.output.score > 1'}"
    assert told(guarded % (IF % ("b", "c"))) == []
