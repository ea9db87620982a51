"""Rules for failures that can do nothing: codes that no failure has, and strategies that are in no ladder.

`retry`, `on_failure`, and the codes of `failover` and `catch`. The names of tools, hints and hooks are in failing.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from baton.core.documents.compile.analysis.handling import rules_of
from baton.core.failures.codes import CLASSES, CODES, UNTRIED, class_of
from baton.core.failures.misspelt import near
from baton.core.failures.policy import ANY, Change, Rules
from baton.core.failures.strategies.ladder import entry_of, ladder_of
from baton.core.failures.strategies.registry import END, STRATEGIES
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.definition import NodeModel, WorkflowModel
    from baton.core.documents.parts.failing import RetryModel

_OWN = ""
"""Any code of a tool's own."""


def check(source: Source) -> Iterator[Problem]:
    """The rules of the document and of each node."""
    yield from _level(source, "", source.model, source.tasks)
    for name, node in source.nodes.items():
        # A child may have failed with any code, and rules of its node are asked about that.
        is_tried = not source.kinds[name].starts(node)
        names = (name,) if source.tool(name) else ()
        yield from _level(source, f"/nodes/{name}", node, names, is_tried=is_tried)
        for index, rule in enumerate(node.catch):
            at = "" if len(node.catch) == 1 else f"/{index}"
            place = f"/nodes/{name}/catch{at}/code"
            problems = list(_codes(place, rule.code, is_tried=False))
            yield from problems or _never(source, name, place, rule.code)
    for place, policy, _ in source.policies:
        yield from _codes(f"{place}/when/code", policy.when.code)


def _level(
    source: Source,
    at: str,
    said: NodeModel | WorkflowModel,
    names: Sequence[str],
    *,
    is_tried: bool = True,
) -> Iterator[Problem]:
    if said.retry is not None:
        problems = list(_retry(f"{at}/retry", said.retry, is_tried=is_tried))
        change = rules_of(said.retry, {})[ANY]
        yield from problems or _idle(source, f"{at}/retry", ANY, change, names, is_whole=True)
    for code, reaction in said.on_failure.items():
        place = f"{at}/on_failure/{code}"
        problems = list(strange_code(place, code, (*CLASSES, ANY), is_tried=is_tried))
        if reaction.retry is not None:
            problems += _retry(f"{place}/retry", reaction.retry, is_tried=is_tried)
        change = rules_of(None, {code: reaction})[code]
        yield from problems or _idle(source, place, code, change, names)


# ---- codes -----------------------------------------------------------------------------------------------------


def _retry(place: str, retry: RetryModel, *, is_tried: bool) -> Iterator[Problem]:
    yield from _codes(f"{place}/on", retry.on or (), CLASSES, is_tried=is_tried)
    yield from _codes(f"{place}/never", retry.never or (), CLASSES, is_tried=is_tried)


def _codes(
    place: str, codes: Sequence[str], more: Collection[str] = (), *, is_tried: bool = True
) -> Iterator[Problem]:
    for index, code in enumerate(codes):
        where = place + (f"/{index}" if len(codes) > 1 else "")
        yield from strange_code(where, code, more, is_tried=is_tried)


def strange_code(place: str, code: str, more: Collection[str], *, is_tried: bool = True) -> Iterator[Problem]:
    """A code that no failure has, or (`is_tried`) no failure of an attempt. `more` are the names that may stand there, too."""
    if code in UNTRIED and is_tried:
        yield Problem(
            place,
            f"no attempt fails with `{code}`, so nothing can be tried again, done another way or asked about it",
            "`catch` says where it goes on from such a failure",
        )
    elif code in CLASSES and code not in (*CODES, *more):
        yield Problem(
            place, f"`{code}` is a class, and no failure has it as its code", f"write `class: {code}`"
        )
    elif code == ANY and code not in more:
        yield Problem(place, "no failure has the code `any`", "leave it out, or name classes and codes")
    elif meant := near(code, more):
        yield Problem(place, f"no failure has the code `{code}`", f"did you mean `{meant}`?")


def _never(source: Source, name: str, place: str, codes: Sequence[str]) -> Iterator[Problem]:
    """Codes with which a node of this kind never fails."""
    for index, code in enumerate(codes):
        if said := source.kinds[name].never_fails_with(code):
            yield Problem(place + (f"/{index}" if len(codes) > 1 else ""), *said)


# ---- strategies --------------------------------------------------------------------------------------------------


def _idle(
    source: Source, place: str, code: str, change: Change, names: Sequence[str], *, is_whole: bool = False
) -> Iterator[Problem]:
    """What a rule says of strategies that none of its failures comes to, at any of these nodes."""
    for below, strategy in _of_strategies(change):
        ladders = (ladder for name in names for ladder in _ladders(source, name, code))
        has = next(ladders, None)
        if has is None or strategy in has or any(strategy in ladder for ladder in ladders):
            continue
        right = [name for name in STRATEGIES if name in (*has, strategy)]
        where = "on_failure: {any: [%s]}" if is_whole else "ladder: [%s]"
        yield Problem(
            place if is_whole else place + below,
            f"this can do nothing: what is done about such a failure is {', '.join(has) or END.name}, and never {strategy}",
            f"write `{where % ', '.join(right)}`, or leave this out",
        )


def _of_strategies(change: Change) -> Iterator[tuple[str, str]]:
    """(place, strategy) of what is said of one. An `at_most` is kept to where the strategy is never used, too."""
    for name, strategy in STRATEGIES.items():
        yield from ((f"/{field}", name) for field in strategy.only_for(change))


def _ladders(source: Source, name: str, code: str) -> Iterator[tuple[str, ...]]:
    """What is done at a node about each failure that a rule with this code, class or `any` is for."""
    node = source.nodes[name]
    spec = source.tools.get(source.tool(name))
    said = (source.failures, rules_of(node.retry, node.on_failure))
    for one, kind in _failures(code, said):
        yield ladder_of(entry_of(one, kind, spec.domain if spec is not None else "", said), one)


def _failures(code: str, said: Sequence[Rules]) -> Iterator[tuple[str, str]]:
    """(code, class) of the failures that a rule is for. A code of a tool's own may be of any class."""
    own, kinds, known = {code}, tuple(CLASSES), [code] if code in CODES else []
    if code == ANY or code in CLASSES:
        kinds = (code,) if code in CLASSES else kinds
        own = {
            _OWN,
            *(one for rules in said for name, change in rules.items() for one in (name, *_on(change))),
        }
        known = [one for one in CODES if one not in UNTRIED and class_of(one) in kinds]
    yield from ((one, kind) for one in sorted(own - CODES.keys()) for kind in kinds)
    yield from ((one, class_of(one)) for one in known)


def _on(change: Change) -> Sequence[str]:
    """The codes that a rule has tried again."""
    return (change.retry.on or ()) if change.retry is not None else ()
