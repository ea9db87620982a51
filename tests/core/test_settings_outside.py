"""The settings of what is outside say what they are for, and refuse what does not fit."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from msgspec import Meta

from baton.core.deployment import Channels, ModelEndpoints, Outside


@pytest.mark.parametrize("group", [Channels, ModelEndpoints, Outside])
def test_each_says_what_it_is_for(group: type) -> None:
    hints = get_type_hints(group, include_extras=True)
    told = {
        name: [one.description for one in hint.__metadata__ if isinstance(one, Meta)]
        for name, hint in hints.items()
    }
    assert told
    assert [name for name, words in told.items() if not any(words)] == []
