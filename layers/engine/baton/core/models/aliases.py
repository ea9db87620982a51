"""Aliases: names that models give to a parameter of a tool in the place of its own.

Equal mismatches are counted until they propose an alias; an operator, or a setting, approves it. An alias is
of one tenant, and is applied only to arguments that a model has written. It is without effect while the tool
has a parameter of the given name, or no longer has the other one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from baton.core.conditions.schema import violations
from baton.core.expressions import closest

COUNTED, PROPOSED, APPROVED, REJECTED = "counted", "proposed", "approved", "rejected"
STATUSES = (COUNTED, PROPOSED, APPROVED, REJECTED)
ENOUGH: Final = 5
"""Number of equal mismatches that propose an alias, and of sagas that approve it by the setting."""
MOST_ALIASES: Final = 50
BY_SETTING: Final = "AliasApproval"
"""Value of `by` in an alias that no operator has approved."""
_is_name = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}").fullmatch


class Alias(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The name `given` by models to a `parameter` of a tool.

    `seen`: the mismatches, each as `SAGA CALL`. `by`, at `at`: the operator who decided; empty: of the last
    mismatch.
    """

    tool: str
    given: str
    parameter: str
    status: str = COUNTED
    seen: tuple[str, ...] = ()
    by: str = ""
    at: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the alias without what is known of it."""
        return self.tool, self.given, self.parameter

    def is_rival(self, other: Alias) -> bool:
        """Return true if it is approved, and `other` is of the same name for another parameter."""
        return self.status == APPROVED and self.key[:2] == other.key[:2] and self.key != other.key

    @property
    def sagas(self) -> tuple[str, ...]:
        """Return the sagas with a mismatch."""
        return tuple(dict.fromkeys(one.partition(" ")[0] for one in self.seen))


def useless_because(alias: Alias, parameters: Mapping[str, Any]) -> str:
    """Return the reason why an alias has no effect on a tool with these parameters; empty if it has."""
    known = parameters.get("properties", {})
    if alias.given in known:
        return f"`{alias.tool}` has a parameter `{alias.given}`"
    return "" if alias.parameter in known else f"`{alias.tool}` has no parameter `{alias.parameter}`"


def renamed(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments with other names for some; the order stays."""
    return {names.get(name, name): value for name, value in arguments.items()}


def names_for(
    aliases: Sequence[Alias], tool: str, parameters: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the parameter for each given name of a call that has an approved alias."""
    names: dict[str, str] = {}
    for one in aliases:
        if one.tool != tool or one.status != APPROVED or one.given not in arguments:
            continue
        if one.parameter in arguments or one.parameter in names.values():
            continue
        if not useless_because(one, parameters):
            names[one.given] = one.parameter
    return names


def mismatch(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name that is given and the parameter that is meant, of a call that is not valid.

    A call has a mismatch if it has one argument that the tool does not take, and is valid once that has the
    name of the one required parameter that is missing or, if none is, of the optional one with the most
    similar name.
    """
    known = parameters.get("properties", {})
    strange = [name for name in arguments if name not in known]
    missing = [name for name in parameters.get("required", ()) if name not in arguments]
    if len(strange) != 1 or len(missing) > 1 or not _is_name(strange[0]):
        return None
    given = strange[0]
    meant = missing[0] if missing else closest(given, (name for name in known if name not in arguments))
    if not meant or violations(parameters, renamed(arguments, {given: meant})):
        return None
    return given, meant


def count_mismatch(
    aliases: Sequence[Alias],
    found: tuple[str, str, str],
    saga: str,
    call: str,
    now: int,
    *,
    approves: bool,
) -> Sequence[Alias]:
    """Return the aliases with one more mismatch (`found`: tool, given name, parameter); the same object if
    it changes nothing.

    A call counts once. An alias is proposed by so many calls; the setting (`approves`) approves it only
    after so many sagas, so that no saga can do it alone.
    """
    index = next((number for number, one in enumerate(aliases) if one.key == found), None)
    tool, given, parameter = found
    one = Alias(tool=tool, given=given, parameter=parameter) if index is None else aliases[index]
    mine = f"{saga} {call}"
    is_enough = len(one.seen) >= ENOUGH
    if one.status not in (COUNTED, PROPOSED) or mine in one.seen:
        return aliases
    if is_enough and (not approves or saga in one.sagas or len(one.sagas) >= ENOUGH):
        return aliases
    one = replace(one, seen=(*one.seen, mine), at=now)
    if len(one.seen) >= ENOUGH:
        one = replace(one, status=PROPOSED)
    if approves and not any(other.is_rival(one) for other in aliases) and len(one.sagas) >= ENOUGH:
        one = replace(one, status=APPROVED, by=BY_SETTING)
    if index is not None:
        return (*aliases[:index], one, *aliases[index + 1 :])
    kept = tuple(_with_room(aliases))
    return (*kept, one) if len(kept) < MOST_ALIASES else aliases


def _with_room(aliases: Sequence[Alias]) -> Iterator[Alias]:
    """Yield the aliases without the oldest one that is only counted, if there is no room for another."""
    oldest = min((one for one in aliases if one.status == COUNTED), key=lambda one: one.at, default=None)
    for one in aliases:
        if len(aliases) < MOST_ALIASES or one is not oldest:
            yield one
