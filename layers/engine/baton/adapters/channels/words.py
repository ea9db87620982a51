"""Texts of a notice: a subject and a text for people, JSON for programs.
Channels do the sending.

A message names the question and the way to answer it. The rest of the question (its details, its schema)
stays in the deployment, where only those who may answer see it.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from baton.core.expressions import iso
from baton.core.log.events import Ask
from baton.core.log.questions import SUBMIT
from baton.core.log.records import Option
from baton.ports import Telling
from baton.ports.log import xml_text
from baton.ports.people import LINK_LASTS_MS

_MOST_MESSAGE = 20_000  # characters: with its UTF-8 and the rest far below the 256 KB of SNS and EventBridge
_MOST_LABEL = 300


def facts_of(telling: Telling) -> dict[str, str]:
    """Return the origin and the subject of a notice: one word each, for filters. None is empty."""
    notice = telling.notice
    said = {
        "tenant": telling.tenant,
        "saga": telling.saga,
        "user": telling.user,
        "node": notice.node,
        "to": notice.to,
        "code": notice.code,
        "severity": notice.severity,
    }
    return {name: value for name, value in said.items() if value}


def id_of(telling: Telling, channel: str) -> str:
    """Return the id of a notice on this channel, equal for every try: receivers use it to keep the notice
    once.

    It has no full stop, which a webhook's id may not have, and reveals nothing of the key.
    """
    notice = telling.notice
    told = "\0".join((telling.tenant, notice.key, str(notice.at), channel))
    return f"msg_{hashlib.sha256(told.encode(errors='surrogatepass')).hexdigest()[:32]}"


def notice_kind(telling: Telling) -> str:
    """Return the type of a notice, for programs."""
    notice = telling.notice
    if notice.incident:
        return "baton.incident.opened"
    return "baton.question.asked" if notice.ask else "baton.notice.given"


# ---- for people


def line(text: str, most: int) -> str:
    """Return one printable line of a text, without characters that end headers or turn the text."""
    printable = "".join(character if character.isprintable() else "?" for character in text[: most + 1])
    return printable if len(printable) <= most else f"{printable[: most - 3]}..."


def subject_of(telling: Telling, *, titled: bool = False) -> str:
    """Return the subject of a notice. `titled`: use the title of its question, if it has one."""
    notice, ask = telling.notice, telling.ask
    what = "Incident" if notice.incident else "Question" if notice.ask else "Notice"
    about = ask.title if titled and ask is not None and ask.title else f"{notice.code} in {telling.saga}"
    return f"[{notice.severity}] {what}: {about}"


def message_of(telling: Telling) -> str:
    """Return the event, then its origin, line by line."""
    return xml_text(f"{telling.notice.message[:_MOST_MESSAGE]}\n\n{_facts(telling)}")


def letter_of(telling: Telling) -> str:
    """Return the mail of a notice, with the possible answers, their deadline, and the way to answer."""
    parts = [telling.notice.message[:_MOST_MESSAGE], _facts(telling)]
    if telling.ask is not None:
        parts.insert(1, _how(telling, telling.ask))
    return xml_text("\n\n".join(part.rstrip("\n") for part in parts) + "\n")


def _facts(telling: Telling) -> str:
    moment = datetime.fromtimestamp(telling.notice.at / 1_000, UTC).isoformat(timespec="seconds")
    rows = [*facts_of(telling).items(), ("at", moment.replace("+00:00", "Z"))]
    return "".join(f"{name}: {line(value, _MOST_LABEL)}\n" for name, value in rows)


def _how(telling: Telling, ask: Ask) -> str:
    offered = "\n".join(f"  {_offer(option)}" for option in ask.options)
    until = f"Until: {iso(ask.ends_at)}" if ask.ends_at else ""
    risk = f"Risk: {ask.risk}" if ask.risk else ""
    parts = (f"Answers:\n{offered}", "\n".join(text for text in (until, risk) if text))
    answer = "submit --data JSON" if ask.actions == (SUBMIT,) else "ANSWER"
    minutes = LINK_LASTS_MS // 60_000
    link = f"\nor, once and within {minutes} minutes, open {telling.link}" if telling.link else ""
    return (
        "\n\n".join(part for part in parts if part)
        + f"\n\nAnswer with\n  baton answer {telling.saga} {ask.id} {answer}{link}\n"
        f"What else it shows: baton show {telling.saga}"
    )


def _offer(option: str | Option) -> str:
    if isinstance(option, str):
        return line(option, _MOST_LABEL)
    said = [text for text in (option.label, option.description) if text]
    said += [
        word
        for word, holds in (("(by default)", option.default), ("(for good)", option.destructive))
        if holds
    ]
    return line(": ".join((option.id, " ".join(said))) if said else option.id, _MOST_LABEL)


# ---- for programs


def notice_data(telling: Telling, *, linked: bool = False) -> dict[str, Any]:
    """Return facts, message and question, for programs. `linked`: with the link, for one receiver only."""
    data: dict[str, Any] = {**facts_of(telling), "message": telling.notice.message[:_MOST_MESSAGE]}
    if telling.ask is not None:
        data["question"] = _question(telling.ask)
    if linked and telling.link:
        data["link"] = telling.link
    return data


def _question(ask: Ask) -> dict[str, Any]:
    said: dict[str, Any] = {"id": ask.id, "type": ask.type, "options": list(ask.actions)}
    if ask.title:
        said["title"] = ask.title
    if ask.ends_at:
        said["expires_at"] = iso(ask.ends_at)
    return said
