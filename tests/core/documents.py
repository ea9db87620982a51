"""Whole documents and broken ones, as hypothesis draws them, and every document that the project itself has.

Values only. What must hold of them is in the tests.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from baton.core.documents.text import parse_document
from baton.core.effects.toolspec import ToolSpec
from tests.core.build import JSON, tool_spec
from tests.core.reference import Shape, shapes

ROOT = Path(__file__).parents[2]
_FENCED = re.compile(r"^```(?:yaml|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# A tool that takes and gives anything: then only the shape of a document and its references can be wrong.
ANYTHING = tool_spec("t", {})
ANYTHING.parameters.pop("additionalProperties")
TOOLS: dict[str, ToolSpec] = {"t": ANYTHING}

DURATIONS = (
    st.sampled_from(["500ms", "5s", " 1.5 h ", "10m", "2d", "366d"])
    | st.integers(1, 1_000)
    | st.floats(0.001, 100.0)
)
TIMES_OF_ATTEMPTS = st.sampled_from(["500ms", "5s", " 0.1 h ", "10m"]) | st.integers(1, 900)
_PARTS = st.sampled_from(
    [
        "${input}",
        "${input.a[0]}",
        "${input['k k'].b}",
        "${saga.id}",
        "$${",
        "$",
        "$$",
        "x{",
        "}",
        "a",
        " ",
        "${ input.b }",
    ]
)
TEXTS = st.lists(_PARTS, max_size=4).map("".join) | st.text(max_size=8).filter(lambda text: "$" not in text)
VALUES = (
    TEXTS | JSON.filter(lambda value: "${" not in repr(value)) | st.dictionaries(TEXTS, TEXTS, max_size=2)
)
# A schema that lists all fields would refuse most of the expressions above.
OPEN = {"type": "object", "properties": {"a": {}}, "required": [], "additionalProperties": True}
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"type": "object"}, OPEN])
_MORE = st.dictionaries(st.text(max_size=4), VALUES, max_size=2)


def _maybe(draw: st.DrawFn, into: dict[str, Any], key: str, values: st.SearchStrategy[Any]) -> None:
    if draw(st.booleans()):
        into[key] = draw(values)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document that compiles against TOOLS, as its parsed value; every field is there sometimes."""
    shape: Shape = draw(shapes(most=5))
    document: dict[str, Any] = {"name": draw(st.sampled_from(["w", "a-b2"]))}
    _maybe(draw, document, "description", st.text(max_size=5))
    if draw(st.booleans()):
        document["input"] = draw(SCHEMAS)
    document["nodes"] = {spot.name: draw(_node(spot)) for spot in shape.spots}
    _maybe(draw, document, "output", VALUES | st.just({n: f"${{ctx.{n}.output.x}}" for n in shape.output}))
    return document


@st.composite
def _node(draw: st.DrawFn, spot: Any) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if spot.kind == "task":
        node["tool"] = "t"
        _maybe(draw, node, "timeout", TIMES_OF_ATTEMPTS)
    elif spot.kind == "workflow":
        node["workflow"] = draw(st.sampled_from(["other", "other@12"]))
    else:
        is_time = draw(st.booleans())
        node["wait"] = {"for": draw(DURATIONS)} if is_time else {"signal": "go"}
        if "signal" in node["wait"]:
            _maybe(draw, node["wait"], "timeout", DURATIONS)
    if spot.kind != "wait":
        given = {
            name: f"${{ctx.{name}.output{draw(st.sampled_from(['', '.x', '[0]']))}}}" for name in spot.reads
        }
        has_more = draw(st.booleans())
        if given or has_more:
            more: dict[str, Any] = draw(_MORE)
            node["with"] = {**given, **more}
    if spot.before or draw(st.booleans()):
        is_one = len(spot.before) == 1 and draw(st.booleans())
        node["after"] = spot.before[0] if is_one else list(spot.before)
    _maybe(draw, node, "description", st.text(max_size=5))
    return node


# ---- every field ------------------------------------------------------------------------------------------------

CONDITIONS: st.SearchStrategy[Any] = st.sampled_from(
    [
        "output.x > 1",
        {"cel": "true"},
        {"not": {"all": ["true", {"any": ["false"]}]}},
        {"jsonpath": "$.a[*]", "operator": "sum_gt", "value": 5, "of": "${input.a}"},
        {"schema": {"type": "object"}, "invert": True, "of": "input"},
        {"compare": {"left": ["${input.a}"], "operator": "==", "right": None}},
        {"python": "def evaluate(output, context):\n    return True\n", "needs": ["input"], "timeout": "1s"},
    ]
).map(copy.deepcopy)
_TIMES = st.sampled_from(["2026-12-01T09:00:00Z", "2000-02-29T23:59+01:00", "1999-12-31T00:00:00.25-12:30"])
_TEMPLATES = st.sampled_from(
    ["${input.a}", "${input.a}h", "${ctx['n0'][\"output\"]?.x}", "${loop.iteration} s"]
)
_COUNTS = st.integers(1, 10**12) | st.sampled_from([1.0, 1e6])
_THEN = st.sampled_from(["terminate", "throttle"])


def _limit(value: st.SearchStrategy[Any], then: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return value | st.fixed_dictionaries({"max": value}, optional={"then": then})


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "fan_out": _limit(_COUNTS, _THEN),
        "hops": _limit(_COUNTS, _THEN),
        "wall_time": _limit(DURATIONS, st.just("terminate")),
        "bytes": _limit(_COUNTS, st.sampled_from(["terminate", "summarise"])),
        "cost_usd": _limit(st.integers(1, 10**12).map(lambda micro: micro / 10**6), _THEN),
    },
)
_SHARES = st.integers(0, 100).map("{}%".format) | st.integers(0, 10_000)
JOINS = st.sampled_from(["all", "any", 1, 2.0]) | st.fixed_dictionaries(
    {},
    optional={
        "wait_for": st.sampled_from(["all", "any", 10_000]),
        "tolerated_failures": _SHARES,
        "rest": st.sampled_from(["cancel", "run"]),
    },
)
_CODES = st.sampled_from(["timeout", 503, ["TIMEOUT", "404"], "my.own"])
_CLASS = st.sampled_from(["transient", "unknown"])
_LADDERS = st.sampled_from(["rollback", ["retry", "escalate"]])
RETRIES = st.sampled_from(["critical", "none"]) | st.fixed_dictionaries(
    {},
    optional={
        "preset": st.just("quick"),
        "max_attempts": st.integers(1, 100),
        "base": DURATIONS,
        "schedule": st.lists(DURATIONS, min_size=1, max_size=2),
        "budget": DURATIONS,
        "never": _CODES,
    },
)
REACTIONS = _LADDERS | st.fixed_dictionaries(
    {},
    optional={
        "timeout": _LADDERS,
        "503": st.fixed_dictionaries(
            {},
            optional={
                "class": _CLASS,
                "retry": RETRIES,
                "at_most": st.just({"retry": 2, "rollback": 0}),
                "hints": st.sampled_from(["fallback_model", ["t", "x.y"]]),
                "message": st.text(max_size=3),
                "severity": st.just("high"),
                "may_change": st.sampled_from(["x", ["x", "y"]]),
            },
        ),
    },
)
POLICIES = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["p", "q"]),
            "then": st.sampled_from(["escalate", {"tool": "t"}, {"with": {"x": "${input.a}"}, "hint": "t"}]),
        },
        optional={
            "when": st.fixed_dictionaries(
                {},
                optional={
                    "node": st.just("n*"),
                    "code": _CODES,
                    "class": _CLASS,
                    "attempt": st.sampled_from([2, {"from": 1, "to": 2}]),
                    "time": st.just({"from": "22:00", "days": "sat"}),
                    "parameters": st.just({"a.b": [1, "x"]}),
                    "if": CONDITIONS,
                },
            ),
            "at_most": st.integers(1, 100),
        },
    ),
    max_size=2,
    unique_by=lambda policy: str(policy["name"]),
)
_FAILING = {"retry": RETRIES, "on_failure": REACTIONS, "failover": POLICIES}


_SCHEMAS_OF_OUTPUT = st.sampled_from(["done", True, {}, {"type": "object"}])
_ASKING = {
    "prompt": "p",
    "instructions": "i ${input}",
    "max_output": 5,
    "price": {"input": 0.25, "output": 2},
}
_TO_COME: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"agent": {"model": "m", "prompt": "p", "tools": ["t"]}},
        {"agent": {"model": "m", "turns": 3, "calls": 4, "calls_in_a_turn": 2, "tokens": 9, **_ASKING}},
        {"agent": {"model": "m", "prompt": "p", "thinking": "low", "max_output": 2000}},
        {"model": {"name": "m", "prompt": "p", "thinking": 1024}},
        {"model": {"name": "p/m", "fallbacks": ["n"], "temperature": 0.5, "corrections": 0, **_ASKING}},
        {"value": "${item}", "map": {"over": "${input.a}", "concurrency": 2, "tolerated_failures": "5%"}},
        {"wait": {"signal": "s"}, "map": {"over": [1], "wait_for": 3, "rest": "run"}},
        {"tool": "t", "map": ["${input.a}", 2]},
    ]
)
_OPTIONS = [{"id": "a", "label": "A ${input}", "default": True}, {"id": "b", "destructive": True}]
_SHAPES_OF_QUESTIONS: list[dict[str, Any]] = [
    {},
    {"type": "approval", "options": [{"id": "approve"}, {"id": "reject", "label": "No"}]},
    {"options": _OPTIONS},
    {"schema": {"type": "object"}},
    {"takeover": {"url": "https://a.test", "picture": "${input}", "instructions": "Do."}},
    {"type": "error", "message": "Well?"},
]
_TYPED = st.sampled_from(_SHAPES_OF_QUESTIONS).map(copy.deepcopy)
_AUDIENCES: st.SearchStrategy[Any] = st.sampled_from(
    ["starter", {"user": "${input}"}, {"group": "g"}, {"role": "answer"}]
)
_QUESTIONS: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda typed, more: {"title": "What?", **typed, **more},
    _TYPED,
    st.fixed_dictionaries(
        {}, optional={"to": _AUDIENCES.map(copy.deepcopy), "expires": DURATIONS, "details": VALUES}
    ),
)
_KINDS: st.SearchStrategy[dict[str, Any]] = (
    st.fixed_dictionaries({"tool": st.just("t")}, optional={"timeout": DURATIONS, **_FAILING})
    | st.fixed_dictionaries({"value": VALUES | st.none()})
    | st.fixed_dictionaries(
        {
            "wait": st.fixed_dictionaries({"for": DURATIONS | _TEMPLATES})
            | st.fixed_dictionaries({"until": _TIMES | _TEMPLATES})
        }
    )
    | st.fixed_dictionaries({"human": _QUESTIONS})
    | _TO_COME.map(copy.deepcopy)
)


@cache
def _fields(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """What a node of any kind may have. Made once: hypothesis looks through a new strategy before it draws from it."""
    name = st.sampled_from(names)
    many = name | st.lists(name, min_size=1, unique=True)
    rule = st.fixed_dictionaries({"if": CONDITIONS, "then": many})
    branch = st.fixed_dictionaries(
        {"rules": st.lists(rule, min_size=1, max_size=2)}, optional={"default": many}
    ) | st.fixed_dictionaries(
        {"choose": st.sampled_from(["output", "${ctx.n0.output?.x}", " ${input} "]), "among": many},
        optional={"default": many},
    )
    rounds = st.integers(1, 1_000_000)
    ways = {"max_iterations": rounds, "back_to": name, "break_path": many, "timeout_path": many}
    fields = {
        "after": many,
        "when": CONDITIONS,
        "branch": branch,
        "loop": st.fixed_dictionaries({"while": CONDITIONS}, optional=ways),
        "join": JOINS,
        "catch": many
        | st.lists(
            st.fixed_dictionaries(
                {"then": many}, optional={"code": _CODES, "class": _CLASS, "if": CONDITIONS}
            ),
            min_size=1,
            max_size=2,
        ),
        "output_schema": _SCHEMAS_OF_OUTPUT,
        "limits": LIMITS,
        "description": st.text(max_size=5),
    }
    return st.fixed_dictionaries({}, optional=fields)


@cache
def _guardrails(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    targets = st.sampled_from(["n0", [], ["n0", "n1"]])
    rails = {
        "allowed_tools": st.sampled_from(["t", [], ["t*", "*"]]),
        "allowed_transitions": st.dictionaries(st.sampled_from(names), targets),
    }
    return st.fixed_dictionaries({}, optional=rails)


_METADATA = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
_OF_SCHEMAS = st.fixed_dictionaries({"done": st.sampled_from([{}, True])})


@st.composite
def shaped_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document of the right shape with any of all fields; it need not make any sense."""
    names = ("n0", "n1", "n2")[: draw(st.integers(1, 3))]
    fields = _fields(names)
    document: dict[str, Any] = {"name": "w", "nodes": {name: draw(_KINDS) | draw(fields) for name in names}}
    _maybe(draw, document, "owner", st.text(max_size=5))
    _maybe(draw, document, "metadata", _METADATA)
    _maybe(draw, document, "schemas", _OF_SCHEMAS)
    _maybe(draw, document, "limits", LIMITS)
    for key, values in _FAILING.items():
        _maybe(draw, document, key, values)
    if "wall_time" not in document.get("limits", {}):
        _maybe(draw, document, "timeout", DURATIONS)
    _maybe(draw, document, "guardrails", _guardrails(names))
    return document


# ---- broken ones -----------------------------------------------------------------------------------------------

_KEYS = st.sampled_from(
    ["name", "description", "input", "nodes", "output", "$schema", "tool", "wait", "workflow", "with", "after",
     "timeout", "for", "signal", "agent", "x", "a b", "", "n0", "value", "until", "when", "branch", "rules", "if", "then",
     "default", "choose", "among", "loop", "while", "max_iterations", "back_to", "break_path", "timeout_path", "join",
     "wait_for", "tolerated_failures", "rest", "output_schema", "limits", "hops", "wall_time", "cost_usd", "max", "owner",
     "metadata", "schemas", "guardrails", "allowed_tools", "allowed_transitions", "map", "human", "catch", "retry",
     "on_failure", "failover", "code", "class", "schedule", "backoff", "attempt", "time", "from", "to", "hint", "strategy"]
)  # fmt: skip
_STRANGE: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1, 0.5, 1e-4, 1e9, 10**400, "", "x", "5s", "5", "soon", "0x5s", "٣s", "5 s", "\t5s", "5s\n",
     "366d", [], ["n0"], [1], {}, {"for": "5s"}, {"signal": "go"}, {"for": 1, "signal": "go"}, {"for": None},
     {"timeout": 1}, {"for": 1, "timeout": 1}, "a b", "A", "w@1", "other@", "n\n", "${input", "${inputs}", "${input.}",
     "${saga}", "${saga.age}", "${ctx.n0}", "${\u00a0input}", "${input['}']}", "$${ ${input.a}", "$$${x", {"a": "${"},
     ["${ctx[0].output}"], "${ctx.a.output?}", "${ctx.a?.output}", "${ctx.a.previous}", "${loop}", "${join.x}", "any", "25%",
     "101%", "2026-12-01T09:00:00Z", "2026-02-30T09:00:00Z", "2026-12-01", "terminate", "summarise", 10**6, 1e-7, ["n0", "n0"],
     {"max": 5, "then": "throttle"}, {"rules": []}, {"choose": "output", "among": "n0"}, {"while": "true"}, {"over": None},
     {"tool": "t"}, {"tool": "t", "with": {"a": ["${"]}}, {"type": "object"}]
).map(copy.deepcopy)  # fmt: skip
_ANY = _STRANGE | JSON


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)


@st.composite
def broken(draw: st.DrawFn, whole: st.SearchStrategy[dict[str, Any]]) -> Any:
    """One of these documents with up to three changes anywhere: something gone, something new, something else."""
    document = json.loads(json.dumps(draw(whole)))  # as a text has it: no object stands in two places
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(document))
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(["change", "drop", "add"])):
            case "change":
                container[key] = draw(_ANY)
            case "drop":
                del container[key]
            case _ if isinstance(container, dict):
                container[draw(_KEYS)] = draw(_STRANGE)
            case _:
                container.append(draw(_STRANGE))
    return document


# ---- the project's own -----------------------------------------------------------------------------------------


def own_documents() -> dict[str, Any]:
    """Every workflow document of the project by where it stands: files, and the examples of pages."""
    texts: dict[str, str] = {}
    for path in sorted(ROOT.glob("layers/app/**/*.y*ml")):
        texts[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
    for page in (ROOT / "README.md", ROOT / "docs/documents.md"):
        for number, text in enumerate(_FENCED.findall(page.read_text("utf-8"))):
            if text.startswith(("name:", "{")) or "\nname:" in text:  # a whole document
                texts[f"{page.name}, block {number}"] = text
    return {place: parse_document(text).value for place, text in texts.items()}
