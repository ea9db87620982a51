"""What every work that a node has opened is to folds, forks and limits; and a child saga, which goes on without its parent."""

from __future__ import annotations

from typing import Any, Self

import msgspec
from msgspec.structs import replace

from baton.core.log.records import Ask, Failure, Value

_NONE: dict[str, Any] = {}


class Work(msgspec.Struct, frozen=True):
    """Work that is only a place: what happens to it happens to the steps inside. Each kind says what is different with it."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of the call that a question is about, if they are not the step's."""
        return _NONE

    @property
    def signal(self) -> str:
        """The name of the signal that ends it; empty for none."""
        return ""

    @property
    def due(self) -> int | None:
        """When it ends by itself; None: never."""
        return None

    @property
    def orphan(self) -> Child | None:
        """The child saga that goes on when its parent drops this work."""
        return None

    @property
    def is_late(self) -> bool:
        """Whether what comes after it has begun, and what is inside of it runs beside that."""
        return False

    @property
    def acts_by_items(self) -> bool:
        """Tell whether what may have happened is told by its items alone, although its node fails as they do."""
        return False

    def hears(self, child: str) -> bool:
        """Whether the end of this child saga is what it waits for."""
        return False

    @property
    def ask(self) -> Ask | None:
        """The question that it has open."""
        return None

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """This work after a fork to a cut where it was open; `before` is the work open there before the fork.

        `later`: the milliseconds from the cut to the fork.
        """
        return self

    def postponed(self, later: int) -> Self:
        """This work, to which what would end it by itself happens so many milliseconds later."""
        return self


class Child(Work, frozen=True, omit_defaults=True, kw_only=True, tag="child"):
    """For a child saga; `status` is empty until it reported its end, in this `window` of its parent's inbox.

    A signal of the name `listens` calls it off: the child is cancelled, and waited for. So it is once its time, `until`, is over
    (`overdue`), and undoes what it has done. `passed`: values that a named graph gets by reference. `listed`: it was stopped, and is
    in the list of what an undoing of its parent comes to. `stood`: for how much of the time that it was parked for a defect it has got more.
    """

    saga: str
    workflow: str
    input: Value
    window: int = 0
    listens: str = ""
    status: str = ""
    output: Value = Value()
    failure: Failure | None = None
    undoable: bool = False
    until: int = 0
    overdue: bool = False
    stood: int = 0
    passed: dict[str, Value] = {}  # msgspec copies it
    listed: bool = False

    @property
    def signal(self) -> str:
        """The name of the signal that ends it."""
        return self.listens

    @property
    def due(self) -> int | None:
        return self.until if self.until and not (self.overdue or self.status) else None

    @property
    def orphan(self) -> Child | None:
        return None if self.status else self

    def hears(self, child: str) -> bool:
        return child == self.saga and not self.status

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """One that is open on both sides goes on; it is opened anew when it was cancelled with what the fork leaves."""
        is_kept = (
            not is_ending
            and isinstance(before, Child)
            and before.hears(self.saga)
            and before.overdue == self.overdue
        )
        if not is_kept or self.status:
            return self if self.status else None
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later) if self.until else self
