"""Tokens, counted anew from the raw events: emitted less consumed, by the log's word alone.

Shares no code with the fold. Every edge speaks once in each iteration of its receiver.
"""

from __future__ import annotations

from typing import Any

from baton.core.log import events as ev
from baton.core.log.state import State

Slot = tuple[str, tuple[int, ...]]


class Counter:
    def __init__(self) -> None:
        self.emitted: set[tuple[str, str, tuple[int, ...]]] = set()
        self.waiting: dict[Slot, set[str]] = {}
        self.unspoken: dict[Slot, set[str]] = {}
        self.is_early = False

    def fork(self) -> Counter:
        twin = Counter()
        twin.emitted, twin.is_early = set(self.emitted), self.is_early
        twin.waiting = {slot: set(senders) for slot, senders in self.waiting.items()}
        twin.unspoken = {slot: set(senders) for slot, senders in self.unspoken.items()}
        return twin

    def count(self, event: Any) -> None:
        if getattr(event, "item", ""):
            return  # it has a token of its own, from its node
        if isinstance(event, ev.JoinFired):
            self.unspoken[(event.node, event.iteration)] = set(event.unspoken)
        # What fails the saga consumes nothing, so that a fork can begin with it again.
        has_failed = isinstance(event, ev.StepFailed) or getattr(event, "fault", None) is not None
        if getattr(event, "ends", False):
            has_failed = self.is_early = True
        stays = getattr(event, "goes_on", False)  # its tokens are consumed with the end of its items
        if isinstance(event, ev.Settles) and (event.emits or not has_failed) and not stays:
            assert self.waiting.pop((event.node, event.iteration)), "consumed what was not there"
        for text in getattr(event, "drops", ()):
            if "#" in text:
                continue
            node, _, rounds = text.partition("@")
            slot = (node, tuple(int(number) for number in rounds.split(".")))
            at_hand = (self.waiting.pop(slot, None), self.unspoken.pop(slot, None))
            assert any(part is not None for part in at_hand), f"{text} is dropped, but nothing is there"
        for token in getattr(event, "emits", ()):
            name = (token.src, token.dst, token.iteration)
            assert name not in self.emitted, f"{name} speaks twice"
            self.emitted.add(name)
            slot = (token.dst, token.iteration)
            if slot in self.unspoken:
                self.unspoken[slot].remove(token.src)
            else:
                self.waiting.setdefault(slot, set()).add(token.src)
        if isinstance(event, ev.UndoBegan):
            self.waiting = {}  # nothing that was ready begins any more
        if isinstance(event, ev.SagaEnded):
            if event.status == "completed" and not self.is_early:
                assert not self.waiting, f"ended with {self.waiting} in flight"
                silent = {slot: senders for slot, senders in self.unspoken.items() if senders}
                assert not silent, f"{silent} never spoke"
            self.waiting = {}

    def check(self, state: State) -> None:
        items = sum("#" in slot for slot in state.tokens)
        assert state.in_flight - items == sum(len(senders) for senders in self.waiting.values())
