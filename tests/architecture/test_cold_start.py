"""What a function's cold start may not load, so that what was taken out of it does not creep back.

Each handler is imported in a process of its own that sees only what the layers ship. No times are judged
here; `make bench BENCH=start` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import shipped, start

# Tells which clients were created, in order, and all modules there are after the import.
LOOK = """
import json, sys
from botocore.session import Session
create, created = Session.create_client, []
def told(self, service, *args, **kwargs):
    created.append(service)
    return create(self, service, *args, **kwargs)
Session.create_client = told
import app
print(json.dumps([created, sorted(sys.modules)]))
"""
NO_FUNCTION = {
    "boto3",
    "s3transfer",
    "unittest",
    "pydantic_monty",
    "pydantic_ai",
    "cel_expr_python",
    "jsonpath",
    "baton.local",
    "baton.cli",
    "baton.client",
    # They are another process's, which is started for it.
    "baton.tools.processes.forker",
    # Servers of MCP are few applications', and requests by it few deployments'.
    "mcp",
    "baton.tools.standard.mcp",
    "baton.web.mcp",
    # Facts of users, and results that are kept, are for sagas that have them.
    "baton.adapters.facts",
    "baton.tools.standard.memory",
    "baton.runtime.steps.caching",
    "baton.runtime.requests.facts",
    "baton.runtime.requests.warming",
    # What no function has before a model is called.
    "genai_prices",
    "httpx2",
    "openai",
    "baton.adapters.credentials",
    "baton.adapters.models.deployed",
    "baton.adapters.models.prices",
}
# A step that does not fail pays nothing for what is done about those that do.
FAILURES = {
    "baton.core.decide.failure_handling",
    "baton.core.failures.matrix",
    "baton.core.failures.sanitise",
    "baton.core.failures.strategies.ladder",
    "baton.core.failures.strategies.registry",
}
# Nor one that begins no other, has no schema, and is too short for a snapshot.
SELDOM = {
    "baton.core.conditions.schemaplan",
    "baton.core.conditions.matches",
    "baton.core.log.snapshots",
    "baton.runtime.starting.start",
}
CHILDREN = {"baton.runtime.starting.children"}
# What a deployment has not set up.
CHANNELS = {f"baton.adapters.channels.{name}" for name in ("aws", "webhook")}
TELLING = {"baton.adapters.channels"}
LOOP = {"baton.runtime.worker.worker"}
OTHERS = {"baton.runtime.reconcile", "baton.runtime.relay"}
# Few requests bring or describe a document.
DOCUMENTS = {"yaml", "jsonschema_rs", "baton.core.documents.compile", "baton.core.documents.models"}
COMPILER = DOCUMENTS | {"baton.core.documents.text", "baton.runtime.requests.service"}
# Relay and reconciler open no saga.
SAGAS = {
    "baton.core.decide",
    "baton.core.graph",
    "baton.core.log.codec",
    "baton.core.log.folding.fold",
    "baton.core.log.state",
    "baton.core.nodes",
    "baton.core.read",
    "baton.runtime.log.history",
    "baton.runtime.engine.parts",
    "baton.runtime.worker",
}
WEB = {"aws_lambda_powertools", "baton.console", "baton.web", "jinja2"}
# Pages are for those who look at them.
PAGES = {"jinja2", "markupsafe", "baton.console", "baton.web.within"}
TOOLS = {"pydantic", "pydantic_core", "httpx", "baton.tools", "sagas"}
FORBIDDEN = {
    "api": NO_FUNCTION | TELLING | PAGES | DOCUMENTS,
    "worker": NO_FUNCTION | CHANNELS | COMPILER | FAILURES | SELDOM | CHILDREN | OTHERS | WEB,
    "relay": NO_FUNCTION | TELLING | COMPILER | FAILURES | SELDOM | CHILDREN | LOOP | SAGAS | WEB | TOOLS,
    "reconciler": NO_FUNCTION
    | TELLING
    | COMPILER
    | FAILURES
    | SELDOM
    | CHILDREN
    | LOOP
    | SAGAS
    | WEB
    | TOOLS,
}
# What the first invocation needs in any case. The rest is created by the first call.
CLIENTS = {
    "api": ["dynamodb", "s3"],
    "worker": ["dynamodb", "s3"],
    "relay": ["dynamodb", "sqs"],
    "reconciler": ["dynamodb"],
}


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    with shipped.folder() as folder:
        yield folder


@pytest.mark.parametrize("function", sorted(FORBIDDEN))
def test_a_cold_start_loads_nothing_that_its_function_can_do_without(function: str, site: Path) -> None:
    output = shipped.run(LOOK, *start.paths(site, function), environment=start.SETTINGS)
    created, modules = json.loads(output.splitlines()[-1])
    assert FORBIDDEN[function].intersection(modules) == set()
    assert sorted(created) == CLIENTS[function]


def test_what_is_measured_has_the_packages_of_the_layer_and_no_others(site: Path) -> None:
    output = shipped.run(
        "import sys\nfor name in ('pytest', 'rich', 'awscrt'):\n    try: __import__(name); print(name)\n    except ImportError: pass",
        site,
    )
    assert output == ""
    assert not (site / "baton/local").exists()
    assert (site / "botocore").exists()
