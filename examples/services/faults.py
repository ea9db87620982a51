"""Faults of a service, switched on and off while it runs: each is about one place, and about some or all operations there.

A place is a city or, below it, a house: `graz/lantern`. What is refused because of a fault has not been done. What is
answered late, or with nonsense, has been: the caller cannot know.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import pydantic
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

HANGS_S, LATE_S = 30.0, 8.0
"""How long an answer that never comes is held back, and by how much another one is late: both longer than a caller waits."""

Kind = Literal["hangs", "unavailable", "login", "full", "late", "nonsense", "shapeless"]


class Fault(pydantic.BaseModel):
    """What is wrong. Without `operations` it is wrong with all of them, without `at` at any time of the evening.

    With `times` it is over when so many operations have met it.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    kind: Kind
    operations: list[str] = []
    at: datetime | None = None
    times: int | None = None


class _Faults(pydantic.RootModel[list[Fault]]):
    pass


class Faults:
    """The faults of one service, by place."""

    def __init__(self) -> None:
        self._by_place: dict[str, list[Fault]] = {}

    def find(
        self, operation: str, place: str, at: datetime | None = None, kinds: Iterable[str] = ()
    ) -> Fault | None:
        """The first fault of these kinds (none: of any) that an operation meets at a place and a time."""
        for where, faults in self._by_place.items():
            if place != where and not place.startswith(f"{where}/"):
                continue
            for fault in faults:
                is_here = operation in (fault.operations or [operation])
                is_now = fault.at is None or at is None or fault.at == at
                if is_here and is_now and fault.times != 0 and fault.kind in (kinds or [fault.kind]):
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None

    async def put(self, http: HttpRequest) -> Response:
        """`PUT /faults/{place}` with a list of faults, which takes the place of those that were there."""
        try:
            given = _Faults.model_validate_json(await http.body())
        except pydantic.ValidationError as error:
            return JSONResponse({"title": "Not a list of faults", "detail": str(error)}, 422)
        self._by_place[place_of(http.path_params["place"])] = given.root
        return Response(status_code=204)


def place_of(*names: str) -> str:
    """`Graz`, `Olive Yard`: `graz/olive-yard`."""
    return "/".join("-".join(name.lower().split()) for name in names)
