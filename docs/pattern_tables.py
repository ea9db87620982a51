"""The table of control-flow patterns: what the documents of tests/patterns say of themselves, beside what Step Functions does.

A pattern with a document there is supported or partly supported, as its `metadata` says; one without is not. The tests
of that folder run each document.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from baton.core.documents.text import parse_document

DOCUMENTS = Path(__file__).parents[1] / "tests/patterns"
_GUIDE = "https://docs.aws.amazon.com/step-functions/latest/dg"
_API = "https://docs.aws.amazon.com/step-functions/latest/apireference"
YES, PARTLY, NOT = "supported", "partly", "not"

# Pages of AWS, by the word that links to them.
PAGES = {
    "Parallel": f"{_GUIDE}/amazon-states-language-parallel-state.html",
    "Choice": f"{_GUIDE}/state-choice.html",
    "Map": f"{_GUIDE}/amazon-states-language-map-state.html",
    "Next": f"{_GUIDE}/concepts-amazon-states-language.html",
    "Succeed": f"{_GUIDE}/amazon-states-language-succeed-state.html",
    "Fail": f"{_GUIDE}/amazon-states-language-fail-state.html",
    "startExecution": f"{_GUIDE}/connect-stepfunctions.html",
    "waitForTaskToken": f"{_GUIDE}/connect-to-resource.html",
    "StopExecution": f"{_API}/API_StopExecution.html",
    "ToleratedFailureCount": f"{_GUIDE}/maprun-fail-threshold.html",
    "semaphore": "https://aws.amazon.com/blogs/compute/controlling-concurrency-in-distributed-systems-using-aws-step-functions/",
}


class Pattern(NamedTuple):
    """One of the 43: its name, what Step Functions does, and for one without a document, why Baton has none.

    `page` is the word of `PAGES` for the page where the claim about Step Functions was read.
    """

    name: str
    step_functions: str
    says: str
    page: str
    why_not: str = ""


_FIRST = "`Parallel` and `Map` go on when all have ended, or fail with the first that fails."
_ALIKE = "Branches are self-contained, and the end of their `Parallel` is the only join."

PATTERNS = (
    Pattern("Sequence", YES, "`Next`.", "Next"),
    Pattern("Parallel Split", YES, "`Parallel`.", "Parallel"),
    Pattern("Synchronization", YES, "`Parallel` goes on when all branches have ended.", "Parallel"),
    Pattern("Exclusive Choice", YES, "`Choice`.", "Choice"),
    Pattern("Simple Merge", YES, "Several states name the same one as `Next`.", "Next"),
    Pattern(
        "Multi-Choice",
        PARTLY,
        "`Choice` takes one way. A `Parallel` whose branches each begin with a `Choice` does it.",
        "Choice",
    ),
    Pattern(
        "Structured Synchronizing Merge",
        PARTLY,
        "By the same `Parallel`, which waits for all its branches.",
        "Parallel",
    ),
    Pattern(
        "Multi-Merge",
        PARTLY,
        "Each branch starts the same state machine with `startExecution`.",
        "startExecution",
    ),
    Pattern("Structured Discriminator", NOT, _FIRST, "Parallel"),
    Pattern(
        "Arbitrary Cycles",
        YES,
        "`Next` names any state of the same level, also an earlier one; not one inside of a branch.",
        "Parallel",
    ),
    Pattern(
        "Implicit Termination",
        YES,
        "Each branch has terminal states of its own; the last one ends it.",
        "Parallel",
    ),
    Pattern(
        "Multiple Instances without Synchronization",
        YES,
        "A `Map` with `startExecution`, which does not wait for the end of what it starts.",
        "startExecution",
    ),
    Pattern(
        "Multiple Instances with a Priori Design-Time Knowledge",
        YES,
        "`Parallel`, or `Map` over a fixed list.",
        "Map",
    ),
    Pattern(
        "Multiple Instances with a Priori Run-Time Knowledge", YES, "`Map` over a list of its input.", "Map"
    ),
    Pattern(
        "Multiple Instances without a Priori Run-Time Knowledge",
        NOT,
        "`Map` has the items that its input has when it begins.",
        "Map",
    ),
    Pattern(
        "Deferred Choice",
        PARTLY,
        "One task with `waitForTaskToken` that any of the events answers, and a `Choice` behind it. All that may answer "
        "have to know the token.",
        "waitForTaskToken",
    ),
    Pattern(
        "Interleaved Parallel Routing",
        NOT,
        "Branches of a `Parallel` run as concurrently as possible.",
        "Parallel",
    ),
    Pattern("Milestone", NOT, "A state does not see in which state another branch is.", "Parallel"),
    Pattern(
        "Cancel Task",
        PARTLY,
        "A branch that fails stops the others of its `Parallel`; Lambda functions that were invoked run on.",
        "Parallel",
    ),
    Pattern("Cancel Case", YES, "`StopExecution`, but for Express workflows.", "StopExecution"),
    Pattern("Structured Loop", YES, "A `Choice` that leads back.", "Choice"),
    Pattern(
        "Recursion",
        PARTLY,
        "`startExecution` takes the ARN of any state machine; the page says nothing of one that starts itself.",
        "startExecution",
    ),
    Pattern(
        "Transient Trigger",
        NOT,
        "A task token can be answered only by a caller that was given it.",
        "waitForTaskToken",
    ),
    Pattern(
        "Persistent Trigger",
        PARTLY,
        "`waitForTaskToken`: the answer is kept. There is no token before the task is reached, so earlier events need a place outside.",
        "waitForTaskToken",
    ),
    Pattern(
        "Cancel Region",
        PARTLY,
        "All branches of a `Parallel` are stopped when one of them fails.",
        "Parallel",
    ),
    Pattern(
        "Cancel Multiple Instance Task",
        PARTLY,
        "All iterations of a `Map` are stopped when one of them fails.",
        "Map",
    ),
    Pattern("Complete Multiple Instance Task", NOT, _FIRST, "Map"),
    Pattern("Blocking Discriminator", NOT, _FIRST, "Parallel"),
    Pattern("Cancelling Discriminator", NOT, _FIRST, "Parallel"),
    Pattern("Structured Partial Join", NOT, _FIRST, "Parallel"),
    Pattern("Blocking Partial Join", NOT, _FIRST, "Parallel"),
    Pattern("Cancelling Partial Join", NOT, _FIRST, "Parallel"),
    Pattern("Generalized AND-Join", NOT, _ALIKE, "Parallel"),
    Pattern(
        "Static Partial Join for Multiple Instances",
        NOT,
        "`ToleratedFailureCount` of a distributed `Map` counts failures, and it goes on when all items have ended.",
        "ToleratedFailureCount",
    ),
    Pattern("Cancelling Partial Join for Multiple Instances", NOT, "As above.", "ToleratedFailureCount"),
    Pattern(
        "Dynamic Partial Join for Multiple Instances",
        NOT,
        "As above.",
        "ToleratedFailureCount",
        "No node adds instances while others run, and a join or a `map` counts; neither asks a condition.",
    ),
    Pattern("Local Synchronizing Merge", NOT, _ALIKE, "Parallel"),
    Pattern("General Synchronizing Merge", NOT, _ALIKE, "Parallel"),
    Pattern(
        "Critical Section",
        PARTLY,
        "AWS shows a `semaphore`: a DynamoDB table, and states that ask it.",
        "semaphore",
    ),
    Pattern(
        "Interleaved Routing",
        NOT,
        "A `Map` with `MaxConcurrency` 1 runs the same steps in the order of its list.",
        "Map",
    ),
    Pattern("Thread Merge", NOT, _ALIKE, "Parallel"),
    Pattern(
        "Thread Split",
        NOT,
        _ALIKE,
        "Parallel",
    ),
    Pattern(
        "Explicit Termination",
        PARTLY,
        "`Fail` and `Succeed` stop the execution. In a branch of a `Parallel`, `Fail` ends all of its branches; no page shows a success that does.",
        "Succeed",
    ),
)


def documents() -> dict[int, tuple[Path, Any]]:
    """By number: the document of a pattern, and what is written there."""
    found = sorted(DOCUMENTS.glob("wcp*.yaml"))
    return {int(path.name[3:5]): (path, parse_document(path.read_text("utf-8")).value) for path in found}


def support(document: Any) -> str:
    return NOT if document is None else str(document["metadata"]["support"])


def pattern_count() -> str:
    """How many patterns each of the two has."""
    known = documents()
    ours = Counter(support(known.get(number, (None, None))[1]) for number in range(1, len(PATTERNS) + 1))
    theirs = Counter(pattern.step_functions for pattern in PATTERNS)
    rows = [
        f"| {who} | {its[YES]} | {its[PARTLY]} | {its[NOT]} |"
        for who, its in (("Baton", ours), ("Step Functions", theirs))
    ]
    return "\n".join(["| | supported | partly | not |", "|---|---|---|---|", *rows])


def pattern_rows() -> str:
    """A row for each pattern."""
    known = documents()
    rows = [
        _row(number, pattern, *known.get(number, (None, None))) for number, pattern in enumerate(PATTERNS, 1)
    ]
    return "\n".join(["| | pattern | Baton | how | Step Functions |", "|---|---|---|---|---|", *rows])


def _row(number: int, pattern: Pattern, path: Path | None, document: Any) -> str:
    level, how = support(document), pattern.why_not
    if path is not None:
        lacking = document["metadata"].get("lacking", "")
        how = " ".join([document["description"], lacking]).strip()
        level = f"[{level}](../tests/patterns/{path.name})"
    theirs = f"{pattern.step_functions}: {pattern.says}".replace(
        f"`{pattern.page}`", f"[`{pattern.page}`]({PAGES[pattern.page]})", 1
    )
    if PAGES[pattern.page] not in theirs:
        theirs += f" ([page]({PAGES[pattern.page]}))"
    return f"| {number} | {pattern.name} | {level} | {how} | {theirs} |"
