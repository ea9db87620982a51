"""The OpenAPI document is true: a fuzzer that is driven by it finds nothing in the running deployment.

How requests are made is schemathesis' business (schemathesis.toml, fuzz_hooks.py); here is what must have
happened before, and that it has found nothing. Here it asks for the limits of each parameter; `make fuzz`
also draws requests, and makes chains of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from baton.core.documents.schema import document_schema
from baton.web.routes import ROUTES
from tests.e2e.deployment import ROOT, TENANT, USER, Deployment, until
from tests.kit.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
FEW = "1"
EXAMPLES = os.environ.get("BATON_FUZZ_EXAMPLES", FEW)
SEED = os.environ.get("BATON_FUZZ_SEED", "1")
PHASES = "coverage" if EXAMPLES == FEW else "coverage,fuzzing,stateful"
# In a short run a path is asked by one method that it does not have, and not by all of them.
ONE_METHOD = '\n[phases.coverage]\nunexpected-methods = ["PUT"]\n'
LIMIT_S = 2 * PATIENCE_S if EXAMPLES == FEW else 3_600

DOCUMENTS = {
    "fuzz-echo": 'name: fuzz-echo\nnodes:\n  say: {tool: trial.echo, with: {value: "${input}"}}\noutput: "${ctx.say.output}"\n',
    "fuzz-wait": 'name: fuzz-wait\nnodes:\n  guests: {wait: {signal: guests}}\noutput: "${ctx.guests.output}"\n',
    "fuzz-fail": "name: fuzz-fail\non_failure: [rollback]\n"
    "nodes:\n  no: {tool: trial.fail, with: {code: as_told, message: no}}\n",
    "fuzz-ask": "name: fuzz-ask\non_failure: ask_user\n"
    "nodes:\n  no: {tool: trial.fail, with: {code: as_told, message: no}}\n",
    "fuzz-park": "name: fuzz-park\non_failure: escalate\n"
    "nodes:\n  no: {tool: trial.fail, with: {code: as_told, message: no}}\n",
    "fuzz-child": 'name: fuzz-child\nnodes:\n  inner: {workflow: fuzz-echo, with: {a: 1}}\noutput: "${ctx.inner.output}"\n',
    "fuzz-input": "name: fuzz-input\ninput: {type: object, required: [n], properties: {n: {type: integer}}}\n"
    "nodes:\n  pause: {wait: {for: 1h}}\n",
}
LARGE = "x" * 9_000


def incidents(api: Deployment) -> list[dict[str, object]]:
    found: list[dict[str, object]] = api.request("GET", "/incidents").json()["incidents"]
    return found


@pytest.fixture
def known(everything: Deployment) -> dict[str, object]:
    """Workflows, sagas in every state that can be had quickly, and cursors of their lists."""
    api = everything
    for document in (*DOCUMENTS.values(), DOCUMENTS["fuzz-echo"] + "description: the second version\n"):
        api.register(document)
    ended = [api.start("fuzz-echo", {"a": [1, "2", None]}), api.start("fuzz-fail"), api.start("fuzz-child")]
    large = api.start("fuzz-wait", LARGE)
    waiting = [large, api.start("fuzz-wait"), api.start("fuzz-wait"), api.start("fuzz-input", {"n": 1})]
    asking = [api.start("fuzz-ask"), api.start("fuzz-ask")]
    parked = api.start("fuzz-park")
    cancelled = api.start("fuzz-wait")
    assert api.request("POST", f"/sagas/{cancelled}/cancel", json={"mode": "forced"}).status_code == 202
    for saga in (*ended, cancelled):
        api.wait_for(saga)
    questions = [api.wait_for(saga, "suspended")["questions"] for saga in asking]
    api.wait_for(parked, "parked")
    digest = hashlib.sha256(f'"{LARGE}"'.encode()).hexdigest()
    assert api.request("GET", f"/sagas/{large}/values/{digest}").json()["value"] == LARGE
    cursors = {
        path: [api.request("GET", path, params={"limit": "1"}).json()["next"]]
        for path in ("/sagas", "/workflows")
    }
    return {
        "saga": [*ended, *waiting, *asking, parked, cancelled],
        "ask": [question["id"] for asked in questions for question in asked],
        "incident": [incident["id"] for incident in until(lambda: incidents(api), "an incident")],
        "name": [*DOCUMENTS],
        "node": ["say", "guests", "no", "inner", "pause"],
        "signal": ["guests"],
        "schema": document_schema(),
        "documents": [yaml.safe_load(document) for document in DOCUMENTS.values()],
        "cursors": cursors,
        "large": [large],
        "digest": [digest],
    }


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_fuzzer_that_reads_the_description_finds_nothing(
    everything: Deployment, known: dict[str, object], tmp_path: Path
) -> None:
    token = everything.run.token(USER, TENANT)
    # One worker: hypothesis parses source, and `ast.parse` of CPython 3.11 is not safe in two threads (SystemError).
    options = f"--phases {PHASES} --max-examples {EXAMPLES} --seed {SEED} --workers 1"
    settings = (ROOT / "tests/e2e/schemathesis.toml").read_text("utf-8")
    config = tmp_path / "schemathesis.toml"
    config.write_text(settings + (ONE_METHOD if EXAMPLES == FEW else ""), "utf-8")
    names = tmp_path / "known.json"
    names.write_text(json.dumps(known), "utf-8")
    command: list[str | Path] = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", config),
        *("run", f"{everything.run.url}/openapi.json", *options.split(), "--continue-on-failure"),
        *("--generation-database", "none", "--no-color", "--request-timeout", "20"),
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        # Where tables of all characters are kept: they take seconds to make.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
        "NO_PROXY": "127.0.0.1",
        "SCHEMATHESIS_HOOKS": "tests.e2e.fuzz_hooks",
        "BATON_FUZZ_TOKEN": token,
        "BATON_FUZZ_IS_SHORT": "yes" if EXAMPLES == FEW else "no",
        "BATON_FUZZ_KNOWN": str(names),
    }
    done = subprocess.run(
        command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    (tmp_path / "schemathesis.txt").write_text(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    # A run that is refused everywhere finds nothing either.
    generated = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert generated is not None, done.stdout
    assert int(generated[2]) >= 10 * len(ROUTES)
    assert everything.wait_for(everything.start("fuzz-echo", 7))["result"] == 7
