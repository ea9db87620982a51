"""The model of the demonstration: a scripted provider that plans an evening from the words of a guest.

Every answer depends on the messages alone, so that an answer that is asked for again is the same. HTTP and faults are in models.
"""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from examples.services.models import DELAYS, Asked, Refusal, Reply, build
from examples.services.serve import options, serve

CREDENTIAL = "Bearer scripted"
ITEMS = ["Pad Thai", "Green curry"]
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def plan(asked: Asked) -> Reply | Refusal:
    """The next turn: search by cuisine, then without it and for a delivery, hold a table, answer.

    It takes no credential but the one of the demonstration: a real one must never come here.
    """
    if asked.authorization != CREDENTIAL:
        return Refusal(401, "invalid_api_key", "This server takes the credential `scripted` and no other.")
    guest = json.loads(next(str(one["content"]) for one in asked.messages if one["role"] == "user"))
    wanted = _understood(guest)
    told = [json.loads(str(one["content"])) for one in asked.messages if one["role"] == "tool"]
    search = ("table_search", {"city": wanted["city"], "party": wanted["party"], "at": guest["at"]})
    if not told:
        return Reply(calls=[(search[0], {**search[1], "cuisine": wanted["cuisine"]})])
    if len(told) == 1:
        quote = {"city": wanted["city"], "items": ITEMS, "at": guest["at"]}
        return Reply(calls=[search, ("delivery_quote", quote)])
    table, quoted = told[1]["tables"][0], told[2]
    if len(told) == 3:
        # A model asks for the same again, now and then, although it has the answer.
        hold = {"table": table["id"], "party": wanted["party"], "at": guest["at"]}
        return Reply(calls=[("table_hold", hold), search])
    held = told[3]
    return Reply(
        {
            "understood": f"{wanted['cuisine']} food for {wanted['party']} in {wanted['city']}",
            "hold": held["id"],
            "house": table["house"],
            "deposit_cents": held["deposit_cents"],
            "items": ITEMS,
            "delivery_cents": quoted["total_cents"],
        }
    )


def _understood(guest: Mapping[str, Any]) -> dict[str, Any]:
    words = str(guest["words"])
    party = next((n for n, name in enumerate(_NUMBERS, 1) if re.search(rf"\bfor {name}\b", words)), 2)
    city, cuisine = re.search(r"\bin ([A-Z]\w+)", words), re.search(r"\bsomething (\w+)", words)
    return {
        "party": party,
        "city": city.group(1) if city else "Vienna",
        "cuisine": cuisine.group(1) if cuisine else "Thai",
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the service; see `--help`."""
    chosen = options("models", DELAYS, arguments)
    return serve("models", chosen, lambda given: build(given, script=plan))


if __name__ == "__main__":
    sys.exit(main())
