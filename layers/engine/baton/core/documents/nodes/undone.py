"""Inverses of a node in a graph, from `compensate` or from the declarations of the tools.

The shape of `compensate` is in parts/failing.py.
An inverse that a tool names itself needs no permission of the document, as its `verify` needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.documents.parts.failing import NONE, CompensateModel
from baton.core.effects.inverses import arguments_of, lacks_in_doubt, misfit_of_inverse
from baton.core.effects.toolspec import CALL, IDEMPOTENT, Approval, ToolSpec
from baton.core.expressions import Path, duration_text, expressions_in
from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.core.graph.graph import Node, Undo
from baton.core.limits import LONGEST_INVOCATION_MS
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.nodes.base import Compiler


def undo_problems(
    compiler: Compiler, place: str, model: CompensateModel | None, spec: ToolSpec
) -> Iterator[Problem]:
    """Yield the problems of `compensate` at a node whose tool is `spec`.

    Its expressions are checked together with all others.
    """
    if model is None or model.tool == NONE:
        return
    if model.tool is not None:
        problems = list(
            compiler.exists(f"{place}/tool" if model.model_fields_set != {"tool"} else place, model.tool)
        )
        if problems:
            yield from problems
            return
    elif not spec.undo:
        yield Problem(
            place,
            f"`{spec.name}` names no tool that undoes it",
            "name the `tool`, or write `compensate: none`",
        )
        return
    inverse = compiler.tools.get(model.tool or spec.undo)
    if inverse is None:
        return  # its author is told when the tools are loaded
    given = model.with_ if model.with_ is not None else arguments_of(inverse, spec)
    if model.in_doubt == CALL and (why := lacks_in_doubt(given, spec)):
        yield Problem(
            f"{place}/in_doubt",
            f"`{inverse.name}` {why}",
            "write `in_doubt: ask`, or arguments that name `step.input` alone, or also `step.key` if the tool takes `context`",
        )
    if model.with_ is not None:
        yield from compiler.fits(f"{place}/with", model.with_, inverse)
    elif why := misfit_of_inverse(inverse, spec):
        yield Problem(place, why, "write its arguments under `with`, such as `${step.output.id}`")
    if (model.timeout or inverse.timeout_ms) > LONGEST_INVOCATION_MS:
        longest = duration_text(LONGEST_INVOCATION_MS)
        yield Problem(
            f"{place}/timeout",
            f"no attempt can last longer than an invocation, {longest}",
            "write a shorter time",
        )


def only_none(place: str, model: CompensateModel | None, why: str) -> Iterator[Problem]:
    """Yield the problem of `compensate` at a node whose parts declare their own inverses."""
    if model is not None and model.tool != NONE:
        yield Problem(
            place, f"no other tool takes it back: {why}", "write `compensate: none`, or leave it out"
        )


def undos(
    compiler: Compiler,
    kind: str,
    name: str,
    spec: ToolSpec,
    model: CompensateModel | None = None,
    others: Iterable[str] = (),
) -> dict[str, Undo]:
    """Return the inverse of the work of a node, by tool that may do the work.

    `others`: tools that are called in place of its own.
    """
    if not compiler.undoes or (model is not None and model.tool == NONE):
        return {}
    found = {}
    for tool in sorted({spec.name, *others}):
        said = model if tool == spec.name else None
        acting = compiler.tools.get(tool)
        inverse = compiler.tools.get(
            (said.tool if said is not None else None) or (acting.undo if acting else "")
        )
        if acting is not None and inverse is not None:
            usual = RetryChange(max_attempts=compiler.limits.undo_attempts, budget_ms=compiler.limits.undo_ms)
            found[tool] = undo_of(kind, name, acting, inverse, said, usual)
    return found


def undo_of(
    kind: str,
    name: str,
    acting: ToolSpec,
    inverse: ToolSpec,
    model: CompensateModel | None,
    retry: RetryChange,
) -> Undo:
    """Return the inverse step at node `name`, which calls `inverse` for what `acting` has done.
    `retry`: its attempts where the document says nothing.
    """
    if model is not None and model.retry is not None:
        said = model.retry.change()
        fields = {key: value for key in said.__struct_fields__ if (value := getattr(said, key)) is not None}
        retry = said if said.preset else replace(retry, **fields)
    given = model.with_ if model is not None and model.with_ is not None else arguments_of(inverse, acting)
    asks = Approval(by_tool=inverse.requires_approval, risk=inverse.risk) if inverse.may_ask else None
    step = Node(
        name=name,
        kind=kind,
        tool=inverse.name,
        tool_version=inverse.version,
        schema_hash=inverse.schema_hash,
        effect=inverse.effect,
        domain=inverse.domain,
        arguments=given,
        timeout_ms=(model.timeout if model is not None else None) or inverse.timeout_ms,
        failures={ANY: PolicyChange(last=FAIL, retry=retry)},
        approval=asks,
        timed=bool(inverse.key.window_ms),
    )
    read = [
        path.steps[0]
        for _, path in expressions_in(dict(given))
        if isinstance(path, Path) and path.root == "step"
    ]
    return Undo(
        step=step, keeps=_kept(given), in_doubt=_in_doubt(acting, inverse, model, read), keyed="key" in read
    )


def _in_doubt(acting: ToolSpec, inverse: ToolSpec, model: CompensateModel | None, read: list[Any]) -> str:
    """Return `call` where the inverse is called although
    it is not known whether there is something to undo.
    """
    if said := (model.in_doubt if model is not None else None) or acting.in_doubt:
        return CALL if said == CALL and "output" not in read else ""
    is_harmless = all(
        one.effect == IDEMPOTENT and not one.cost and not one.may_ask for one in (acting, inverse)
    )
    return CALL if is_harmless and "key" in read and "output" not in read else ""


def _kept(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the arguments of the undone step that expressions name; None for all,
    if the input is named as a whole.
    """
    found = set[str]()
    for _, path in expressions_in(dict(given)):
        if isinstance(path, Exception) or path.root != "step" or path.steps[0] != "input":
            continue
        if len(path.steps) == 1:
            return None
        found.add(str(path.steps[1]))
    return tuple(sorted(found))
