"""The roots of the events that settle a node: where it goes on, and what it gives.

All kinds of event are in events.py, what a settlement is made of in core/decide/settlement.py.
"""

from __future__ import annotations

from typing import ClassVar

from baton.core.log.records import About, Failure, Paused, Token, Value


class Settles(About, frozen=True, omit_defaults=True, kw_only=True):
    """An event that settles a node: it consumes the tokens waiting at (node, iteration) and emits the next ones.

    `errors` go on along its edges; see lost.py.

    `way` says in words what `loop` and `branch` chose: again, break, timeout; rule 1, default, chosen. `drops`
    are the slots of a round that is over with this. `forget` names nodes whose outputs no later step can read any
    more; `carry` those that the next round reads as the previous one's, as LOOP/NODE, which may be forgotten, too.
    `paused`: when the next round of its loop begins, where that is not at once.
    `fault`: the node was done, but where it goes on is unknown; unless something is emitted, the saga fails with it.
    """

    became: ClassVar[str] = "ran"
    """What became of the node, in a word."""
    emits: tuple[Token, ...] = ()
    errors: tuple[Failure, ...] = ()
    way: str = ""
    drops: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    fault: Failure | None = None
    paused: Paused | None = None

    @property
    def ends(self) -> bool:
        """Whether the saga ends with it, and has its output as its result."""
        return False

    @property
    def ended_by(self) -> str:
        """The key of the outside event that ended the node, if one did."""
        return getattr(self, "by", "")


class Gives(Settles, frozen=True, omit_defaults=True, kw_only=True):
    """Of a node that is done. `keep` False: no node reads its output any more, so the state does not hold it.

    `full`: the output is only a summary of this.
    """

    output: Value
    keep: bool = True
    full: Value | None = None
