"""sanitised(text): the text without the secrets in it, everything else as it was.

What a secret looks like, and which names stand before one, is in shapes.py. A secret is known by its shape (a JWT, an
AWS key), by its place (in a URL, behind `Bearer`, said.py) or by the name before it (`password=…`, `"api_key": "…"`),
also where these are encoded (disguises.py). What has none of these, such as 32 hexadecimal digits alone, looks like
any other id and stays. The time grows with the length of the text and not faster.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import lru_cache
from itertools import pairwise

from baton.core.failures.disguises import undisguised
from baton.core.failures.said import CARD, FIELD, INPUT, PLACES, is_card, without_judged
from baton.core.failures.shapes import PAIRS, PROSE, REDACTED, SHAPES, STEM, is_secret

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_MOST_USERINFO = 512
_LAYERS = 3  # of encodings, one around the other

_NAME = re.compile(r"\w[\w.\-]*+")
# From a name to its value: `=`, `: `, `" : "`, `', '` of a pair, `\": \"` inside of another text, `>` of a tag; with marks of
# emphasis around it, as in `**Password:** x`.
_TO_VALUE = re.compile(
    r"""(?P<close>\\{0,4}["'`][\])]?)?+[*_~]{0,3}+\s{0,4}+
        (?: (?: =>|-{1,3}>|~>|[→⇒]|:=|!?={1,3}|[:：﹕]{1,2}|＝ ) (?: [*_~]{1,3}+(?=[\s`"']) )?+ \s{0,8}+
          | (?(close) [,;]\s{0,4}+(?=[bru]?\\{0,4}["'\[]) | (?!) )
        )
        (?P<prefix>[bru]{1,2}(?=\\{0,4}["']))?+""",
    re.VERBOSE,
)
# `{"name": "db_password", "value": "…"}` and `<add key="password" value="…"/>`.
_BESIDE = re.compile(
    r"""\\{0,4}["']\s{0,4}+,?\s{0,4}+\\{0,4}["']?(?i:value)\\{0,4}["']?\s{0,4}+[:=]\s{0,4}+"""
)
# `name: db_password` and `value: …` in the next line; a cell of a table behind that of its name.
_BELOW = re.compile(r"[ \t]{0,4}+\r?\n[ \t]{0,40}+(?:- )?(?i:value)[ \t]{0,4}+[:=][ \t]{0,4}+")
_CELL = re.compile(r"\s{0,4}+</[A-Za-z]{1,20}>\s{0,40}+<[A-Za-z]{1,20}(?:\s[^<>]{0,100})?>\s{0,8}+(?=[^\s<])")
_CDATA = re.compile(r"\s{0,8}+<!\[CDATA\[")
# What a validator has got, said behind the name: `password: expected a string of 20, got 'x'`.
_GOT = re.compile(
    r"[^\r\n\"'`]{0,80}?\b(?:got|received|given|actual|found|was|value|input)\b:?\s{1,2}(?=[\"'`])",
    re.IGNORECASE,
)
_SAID = re.compile(r"""\s{1,4}+(?:(?:is|was|are)\s{1,4}+)?(?=\\{0,4}["'`])|\s{1,4}+(?:is|was)\s{1,4}+""")
# A word with letters and digits, alone or in brackets, behind a word for passwords: `password [hunter2] was refused`.
_SPOKEN = re.compile(
    r"\s{0,4}+(?:(?:equals|(?:re)?set\sto|changed\s(?:to|from))\s{1,4}+)?(?:[\[(<|]\s{0,4}+|(?<=\s))(?=[^\s\])>]{0,64}[0-9])(?=[^\s\])>]{0,64}[A-Za-z])(?=[^\s\])>]{6})"
)
_PASSWORDS = re.compile("(?:pass(?:word|wd|phrase|code|wort)|passwords|pwd|kennwort)$", re.IGNORECASE)
_TAG = re.compile("[^<>]{0,200}>")
_BLOCK = re.compile(r"[|>][+-]?[0-9]?[ \t]{0,4}\r?\n(?:[ \t]{1,40}[^\r\n]*+(?:\r?\n|$))++")
# The same in one line, or escaped; and the tag of a value.
_FOLDED = re.compile(r"(?:[|>][+-]?[0-9]?|!{1,2}[\w:/.-]{1,40}+)(?:\s|\\{1,4}[rn]){1,12}+")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,60}\((?=[bru]?\\{0,4}[\"'])[bru]?")
# No number, and no word that may stand for something else: at least two of lower case, upper case and digits or signs.
_ECHOED = re.compile(r"(?=.*[A-Za-z])(?=.*(?:[0-9!#$%&*+?@^~]|[a-z][A-Z]))[^\s\[\]]{6,200}")
_MOST_ECHOES = 16
_TRIPLE = re.compile("\"{3}|'{3}")
_OPTION = re.compile(r"[ \t]{1,4}+(?=[^\s-])")
_DASHES = re.compile(r"--$|(?:^|[\s\"'])-$")
_QUOTE = re.compile(r"""(\\{0,4})(["'`])""")
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\]|\\.)*+", re.DOTALL) for quote in "\"'`"}
_DRAWN = re.compile(r"""["'`]?([\w+/=.~-]{16,128}+)""")
_LINE = re.compile(r"[^\r\n]*+")
_BARE = re.compile(
    r"""(?:[^\s"'`&;<>]|&(?![\w.%-]{1,40}=)|;(?![ ]{0,2}[\w.%-]{1,40}(?:[ ][\w.%-]{1,20})?[ ]{0,2}=)|<(?!/))*+"""
)
_SCHEMED = re.compile(
    r"(?:(?:bearer|basic|digest|token|apikey|negotiate|ntlm|hmac|aws4-hmac-sha256|sharedkey)[ \t]{1,4}+)?+",
    re.IGNORECASE,
)
_LISTED = re.compile("seed|recovery|mnemonic", re.IGNORECASE)
_SPACED = re.compile("pass|phrase|mnemonic", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]{}]")
_TO_EOL = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})

_SCHEME = re.compile(
    r"(?<![A-Za-z0-9])(bearer|basic)(\s{1,4}+|\s?[:=]\s?)(?=[\w.~+/=-]{6})([\w.~+/=-]++)", re.IGNORECASE
)
_LOGIN = re.compile(
    r"(?<![\w.%+:-])[\w.%+-]{1,64}+:[^\s@:/\"']{1,128}+@(?=tcp\(|unix\(|localhost\b|[0-9]{1,3}\.[0-9]{1,3}\.|[\w.-]{1,128}:[0-9])"
)
_USER = re.compile(r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,2}+(?=[^\s:]{1,128}:)[\"']?([^\s\"']++)")
_LONG = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9_-]{24,}+(?![+/])|[A-Za-z0-9+/]{40}={0,2}(?![A-Za-z0-9+/=_-]))"
)
_SEGMENT = re.compile("[A-Za-z0-9]++")
_LONGEST_RANDOM, _SHORTEST_RANDOM, _AWS = 512, 16, 40


@lru_cache(maxsize=1)
def _shapes() -> re.Pattern[str]:
    return re.compile("|".join(SHAPES))


def sanitised(text: str) -> str:
    """The text with `[redacted]` in place of every secret. What is sanitised once stays as it is.

    A text that hides a secret by an encoding comes back decoded; every other keeps its encodings.
    """
    clean = plain = _masked(text)
    for _ in range(_LAYERS):
        before, plain = plain, undisguised(plain)
        if plain == before:
            break
        masked = _masked(plain)
        if masked != plain:
            clean = plain = masked
    return clean


def _masked(text: str) -> str:
    """The text without the secrets that stand in it as they are."""
    text = _without_keys(text)
    text = _shapes().sub(REDACTED, text)
    text = _without_userinfo(text)
    text = _without_said(text)
    text = without_judged(_without_named(text))
    text = _SCHEME.sub(_credentials, text)
    text = _USER.sub(lambda match: match[0].replace(match[1], REDACTED), text)
    text = _LOGIN.sub(f"{REDACTED}@", text)
    text = CARD.sub(lambda match: REDACTED if is_card(match[0]) else match[0], text)
    return _LONG.sub(lambda match: REDACTED if _is_random(match[0]) else match[0], text)


# ---- by what is said around it -------------------------------------------------------------------------------------


def _without_said(text: str) -> str:
    lower = text.lower()
    for marks, expression in PLACES:
        if any(mark.lower() in lower for mark in marks):
            text = expression.sub(_last_group, text)
    if "name=" in lower:
        text = FIELD.sub(lambda match: _last_group(match) if is_secret(match[1]) else match[0], text)
    return _without_inputs(text) if "'loc" in lower or '"loc' in lower else text


def _last_group(match: re.Match[str]) -> str:
    assert match.lastindex is not None
    start, end = (at - match.start() for at in match.span(match.lastindex))
    return match[0][:start] + REDACTED + match[0][end:]


def _without_inputs(text: str) -> str:
    parts, position = [], 0
    while found := INPUT.search(text, position):
        start, end = _span(text, found.end())
        parts += [text[position:start], REDACTED if start < end else ""]
        position = end
    return "".join((*parts, text[position:]))


# ---- by shape and place --------------------------------------------------------------------------------------------


def _without_keys(text: str) -> str:
    """Without private keys; of one that is cut off, nothing stays."""
    parts, position = [], 0
    while begin := _PEM_BEGIN.search(text, position):
        end = _PEM_END.search(text, begin.end())
        parts += [text[position : begin.start()], REDACTED]
        position = end.end() if end else len(text)
    return "".join((*parts, text[position:]))


_AUTHORITY = re.compile(r"[^\s\"'`<>/?#\\]*+")


def _without_userinfo(text: str) -> str:
    """Without what stands before the `@` of a URL. The password may hold a `/` that is not escaped."""
    parts, position, found = [], 0, text.find("://")
    while found >= 0:
        start = found + 3
        authority = _AUTHORITY.match(text, start)
        assert authority is not None
        end = text.rfind("@", start, authority.end())
        if end < 0 and _has_password(authority[0]):
            window = text[start : start + _MOST_USERINFO].split(None, 1)
            end = start + window[0].rfind("@") if window and "@" in window[0] else -1
        if end >= 0:
            parts += [text[position:start], REDACTED]
            position = end
        found = text.find("://", max(authority.end(), end))
    return "".join((*parts, text[position:]))


def _has_password(authority: str) -> bool:
    """Whether what stands behind the colon is no port."""
    _, colon, port = authority.partition(":")
    return bool(colon and port) and not port.isdecimal() and "[" not in authority


def _credentials(match: re.Match[str]) -> str:
    scheme, space, value = match.groups()
    word = value.rstrip(".").lower()
    if word in PROSE or (scheme.lower() == "basic" and not _is_login(value)):
        return match[0]
    return f"{scheme}{space}{REDACTED}"


def _is_login(value: str) -> bool:
    """Whether it is `user:password` in base64."""
    try:
        return b":" in b64decode(value.rstrip(".=") + "=" * (-len(value.rstrip(".=")) % 4))
    except ValueError:
        return False


def _is_random(value: str) -> bool:
    """Whether a long word looks drawn by lot: letters of both cases and digits, one kind hardly ever after the same.

    Hashes and UUIDs have letters of one case only, and names in camel case change less often.
    """
    if not _SEGMENT.fullmatch(value[:_AWS]) and len(value.rstrip("=")) == _AWS and _has_all(value):
        return True  # the secret key of AWS: forty characters of base64
    segments = _SEGMENT.findall(value[:_LONGEST_RANDOM])
    longest = max(segments, key=len, default="")
    if len(longest) < _SHORTEST_RANDOM or not _has_all(longest):
        return False
    pairs = [pair for segment in segments for pair in pairwise(map(_kind, segment))]
    return 100 * sum(one != other for one, other in pairs) >= 45 * len(pairs)


def _has_all(value: str) -> bool:
    return {"a", "A", "0"} <= set(map(_kind, value))


def _kind(character: str) -> str:
    return "a" if character.islower() else "A" if character.isupper() else "0"


# ---- by the name before it -----------------------------------------------------------------------------------------


def _without_named(text: str) -> str:
    if not STEM.search(text):
        return text
    parts, values, position, at, before = [], set[str](), 0, 0, (0, 0)
    while name := _NAME.search(text, at):
        at = name.end()
        word, begin = name[0].rstrip(".-"), name.start()
        last, before = before, (begin, at)
        if not STEM.search(word):
            continue
        if (
            begin == last[1] + 1
            and text[last[1]] == " "
            and (text[last[0] : last[1]].lower(), word.lower().strip("_")) in PAIRS
        ):
            word, begin = text[last[0] : at].rstrip(".-"), last[0]
        span = _value_of(text, word, begin, begin + len(word))
        if span is not None:
            start, at = span
            if start < at:
                parts += [text[position:start], REDACTED]
                values.add(text[start:at].rstrip(",;.!"))
                position = at
    return _without_echoes("".join((*parts, text[position:])), values)


def _without_echoes(text: str, values: set[str]) -> str:
    """Without the values that have been found beside their names and stand somewhere else, too."""
    distinct = sorted(filter(_ECHOED.fullmatch, values), key=len, reverse=True)[:_MOST_ECHOES]
    if not distinct:
        return text
    either = "|".join(map(re.escape, distinct))
    return re.sub(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])", REDACTED, text)


def _value_of(text: str, word: str, begin: int, end: int) -> tuple[int, int] | None:
    """Where the value of a name begins and ends; None when it is no secret, or has none."""
    if not is_secret(word):
        return _value_of_key(text, word, end)
    if beside := _BESIDE.match(text, end) or _BELOW.match(text, end):
        return _span(text, beside.end())
    if cell := _CELL.match(text, end):
        return cell.end(), _until(text, "<", cell.end())
    if to_value := _TO_VALUE.match(text, end):
        start = to_value.end()
        if _QUOTE.match(text, start):
            return _span(text, start)
        if text.startswith(";", begin - 1):  # one of the settings of a connection string
            return start, _until(text, ";", start)
        if block := _BLOCK.match(text, start):
            return start, len(text[: block.end()].rstrip())
        if folded := _FOLDED.match(text, start):
            return _span(text, folded.end())
        if word.lower() in _TO_EOL or (to_value["close"] is None and _is_line(text, word, begin)):
            return start, _end_of_line(text, begin, start)
        return _span(text, start) if to_value[0].strip().endswith(("=", "=>")) else _unless_prose(text, start)
    if text[begin - 1 : begin] in {"<", ":"} and (tag := _TAG.match(text, end)):
        if cdata := _CDATA.match(text, tag.end()):
            return cdata.end(), _until(text, "]]>", cdata.end())
        return tag.end(), _until(text, "<", tag.end())
    return _value_said(text, word, begin, end)


def _value_said(text: str, word: str, begin: int, end: int) -> tuple[int, int] | None:
    """The value behind a name and a space: of an option, or of a sentence."""
    if _DASHES.search(text, max(begin - 3, 0), begin) and (option := _OPTION.match(text, end)):
        return _span(text, option.end())
    if said := _SAID.match(text, end):
        return _unless_prose(text, said.end())
    if _PASSWORDS.search(word) and (spoken := _SPOKEN.match(text, end)):
        return _span(text, spoken.end())
    return None


def _unless_prose(text: str, begin: int) -> tuple[int, int] | None:
    """What begins here, unless it is a word of a sentence about secrets: `the password is required`."""
    start, end = _span(text, begin)
    if text[start:end].strip("\"'`.,;:!?()").lower() not in PROSE:
        return start, end
    got = _GOT.match(text, end)
    return _span(text, got.end()) if got else None


def _value_of_key(text: str, word: str, end: int) -> tuple[int, int] | None:
    """`key` alone is the name of many things; its value is a secret if it looks like one."""
    to_value = _TO_VALUE.match(text, end) if word.lower() == "key" else None
    found = _DRAWN.match(text, to_value.end()) if to_value else None
    if found is None or not (any(map(str.isdecimal, found[1])) and any(map(str.isupper, found[1]))):
        return None
    return found.span(1)


def _is_line(text: str, word: str, begin: int) -> bool:
    """Whether it is a line of its own, as in YAML, of what can have spaces in it, or a list of words wherever it is."""
    if _LISTED.search(word):
        return True
    start = begin
    while start and text[start - 1] in " \t-" and begin - start < 40:
        start -= 1
    is_first = start == 0 or text[start - 1] in "\r\n"
    return is_first and text.startswith(":", begin + len(word)) and bool(_SPACED.search(word))


def _end_of_line(text: str, begin: int, start: int) -> int:
    """The end of the line, or of the quotes that the name and its value stand in together."""
    line = _LINE.match(text, start)
    assert line is not None
    quote = text[begin - 1 : begin]
    close = text.find(quote, start, line.end()) if quote and quote in "\"'`" else -1
    return close if close >= 0 else line.end()


def _until(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    return found if found >= 0 else len(text)


def _closed(text: str, start: int) -> int:
    """The end of a list or an object."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] in "[{" else -1
        if not depth:
            return bracket.end()
    return len(text)


def _span(text: str, start: int) -> tuple[int, int]:
    """Where a value begins and ends: in quotes, in brackets, or up to the next space."""
    if text.startswith(REDACTED, start):
        return start + len(REDACTED), start + len(REDACTED)
    if triple := _TRIPLE.match(text, start):
        return triple.end(), _until(text, triple[0], triple.end())
    if call := _CALL.match(text, start):
        start = call.end()
    if quote := _QUOTE.match(text, start):
        inner = quote.end()
        if quote[1]:  # inside of a text that is quoted itself: up to the same, escaped as often
            close = re.compile(r"(?<!\\)" + re.escape(quote[0])).search(text, inner)
            return inner, close.start() if close else len(text)
        closed = _INSIDE[quote[2]].match(text, inner)
        assert closed is not None
        return inner, closed.end()
    if text.startswith(("[", "{"), start):
        return start, _closed(text, start)
    scheme = _SCHEMED.match(text, start)
    assert scheme is not None
    bare = _BARE.match(text, scheme.end())
    assert bare is not None
    return scheme.end(), scheme.end() + len(bare[0].rstrip(")]},.:"))
