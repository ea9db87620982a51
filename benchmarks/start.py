"""Import time of each handler in a new process with what the layers ship, and what its first invocation adds.

Nothing is only moved: what is not imported or created at the start and needed at once shows in the first
invocation of the worker, which runs a saga of one step on the embedded AWS.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks import shipped
from benchmarks.figures import Bench, Figure, Sample

APP = shipped.ROOT / "layers/app"
FUNCTIONS = ("worker", "api", "relay", "reconciler")
# What a package is counted with: those that only it brings along.
GROUPS = {
    "botocore": ("botocore", "urllib3", "jmespath", "dateutil", "six", "certifi"),
    "boto3": ("boto3", "s3transfer"),
    "pydantic": ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"),
    "msgspec": ("msgspec",),
    "httpx": ("httpx", "httpcore", "h11", "anyio", "idna", "sniffio"),
    "aws_lambda_powertools": ("aws_lambda_powertools",),
    "yaml": ("yaml", "_yaml"),
    "jsonschema_rs": ("jsonschema_rs",),
    "the engine": ("baton",),
    "the tools, with their schemas": ("sagas",),
    "clients created": ("app",),
}
REST = "standard library"
SETTINGS = {
    "BATON_TABLE": "bench",
    "BATON_BUCKET": "bench",
    "BATON_QUEUE_URL": "http://127.0.0.1/q",
    "BATON_DEAD_LETTER_URL": "http://127.0.0.1/d",
    "BATON_RELAY_FAILURE_URL": "http://127.0.0.1/r",
    "BATON_API_URL": "https://api.test",
    "BATON_NOTICES_TOPIC": "arn:aws:sns:us-east-1:000000000000:bench",
    "BATON_WORKER": "worker",
}
# A tool of the app layer that calls no service, so that the first invocation has a step of it.
DOCUMENT = """
name: first
nodes:
  only:
    tool: dinner.itinerary
    with:
      table: {code: a, table: b}
      bar: {code: c, table: d}
      waiting: null
      deposit_cents: 0
      orders: []
      given_back: null
"""
INVOCATIONS = 3
IMPORT = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import app
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
"""
TELL = "import json; print(json.dumps([wall * 1e3, cpu * 1e3]))"
INVOKE = """
import json, sys, time
class Context:
    aws_request_id = "bench"
    def get_remaining_time_in_millis(self):
        return 60_000
times = []
for saga in SAGAS:
    started, used = time.perf_counter(), time.process_time()
    answer = app.handler({"wakes": [{"saga": saga, "v": 1}]}, Context())
    times.append([(time.perf_counter() - started) * 1e3, (time.process_time() - used) * 1e3])
    assert answer == {"batchItemFailures": []}, answer
print(json.dumps(times))
"""
_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)([\w.]+)")


def _group_of(module: str) -> str:
    top = module.partition(".")[0]
    return next((group for group, tops in GROUPS.items() if top in tops), REST)


def parts_of(listing: str) -> dict[str, float]:
    """Milliseconds by group: each module's own, without what it imports, as `-X importtime` reports them."""
    spent = dict.fromkeys((*GROUPS, REST), 0.0)
    for line in listing.splitlines():
        match = _LINE.match(line)
        if match:
            spent[_group_of(match[4])] += int(match[1]) / 1_000
    return spent


def paths(site: Path, function: str) -> tuple[Path, ...]:
    """As on Lambda: the function's own code, then the layers."""
    return shipped.ROOT / "functions" / function, site, APP


def first_invocations(site: Path) -> list[list[float]]:
    """Wall and CPU milliseconds of the first invocations of a worker, a saga of one step in each."""
    # Only here: the benches' own process needs no engine, and this one has all that is installed.
    from baton.adapters.aws import Aws
    from baton.tools.standard import load_app
    from benchmarks.stage import engine_on, sagas_of
    from tests.kit import ministack

    sys.path.append(str(APP))  # the document is compiled here, so the tools are needed here too
    with ExitStack() as stack:
        stack.callback(sys.path.remove, str(APP))
        files = stack.enter_context(tempfile.TemporaryDirectory())
        endpoint = stack.enter_context(ministack.running(Path(files)))
        engine = engine_on(Aws(endpoint), "bench", load_app("sagas"))
        refs = asyncio.run(sagas_of(engine, DOCUMENT, None, INVOCATIONS))
        code = f"SAGAS = {[str(ref) for ref in refs]!r}\nimport app\n{INVOKE}"
        output = shipped.run(
            code, *paths(site, "worker"), environment=SETTINGS | {"AWS_ENDPOINT_URL": endpoint}
        )
    times: list[list[float]] = json.loads(output.splitlines()[-1])
    return times


def measure() -> Sample:
    sample: dict[str, float] = {}
    with shipped.folder() as site:
        for function in FUNCTIONS:
            where = paths(site, function)
            shipped.run("import app", *where, environment=SETTINGS)  # writes the bytecode of what was copied
            output = shipped.run(IMPORT + TELL, *where, environment=SETTINGS)
            sample[function], sample[f"{function} cpu"] = json.loads(output.splitlines()[-1])
        # The tools first: what importlib imports for a module is not in the listing but in that module's own time.
        listing = shipped.run(
            "import sagas.dinner, app",
            *paths(site, "worker"),
            environment=SETTINGS,
            options=("-X", "importtime"),
        )
        parts = parts_of(listing)
        sample |= {f"worker {group}": parts[group] for group in (*GROUPS, REST)}
        first, *_, warm = first_invocations(site)
    sample |= {"first": first[0], "first cpu": first[1], "warm": warm[0], "warm cpu": warm[1]}
    return sample


BENCH = Bench(
    "start",
    f"import of the handlers, with .pyc and only what the layers ship (Python {sys.version.partition(' ')[0]})",
    {
        **{
            name: Figure(f"{name}: import", "ms", 350 if name == "worker" else None, digits=0)
            for name in FUNCTIONS
        },
        **{f"{name} cpu": Figure(f"{name}: CPU of it", "ms", digits=0, cpu=True) for name in FUNCTIONS},
        "first": Figure("worker: first invocation, a saga of one step", "ms", digits=1),
        "first cpu": Figure("worker: CPU of it", "ms", digits=1, cpu=True),
        "warm": Figure("worker: third invocation, the same", "ms", digits=1),
        "warm cpu": Figure("worker: CPU of it", "ms", digits=1, cpu=True),
        **{
            f"worker {group}": Figure(f"  of the worker's import: {group}", "ms", digits=0)
            for group in (*GROUPS, REST)
        },
    },
    measure,
    runs=7,
)
