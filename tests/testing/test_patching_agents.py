"""The document of docs/agents.md whose agent patches what comes after it, with a scripted model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from baton import tool
from baton.ports.models import ModelRequest
from baton.testing import call, run
from baton.tools.define import Registry

PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text("utf-8")
(DOCUMENT,) = (text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "patch: [" in text)


def registry() -> Registry:
    made = Registry()

    @tool("facts.find", registry=made, effect="pure")
    async def find(topic: str) -> list[str]:
        return [f"{topic}: 3", f"{topic}: 4"]

    @tool("facts.check", registry=made, effect="pure")
    async def check(fact: str) -> str:
        return f"{fact} (checked)"

    @tool("report.write", registry=made)
    async def write(plan: str, facts: list[str] | None = None) -> str:
        return f"{plan}: {', '.join(facts or [])}"

    return made


def patching(request: ModelRequest) -> Any:
    """Find facts, add a check for each, and say what the report is about."""
    results = [json.loads(one["content"]) for one in request.messages if one["role"] == "tool"]
    if not results:
        return call("facts.find", topic="rain")
    if len(results) == 1:
        names = [f"check_{number}" for number, _ in enumerate(results[0])]
        checks = [
            {
                "op": "add",
                "path": f"/nodes/{name}",
                "value": {"after": "plan", "tool": "facts.check", "with": {"fact": fact}},
            }
            for name, fact in zip(names, results[0], strict=True)
        ]
        after = {"op": "replace", "path": "/nodes/report/after", "value": names}
        given = [f"${{ctx.{name}.output}}" for name in names]
        facts = {"op": "add", "path": "/nodes/report/with/facts", "value": given}
        return call("patch_workflow", operations=[*checks, after, facts], description="Check each figure.")
    assert results[1]["applied"], results
    return "On rain"


def test_the_agent_of_the_page_adds_a_check_for_each_figure_once_a_person_approves() -> None:
    assert len(DOCUMENT.splitlines()) <= 30
    result = run(DOCUMENT, {"topic": "rain"}, tools=registry(), models=patching, answers={"plan": "approve"})
    assert result.output == "On rain: rain: 3 (checked), rain: 4 (checked)"
    assert {name for name in result.steps if name.startswith("check_")} == {"check_0", "check_1"}
