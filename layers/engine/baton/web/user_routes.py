"""The routes about users and their money: rows of the table in routes.py."""

from __future__ import annotations

from typing import Any

from baton.core.outside.users import USER_PATTERN, USER_SHAPE
from baton.web import commands, reads
from baton.web.bodies.user_requests import UserBody, UserLimitBody
from baton.web.parameters import words
from baton.web.route import CURSOR, Route

_USER = words(
    "user", USER_PATTERN, USER_SHAPE, "Only this user, also one of whom nothing is known.", example="ada"
)

USERS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/users", id="listUsers", handler=reads.list_users, roles=("operate",),
        summary="Users with what they have spent today, and what an operator has decided about each.",
        query=(_USER, CURSOR), answers={200: "UserPage"},
    ),
    Route(
        method="POST", path="/users/block", id="blockUser", handler=commands.block_user, roles=("operate",),
        summary="Block a user: no saga of that user starts, and none goes on to spend. Repeated, it changes nothing.",
        body=UserBody, answers={202: "User"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/users/unblock", id="unblockUser", handler=commands.unblock_user, roles=("operate",),
        summary="Unblock a user. Repeated, it changes nothing.",
        body=UserBody, answers={202: "User"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/users/limit", id="limitUser", handler=commands.limit_user, roles=("operate",),
        summary="Give one user a limit of the day in the place of that of all users, or that of all users again.",
        body=UserLimitBody, answers={202: "User"}, refusals=(409,),
    ),
)  # fmt: skip
