"""The events of nodes that run nothing: one that is skipped, let begin, ready, or has passed; and a join that fires early."""

from __future__ import annotations

from baton.core.log.records import About, Root
from baton.core.log.settling import Gives, Settles


class NodeSkipped(Settles, frozen=True, tag="node_skipped", omit_defaults=True, kw_only=True):
    """It did not run, or its result is not needed any more.

    `why` is empty when its edges were dead, `when` when its condition said no, `join NAME` when the join that it
    leads to has fired without it.
    """

    became = "skipped"
    why: str = ""


class JoinFired(Root, frozen=True, tag="join_fired", omit_defaults=True, kw_only=True):
    """A join was ready, by `by`, before every edge had arrived; tokens of `unspoken` that arrive later are absorbed."""

    node: str
    iteration: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    unspoken: tuple[str, ...]


class NodeAdmitted(About, frozen=True, tag="node_admitted", omit_defaults=True, kw_only=True):
    """The `when` of a node holds; recorded only where asking again might not give the same answer."""


class NodeBegan(About, frozen=True, tag="node_began", omit_defaults=True, kw_only=True):
    """A node whose time is limited became ready; or an item, which begins with this."""

    at: int


class NodePassed(Gives, frozen=True, tag="node_passed", omit_defaults=True, kw_only=True):
    """A node that runs nothing gave its value. `ends`: it is the saga's result, and the saga ends."""

    became = "passed"
    made = ("output",)
    ends: bool = False
