"""Versions of workflows on the command line: their tags and patches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from baton.cli.text.tables import tag_rows, version_rows
from baton.client.exits import REFUSED
from baton.ports.records import Tag, TagMove
from baton.runtime.requests.versions import tag_view
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says
from tests.kit.views import as_json

MOVES = (
    TagMove(version=0, by="mia", at=1_790_000_180_000, reason="it failed"),
    TagMove(version=3, by="ann", at=1_790_000_060_000),
    TagMove(version=2, by="bob", at=1_790_000_000_000, reason="the first"),
)
MAIN = as_json(tag_view(Tag(tenant="acme", workflow="pay", name="main", writes=2, moves=MOVES[1:])))
CANARY = as_json(tag_view(Tag(tenant="acme", workflow="pay", name="canary", writes=3, moves=MOVES)))
PAY = {"name": "pay", "version": 3, "graph": "9" * 64, "nodes": [], "edges": [], "document": "…"}


def test_a_tag_is_moved(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /workflows/pay/tags/main", (202, MAIN))
    says(baton("tag", "pay", "main", "3", "--was", "2", "--reason", "tried").stdout)
    assert api.asked[-1].json == {"version": 3, "was": 2, "reason": "tried"}
    assert json.loads(baton("tag", "pay", "main", "3", "--json").stdout) == MAIN
    api.on("POST /workflows/pay/tags/canary", (202, CANARY))
    says(baton("tag", "pay", "canary", "--delete").stdout)
    assert api.asked[-1].json == {"version": None, "was": None, "reason": ""}


def test_a_tag_needs_a_version_or_to_be_deleted(baton: Baton, says: Says) -> None:
    says([baton("tag", "pay", "main").stderr, baton("tag", "pay", "main", "3", "--delete").stderr])


def test_tags_are_listed_with_their_moves(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /workflows/pay", (200, PAY | {"tags": [CANARY, MAIN]}), (200, PAY | {"tags": []}))
    says(baton("tags", "pay").stdout)
    says(baton("tags", "pay").stderr)
    api.on("GET /workflows/pay", (200, PAY | {"tags": [MAIN]}))
    assert json.loads(baton("tags", "pay", "--json").stdout) == {"tags": [MAIN]}
    says(baton("workflows", "pay").stdout)


def test_a_workflow_is_shown_by_tag(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /workflows/pay/tags/main", (200, MAIN))
    api.on("GET /workflows/pay/3", (200, PAY))
    assert json.loads(baton("workflows", "pay@main", "--json").stdout) == PAY
    api.on("GET /workflows/pay/tags/canary", (200, CANARY))
    says(baton("workflows", "pay@canary").stderr)


def test_a_workflow_is_patched(api: FakeApi, baton: Baton, says: Says, tmp_path: Path) -> None:
    file = tmp_path / "patch.yaml"
    file.write_text("- {op: remove, path: /nodes/a}\n")
    made = {"name": "pay", "version": 4, "graph": "9" * 64, "notes": ["look at it"]}
    api.on("GET /workflows/pay", (200, PAY))
    api.on("POST /workflows/pay/patches", (201, made), (200, made))
    says(baton("patch-workflow", "pay", str(file), "--description", "less").stdout)
    wanted = {
        "patch": [{"op": "remove", "path": "/nodes/a"}],
        "for": 3,
        "description": "less",
        "dry_run": False,
    }
    assert api.asked[-1].json == wanted
    says(baton("patch-workflow", "pay", str(file), "--for", "3").stdout)
    says(baton("patch-workflow", "pay", str(file), "--dry-run").stdout)
    assert json.loads(baton("patch-workflow", "pay", str(file), "--json").stdout) == {**made, "new": False}


def test_a_file_that_is_no_patch_is_not_sent(api: FakeApi, baton: Baton, says: Says, tmp_path: Path) -> None:
    file = tmp_path / "patch.json"
    for text in ('{"op": "remove"}', "[{"):
        file.write_text(text)
        says(baton("patch-workflow", "pay", str(file)).stderr.replace(str(tmp_path), "TMP"))
    assert api.asked == []


PATCHED: dict[str, Any] = {
    "id": "s1",
    "status": "paused",
    "version": 9,
    "changed": True,
    "graph": "3f7a90c1d2e4" + "0" * 52,
    "changes": ["changes `with` of `b`"],
    "notes": ["the saga is paused: `baton resume s1` lets it go on"],
    "problems": [],
}


def test_a_saga_is_patched(api: FakeApi, baton: Baton, tmp_path: Path, says: Says) -> None:
    operations = [{"op": "remove", "path": "/nodes/c"}]
    (tmp_path / "fix.json").write_text(json.dumps(operations), "utf-8")
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "paused", "graph": "9" * 64}))
    api.on("POST /sagas/s1/patches", (202, PATCHED))
    says(baton("patch", "s1", str(tmp_path / "fix.json"), "--description", "so").stdout)
    sent = {"for": "9" * 64, "description": "so", "dry_run": False, "patch": operations}
    assert api.asked[-1].json == sent
    says(baton("patch", "s1", "--undo", "--for", "7").stdout)
    assert api.asked[-1].json == {"for": 7, "description": "", "dry_run": False, "undo": True}
    assert json.loads(baton("patch", "s1", "--undo", "--json").stdout) == PATCHED
    api.on(
        "GET /sagas/s1/workflow", (200, {"saga": "s1", "graph": "9" * 64, "nodes": [], "document": "name: w"})
    )
    assert baton("patch", "s1", "--print").stdout == "name: w\n"
    api.on("POST /sagas/s1/patches", (202, {**PATCHED, "changed": False, "changes": [], "notes": []}))
    says(baton("patch", "s1", "--undo").stdout)


def test_a_dry_run_of_a_patch_shows_what_stands_against_it(
    api: FakeApi, baton: Baton, tmp_path: Path, says: Says
) -> None:
    file = str(tmp_path / "fix.yaml")
    Path(file).write_text("- {op: remove, path: /nodes/b}", "utf-8")
    problem = {"path": "/nodes/b", "message": "the saga has come to `b`", "suggestion": "leave it in"}
    other = {**problem, "suggestion": ""}
    api.on("POST /sagas/s1/patches", (200, {**PATCHED, "problems": [problem, other]}))
    refused = baton("patch", "s1", file, "--for", "7", "--dry-run")
    assert refused.exit_code == 1
    says(refused.stdout)
    api.on("POST /sagas/s1/patches", (200, PATCHED))
    says(baton("patch", "s1", file, "--for", "7", "--dry-run").stdout)
    says([baton("patch", "s1").stderr, baton("patch", "s1", file, "--undo").stderr])


def test_a_document_is_compared_with_a_registered_version(
    api: FakeApi, baton: Baton, says: Says, tmp_path: Path
) -> None:
    file = tmp_path / "pay.yaml"
    document = "name: pay\ninput: {type: object}\nnodes: {a: {value: 1}}\noutput: {n: 1}\n"
    known = {**PAY, "input": None, "graphs": [], "document": document}
    known["nodes"] = [{"name": "a", "kind": "pass", "value": 1}]
    api.on("GET /workflows/pay", (200, known | {"input": {"type": "object"}}), (200, known), (200, known))
    file.write_text(document.replace("{n: 1}", "{n: 1, m: 2}"))
    same = baton("check", str(file), "--against", "pay")
    assert same.exit_code == 0
    says([same.stdout.replace(str(tmp_path), "TMP"), same.stderr])
    file.write_text(document.replace("{a: ", "{b: "))
    broken = baton("check", str(file), "--against", "pay")
    assert broken.exit_code == 1
    says([broken.stdout.replace(str(tmp_path), "TMP"), broken.stderr])
    rows = json.loads(baton("check", str(file), "--against", "pay", "--json").stdout)
    assert [(one["path"], one["is_breaking"]) for one in rows][:1] == [("/input", True)]
    api.on("GET /workflows/pay/tags/main", (200, MAIN))
    api.on("GET /workflows/pay/3", (200, known))
    assert baton("check", str(file), "--against", "pay@main").exit_code == 1
    says(baton("check", str(file), "--against", "other").stderr)
    file.write_text("name: pay\nnodes: {}")
    says(baton("check", str(file), "--against", "pay").stderr.replace(str(tmp_path), "TMP"))


def page(**more: Any) -> dict[str, Any]:
    return {"matched": 2, "changed": 0, "counts": [], "refused": [], "next": None} | more


def test_sagas_are_migrated_after_they_were_counted(api: FakeApi, baton: Baton, says: Says) -> None:
    counted = page(
        counts=[{"workflow": "pay@1", "code": None, "sagas": 2}],
        refused=[{"id": "s-2", "why": "`ok` is at work"}],
    )
    api.on("POST /sagas/migrate", (202, counted))
    told = baton("migrate", "pay", "--to", "3", "--map", "b=end", "--from", "1", "--dry-run")
    says(told.stdout)
    wanted = {"workflow": "pay", "to": 3, "map": {"b": "end"}, "from": [1], "dry_run": True, "cursor": ""}
    assert api.asked[-1].json == wanted
    api.on("POST /sagas/migrate", (202, page(changed=1, refused=counted["refused"])), (202, page()))
    done = baton("migrate", "pay", "--to", "main", "--label", "team=a", "--yes")
    assert (done.exit_code, api.asked[-1].json) == (
        REFUSED,
        {"workflow": "pay", "to": "main", "labels": {"team": "a"}, "cursor": ""},
    )
    says([done.stdout, done.stderr])
    assert json.loads(baton("migrate", "pay", "--to", "3", "--json").stdout)["changed"] == 0
    says(baton("migrate", "pay", "--to", "3", "--map", "b").stderr)


def test_tags_and_described_versions_fit_a_narrow_terminal() -> None:
    lines = [line.plain for line in tag_rows([CANARY, MAIN], 40)]
    assert max(map(len, lines)) <= 40
    versions = [PAY | {"version": 3, "description": "a longer story " * 9}, PAY | {"version": 2}]
    assert max(len(line.plain) for line in version_rows(versions, 40)) <= 40
