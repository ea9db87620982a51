"""The errors of the parsers of YAML and JSON in our words, with what would be right.

What only this engine refuses, such as aliases, is in text.py.
"""

from __future__ import annotations

import re

_INDENTATION = "check the indentation of this line and the ones above"
_QUOTE = "quote the text that begins here"
_FOLLOWS = "something follows the end of the document"
_ESCAPE = "write `\\\\` for a backslash, or use single quotes"
# The parser's message, a line with the character before the place and the one there, and one that says `behind` if
# something else stands before the place in its line.
OF_YAML = tuple(
    (re.compile(pattern, re.DOTALL), message, hint)
    for pattern, message, hint in (
        (
            r"expected ',' or .*\n\$\{\n",
            "an expression inside braces or brackets is not quoted",
            'quote expressions inside braces and brackets: `"${…}"`',
        ),
        (
            r"expected ',' or ",
            "a comma, or the closing bracket or brace, must be here",
            "close the bracket or brace, or quote a text with one of `{}[],` or `: ` in it",
        ),
        (
            r"cannot start any token\n.?\t\n|tab character",
            "there is a tab where only spaces can be",
            "tabs are not allowed, use spaces",
        ),
        (r"cannot start any token", "no text without quotes begins with this character", _QUOTE),
        (
            r"mapping values are not allowed",
            "there is a `:` where no key can be",
            f"quote a text with `: ` in it, or {_INDENTATION}",
        ),
        (
            r"sequence entries are not allowed",
            "no list can begin here",
            "begin the list on a line of its own",
        ),
        (r"mapping keys are not allowed", "no key can begin with `?`", _QUOTE),
        (
            r"expected (key|'-' indicator|<block end>).*\nbehind$",
            "something follows a value that has ended",
            "quote the whole text; in single quotes, `''` stands for one of them",
        ),
        (
            r"expected (key|'-' indicator|<block end>)",
            "this line goes with none of the lines above",
            _INDENTATION,
        ),
        (
            r"expected ':'",
            "a key is without its `:`",
            f"write `:` and a value behind the key, or {_INDENTATION}",
        ),
        (
            r"expected node content|expected the node content",
            "a value is missing here",
            "close what is open, or quote a text with one of `{}[],` in it",
        ),
        (r"unexpected end of stream", "a quotation mark is not closed", "close the quotation mark"),
        (r"unknown escape character", "there is no such escape in double quotes", _ESCAPE),
        (
            r"hexdecimal|hexadecimal|Unicode character escape",
            "`\\x`, `\\u` and `\\U` need 2, 4 and 8 hexadecimal digits of a character",
            _ESCAPE,
        ),
        (
            r"expected (a )?comment or (a )?line ?break|indentation indicator|chomping",
            "nothing can stand behind `|` or `>` in its line but `-` or `+`",
            "begin the text on the next line",
        ),
        (
            r"document (indicator|separator)|<document start>",
            _FOLLOWS,
            "leave out `---`, `...` and what follows",
        ),
        (
            r"directive|%YAML|YAML document|version number",
            "lines that begin with `%` are not allowed",
            "leave the line out",
        ),
        (r"[Tt]ag|URI|the expected '>'", "tags (`!…`) are not allowed", _QUOTE),
        (r"alphabetic or numeric", "names of values (`&…`, `*…`) are not allowed", _QUOTE),
    )
)
OF_JSON = (
    (
        "Expecting property name",
        "a key in double quotes must be here",
        "no comma stands before a closing brace",
    ),
    (
        "Expecting value",
        "a value must be here",
        "a text stands in double quotes, and no comma before a closing bracket",
    ),
    ("Illegal trailing comma", "a comma stands before the closing bracket or brace", "leave the comma out"),
    ("Expecting ':'", "a `:` must be here", "write `:` and a value behind the key"),
    (
        "Expecting ','",
        "a comma, or the closing bracket or brace, must be here",
        "close the bracket or brace, or write a comma between two values",
    ),
    ("Unterminated string", "a quotation mark is not closed", "close the quotation mark"),
    ("Invalid control character", "a text goes over the end of its line", "write `\\n` for a new line"),
    ("Invalid \\", "there is no such escape", "write `\\\\` for a backslash"),
    ("Extra data", _FOLLOWS, "leave it out"),
)


def of_yaml(message: str, before: str, here: str) -> tuple[str, str]:
    """Return the message and the hint for a parser's error.

    `before`: the text before the place in its line; `here`: the text behind it.
    """
    told = f"{message}\n{before[-1:]}{here[:1]}\n{'behind' if before.strip() else ''}"
    found = ((ours, hint) for pattern, ours, hint in OF_YAML if pattern.search(told))
    return next(found, ("this cannot be read as YAML", f"{_INDENTATION}, or quote the text"))


def of_json(message: str) -> tuple[str, str]:
    """Return the message and the hint for a parser's error."""
    found = ((ours, hint) for begins, ours, hint in OF_JSON if message.startswith(begins))
    return next(found, ("this cannot be read as JSON", ""))
