"""The names that users have, wherever one comes from: a claim of a token, or an event."""

from __future__ import annotations

import re
from typing import Final

USER_SHAPE: Final = "a user is 1 to 640 letters, digits and `_.:@/+=|,-`"
USER_PATTERN: Final = "[A-Za-z0-9_.:@/+=|,-]{1,640}"  # as long as the ARN of a user with the longest path
_USER = re.compile(USER_PATTERN)


def is_user(name: object) -> bool:
    """Tell whether a user can have this name."""
    return isinstance(name, str) and _USER.fullmatch(name) is not None
