"""The record of an effect that may happen only once, and the port to it.

Three calls, each of one item. Which attempt may claim what, and what an old claim means, is in
runtime/steps/effect_claims.py.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

IN_PROGRESS, COMPLETED, FAILED, FREED = "in_progress", "completed", "failed", "freed"


class Effect(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One effect, by its idempotency key.

    `owner` names one try of one attempt, and no other: with `status` it says which state of the effect this is.
    `saga` and `slot` are where that attempt belongs. `until`: when it has ended in any case. `first` and `updated`: when
    the effect was first claimed, and last written. `scope` is the place of that saga
    in all branches. `about`: a hash of the parameters, where the key is made of something
    else and they have to be the same all the same. Completed, it has `data` (or `ref`, the blob that holds it): what
    came of it. Failed, it has `code`, `message` and `kind`. `shared_until`: until then other places than its own are given
    what came of it; 0 as long as it is there. `expires`: after that the store may delete it; 0 never.
    """

    tenant: str
    key: str
    status: str
    owner: str
    tool: str
    saga: str
    slot: str
    until: int
    first: int
    updated: int
    generation: int = 0
    about: str = ""
    scope: str = ""
    data: bytes = b""
    ref: str = ""
    code: str = ""
    message: str = ""
    kind: str = ""
    shared_until: int = 0
    expires: int = 0


class Effects(Protocol):
    """Claims of once-only effects. Each write is one conditional write of one item."""

    def claim(self, effect: Effect) -> Effect | None:
        """Put a claim. None when it was put, else the stored effect (strongly read), and nothing is written.

        One that was freed counts as not there; one that has expired and is not deleted yet is there.
        """
        ...

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        """Replace `seen` by `effect`. None when it was put.

        Else another writer was first: the stored effect (strongly read), and nothing is written. If `seen` is gone,
        `effect` is put.
        """
        ...

    def read(self, tenant: str, key: str) -> Effect | None:
        """Strongly consistent."""
        ...
