"""`baton pipelines`: what agents have written more than once, and the lines that make a tool of it."""

from __future__ import annotations

import json
from typing import Any

from baton.core.pipelines.pipeline import digest
from baton.tools import define
from baton.tools.define import Registry
from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import entry
from tests.kit.sentences import Says

STEPS = [{"op": "table_sort", "by": "price"}, {"op": "top_k", "k": 2}]
OTHER = [{"op": "top_k", "k": 9}]
HASH = digest(STEPS, ["rows"])


def answer(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"text": "", "calls": list(calls), "data": None, "tokens": [1, 1]}


def piped(steps: Any, data: Any) -> dict[str, Any]:
    return {"tool": "std.pipeline", "arguments": {"steps": steps, "data": data}}


def done(item: str, tool: str, value: Any = None, **output: Any) -> dict[str, Any]:
    return {
        "kind": "step_succeeded",
        "node": "plan",
        "iteration": [],
        "item": item,
        "tool": tool,
        "output": output or {"v": value},
    }


def listed(api: FakeApi, **logs: list[dict[str, Any]]) -> None:
    sagas = [{"id": saga, "workflow": "trips", "status": "completed"} for saga in logs]
    api.on("GET /sagas", (200, {"sagas": sagas, "next": None}), (200, {"sagas": [], "next": None}))
    for saga, events in logs.items():
        api.on(f"GET /sagas/{saga}/events", (200, {"entries": [entry(1, events=events)], "next": None}))


def test_steps_that_were_written_twice_are_found_whatever_their_data(api: FakeApi, baton: Baton) -> None:
    ref = "cas://sha256/" + "ab12" * 16
    listed(
        api,
        s1=[
            done("t1", "std.model", answer(piped(STEPS, {"rows": [1]}), piped(OTHER, {"rows": [1]}))),
            done("t1-0", "std.pipeline", []),
            done("t1-1", "std.pipeline", []),
        ],
        s2=[
            done("t1", "std.model", ref=ref, size=9),
            done("t1-0", "std.pipeline", []),
            done("", "std.pipeline", []),
            {"kind": "agent_closed", "node": "plan"},
        ],
    )
    api.on(
        f"GET /sagas/s2/values/{'ab12' * 16}",
        (
            200,
            {"ref": ref, "size": 9, "value": answer(piped(STEPS, {"rows": [2]})), "part": None, "next": None},
        ),
    )
    (one,) = json.loads(baton("pipelines", "--json").stdout)["pipelines"]
    assert one == {"hash": HASH, "calls": 2, "agents": ["trips/plan"], "inputs": ["rows"], "steps": STEPS}


def twice() -> list[dict[str, Any]]:
    calls = [piped(STEPS, {"rows": [n]}) for n in range(2)]
    return [
        done("t1", "std.model", answer(*calls)),
        done("t1-0", "std.pipeline", []),
        done("t1-1", "std.pipeline", []),
    ]


def test_a_line_says_how_often_by_which_agents_and_what_it_does(api: FakeApi, baton: Baton) -> None:
    listed(api, s1=twice())
    assert baton("pipelines").stdout == f"{HASH}  2 calls  table_sort | top_k  (trips/plan)\n"


def test_what_has_failed_was_refused_or_stands_there_once_is_none(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    refused = {**piped(STEPS, {"rows": []}), "error": {"code": "x", "message": "y"}}
    strange = {"tool": "std.pipeline", "arguments": {"steps": STEPS, "data": 3}}
    listed(
        api,
        s1=[
            done("t1", "std.model", answer(piped(STEPS, {"rows": []}), refused, strange, {"tool": "other"})),
            done("t1-0", "std.pipeline", []),
            done("t1-2", "std.pipeline", []),
            done("t2", "std.model", "text"),
        ],
    )
    says(baton("pipelines").stdout)


def test_the_lines_for_one_declare_the_tool(api: FakeApi, baton: Baton, monkeypatch: Any) -> None:
    listed(api, s1=twice())
    told = baton("pipelines", "--promote", HASH[:6], "--name", "pipeline.cheapest").stdout
    registry = Registry()
    monkeypatch.setattr(define, "REGISTRY", registry)
    exec(told, {})  # it is what an author puts into a module
    made = registry["pipeline.cheapest"]
    assert made.spec.version == HASH
    assert made.function({"rows": [{"price": 2}, {"price": 1}, {"price": 3}]}) == [{"price": 1}, {"price": 2}]


def test_a_hash_that_is_none_is_refused(api: FakeApi, baton: Baton, says: Says) -> None:
    listed(api, s1=twice())
    ended = baton("pipelines", "--promote", "ffff")
    assert ended.exit_code == 3
    says(ended.stderr)


def test_what_a_model_has_written_is_a_literal_and_no_code(api: FakeApi, baton: Baton) -> None:
    evil = [{"op": "transform", "expression": "'''\n__import__('os').abort()\n'''\x1b[2J"}]
    calls = [piped(evil, {"rows": [n]}) for n in range(2)]
    listed(
        api,
        s1=[
            done("t1", "std.model", answer(*calls)),
            done("t1-0", "std.pipeline"),
            done("t1-1", "std.pipeline"),
        ],
    )
    told = baton("pipelines", "--promote", digest(evil, ["rows"]))
    assert "\x1b" not in told.stdout
    assert not any(line.startswith("__import__") for line in told.stdout.splitlines())
