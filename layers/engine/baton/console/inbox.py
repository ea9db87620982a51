"""The inbox, and a question with its form: answering, claiming, and the message that another answer came
first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from baton.console.forms import fields_of, form_data, places
from baton.console.rendering import commands
from baton.console.visits import Answer, Html, Redirect, Visit, tag_of
from baton.core.log.codec import PERIOD, SCHEME
from baton.errors import InvalidInput, NotAllowedNow, NotFound, Problem, UserError

_PAGE: Final = "50"
WORDS: Final = {
    "approve": "Approve",
    "reject": "Reject",
    "submit": "Send",
    "done": "It is done",
    "retry": "Try again",
    "use": "Use this output instead",
    "fail": "Let it fail",
    "resume": "Resume",
    "cancel": "Cancel the saga",
}
_STRICT: Final = frozenset({"reject", "fail", "cancel"})


async def inbox(visit: Visit) -> Html:
    """Return the page of questions that the visitor may answer, ordered by expiry, earliest first."""
    cursor = visit.query.get("cursor", "")
    page = await visit.call("listQuestions", query={"limit": _PAGE} | ({"cursor": cursor} if cursor else {}))
    data = {
        "questions": page["questions"],
        "next": page["next"],
        "answered": visit.query.get("answered", ""),
        "commands": commands(visit.api, "/questions", ["inbox"]),
    }
    return Html(template="inbox.html", title="Inbox", data=data, tag=tag_of(page["questions"]))


async def question_page(visit: Visit) -> Html:
    """Return the page of one question with its form."""
    return await _form(visit, await _find(visit))


async def submit_answer(visit: Visit) -> Answer:
    """Send the visitor's answer."""
    saga = visit.path["saga"]
    try:
        ask = await _find(visit)
    except NotFound:
        return _too_late(visit, f"question `{visit.path['ask']}` is not open any more")
    if visit.said("more"):
        return await _form(visit, ask)
    body, problems = _body(ask, visit)
    if problems:
        return await _form(visit, ask, problems)
    try:
        await visit.call("answerQuestion", {"saga": saga}, body=body, key=visit.said("key")[:64])
    except InvalidInput as error:
        return await _form(visit, ask, error.problems or (Problem("", error.detail),))
    except NotAllowedNow as error:
        return _too_late(visit, error.detail)
    return Redirect(f"/console/inbox?answered={saga}")


async def submit_claim(visit: Visit) -> Answer:
    """Claim a question for the visitor, or release it."""
    saga, ask = visit.path["saga"], visit.path["ask"]
    body = {"ask": ask} | ({"release": True} if visit.said("release") else {})
    try:
        await visit.call("claimQuestion", {"saga": saga}, body=body)
    except NotAllowedNow as error:
        return _too_late(visit, error.detail)
    return Redirect(f"/console/sagas/{saga}/questions/{ask}")


async def _find(visit: Visit) -> dict[str, Any]:
    saga, wanted = visit.path["saga"], visit.path["ask"]
    view = await visit.call("showSaga", {"saga": saga})
    found: dict[str, Any] | None = next((one for one in view["questions"] if one["id"] == wanted), None)
    if found is None:
        raise NotFound(f"question `{wanted[:100]}` is not open: it has been answered, or has expired")
    return found


def _body(ask: Mapping[str, Any], visit: Visit) -> tuple[dict[str, Any], list[Problem]]:
    """Return the body of the request, and the invalid values of the form."""
    action = visit.said("action")
    body: dict[str, Any] = {"ask": ask["id"], "action": action}
    if comment := visit.said("comment"):
        body["comment"] = comment
    problems: list[Problem] = []
    if action == "submit" and ask["type"] == "input":
        body["data"], problems = form_data(ask["schema"], visit.form)
    elif ask["type"] == "error" and action in ("retry", "use"):
        place = "arguments" if action == "retry" else "output"
        if text := visit.said(place):
            try:
                body[place] = json.loads(text)
            except (ValueError, RecursionError) as error:
                problems.append(Problem(f"/{place}", f"is no JSON: {error}"))
    return body, problems


async def _form(visit: Visit, ask: Mapping[str, Any], problems: Sequence[Problem] = ()) -> Html:
    saga, fields = visit.path["saga"], None
    if ask["type"] == "input" and "submit" in ask["options"]:
        fields = fields_of(ask["schema"], visit.form or None, problems)
    placed = (places(fields) if fields else frozenset()) | {"/arguments", "/output"}
    said = {name: visit.said(name) for name in ("comment", "arguments", "output")}
    takeover = {name: str((ask["takeover"] or {}).get(name) or "") for name in _TAKEOVER}
    picture, source = await _picture(visit, takeover["picture"])
    data = {
        "saga": saga,
        "ask": ask,
        "fields": fields,
        "said": said,
        "beside": {one.path: one.message for one in problems},
        "elsewhere": [one for one in problems if one.path not in placed],
        "is_wrong": bool(problems),
        "buttons": _buttons(ask),
        "key": visit.said("key") or visit.token,
        "takeover": takeover,
        "picture": picture,
        "is_mine": (ask["claim"] or {}).get("by") == visit.session.user,
        "commands": "\n".join(_printed(visit, ask)),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if problems else HTTPStatus.OK
    return Html(template="question.html", title="A question", data=data, status=status.value, pictures=source)


_TAKEOVER: Final = ("url", "picture", "instructions")
_HOST: Final = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]+)?")
_IMAGES: Final = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
"""Kinds of images by the first characters of their base64."""


async def _picture(visit: Visit, address: str) -> tuple[str, str]:
    """Return the address of the picture for the page, and the source that the page's policy allows for it."""
    if host := _HOST.match(address):
        return address, host[0]
    if not address.startswith(SCHEME):
        return "", ""
    path = {"saga": visit.path["saga"], "digest": address.removeprefix(SCHEME).partition(PERIOD)[0]}
    try:
        value = (await visit.call("showValue", path))["value"]
    except UserError:  # it is not kept any more
        return "", ""
    data = str(value).rpartition("base64,")[2]
    kind = next((kind for begin, kind in _IMAGES.items() if data.startswith(begin)), "")
    return (f"data:image/{kind};base64,{data}", "data:") if kind else ("", "")


def _printed(visit: Visit, ask: Mapping[str, Any]) -> list[str]:
    """Return the command equivalent to each button."""
    saga, name, found = visit.path["saga"], ask["id"], list[str]()
    for action in ask["options"]:
        has_data = action == "submit"
        body = {"ask": name, "action": action} | ({"data": {}} if has_data else {})
        words = ["answer", saga, name, action, *(["--data", "{}"] if has_data else [])]
        found.append(commands(visit.api, f"/sagas/{saga}/answer", words, body, has_key=True))
    if len(ask["for"]) > 1 or ask["claim"]:
        is_mine = (ask["claim"] or {}).get("by") == visit.session.user
        body = {"ask": name} | ({"release": True} if is_mine else {})
        words = ["claim", saga, name, *(["--release"] if is_mine else [])]
        found.append(commands(visit.api, f"/sagas/{saga}/claim", words, body))
    return found


def _buttons(ask: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a button for each answer, with the author's words if there are some."""
    choices = {one["id"]: one for one in ask["choices"]}
    found = []
    for option in ask["options"]:
        choice = choices.get(option, {})
        found.append(
            {
                "id": option,
                "label": choice.get("label") or WORDS.get(option, option),
                "about": choice.get("description") or "",
                "danger": bool(choice.get("destructive")) or option in _STRICT,
                "default": bool(choice.get("default")),
            }
        )
    return found


def _too_late(visit: Visit, why: str) -> Html:
    data = {"why": why, "saga": visit.path["saga"]}
    return Html(template="too-late.html", title="Your answer was not taken", data=data, status=409)
