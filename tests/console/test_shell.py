"""Commands that a page shows can be pasted: only the reader's own token and key are left to the shell."""

from __future__ import annotations

import shlex

from baton.console.rendering import commands


def test_a_word_of_another_author_is_quoted_whatever_it_ends_with() -> None:
    hostile = '; "$(touch /tmp/x)" $(uuidgen)'
    line = commands("http://127.0.0.1", "/sagas", ["saga", hostile]).splitlines()[0]
    assert shlex.quote(hostile) in line


def test_the_token_and_a_new_key_are_filled_in_by_the_readers_shell() -> None:
    line = commands(
        "http://127.0.0.1", "/sagas", ["start", "a"], {"workflow": "a"}, has_key=True
    ).splitlines()[1]
    assert '-H "Authorization: Bearer $BATON_TOKEN"' in line
    assert '-H "Idempotency-Key: $(uuidgen)"' in line
