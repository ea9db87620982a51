"""Python conditions for the sandbox's contract: those that authors write, and those that mean harm.

Code, the data it gets and what has to come of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

LIMITS: Final = frozenset({"condition_timeout", "condition_memory"})
FAILS: Final = frozenset({"condition_error"})
TIME: Final = frozenset({"condition_timeout"})
MEMORY: Final = frozenset({"condition_memory"})


@dataclass(frozen=True)
class Case:
    """`wanted` is a boolean, or the codes one of which it fails with."""

    code: str
    wanted: bool | frozenset[str | bool]
    says: str = ""
    output: Any = None
    context: Any = None
    timeout_ms: int = 10_000
    memory_mb: int = 16


def body(text: str) -> str:
    """A function with this body."""
    return "def evaluate(output, context):\n" + "".join(f"    {line}\n" for line in text.splitlines())


def nested(depth: int) -> list[Any]:
    """A list in a list in a list …"""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


ORDINARY: Final = {
    "a comparison": Case(body("return output['score'] >= 80"), True, output={"score": 81}),
    "a comparison that does not hold": Case(
        body("return output['score'] >= 80"), False, output={"score": 79}
    ),
    "growth": Case(
        body(
            "now = output.get('revenue', 0)\n"
            "before = context.get('last_month', {}).get('output', {}).get('revenue', 0)\n"
            "growth = (now - before) / before if before > 0 else 0\n"
            "if growth > 0.2 and output.get('churn', 1) < 0.05:\n"
            "    return True\n"
            "return False"
        ),
        True,
        output={"revenue": 130, "churn": 0.01},
        context={"last_month": {"output": {"revenue": 100}}},
    ),
    "helpers and constants": Case(
        "LIMIT = 3\n\ndef long(word):\n    return len(word) > LIMIT\n\n"
        + body("return any(long(word) for word in output)"),
        True,
        output=["one", "three"],
    ),
    "modules": Case(
        "import math, re, json\nfrom datetime import datetime\n"
        + body(
            "when = datetime.fromisoformat(output['at'])\n"
            "return bool(re.search(r'^a+$', output['id'])) and math.floor(2.5) == 2 and when.year == 2026"
        ),
        True,
        output={"at": "2026-11-22T10:00:00+00:00", "id": "aaa"},
    ),
    "sorting and sums": Case(
        body(
            "rows = sorted(output, key=lambda r: -r['n'])\nreturn rows[0]['n'] == 3 and sum(r['n'] for r in rows) == 6"
        ),
        True,
        output=[{"n": 1}, {"n": 3}, {"n": 2}],
    ),
    "a mistake that is caught": Case(
        body("try:\n    return output['no'] > 1\nexcept KeyError:\n    return False"), False, output={}
    ),
    "nothing at all": Case(body("return output is None and context == {}"), True, context={}),
    "a class": Case(
        "class Order:\n    def __init__(self, total):\n        self.total = total\n"
        "    def large(self):\n        return self.total > 10\n" + body("return Order(output).large()"),
        True,
        output=11,
    ),
    "large and exact numbers": Case(body("return output + 1 == 9007199254740994"), True, output=2**53 + 1),
    "text of any alphabet": Case(body("return output == 'Grüße, 世界 🎉'"), True, output="Grüße, 世界 🎉"),
    "a thousand rows": Case(
        body("return len({row['id'] for row in output if row['price'] > 0.5}) == 999"),
        True,
        output=[{"id": i, "price": float(i), "tags": ["a", "b"]} for i in range(1000)],
    ),
    "inputs that are changed": Case(
        body("output.clear()\noutput['x'] = 1\nreturn len(output) == 1"), True, output={"a": 1}
    ),
    "a print": Case(body("print('looking at', output)\nreturn True"), True),
    "a comment at its end": Case("def evaluate(output, context): return True  # so be it", True),
}

MISTAKES: Final = {
    "a syntax error": Case("x = 1\nx = = 2\n", frozenset({"condition_invalid"}), "line 2"),
    "what this Python lacks": Case("class A(dict):\n    pass\n", frozenset({"condition_invalid"}), "line 1"),
    "no function": Case("x = 1\n", frozenset({"condition_invalid"}), "evaluate(output, context)"),
    "a function of one": Case("def evaluate(output):\n    return True\n", frozenset({"condition_invalid"}), "evaluate(output, context)"),
    "no function but a number": Case("evaluate = 5\n", frozenset({"condition_invalid"}), "evaluate(output, context)"),
    "an exception": Case(body("\nreturn output['a'] > 1"), FAILS, "line 3: KeyError: a", output={}),
    "an exception of a helper": Case("def f(x):\n    return 1 / x\n" + body("return f(0)"), FAILS, "line 2: ZeroDivisionError"),
    "an exception at the top": Case("x = 1\ny = [][x]\n", FAILS, "line 2: IndexError"),
    "a number": Case(body("return 1"), frozenset({"condition_not_boolean"}), "int"),
    "a text": Case(body("return 'yes'"), frozenset({"condition_not_boolean"}), "str"),
    "nothing": Case(body("output"), frozenset({"condition_not_boolean"}), "None"),
    "a coroutine": Case("async " + body("return True"), frozenset({"condition_not_boolean"}), "coroutine"),
    "an error named like a limit": Case(body("raise TimeoutError('mine')"), FAILS, "line 2: TimeoutError: mine"),
    "data too deep": Case(body("return True"), FAILS, "the data cannot be passed", output=nested(250)),
    "data too large": Case(body("return True"), MEMORY, "2 MB", output="x" * 3_000_000, memory_mb=2),
}  # fmt: skip

_SHORT: Final = 150
_TREE: Final = "a = []\nfor _ in range(60):\n    a = [a, a]\n"

HOSTILE: Final = {
    # time
    "an endless loop": Case(body("while True: pass"), TIME, timeout_ms=_SHORT),
    "an endless loop at the top": Case("while True: pass\n", TIME, timeout_ms=_SHORT),
    "a loop that catches everything": Case(
        body("while True:\n    try:\n        while True: pass\n    except BaseException: pass"), TIME, timeout_ms=_SHORT
    ),
    "a loop inside the interpreter": Case(body("return sum(iter(int, 1)) > 0"), TIME, timeout_ms=_SHORT),
    "a sum without end": Case(body("return sum(range(10**15)) > 0"), TIME, timeout_ms=_SHORT),
    "a binomial": Case("import math\n" + body("return math.comb(10**7, 10**6) > 0"), LIMITS, timeout_ms=_SHORT),
    "a pattern that backtracks": Case(
        "import re\n" + body("return re.match('(a|aa)+$', 'a' * 60 + 'b') is None"), TIME | FAILS | {True}, timeout_ms=_SHORT
    ),
    "a pattern that nothing stops": Case(
        "import re\n" + body("return re.search('(?=(a+))a*b', 'a' * 100_000) is None"), TIME, timeout_ms=_SHORT
    ),
    "a product that nothing stops": Case(
        body("return 3 ** 8_000_000 * 7 ** 8_000_000 > 0"), TIME, timeout_ms=_SHORT
    ),
    "a flood of prints": Case(body("while True: print('x' * 1000)"), TIME, timeout_ms=_SHORT),
    "a long sleep": Case("import time\n" + body("time.sleep(3600)\nreturn True"), FAILS, "time.sleep"),
    # memory
    "a bomb of texts": Case(body("a = []\nwhile True: a.append('x' * 1000)"), MEMORY),
    "a bomb that catches everything": Case(
        body("a = []\nwhile True:\n    try:\n        while True: a.append('x' * 1000)\n    except BaseException: pass"),
        LIMITS, timeout_ms=2_000,
    ),
    "a large text": Case(body("return len('x' * 10**10) > 0"), MEMORY),
    "a large power": Case(body("return 9 ** 9 ** 9 > 0"), MEMORY),
    "a large shift": Case(body("return 1 << 10**10 > 0"), MEMORY),
    "a wide format": Case(body("return f'{1:>10000000000}' == ''"), MEMORY | FAILS),
    "a list of everything": Case(body("return len([i for i in range(10**12)]) > 0"), MEMORY),
    "a text that doubles": Case(body("x = 'x'\nwhile True: x = x + x"), MEMORY),
    "a dictionary of everything": Case(body("return dict.fromkeys(range(10**12)) == {}"), MEMORY),
    "text that replaces itself": Case(body("x = 'ab'\nwhile True: x = x.replace('a', x)"), MEMORY),
    # depth
    "recursion": Case(body("return evaluate(output, context)"), FAILS, "RecursionError"),
    "recursion through a library": Case(
        "def f(n):\n    return sorted([1, 2], key=lambda x: f(n + 1))[0]\n" + body("return f(0)"), FAILS, "RecursionError"
    ),
    "two deep lists": Case(
        body("a, b = [], []\nfor _ in range(50000): a, b = [a], [b]\nreturn a == b"), FAILS | MEMORY
    ),
    "deep source": Case("x = " + "(" * 50_000, frozenset({"condition_invalid"}), "nested"),
    "deep source at run time": Case(body("return eval('-' * 50000 + '1')"), FAILS, "nested"),
    # the machine
    "an environment": Case("import os\n" + body("return os.environ != {}"), FAILS, "os.environ"),
    "a variable": Case("import os\n" + body("return bool(os.getenv('AWS_SECRET_ACCESS_KEY'))"), FAILS | {False}),
    "a file": Case(body("return open('/etc/passwd').read() != ''"), FAILS, "PermissionError"),
    "a file by its path": Case("import pathlib\n" + body("return pathlib.Path('/etc/passwd').exists()"), FAILS | {False}),
    "a file that is written": Case(body("open('/tmp/baton', 'w').write('x')\nreturn True"), FAILS, "PermissionError"),
    "a process": Case("import subprocess\n" + body("return True"), FAILS, "ModuleNotFoundError"),
    "a command": Case("import os\n" + body("return os.system('true') == 0"), FAILS, "system"),
    "a socket": Case("import socket\n" + body("return True"), FAILS, "ModuleNotFoundError"),
    "a library of C": Case("import ctypes\n" + body("return True"), FAILS, "ModuleNotFoundError"),
    "a thread": Case("import threading\n" + body("return True"), FAILS, "ModuleNotFoundError"),
    "the engine": Case("import baton\n" + body("return True"), FAILS, "ModuleNotFoundError"),
    "an import by a function": Case(body("return __import__('os') is not None"), FAILS, "__import__"),
    "a walk over classes": Case(body("return ().__class__.__bases__[0].__subclasses__() != []"), FAILS, "__class__"),
    "a walk over functions": Case(body("return evaluate.__globals__ != {}"), FAILS, "__globals__"),
    "a walk by name": Case(body("return getattr('', '__cl' + 'ass__') is not None"), FAILS, "__class__"),
    "the time": Case("import time\n" + body("return time.time() > 0"), FAILS, "time.time"),
    "an exit": Case("import sys\n" + body("sys.exit()"), FAILS),
    "an exit by an exception": Case(body("raise SystemExit"), FAILS, "SystemExit"),
    "an interrupt": Case(body("raise KeyboardInterrupt"), FAILS, "KeyboardInterrupt"),
    # what comes back
    "a result of any size": Case(body(_TREE + "return a"), frozenset({"condition_not_boolean"}), "list"),
    "a result at the top": Case(_TREE + "return a\n", frozenset({"condition_invalid"}), "evaluate(output, context)"),
    "an answer at the top": Case("return True\n", frozenset({"condition_invalid"}), "evaluate(output, context)"),
    "a long error": Case(body("raise ValueError('x' * 1000000)"), FAILS, "line 2: ValueError: xxx"),
    "a name of any length": Case(
        "class Name:\n    __name__ = 'x' * 100000\n\ndef type(_): return Name()\n" + body("return 1"),
        frozenset({"condition_not_boolean", "condition_error"}),
    ),
    "a result that says it is true": Case(
        "class Yes:\n    def __bool__(self): return True\n    def __eq__(self, other): return True\n" + body("return Yes()"),
        frozenset({"condition_not_boolean"}), "Yes",
    ),
    "names of the runner": Case(
        "_baton = _baton_data = _baton_code = None\n" + body("return True"), frozenset({"condition_invalid"})
    ),
    "a list in itself": Case(body("a = []\na.append(a)\nreturn a"), frozenset({"condition_not_boolean"}), "list"),
    "names without end": Case(
        body("while True:\n    try: nowhere\n    except NameError: pass"), FAILS, "suspension limit"
    ),
}  # fmt: skip
