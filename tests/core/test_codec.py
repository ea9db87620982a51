"""An entry comes out of the log as it went in, or is refused with the reason; nothing is guessed.

Unknown kinds and newer formats are one error (a newer version wrote them), broken bytes another.
"""

from __future__ import annotations

import json
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.log import events as ev
from baton.core.log.codec import TAGS, decode_entry, encode_entry, node_in
from baton.core.log.events import FORMAT, Entry
from baton.errors import CorruptLog, UnknownEntry
from tests.core.build import ENTRIES, FEWEST, PROPERTY, entry, of_struct
from tests.kit.sentences import Says

CANCEL = ev.CancelRequested(reason="r", by="ada", at=1, grace_ms=2)
BYTES = encode_entry(entry(3, CANCEL))


def changed(**fields: object) -> bytes:
    return json.dumps(json.loads(BYTES) | fields).encode()


def test_an_event_says_nothing_of_what_its_kind_has_no_field_for() -> None:
    event = ev.GaveUp()
    assert (event.emits, event.ask, event.tool, event.child, event.callback) == ((), None, "", "", "")
    assert (event.lasting, event.instead, event.goes_on, event.leads_on) == (False, "", False, False)


@given(ENTRIES)
@PROPERTY
def test_every_entry_comes_back_as_it_was(written: Entry) -> None:
    assert decode_entry(encode_entry(written)) == written


@pytest.mark.no_cover
@pytest.mark.parametrize("first", range(10))
def test_each_kind_comes_back_as_it_was(first: int) -> None:
    @given(st.tuples(*map(of_struct, typing.get_args(ev.Event)[first::10])))
    @FEWEST
    def check(events: tuple[ev.Event, ...]) -> None:
        assert decode_entry(encode_entry(entry(1, *events))).events == events

    check()


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len(TAGS) == len(typing.get_args(ev.Event))


@given(ENTRIES)
@PROPERTY
def test_the_format_is_always_written_and_comes_first(written: Entry) -> None:
    data = encode_entry(written)
    assert data.startswith(b'{"format":%d,' % FORMAT)
    assert json.loads(data)["format"] == FORMAT
    assert data.count(b'"format":%d,"version"' % FORMAT) == 1


def test_an_entry_is_compact() -> None:
    assert b": " not in BYTES
    assert b"cold" not in BYTES  # what has its default value is not written


def test_an_entry_of_a_newer_format_is_refused_as_such(says: Says) -> None:
    with says.raised(UnknownEntry):
        decode_entry(encode_entry(entry(1, CANCEL, format=2)))


def test_a_newer_format_is_recognised_even_where_its_shape_is_another() -> None:
    with pytest.raises(UnknownEntry, match="format 7"):
        decode_entry(b'{"format":7,"everything":"is different","events":{"not":"a list"}}')


def test_an_entry_of_an_older_format_is_refused_as_long_as_no_code_reads_it() -> None:
    with pytest.raises(UnknownEntry, match="format 0"):
        decode_entry(changed(format=0))


def test_an_unknown_kind_is_refused_by_its_name() -> None:
    with pytest.raises(UnknownEntry, match="dreamt"):
        decode_entry(changed(events=[{"kind": "saga_ended", "status": "failed"}, {"kind": "dreamt"}]))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(BYTES[:-1], id="cut off"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"format":"2"}', id="a format that is no number"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(changed(version="three"), id="a field of another type"),
        pytest.param(changed(events=[{"at": 1}]), id="an event without a kind"),
        pytest.param(changed(events=[{"kind": "resumed"}]), id="an event without a field it must have"),
        pytest.param(BYTES.replace(b'"ada"', b'"\xff"'), id="text that is not UTF-8"),
        pytest.param(
            changed(events=[{"kind": "saga_ended", "status": "failed", "output": {"v": 0}}]).replace(
                b'"v": 0', b'"v": ' + b"[" * 5_000 + b"]" * 5_000
            ),
            id="nested deeper than anyone reads",
        ),
    ],
)
def test_broken_bytes_are_a_corrupt_log(data: bytes) -> None:
    with pytest.raises(CorruptLog):
        decode_entry(data)


def test_a_field_that_this_version_does_not_know_is_passed_over() -> None:
    """Adding an optional field keeps the format, so older readers must live with it."""
    assert decode_entry(changed(mood="good")) == decode_entry(BYTES)


@pytest.mark.parametrize(
    ("data", "node"),
    [
        (b'{"format":9,"events":[{"kind":"dreamt"},{"kind":"dreamt","node":"pay","at":1}]}', "pay"),
        (b'{"events":[{"kind":"saga_ended"}]}', ""),
        (b'{"events":[]}', ""),
        (b"{", ""),
        (b"\xff", ""),
        (b'{"events":[{"node":7}]}', ""),
    ],
)
def test_the_node_of_an_entry_is_found_though_the_entry_cannot_be_read(data: bytes, node: str) -> None:
    assert node_in(data) == node
