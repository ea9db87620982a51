"""The names of the strategies as documents and logs spell them."""

from __future__ import annotations

RETRY, REPLAN, ASK_USER, ROLLBACK, ESCALATE = "retry", "replan", "ask_user", "rollback", "escalate"
