"""undisguised(text): the text with one layer of what can hide a name or a value taken off.

It knows encodings (percent, entities, escapes) and characters that look like others or like nothing. What is a secret
in the text is decided in sanitise.py. Everything takes a time that grows with the text and not faster.
"""

from __future__ import annotations

import re
import unicodedata

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
    """What is encoded twice is encoded once afterwards."""
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
