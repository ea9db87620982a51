"""sanitised(text): the text without the secrets in it, everything else as it was.

One grammar: a name, the joint between the name and its value, the value. Names are in secret_names.py;
`_JOINT` matches the joint; `_span` finds the end of a value. A secret without a name, such as a JWT or the
password of a URL, is in evident.py.
All secrets are found also in encoded form. A secret without a name or a shape, such as 32 hexadecimal digits
alone, looks like any other id and stays. The time grows linearly with the length of the text: repetitions are
possessive (`++`) or bounded, so that no character is read twice.
"""

from __future__ import annotations

import re
import unicodedata

from baton.core.failures.evident import PROSE, is_random, without_evident
from baton.core.failures.secret_names import REDACTED, STEMS, Named, is_secret, named, two_words

_PERCENT = re.compile("%([2-7][0-9A-Fa-f])")
_ENTITY = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,12});")
_ESCAPE = re.compile(r"\\{1,4}(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_ASCII, _SURROGATES = 128, range(0xD800, 0xE000)
# Cyrillic and Greek letters that look the same as those of names.
_ALIKE = str.maketrans(
    "аеорсухіјѕԁһкмтԛԝАВЕКМНОРСТУХІЈЅοανικρτυχ", "aeopcyxijsdhkmtqwABEKMHOPCTYXIJSoavikptux"
)
# Shows nothing, and is in no category of its own: joiners, fillers, and what selects variants.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | frozenset(
    map(chr, range(0xFE00, 0xFE10))
)


def undisguised(text: str) -> str:
    """Return the text with one layer of encoding removed."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", "".join(filter(_is_seen, text))).translate(_ALIKE)
    if "%" in text:
        text = _PERCENT.sub(lambda match: chr(int(match[1], 16)), text)
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "&" in text:
        from html import unescape  # a large table, which few texts need

        text = _ENTITY.sub(lambda match: unescape(match[0]), text)
    return text


def _is_seen(character: str) -> bool:
    return ord(character) < _ASCII or (character not in _UNSEEN and unicodedata.category(character) != "Cf")


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return match[0] if code in _SURROGATES else chr(code)


_LAYERS = 3  # of encodings, one around the other

_NAME = re.compile(r"\w[\w.\-]*+")
_OPENS = r"""[bru]{0,2}+\\{0,4}+["'`“«„「]"""  # the quotes around a value
# Tags and marks that only lay a text out.
_LAYOUT = r"""(?:\s|</?(?:t[dhr]|d[dtl]|b|i|em|strong|code|span|div|p|pre|kbd|li|label|value|string)\b[^<>]{0,100}>|[*~_]{1,3}(?=[\s`"'])|<!\[CDATA\[)"""
_LINE_END = r"(?:\r?\n|\\r\\n)"
# From a name to its value. The last group says which kind of joint it is.
_JOINT = re.compile(
    rf"""(?P<close>(?: \\{{0,4}}["'`”»」] | [*~_]{{1,3}} | [\])}}] | </[A-Za-z]{{1,20}}> ){{0,6}}+)
    (?: # `=`, `: `, `" : "`, `->`, `: str = "`, `:</td><td>`
        \s{{0,4}}+(?: :\s?[A-Za-z]{{2,12}}\s?=\s?(?=["'`]) | (?P<assign> =>|-{{1,3}}>|~>|[→⇒]|:=|!?={{1,3}}|[:：﹕＝]{{1,2}} ) ) {_LAYOUT}{{0,12}}+
        # `"name": "password", "value": "`, ` value="`, and `value: ` in the next line
      | (?: [\s,;]{{1,8}}+\\{{0,4}}["']?[\w-]{{1,20}}+\\{{0,4}}["']?\s?[:=]\s?\\{{0,4}}["'][^"'\r\n]{{0,40}}+["'] ){{0,3}}?
        (?: [\s,;]{{1,8}}+ | \r?\n[ \t]{{0,40}}(?:-[ ])? ) \\{{0,4}}["']?(?i:value)\\{{0,4}}["']?\s{{0,4}}[:=] (?P<beside>\s{{0,4}}+)
        # `', '` of a pair
      | (?: (?<=["'`]) | (?<=["']\]) ) \s{{0,4}}+ (?P<pair>[,;]) \s{{0,4}}+ (?=[bru]?\\{{0,4}}["'\[])
        # `</td><td>`
      | (?<=>) \s{{0,40}}+ (?: <[A-Za-z]{{1,20}}(?:\s[^<>]{{0,100}})?>\s{{0,8}}+ ){{1,3}}+ (?P<cell>) (?=[^\s<]|<!\[CDATA)
        # `>` of `<property name="password">`, and the rest of a header of a form
      | (?<=["']) \s{{0,4}} (?P<content>>)
      | (?<=["']) [^\r\n\\]{{0,100}}(?:{_LINE_END}[^\r\n\\]{{1,200}}){{0,3}} (?P<form>{_LINE_END}{{2}})
        # ` is `, ` 'x'`
      | :?\s{{1,4}}+(?P<said>is|was|are(?=:?\s{{1,4}}{_OPENS})):?\s{{1,4}}+
      | (?P<quoted>\s{{1,4}}+)(?=[bru]{{0,2}}\\{{0,4}}["'“«„「])
        # Whatever else: ` x`, ` (x`, ` | x`, ` set to x`; the value must look like one
      | (?P<loose>(?:\s{{1,4}}(?:equals|(?:re)?set\sto|changed\s(?:to|from)))? (?:[\s|│;\-–—([<{{`*]|\.(?=[.\s]{{2}})|(?<=\.)\.){{1,24}}+)
    )""",
    re.VERBOSE,
)
_OPTION = re.compile(r"""(?:["'],)?+[ \t]{1,4}+(?=[^\s-])""")
_DASHES = re.compile(r"--$|(?:^|[\s\"'])-$")
_DRAWN = re.compile(r"""["'`]?((?=[^\s"'`]{0,128}[0-9])(?=[^\s"'`]{0,128}[A-Z])[\w+/=.~-]{16,128}+)""")
_TAG = re.compile(r"[^<>]{0,200}>")
_CDATA = re.compile(r"\s{0,8}+<!\[CDATA\[")
_ATTRIBUTE = re.compile(r"""(?:name|key)=\\{0,4}["'][\w ]{0,12}$""")
_PROPERTY = re.compile(r"(?<=-)[DP](?=\w)")  # `java -Ddb.password=x`
# What a validator has got, said behind the name: `password: expected a string of 20, got 'x'`.
_GOT = re.compile(
    r"""[^\r\n"'`]{0,80}?\b(?:got|received|given|actual|found|was|value|input)\b:?\s{1,2}(?=["'`])""",
    re.IGNORECASE,
)
_FIRST = re.compile(r"""[(\[]b?\\{0,4}["'][\w ]{0,20}$""")
_LAST = re.compile(r"""\\{0,4}["']?\s?(?:[)\]]|$)""")
_ALONE = re.compile(
    r"""[|>`"']|(?![\w.-]{1,40}+\s?[:=])\S++[ \t]*+(?:[\r\n]|$)"""
)  # in its line, under its name
_TITLE = re.compile(r"#[ ][^\r\n]{0,20}$")
_SPACE = re.compile(r"\s")
_NO_VALUE = frozenset({"none", "null", "true", "false", "undefined", "nil"})
# `the password was changed` is a sentence, `the password was hunter2` tells it.
_SENTENCE = re.compile(
    r"[a-z]{2,}(?:ed|ing|able|ible|ly|en)|safe|kept|found|lost|too|short|shorter|long|longer|here|there|what|used|about|one|it|its|your|our|their|whole|same|other"
)
_LIKELY = re.compile(r"(?=[^0-9]{0,64}[0-9])(?=[^A-Za-z]{0,64}[A-Za-z]).{6}", re.DOTALL)
_LONGEST_LIKELY = 256

# ---- where a value ends --------------------------------------------------------------------------------------------

_BLOCK = re.compile(r"[|>][+-]?[0-9]?[ \t]{0,4}\r?\n(?:[ \t]{1,40}[^\r\n]*+(?:\r?\n|$))++")  # of YAML
# The same in one line, or escaped; a fence of Markdown; a call around the value: `SecretStr('x')`.
_BEFORE = re.compile(
    rf"""(?:[|>][+-]?[0-9]?(?:\s|\\{{1,4}}[rn]){{1,12}}+|```\w{{0,20}}\r?\n|[A-Za-z_][\w.]{{0,60}}\((?={_OPENS})|\((?={_OPENS}))?[bru]{{0,2}}+(?=\\{{0,4}}["'`])|[|>][+-]?[0-9]?(?:\s|\\{{1,4}}[rn]){{1,12}}+|```\w{{0,20}}\r?\n"""
)
_LONG_QUOTES = re.compile("\"{3}|'{3}|`{2,3}|[“«„「]")
_CLOSING = {"“": "”", "«": "»", "„": "“", "「": "」"}
_QUOTE = re.compile(r"""(\\{0,4})(["'`])""")
_INSIDE = {quote: re.compile(rf"(?:[^{quote}\\]|\\.)*+", re.DOTALL) for quote in "\"'`"}
_LINE = re.compile(r"[^\r\n]*+")
# The tag or anchor of YAML before a value is hidden with it.
_BARE = re.compile(
    r"""(?:!!\w{1,20}+[ \t]|&\w{1,20}+[ \t])?+(?:[^\s"'`&;<>]|&(?![\w.%-]{1,40}=)|;(?![ ]{0,2}[\w.%-]{1,40}(?:[ ][\w.%-]{1,20})?[ ]{0,2}=)|<(?!/))*+"""
)
_SCHEMED = re.compile(
    r"(?:(?:bearer|basic|digest|token|apikey|negotiate|ntlm|hmac|aws4-hmac-sha256|sharedkey)[ \t]{1,4}+)?+",
    re.IGNORECASE,
)
_LISTED = re.compile("seed|recovery|mnemonic", re.IGNORECASE)
_SPACED = re.compile("pass|phrase|mnemonic", re.IGNORECASE)
_LINE_OF_ITS_OWN = re.compile(r"(?:^|[\r\n])[ \t-]{0,40}+$")
_BRACKETS = {"[": re.compile(r"[\[\]]"), "{": re.compile(r"[{}]")}
_TO_EOL = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_ENDS_OF_BARE = ")]},.:"
# No number, and no word that may stand for something else: at least two of lower case, upper case and digits or signs.
_ECHOED = re.compile(r"(?=.*[A-Za-z])(?=.*(?:[0-9!#$%&*+?@^~]|[a-z][A-Z]))[^\s\[\]]{6,200}")
_MOST_ECHOES = 16

# ---- a value before its name ---------------------------------------------------------------------------------------

# `'x' is too long … schema['properties']['password']` and `assert 'x' == 'y' (password)`.
_JUDGED = re.compile(r"""(?<!\w)(["'])([^"'\r\n]{1,400}+)\1(?= (?:is|was|does|has)\b)""")
_KEYS = re.compile(r"\['([\w.-]{1,60}+)'\]")
_ASSERTED = re.compile(r"^[^\r\n]*?\bassert\b[^\r\n]*+$", re.MULTILINE)
_TEXT = re.compile(r"""(["'])([^"'\r\n]{1,400}+)\1""")
_BRACKETED = re.compile(r"\(([\w.-]{1,60}+)\)")


def sanitised(text: str) -> str:
    """Return the text with `[redacted]` in place of every secret. Sanitised text stays as it is.

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
    """Return the text without secrets in plain form."""
    return _without_judged(_without_named(without_evident(text)))


def _without_judged(text: str) -> str:
    """Return the text without the values that a schema or an assertion judges, with their name after them."""
    if "Failed validating" in text and any(map(is_secret, _KEYS.findall(text))):
        text = _JUDGED.sub(_unquoted, text)
    if "assert" in text:
        text = _ASSERTED.sub(
            lambda line: (
                _TEXT.sub(_unquoted, line[0]) if any(map(is_secret, _BRACKETED.findall(line[0]))) else line[0]
            ),
            text,
        )
    return text


def _unquoted(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}{match[1]}"


def _without_named(text: str) -> str:
    lower = text.lower()
    has_inputs = (
        "'loc" in lower or '"loc' in lower
    )  # pydantic's and FastAPI's lists of what is wrong with a request
    if not has_inputs and text.isascii() and not any(map(lower.__contains__, STEMS)):
        return text
    parts, values, position, last = [], set[str](), 0, (0, 0)
    for name in _NAME.finditer(text):
        begin, end = name.span()
        before, last = last, (begin, end)
        if begin < position:
            continue
        word = name[0].rstrip(".-")
        kind = named(word)
        if not kind and _PROPERTY.match(text, begin):
            begin, word = begin + 1, word[1:]
            kind = named(word)
        if begin == before[1] + 1 and text[before[1]].isspace() and two_words(text[slice(*before)], word):
            word, begin, kind = text[before[0] : end], before[0], max(kind, Named.SECRET)
        if not kind:
            if not has_inputs or word != "input" or text[begin - 1 : begin] not in {"'", '"'}:
                continue
            kind = Named.SECRET
        span = _value_of(text, word.rstrip(".-"), begin, kind)
        if span is not None and span[0] < span[1]:
            parts += [text[position : span[0]], REDACTED]
            position = span[1]
            values.add(text[slice(*span)].rstrip(",;.!"))
    return _without_echoes("".join((*parts, text[position:])), values)


def _without_echoes(text: str, values: set[str]) -> str:
    """Return the text without repetitions of the values that were found beside their names."""
    distinct = sorted(filter(_ECHOED.fullmatch, values), key=len, reverse=True)[:_MOST_ECHOES]
    if not distinct:
        return text
    either = "|".join(map(re.escape, distinct))
    return re.sub(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])", REDACTED, text)


def _value_of(text: str, word: str, begin: int, kind: Named) -> tuple[int, int] | None:
    """Return beginning and end of the value of a name; None if it has none, or one that is no secret."""
    end = begin + len(word)
    if kind is not Named.KEY:
        before = text[max(begin - 20, 0) : begin]
        if before.endswith("<") or (before.endswith(":") and "<" in before):
            return _content(text, end)
        if _DASHES.search(before[-3:]) and (option := _OPTION.match(text, end)):
            return _span(text, option.end())
    joint = _JOINT.match(text, end)
    if joint is None:
        return None
    how, start = joint.lastgroup, joint.end()
    if kind is Named.KEY:
        drawn = _DRAWN.match(text, start) if how == "assign" else None
        return drawn.span(1) if drawn else None
    if how in {"assign", "close"}:
        return _assigned(text, word, begin, joint)
    if how == "said" or (how == "quoted" and not joint["close"]):
        return _unless_prose(text, start, is_sentence=how == "said")
    if how in {"cell", "content", "form"}:
        if how != "cell" and not _ATTRIBUTE.search(text, max(begin - 24, 0), begin):
            return None
        return (start, _end_of_line(text, begin, start)) if how == "form" else _content(text, start - 1)
    return _weak(text, begin, kind, joint)


def _weak(text: str, begin: int, kind: Named, joint: re.Match[str]) -> tuple[int, int] | None:
    """Return the value behind a joint that may stand between any two words."""
    start = joint.end()
    if joint["pair"] and _FIRST.search(text, max(begin - 28, 0), begin):
        span = _span(text, start)
        if _LAST.match(text, span[1]):
            return span
    is_title = joint["close"] or _TITLE.search(text, max(begin - 24, 0), begin)
    is_far = "\n" in joint[0] or (kind < Named.PASSWORD and not _SPACE.search(joint[0]))
    if joint["loose"] and is_far and not is_title:
        return None
    is_call = kind is Named.PASSWORD and joint[0] == "(" and _QUOTE.match(text, start)
    if is_call or joint["beside"] is not None:
        return _unless_prose(text, start)
    piece = text[start : start + _LONGEST_LIKELY]  # what is no secret is read again
    value = piece[slice(*_span(piece, 0))].strip(")]>, \r\n\t")
    is_likely = _LIKELY.match(value) if kind is Named.PASSWORD else is_random(value, 10)
    return _span(text, start) if is_likely and not _SPACE.search(value) else None


def _assigned(text: str, word: str, begin: int, joint: re.Match[str]) -> tuple[int, int] | None:
    start = joint.end()
    if "\n" in joint[0] and (text.startswith('"""', start) or not _ALONE.match(text, start)):
        return None  # a block of code, the next name
    if _QUOTE.match(text, start):
        return _span(text, start)
    if text.startswith(";", begin - 1):  # one of the settings of a connection string
        return start, _until(text, ";", start)
    if block := _BLOCK.match(text, start):
        return start, len(text[: block.end()].rstrip())
    if "<![CDATA[" in joint[0]:
        return start, _until(text, "]]>", start)
    is_line = (
        not joint["close"]
        and joint["assign"] == ":"
        and _SPACED.search(word)
        and _LINE_OF_ITS_OWN.search(text, max(begin - 41, 0), begin)
    )
    if word.lower() in _TO_EOL or _LISTED.search(word) or is_line:
        return start, _end_of_line(text, begin, start)
    if joint["assign"] in {"=", "=>", "==", "!=", ":=", "===", "!=="}:
        span = _span(text, start)
        return None if text[slice(*span)].lower() in _NO_VALUE else span
    return _unless_prose(text, start)


def _unless_prose(text: str, begin: int, *, is_sentence: bool = False) -> tuple[int, int] | None:
    """Return the value that begins here, unless it is a word of a sentence about secrets: `the password is
    required`.
    """
    start, end = _span(text, begin)
    word = text[start:end].strip("\"'`.,;:!?()").lower()
    if word not in PROSE and not (is_sentence and start == begin and _SENTENCE.fullmatch(word)):
        return start, end
    got = _GOT.match(text, end)
    return _span(text, got.end()) if got else None


def _content(text: str, end: int) -> tuple[int, int] | None:
    """Return the text behind the end of a tag, up to the next one."""
    tag = _TAG.match(text, end)
    if tag is None:
        return None
    if cdata := _CDATA.match(text, tag.end()):
        return cdata.end(), _until(text, "]]>", cdata.end())
    close = text.find("<", tag.end())
    if close < 0 and text[tag.end() : tag.end() + 1].isspace():
        return None  # `login <user> <password> now`
    return tag.end(), close if close >= 0 else len(text)


def _end_of_line(text: str, begin: int, start: int) -> int:
    """Return the end of the line, or of the quotes that the name and its value share."""
    line = _LINE.match(text, start)
    assert line is not None
    quote = text[begin - 1 : begin]
    close = text.find(quote, start, line.end()) if quote and quote in "\"'`" else -1
    return close if close >= 0 else line.end()


def _until(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    return found if found >= 0 else len(text)


def _closed(text: str, start: int) -> int:
    """Return the end of a list or an object."""
    depth = 0
    for bracket in _BRACKETS[text[start]].finditer(text, start):
        depth += 1 if bracket[0] in "[{" else -1
        if not depth:
            return bracket.end()
    return len(text)


def _span(text: str, start: int) -> tuple[int, int]:
    """Return the beginning and the end of a value: in quotes, in brackets, or up to the next space."""
    if text.startswith(REDACTED, start):
        return start + len(REDACTED), start + len(REDACTED)
    if before := _BEFORE.match(text, start):
        start = before.end()
    if opening := _LONG_QUOTES.match(text, start):
        closing = _CLOSING.get(opening[0], opening[0])
        return opening.end(), _until(text, closing, opening.end())
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
    return scheme.end(), scheme.end() + len(bare[0].rstrip(_ENDS_OF_BARE))
