"""Contract of `Definitions`."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.log.records import TENANT_PAUSED, WORKFLOW_PAUSED, Parked
from baton.ports.records import Tag, TagMove
from tests.contract.stores import Stores, a_definition

PAUSE = Parked(code=WORKFLOW_PAUSED, message="the shop moves", at=5_000, by="ann")


def test_a_definition_reads_back_as_it_was_registered(stores: Stores) -> None:
    assert stores.definitions.put(a_definition())
    assert stores.definitions.get("acme", "dinner", 1) == a_definition()
    more: dict[str, Any] = {"mcp": True, "description": "a higher limit"}
    with_rules = a_definition(version=2, types=("paid",), past=("placed", "shipped"), **more)
    assert stores.definitions.put(with_rules)
    assert stores.definitions.get("acme", "dinner", 2) == with_rules
    heard = (("paid", "${event.data.order}", 90_000), ("placed", "${event.id}", 80_000))
    for version, types in ((3, ()), (4, ("shipped",))):
        with_earlier = a_definition(version=version, types=types, heard=heard)
        assert stores.definitions.put(with_earlier)
        assert stores.definitions.get("acme", "dinner", version) == with_earlier


def test_a_version_is_registered_once_and_the_first_one_stays(stores: Stores) -> None:
    stores.definitions.put(a_definition())
    assert not stores.definitions.put(a_definition(graph="other"))
    assert not stores.definitions.put(a_definition())
    assert stores.definitions.get("acme", "dinner", 1) == a_definition()


def test_without_a_version_the_newest_is_found(stores: Stores) -> None:
    for version in (1, 2, 9, 10, 100):
        assert stores.definitions.put(a_definition(version=version))
    assert stores.definitions.get("acme", "dinner") == a_definition(version=100)
    assert stores.definitions.get("acme", "dinner", 9) == a_definition(version=9)


def test_what_was_never_registered_is_not_found(stores: Stores) -> None:
    stores.definitions.put(a_definition())
    assert stores.definitions.get("acme", "dinner", 2) is None
    assert stores.definitions.get("acme", "lunch") is None
    assert stores.definitions.get("globex", "dinner") is None


def test_the_names_of_a_tenant_are_sorted_and_each_is_there_once(stores: Stores) -> None:
    for name, version in (("lunch", 1), ("dinner", 1), ("dinner", 2), ("Brunch", 1), ("zoo", 1)):
        stores.definitions.put(a_definition(name, version))
    stores.definitions.put(a_definition("supper", tenant="globex"))
    assert stores.definitions.names("acme") == ["Brunch", "dinner", "lunch", "zoo"]
    assert stores.definitions.names("globex") == ["supper"]


def test_a_tenant_without_definitions_has_no_names(stores: Stores) -> None:
    assert stores.definitions.names("acme") == []


def test_a_name_that_begins_like_another_is_another(stores: Stores) -> None:
    stores.definitions.put(a_definition("dinner", 7))
    stores.definitions.put(a_definition("dinner-late", 1))
    assert stores.definitions.get("acme", "dinner") == a_definition("dinner", 7)


def test_names_come_in_pages(stores: Stores) -> None:
    for name in ("brunch", "dinner", "lunch", "supper"):
        stores.definitions.put(a_definition(name))
    assert stores.definitions.names("acme", limit=2) == ["brunch", "dinner"]
    assert stores.definitions.names("acme", "dinner", 5) == ["lunch", "supper"]
    assert stores.definitions.names("acme", "eve", 1) == ["lunch"], "a page goes on after a name that is gone"


def test_versions_are_the_newest_first_and_no_more_than_asked_for(stores: Stores) -> None:
    for version in range(1, 13):
        stores.definitions.put(a_definition(version=version))
    assert [found.version for found in stores.definitions.versions("acme", "dinner", 3)] == [12, 11, 10]
    assert stores.definitions.versions("acme", "lunch", 3) == []


def test_pauses_are_written_on_the_version_that_was_seen(stores: Stores) -> None:
    definitions = stores.definitions
    assert not definitions.write_pauses(a_definition(), [PAUSE]), "it is not there"
    definitions.put(a_definition())
    assert definitions.write_pauses(a_definition(), [PAUSE])
    paused = a_definition(pauses=(PAUSE,))
    assert definitions.get("acme", "dinner") == paused
    assert not definitions.write_pauses(a_definition(), []), "another has written since"
    both = (PAUSE, msgspec.structs.replace(PAUSE, code=TENANT_PAUSED))
    assert definitions.write_pauses(paused, both)
    assert definitions.write_pauses(a_definition(pauses=both), [])
    assert definitions.get("acme", "dinner", 1) == a_definition()


def test_version_0_is_written_without_a_document_and_is_in_no_list(stores: Stores) -> None:
    none = a_definition("/", 0, graph="", document="", by="")
    assert stores.definitions.write_pauses(none, [PAUSE])
    assert stores.definitions.get("acme", "/") == msgspec.structs.replace(none, pauses=(PAUSE,))
    assert not stores.definitions.write_pauses(none, [PAUSE])
    assert stores.definitions.names("acme") == []


def a_tag(writes: int = 1, *versions: int, name: str = "main", workflow: str = "dinner") -> Tag:
    moves = tuple(TagMove(version=one, by="ann", at=5_000 + one, reason="tried") for one in versions or (3,))
    return Tag(tenant="acme", workflow=workflow, name=name, writes=writes, moves=moves)


def test_a_tag_reads_back_with_its_moves_and_is_of_its_workflow_alone(stores: Stores) -> None:
    definitions = stores.definitions
    assert definitions.tag("acme", "dinner", "main") is None
    assert definitions.tags("acme", "dinner") == []
    for one in (a_tag(), a_tag(name="canary"), a_tag(workflow="dinner-late", name="beta")):
        assert definitions.write_tag(one)
    assert definitions.tag("acme", "dinner", "main") == a_tag()
    assert definitions.tags("acme", "dinner") == [a_tag(name="canary"), a_tag()]
    assert definitions.tag("globex", "dinner", "main") is None


def test_a_tag_is_written_by_one_who_has_seen_its_last_write(stores: Stores) -> None:
    definitions = stores.definitions
    assert not definitions.write_tag(a_tag(2)), "it is not there"
    assert definitions.write_tag(a_tag(1, 3))
    assert not definitions.write_tag(a_tag(1, 4)), "another has written it first"
    assert definitions.write_tag(a_tag(2, 4, 3))
    assert not definitions.write_tag(a_tag(2, 5, 3)), "it lands late"
    assert definitions.tag("acme", "dinner", "main") == a_tag(2, 4, 3)


def test_a_tag_is_no_version(stores: Stores) -> None:
    stores.definitions.put(a_definition())
    stores.definitions.write_tag(a_tag())
    assert stores.definitions.versions("acme", "dinner", 5) == [a_definition()]
    assert stores.definitions.names("acme") == ["dinner"]
