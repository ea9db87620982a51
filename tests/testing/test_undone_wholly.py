"""A rollback comes to everything once: to a poll by its last try, and to what a failed child has left."""

from __future__ import annotations

from baton import Context, StepFailure, tool
from baton.testing import run
from baton.tools.define import Registry


class Office:
    """Locks that are taken and given back, and a step that is refused."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.taken: list[str] = []
        self.given_back: list[str] = []

        @tool("lock.take", undo="lock.give", registry=self.registry)
        async def take(name: str, context: Context) -> dict[str, object]:
            self.taken.append(name)
            return {"id": name, "ready": len(self.taken) >= 3}

        @tool("lock.give", registry=self.registry)
        async def give(name: str, context: Context) -> None:
            self.given_back.append(name)

        @tool("refuse", registry=self.registry)
        async def refuse() -> None:
            raise StepFailure("declined", "no", kind="permanent", happened=False)


POLLED = """
name: polled
nodes:
  a: {tool: lock.take, with: {name: x}, poll: {until: output.ready, every: 1s, tries: 5}}
  b: {tool: refuse, after: a, on_failure: {any: [rollback]}}
"""


def test_a_poll_is_undone_once() -> None:
    office = Office()
    result = run(POLLED, tools=office.registry)
    assert result.status == "rolled_back"
    assert office.given_back == ["x"]


ITEM = """
name: item
on_failure: fail
nodes:
  a: {tool: lock.take, with: {name: "${input.name}"}}
  b: {tool: refuse, after: a}
"""
MAPPED = """
name: mapped
nodes:
  items: {workflow: item, map: {over: "${input.names}", tolerated_failures: 5}, with: {name: "${item}"}}
  end: {tool: refuse, after: items, on_failure: {any: [rollback]}}
"""
CAUGHT = """
name: caught
nodes:
  one: {workflow: item, with: {name: x}, catch: {then: other}}
  other: {tool: lock.take, with: {name: y}}
  end: {tool: refuse, after: other, on_failure: {any: [rollback]}}
"""


def left_by_a_child(document: str, given: object) -> Office:
    office = Office()
    run(document, given, tools=office.registry, workflows=[ITEM])
    return office


def test_what_a_tolerated_item_has_left_is_undone_with_its_parent() -> None:
    office = left_by_a_child(MAPPED, {"names": ["x"]})
    assert (office.taken, office.given_back) == (["x"], ["x"])


def test_what_a_caught_child_has_left_is_undone_with_its_parent() -> None:
    office = left_by_a_child(CAUGHT, None)
    assert (sorted(office.taken), sorted(office.given_back)) == (["x", "y"], ["x", "y"])


TRIED = """
name: tried
nodes:
  one: {workflow: item, with: {name: x}, retry: {max_attempts: 2, on: [declined]}, catch: {then: end}}
  end: {tool: refuse, on_failure: {any: [rollback]}}
"""


def test_what_each_try_of_a_child_has_left_is_undone_with_its_parent() -> None:
    office = left_by_a_child(TRIED, None)
    assert (office.taken, office.given_back) == (["x", "x"], ["x", "x"])
