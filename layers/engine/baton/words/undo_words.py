"""Undoing as a person reads it: the events of it as sentences, and what `baton show` says of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton.core.log.agents import item_words
from baton.core.log.undos import UNDO, undone_item
from baton.words.agent_words import Event, Said
from baton.words.text import clock, counted, epoch_ms, one_line

_SHOWN = 5  # steps of one fate, of which each has a line


def of(event: Event) -> Said | None:
    """What an event about undoing says; None for another one."""
    kind, item = str(event.get("kind")), str(event.get("item") or "")
    if words := _WORDS.get(kind):
        return words(event)
    if item == UNDO or item.startswith((f"{UNDO}-", f"{UNDO}_")):
        return _step(event, kind, undone_item(item))
    if kind == "saga_ended" and event.get("undone"):
        return came_to(event["undone"]), frozenset(["undone"])
    if event.get("undo") is True and kind in ("forked", "cancel_requested"):
        back = _back_to(event)
        return f"`{event.get('by')}` has undone what the saga has done{back}{_why(event)}", frozenset(
            ("by", "reason", "undo", "back_to", "together", "cut", "key")
        )
    return None


def came_to(report: Mapping[str, Any]) -> str:
    """What an undoing has come to, from its report in the log."""
    return _sums(
        report.get("done"),
        report.get("fails"),
        report.get("lasts"),
        report.get("doubts") or len(report.get("doubtful") or ()),
    )


def _sums(done: Any, failed: Any, lasting: Any, doubtful: int) -> str:
    parts = [
        (done, "undone"),
        (failed, "could not be undone"),
        (lasting, "that nothing undoes"),
        (doubtful, "in doubt"),
    ]
    return ", ".join(f"{counted(int(number), 'step')} {words}" for number, words in parts if number) or (
        "nothing was undone"
    )


def _began(event: Event) -> Said:
    who = f"`{event['by']}` has it undone" if event.get("by") else "what was done is undone"
    return f"{who}{_back_to(event)}{_why(event)}", frozenset(("reason", "by", "back_to", "together"))


def _back_to(event: Event) -> str:
    back = f", back to version {event['back_to']}" if event.get("back_to") else ""
    return back + (", steps side by side" if event.get("together") else "")


def _why(event: Event) -> str:
    return f": {one_line(str(event['reason']))}" if event.get("reason") else ""


def _place(event: Event) -> str:
    """Which item of its node is undone, and by what it was done."""
    item = undone_item(str(event.get("item") or ""))
    by = (
        f"child {event['child']}" if event.get("child") else f"`{event['tool']}`" if event.get("tool") else ""
    )
    done = f"what {by or 'it'} has done at version {event.get('version')}"
    return f"{item_words(item)}: {done}" if item else done


_PLACED = frozenset(
    (
        "item",
        "version",
        "index",
        "tool",
        "child",
        "next",
        "below",
        "again",
        "doubt",
        "redone",
        "stopped",
        "way",
        "not_before",
    )
)


def _step_began(event: Event) -> Said:
    again = ", again" if event.get("again") else ""
    if event.get("way"):
        return f"is undone{again}, whether it has happened or not: {_place(event)}", _PLACED
    if event.get("doubt"):
        return f"is to be undone{again}, if it has happened: {_place(event)}", _PLACED
    return f"is to be undone{again}: {_place(event)}", _PLACED


def _passed(event: Event) -> Said:
    if event.get("redone"):
        return f"is passed, because it was done again since: {_place(event)}", _PLACED
    return f"stays, as nothing undoes it: {_place(event)}", _PLACED


def _stopped(event: Event) -> Said:
    said = f"`{event.get('tool')}` was stopped while it acted: it may have happened"
    if instead := event.get("instead"):
        onward = f"`{instead}`" if instead != event.get("tool") else "another call of it"
        said = f"`{event.get('tool')}` may have happened; the step goes on with {onward}"
    if child := event.get("child"):
        said = f"child {child} is stopped; a rollback undoes what it has done"
    item = str(event.get("item") or "")
    known = frozenset(("item", "tool", "prior", "kept", "key", "child", "instead"))
    return f"{item_words(item)}: {said}" if item else said, known


def _set_aside(event: Event) -> Said:
    count = counted(len(event.get("steps") or ()), "step")
    return f"{count} that could not be undone, for a later rollback", frozenset(["steps"])


def _taken_up(event: Event) -> Said:
    count = counted(len(event.get("steps") or ()), "step")
    return f"{count} that could not be undone before come next", frozenset(("steps", "version"))


def _child(event: Event) -> Said:
    said = f"undone by child {event.get('child')}"
    if event.get("nothing"):
        said = f"child {event.get('child')} had done nothing that can be undone"
    if failure := event.get("failure"):
        said = f"child {event.get('child')} could not undo all: {_failure(failure)}"
    return said, frozenset(("item", "child", "failure", "nothing"))


def _step(event: Event, kind: str, item: str) -> Said:
    """An event of a step that undoes another."""
    of_item = f" of {item_words(item)}" if item else ""
    by, known = f" by `{event['tool']}`" if event.get("tool") else "", {"item", "tool"}
    if kind == "step_succeeded":
        return f"undone{of_item}{by}", frozenset(known)
    if failure := event.get("failure"):
        gave_up = "could not be undone" if kind == "step_failed" else "an attempt to undo it has failed"
        return f"{gave_up}{of_item}{by}: {_failure(failure)}", frozenset(
            {*known, "failure", "stays", "is_result"}
        )
    return f"undo{of_item}", frozenset(["item"])


def _failure(failure: Mapping[str, Any]) -> str:
    return f"{failure.get('code')}: {one_line(str(failure.get('message')))}"


_WORDS = {
    "undo_began": _began,
    "undo_step_began": _step_began,
    "undo_passed": _passed,
    "step_stopped": _stopped,
    "child_undone": _child,
    "undo_set_aside": _set_aside,
    "undo_taken_up": _taken_up,
}


# ---- what `check` and `show` say


def declared(graph: Mapping[str, Any]) -> str:
    """What would be undone of a workflow, and by what, and what nothing undoes; empty where nothing is."""
    from baton.core.effects.toolspec import PURE

    nodes = graph["nodes"]
    undone = [
        f"{one['name']} by {', '.join(dict.fromkeys(one['undo'].values()))}"
        for one in nodes
        if one.get("undo")
    ]
    if not undone:
        return ""
    stays = [
        one["name"] for one in nodes if one.get("tool") and one["effect"] != PURE and not one.get("undo")
    ]
    unverified = [
        f"{', '.join(dict.fromkeys(one['unverified']))} for {one['name']}"
        for one in nodes
        if one.get("unverified")
    ]
    return "; ".join(
        [
            ", ".join(undone),
            *([f"nothing undoes {', '.join(stays)}"] if stays else []),
            *([f"called also where it may not have happened: {', '.join(unverified)}"] if unverified else []),
        ]
    )


def undo_lines(saga: Mapping[str, Any]) -> list[str]:
    """What of the saga can be undone, how far an undoing is, or what came of it; with a line for each step that is not undone."""
    found = saga.get("undo") or {}
    failed, doubtful = found.get("failed") or (), found.get("doubtful") or ()
    doubts = len(doubtful) + int(found.get("more_doubtful") or 0)
    lines = []
    if under_way := found.get("under_way"):
        since = clock(epoch_ms(under_way.get("since")))
        by = f", for {under_way['by']}" if under_way.get("by") else ""
        lines.append(f"{under_way['undone']} undone, {under_way['left']} to go, since {since}{by}")
    elif done := found.get("done"):
        back = f"; version {done['back_to']} and what came before stays" if done.get("back_to") else ""
        lines.append(_sums(done["undone"], done["failed"], done["lasting"], doubts) + back)
        lines += _named("stays", [f"{name}: nothing undoes it" for name in done["stays"]], done["lasting"])
    elif found.get("undoable"):
        lasting = f", {found['lasting']} not" if found.get("lasting") else ""
        lines.append(f"{counted(found['undoable'], 'step')} can be undone{lasting}")
    lines += _named(
        "not undone", [_not_undone(one) for one in failed], len(failed) + int(found.get("more_failed") or 0)
    )
    lines += _named("in doubt", [f"{name}: it may have happened" for name in doubtful], doubts)
    return lines


def _named(what: str, lines: Sequence[str], count: int) -> list[str]:
    more = [f"{what}: {count - _SHOWN} more"] if count > _SHOWN else []
    return [f"{what}: {line}" for line in lines[:_SHOWN]] + more


def _not_undone(one: Mapping[str, Any]) -> str:
    by = f", by {one['tool']}" if one.get("tool") else ""
    return f"{one.get('step')}{by}: {_failure(one)}"
