"""Secrets that are known by what is said around them: command lines, protocols, statements, card numbers. For sanitise.py.

The group of each expression is the secret. Names with a value are in sanitise.py, secrets that have a shape of their
own in shapes.py. Every expression begins at a fixed text or a boundary and reads on for so many characters and no
further.
"""

from __future__ import annotations

import re
from typing import Final

from baton.core.failures.shapes import REDACTED, is_secret

_WORD = r"""[^\s"'`,;|&<>()\[\]]"""
# Between two arguments: spaces, or `', '` of a list.
_NEXT = r"""(?:[ \t]{1,4}|["'],[ ]{0,4}["'])"""
_QUOTED = r"""\\{0,4}["']?"""
# Looks like a password and not like a word: letters and digits.
LIKELY: Final = rf"(?={_WORD}{{0,64}}[0-9])(?={_WORD}{{0,64}}[A-Za-z])"

_DATABASES = r"mysql\w{0,20}|mariadb[\w-]{0,20}"  # their `-p` alone asks for the password
_OTHERS = r"sshpass|mongo\w{0,12}|cqlsh|7za?|7zr|rar|unrar"
_LOGINS = r"(?:docker|podman|helm registry|oras|crane|az|cf|oc|nerdctl|buildah)[ ]login"


def _command(names: str, options: str, between: str = f"(?:{_NEXT}|=)?", before: str = "") -> str:
    """The value of an option of these programs, in the same line."""
    return (
        rf"(?<![\w-])(?:{names})(?![\w-])[^\r\n|;&]{{0,200}}?(?<=[\s\"'])(?:{options}){between}"
        rf"{_QUOTED}{before}(?!-)({_WORD}{{1,256}}+)"
    )


# Each with texts of which one is in every text that it can be found in, in lower case.
PLACES: Final = tuple(
    (marks, re.compile(expression, flags))
    for marks, expression, flags in (
        # What pydantic quotes of a value, whose field may be named anything.
        (("input_value=",), r"input_value=((?s:.{1,200}?)(?=,[ ]input_type=)|[^\r\n]++)", 0),
        # Command lines.
        (("mysql", "mariadb"), _command(_DATABASES, "-p", "=?"), 0),
        (("-p",), _command(_OTHERS, "-p"), 0),
        (("login",), _command(_LOGINS, "-p"), 0),
        (("-p",), rf"(?<![^\s\"'])-p{_QUOTED}{LIKELY}({_WORD}{{6,256}}+)", 0),
        (("zip",), _command("(?:un)?zip", "-P"), 0),
        (("redis-cli",), _command("redis-cli", "-a"), 0),
        (("ldap",), _command(r"ldap\w{1,12}", "-w"), 0),
        (("smb", "rpcclient"), _command("smbclient|smbmap|rpcclient", "-U|--user", before=r"[^\s%]{1,64}+%"), 0),
        (("curl", "wget", "http"), rf"(?<![^\s\"'])-u{_QUOTED}(?=[\w.@+-]{{1,64}}:)({_WORD}{{3,256}}+)", 0),
        # Files of passwords.
        (
            ("password", "passwd"),
            r"(?<![\w-])(?:login|account|machine)\s{1,8}\S{1,128}\s{1,16}(?:account\s{1,8}\S{1,128}\s{1,16})?passw(?:or)?d\s{1,8}(\S{1,256}+)",
            re.IGNORECASE,
        ),
        ((":5432:", ":5433:", ":6432:", ":*:"), rf"(?<![\w.:-])[\w.*-]{{1,128}}:(?:5432|5433|6432|\*):[\w.*-]{{1,64}}:[\w.*-]{{1,64}}:({_WORD}{{1,256}}+)", 0),
        # Statements and protocols.
        (
            ("identified",),
            rf"identified\s{{1,8}}(?:with\s{{1,8}}\S{{1,64}}\s{{1,8}})?(?:by|as)\s{{1,8}}(?:password\s{{1,8}})?{_QUOTED}({_WORD}{{1,256}}+)",
            re.IGNORECASE,
        ),
        (("passw",), r"""passw(?:or)?d\(\\{0,4}(["'])((?:[^"'\\]|\\.){1,256}+)""", re.IGNORECASE),
        (("requirepass", "masterauth"), rf"(?:requirepass|masterauth)\s{{1,8}}{_QUOTED}({_WORD}{{1,256}}+)", re.IGNORECASE),
        (
            ("AUTH ",),
            rf"(?<![\w-])AUTH[ ](?:(?:PLAIN|LOGIN|X?OAUTH2|OAUTHBEARER|CRAM-MD5|\w{{1,64}}(?=[ ]{_WORD}{{0,64}}[0-9]))[ ])?(?!X?OAUTH|CRAM-|SCRAM-){LIKELY}({_WORD}{{4,512}}+)",
            0,
        ),
        (("PASS ",), rf"(?<![\w-])USER[ ][^\r\n]{{1,128}}[\r\n]{{1,4}}[^\w\r\n]{{0,8}}PASS[ ]({_WORD}{{1,256}}+)", 0),
        (("LOGIN ",), rf"(?<![\w-])LOGIN[ ]{_QUOTED}[^\s\"']{{1,128}}{_QUOTED}[ ]{_QUOTED}{LIKELY}({_WORD}{{1,256}}+)", 0),
        # Hashes of passwords.
        (("$",), r"(?<![\w$])(\$(?:1|2[abxy]?|5|6|7|y|apr1|argon2(?:id?|d)|scrypt|pbkdf2[\w-]{0,16})\$[\w./$,=+-]{16,512}+)", 0),
    )
)  # fmt: skip

# A field of a form: its name, then a line without anything, then its value.
FIELD: Final = re.compile(
    r"""name=\\{0,4}["']([\w.\[\]-]{1,64})\\{0,4}["'][^\r\n\\]{0,100}(?:(?:\r?\n|\\r\\n)[^\r\n\\]{1,200}){0,3}(?:\r?\n|\\r\\n){2}([^\r\n\\]{1,512}+)"""
)
# What pydantic and FastAPI list of a value: beside its `loc`.
INPUT: Final = re.compile(r"""\\{0,4}["']input\\{0,4}["']\s{0,4}:\s{0,8}""")

CARD: Final = re.compile(
    r"(?<![A-Za-z0-9])(?<![0-9][.,])(?:[0-9]{14,19}|[0-9]{4}([ .-])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{4}|[0-9]{6}\1[0-9]{4,5}))(?![A-Za-z0-9])"
)
_ISSUED = re.compile(
    "4[0-9]{15}(?:[0-9]{3})?|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    "|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|35[0-9]{14}|6[0-9]{15,18}"
)


def is_card(text: str) -> bool:
    """Whether it begins as the numbers of cards do, and its last digit is the one that checks the others."""
    number = "".join(filter(str.isdigit, text))
    if not _ISSUED.fullmatch(number):
        return False
    digits = [int(digit) for digit in reversed(number)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0


# What is said before the name of it: `'x' is too long … schema['properties']['password']`, `assert 'x' == 'y' (password)`.
_JUDGED = re.compile(r"""(?<!\w)(["'])([^"'\r\n]{1,400}+)\1(?= (?:is|was|does|has)\b)""")
_KEYS = re.compile(r"\['([\w.-]{1,60}+)'\]")
_ASSERTED = re.compile(r"^[^\r\n]*?\bassert\b[^\r\n]*+$", re.MULTILINE)
_TEXT = re.compile(r"""(["'])([^"'\r\n]{1,400}+)\1""")
_BRACKETED = re.compile(r"\(([\w.-]{1,60}+)\)")


def without_judged(text: str) -> str:
    """Without the values that a schema or an assertion judges whose name it says afterwards."""
    if "Failed validating" in text and any(is_secret(key) for key in _KEYS.findall(text)):
        text = _JUDGED.sub(lambda match: f"{match[1]}{REDACTED}{match[1]}", text)
    if "assert" not in text:
        return text
    return _ASSERTED.sub(_asserted, text)


def _asserted(match: re.Match[str]) -> str:
    if not any(is_secret(name) for name in _BRACKETED.findall(match[0])):
        return match[0]
    return _TEXT.sub(lambda quoted: f"{quoted[1]}{REDACTED}{quoted[1]}", match[0])
