"""The recorded evidence of a real run with five sagas and one from words, and parts of it to change in a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baton.demo.evidence import Evidence

FILE = Path(__file__).parent / "recorded" / "evidence.json"


def recorded() -> Evidence:
    """A fresh copy each time: tests change it."""
    return Evidence.load(FILE)


def completed(evidence: Evidence) -> str:
    """The id of a dinner that completed."""
    dinners = (saga for saga in evidence.sagas if saga["workflow"] == "dinner")
    return next(str(saga["id"]) for saga in dinners if saga["status"] == "completed")


def first(log: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The first event of a kind in a log."""
    return next(event for entry in log for event in entry["events"] if event["kind"] == kind)
