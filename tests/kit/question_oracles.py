"""What must hold of the questions in a log: which step was taken when, who had one, and what closed it.

Promises of the oracle `asked`. How a person answers is in people.py and mishaps.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from baton.core.log.events import (
    Ask,
    Entry,
    Forked,
    NoticeDue,
    Parked,
    QuestionClaimed,
    QuestionClosed,
    QuestionEscalated,
    QuestionOpened,
    SignalReceived,
    StrategyChosen,
)
from baton.core.log.questions import EXPIRED, is_answer_to
from baton.core.log.state import ANSWER

_Happens = QuestionClosed | QuestionEscalated | QuestionClaimed


@dataclass
class _Asked:
    """A question of a node or about a step, as far as the log was read. `taken`: when the steps of its escalation were due.

    `to`: whom it is for now; `group`: and while no person has claimed it.
    """

    ask: Ask
    is_of_node: bool = True
    taken: list[int] = field(default_factory=list)
    to: str = ""
    group: str = ""
    holder: str = ""
    is_answered: bool = False
    is_closed: bool = False
    is_postponed: bool = False

    def see(self, event: _Happens) -> Iterator[str]:
        if self.is_closed:
            yield f"something happened to {self.ask.id} after its end"
        if self.is_answered and not (isinstance(event, QuestionClosed) and event.by):
            yield f"{self.ask.id} had an answer, and then there was {event.__struct_config__.tag} without it"
        if isinstance(event, QuestionClosed):
            self.is_closed = True
            yield from self._closed(event)
        elif isinstance(event, QuestionClaimed):
            if event.to and self.holder not in ("", event.to):
                yield f"{event.to} has claimed {self.ask.id}, which {self.holder} had"
            self.holder = event.to
            self.to = event.to or self.group
        else:
            self.taken += [event.due] if event.due else []
            if event.to is not None:
                self.to = self.group = event.to
                self.holder = ""

    def answered(self, event: SignalReceived) -> Iterator[str]:
        if self.is_answered:
            yield f"{self.ask.id} has two answers"
        # An answer about a failed step counts until a worker has looked, unless a policy has decided.
        is_timed = self.is_of_node or self.ask.ends_at != self.ask.expires_at
        if self.is_closed or (is_timed and not self.is_postponed and event.at >= self.ask.ends_at):
            yield f"{self.ask.id} was answered after its end"
        if self.to and event.by.startswith("link:") and event.by != f"link:{self.to}":
            yield f"{self.ask.id} was answered by a {event.by}, and is for {self.to}"
        self.is_answered = True

    def _closed(self, event: QuestionClosed) -> Iterator[str]:
        by_time = (self.ask.escalate[-1].decide if self.ask.escalate else "") or EXPIRED
        if not event.by and (event.action != by_time or event.at < self.ask.ends_at):
            yield f"{self.ask.id} was closed by {event.action} at {event.at}, not by {by_time} at {self.ask.ends_at}"

    def at_the_end(self) -> Iterator[str]:
        steps = [step.at for step in self.ask.escalate if not step.decide]
        if not self.is_postponed and self.taken != steps[: len(self.taken)]:
            yield f"the steps of {self.ask.id} were taken at {self.taken}, and not at {steps}"


def _stand_still(parked: Parked, asked: dict[str, _Asked]) -> None:
    for one in asked.values():
        one.is_postponed |= parked.at > 0


def of_questions(entries: list[Entry]) -> Iterator[str]:
    """Promises about the questions in one saga's log, where no fork goes back to one."""
    asked: dict[str, _Asked] = {}
    keys = Counter[str]()
    for entry in entries:
        for event in entry.events:
            if isinstance(event, QuestionOpened | StrategyChosen) and event.ask is not None:
                asked[event.ask.id] = _Asked(
                    event.ask, isinstance(event, QuestionOpened), to=event.ask.to, group=event.ask.to
                )
            elif isinstance(event, SignalReceived) and event.name == ANSWER:
                about = [one for name, one in asked.items() if is_answer_to(event.key, name)]
                yield from chain.from_iterable(one.answered(event) for one in about)
            elif isinstance(event, _Happens) and event.ask in asked:
                yield from asked[event.ask].see(event)
            elif isinstance(event, Forked):
                for one in asked.values():  # whatever is open at the cut is asked again
                    one.is_answered, one.is_closed, one.is_postponed = False, False, True
            elif isinstance(event, Parked):
                _stand_still(event, asked)
            elif isinstance(event, NoticeDue):
                keys[event.notice.key] += 1
    for one in asked.values():
        yield from one.at_the_end()
    if asked and (repeated := [key for key, count in keys.items() if count > 1]):
        yield f"notices have the same key: {repeated}"
