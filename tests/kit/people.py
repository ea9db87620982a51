"""A person who looks after the sagas of a world: answers what is asked, resumes what is parked, and gives up at last.

What is said is drawn from a seed, out of what a question allows. Only about what has happened the person never lies: asked
whether it has, they look into the books of the service.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from baton.core.log.questions import GIVE_UP, TRY_AGAIN, USE, Answer
from baton.errors import EngineFault, UserError
from tests.kit.faults import Crash
from tests.kit.troubles import Troubles

if TYPE_CHECKING:
    from tests.kit.world import World

ONCE = {
    "pay": "pay {n}",
    "send": "send {n}",
    "crm.send": "crm {n}",
    "take_table": "book {table}",
    "rent": "rent {stall}",
    "haul": "haul {load}",
    "remit": "remit {amount}",
    "entrust": "entrust {job}",
}
"""The tools that may act once, each with the name of its deed in the books."""
HELPERS = frozenset(
    {"find_payment", "find_table", "find_rent", "find_haul", "find_remit", "find_entrusted", "log_in"}
)
"""Tools that are called besides that of a step."""
OPEN = frozenset({"suspended", "parked"})
MOST_RESUMES, MOST_ANSWERS = 4, 8
PATIENT_LOOKS = 30  # at what does not change; after them a person looks less often


def deed_of(tool: str, given: Mapping[str, Any]) -> str:
    """What it is called in the books."""
    return ONCE[tool].format(**given)


def output_of(tool: str, given: Mapping[str, Any]) -> Any:
    """What a tool of the corpus gives for these arguments."""
    if tool in ONCE:
        return {"receipt": deed_of(tool, given)}
    if tool in {"work", "fails_as_told", "elsewhere"}:
        return {"n": given["n"] + 1}
    found = {"add": lambda: {"n": sum(given["numbers"])}, "measure": lambda: {"n": len(given["text"])}}
    found |= {"fill": lambda: {"text": "x" * given["size"]}, "seat": lambda: given["guest"]}
    return found.get(tool, lambda: None)()


class Person:
    """`is_away`: the person never answers. `cancels_at`: seconds after which everything is cancelled; 0 for never."""

    def __init__(
        self, world: World, troubles: Troubles, *, is_away: bool = False, cancels_at: int = 0
    ) -> None:
        self._world, self._troubles = world, troubles
        self._random = random.Random(f"person {troubles.seed}")
        self._is_away, self._cancels_at = is_away, cancels_at
        self._seen: set[str] = set()
        self._said: dict[str, Answer] = {}
        self._answers: Counter[str] = Counter()
        self._resumes: Counter[str] = Counter()
        self._stays = self._random.random() < 0.5
        self.left: set[str] = set()
        """Sagas that stay parked."""
        self.has_changed_something = False

    async def attend(self) -> None:
        """Looks after the sagas until the task is cancelled."""
        loop, known, unchanged = asyncio.get_running_loop(), 0, 0
        while True:
            pause_s = 900 if self._is_away else self._random.randint(20, 60)
            await asyncio.sleep(pause_s if unchanged < PATIENT_LOOKS else 15 * pause_s)
            known, before = len(self._world.written), known
            unchanged = unchanged + 1 if known == before else 0
            for head in self._world.log.heads():
                # With the same words again until they are heard: the process that hears them may die.
                with suppress(Crash, EngineFault, UserError):
                    if head.status in OPEN:
                        await self._look_at(head.ref.id)
                    if self._cancels_at and loop.time() > self._cancels_at and head.group != "done":
                        await self._world.service().cancel(head.ref.id, "enough", 0)

    async def _look_at(self, saga: str) -> None:
        view = await self._world.queries().show(saga)
        about_steps = [question for question in view["questions"] if question["node"] is not None]
        if view["parked"] is not None and (self._is_away or not about_steps or self._random.random() < 0.2):
            asked = next((question["id"] for question in view["questions"] if question["node"] is None), "")
            await self._resume(saga, asked)
            return
        for question in [] if self._is_away else about_steps:
            name = f"{saga}/{question['id']}"
            if name not in self._seen:  # not known before frozen processes have thawed
                self._seen.add(name)
                continue
            if name not in self._said:
                self._said[name] = self._answer(saga, question)
            with suppress(UserError):  # it has been heard, or is not asked any more
                await self._world.service().answer(saga, self._said[name], f"answer-{question['id']}")

    async def _resume(self, saga: str, asked: str) -> None:
        """By the one way or the other; `asked` is the question about the saga as a whole, if there is one."""
        if saga in self.left:
            return
        self._resumes[saga] += 1
        by_answer = Answer(ask=asked, action="resume") if asked and self._resumes[saga] % 2 else None
        if self._resumes[saga] <= MOST_RESUMES and by_answer is not None:
            await self._world.service().answer(saga, by_answer, "")
        elif self._resumes[saga] <= MOST_RESUMES:
            await self._world.service().resume(saga)
        elif self._stays:
            self.left.add(saga)
        else:
            await self._world.service().cancel(saga, "no answer helps any further", 0)

    def _answer(self, saga: str, question: Mapping[str, Any]) -> Answer:
        node, ask = question["node"], question["id"]
        if question["title"]:  # a node asks: whatever is said is an answer
            data: dict[str, Any] = {} if question["schema"] is None else {"data": {"n": 4}}
            return Answer(ask=ask, action=question["options"][0], **data)
        self._answers[node] += 1
        action = self._random.choices([TRY_AGAIN, USE, GIVE_UP], [6, 2, 1])[0]
        if self._answers[node] > MOST_ANSWERS:
            action = GIVE_UP
        called = self._troubles.last(saga, node, [*self._world.tools.keys() - HELPERS])
        if "(unknown_outcome:" in question["message"] and action != GIVE_UP:
            action = USE if self._has_happened(saga, node) else TRY_AGAIN
        if called is None:  # it died before its tool was called
            return Answer(ask=ask, action=GIVE_UP if action == GIVE_UP else TRY_AGAIN)
        if action == USE:
            return Answer(ask=ask, action=USE, output=output_of(called.tool, called.arguments))
        may_change = (question["arguments"] or {}).get("properties", {})
        if action == TRY_AGAIN and "n" in may_change and self._random.random() < 0.3:
            self.has_changed_something = True
            return Answer(ask=ask, action=TRY_AGAIN, arguments={"n": called.arguments["n"] + 100})
        return Answer(ask=ask, action=action)

    def _has_happened(self, saga: str, node: str) -> bool:
        acted = self._troubles.last(saga, node, [*ONCE])
        return acted is not None and deed_of(acted.tool, acted.arguments) in self._world.books.happened
