"""The questions of a saga, as `baton show` tells them."""

from __future__ import annotations

from baton.cli.text.render import question_lines
from tests.kit.sentences import Says

NOW = 1_795_212_000_000
DAY = 86_400_000


def test_a_question_of_a_node_is_shown_with_all_that_a_person_has_to_know(says: Says) -> None:
    question = {
        "id": "0.how",
        "type": "decision",
        "title": "How?",
        "message": "The table\nis gone.",
        "options": ["wait", "order"],
        "choices": [
            {"id": "wait", "label": "Wait", "description": "", "default": True, "destructive": False},
            {"id": "order", "label": "Order", "description": "In.", "default": False, "destructive": True},
        ],
        "asked_at": "2026-11-21T21:00:10.000Z",
        "expires_at": "2026-11-23T22:00:10.000Z",
        "for": [{"kind": "user", "name": "ana"}, {"kind": "role", "name": "operate"}],
        "details": {"party": 4},
        "schema": {"type": "object"},
        "risk": "high",
        "told_at": "2026-11-21T21:10:10.000Z",
        "claim": {"by": "ana", "at": "2026-11-21T21:20:00.000Z", "from": {"kind": "group", "name": "hosts"}},
        "escalate": [
            {"at": "2026-11-21T22:30:00.000Z", "action": "remind", "to": None, "answer": None},
            {
                "at": "2026-11-21T23:30:00.000Z",
                "action": "hand_on",
                "to": {"kind": "group", "name": "leads"},
                "answer": None,
            },
            {"at": "2026-11-22T22:00:10.000Z", "action": "decide", "to": None, "answer": "wait"},
        ],
        "takeover": {"url": "https://x.test", "picture": "", "instructions": "Log in."},
        "arguments": None,
    }
    lines = question_lines({"questions": [question]}, NOW)
    for told in (
        "0.how: How?: The table\\nis gone., asked ",
        ", told again 2026-11-21 21:10",
        "  answer wait, order, until 2026-11-22 22:00 UTC",
        "  for ana or the role operate, claimed 2026-11-21 21:20",
        " from the group hosts",
        "  without an answer: told again 2026-11-21 22:30",
        ", handed on to the group leads 2026-11-21 23:30",
        ", decided wait 2026-11-22 22:00",
        "  risk high",
        "  wait (default): Wait",
        "  order (destructive): Order. In.",
        '  --data fits {"type": "object"}',
        '  details {"party": 4}',
        "  open https://x.test",
        "  do Log in.",
    ):
        assert any(told in line for line in lines), (told, lines)
    says(question_lines({"questions": [question]}, NOW + DAY)[0])
    assert not any("may change" in line or "picture" in line for line in lines)
