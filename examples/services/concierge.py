"""The model of the demonstration: a scripted provider that plans an evening from the words of a guest.

Every answer depends on the messages alone, so that an answer that is asked for again is the same. HTTP and faults are in models.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from examples.services.models import DELAYS, Asked, Refusal, Reply, build
from examples.services.serve import options, serve

CREDENTIAL = "Bearer scripted"
ITEMS = ["Pad Thai", "Green curry"]
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def plan(asked: Asked) -> Reply | Refusal:
    """The next turn: search by cuisine, if there is none without it and for a delivery, answer with the steps of a plan.

    What is arranged stays where it fits; a table for another party takes the place of the one there is. It takes no
    credential but the one of the demonstration: a real one must never come here.
    """
    if asked.authorization != CREDENTIAL:
        return Refusal(401, "invalid_api_key", "This server takes the credential `scripted` and no other.")
    said = [str(one["content"]) for one in asked.messages if one["role"] == "user"]
    guest = json.loads(said[0])
    so_far = guest.get("so_far") or {}
    wanted = _understood([guest["words"], *so_far.get("wishes", ()), *said[1:]])
    told = [json.loads(str(one["content"])) for one in asked.messages if one["role"] == "tool"]
    search = ("table_search", {"city": wanted["city"], "party": wanted["party"], "at": guest["at"]})
    if not told:
        return Reply(calls=[(search[0], {**search[1], "cuisine": wanted["cuisine"]})])
    if len(told) == 1 and "tables" not in told[0]:
        # A model asks for the same again, now and then, although it has the answer.
        again = (search[0], {**search[1], "cuisine": wanted["cuisine"]})
        quote = {"city": wanted["city"], "items": ITEMS, "at": guest["at"]}
        return Reply(calls=[search, ("delivery_quote", quote), again, search])
    understood = f"{wanted['cuisine']} food for {wanted['party']} in {wanted['city']}"
    return Reply({"understood": understood, "steps": list(_steps(wanted, told, so_far))})


def _steps(wanted: Mapping[str, Any], told: list[Any], so_far: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A table, and dishes to it where no house has them, less what is arranged already."""
    arranged = [*so_far.get("booked", ()), *so_far.get("held", ())]
    fits = [one for one in arranged if one["party"] == wanted["party"]]
    table = fits[0] if fits else told[min(len(told) - 1, 1)]["tables"][0]
    if not fits:
        booked = {"table": table["id"], "house": table["house"], "party": wanted["party"]}
        yield {"do": "book_table", **booked, "deposit_cents": table["deposit_cents"]}
    if len(told) > 1 and not so_far.get("orders"):
        total = told[2]["total_cents"]
        yield {"do": "order_delivery", "items": ITEMS, "house": table["house"], "total_cents": total}
    for one in arranged:
        if one not in fits[:1]:
            yield {"do": "cancel", "id": one["hold"]}


def _understood(said: list[str]) -> dict[str, Any]:
    """The last word about each counts."""
    words = " ".join(said)
    parties = re.findall(rf"\bfor ({'|'.join(_NUMBERS)})\b", words)
    cities, cuisines = re.findall(r"\bin ([A-Z]\w+)", words), re.findall(r"\bsomething (\w+)", words)
    return {
        "party": _NUMBERS.index(parties[-1]) + 1 if parties else 2,
        "city": cities[-1] if cities else "Vienna",
        "cuisine": cuisines[-1] if cuisines else "Thai",
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the service; see `--help`."""
    chosen = options("models", DELAYS, arguments)
    return serve("models", chosen, lambda given: build(given, script=plan))


if __name__ == "__main__":
    sys.exit(main())
