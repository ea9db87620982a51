"""What became of an evening, in words for the guest. Pure: answers of the API in, lines out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.guest.api import ENDED

_DID = {
    "plan": "An agent has made a plan from your words",
    "check": "The plan was checked",
    "ask": "You were asked about it",
    "heard": "You have said something else",
    "carry_out": "The plan was carried out",
    "stock": "What is arranged was put together",
    "hold": "The table is held for you",
    "deposit": "Its deposit is paid",
    "confirm": "The table is booked",
    "order": "The dishes are ordered",
}
_DOES = {
    "plan": "An agent makes a plan",
    "carry_out": "The plan is carried out",
    "hold": "A table is being held",
    "deposit": "The deposit is being paid",
    "confirm": "The table is being booked",
    "order": "The dishes are being ordered",
}
_DONE = frozenset({"ran", "passed", "waited", "answered"})


@dataclass(frozen=True, slots=True)
class Story:
    """lines: what was done. now: what is being done. arranged: what the guest has in the end. trouble: why there is nothing."""

    headline: str
    lines: tuple[str, ...]
    now: tuple[str, ...]
    questions: tuple[Mapping[str, Any], ...]
    arranged: tuple[str, ...]
    trouble: str
    is_over: bool
    can_change: bool


def tell(
    view: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], child: Sequence[Mapping[str, Any]]
) -> Story:
    """`child`: the steps of the saga that carries the plan out, if there is one."""
    is_over, result = view["status"] in ENDED, view.get("result")
    result = result if isinstance(result, dict) else {}
    arranged = (*map(_table, result.get("tables") or ()), *map(_order, result.get("orders") or ()))
    trouble = ""
    if view.get("error"):
        trouble = str(view["error"]["says"])
    elif view.get("parked"):
        trouble = f"It waits for the people who run this: {view['parked']['message']}"
    elif is_over and result.get("why"):
        trouble = f"Nothing more was arranged: {result['why']}."
    active = [str(one["node"]) for one in view["active"]]
    return Story(
        headline=_headline(view, result),
        lines=tuple(_done(steps, child)),
        now=() if is_over else tuple(dict.fromkeys(_DOES[node] for node in active if node in _DOES)),
        questions=() if is_over else tuple(view["questions"]),
        arranged=arranged if is_over else (),
        trouble=trouble,
        is_over=is_over,
        can_change=any(node in ("heard", "carry_out", "plan", "later") for node in active) and not is_over,
    )


def _headline(view: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if view["status"] == "completed":
        return "Your evening is arranged" if result.get("arranged") else "Nothing is arranged"
    if view["status"] in ENDED:
        return "It did not work out"
    return "We have a question" if view["questions"] else "We are at it"


def _done(steps: Sequence[Mapping[str, Any]], child: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each thing that was done; what the child did stands before the end of its node."""
    before, behind = list[str](), list[str]()
    of_child = [_DID[str(one["node"])] for one in child if one["became"] in _DONE and one["node"] in _DID]
    is_done = False
    for one in steps:
        if one.get("item") or one["became"] not in _DONE or one["node"] not in _DID:
            continue
        if one["node"] == "carry_out":
            is_done, before, behind = True, [*before, *behind], []
            continue
        behind.append(_DID[str(one["node"])])
    return [*before, *of_child, *behind] if is_done else [*before, *behind, *of_child]


def _table(one: Mapping[str, Any]) -> str:
    return f"A table at {one['house']} for {one['party']}, code {one['code']}"


def _order(one: Mapping[str, Any]) -> str:
    return f"{', '.join(one['items'])}, brought to {one['house']}, ${one['total_cents'] / 100:.2f}"
