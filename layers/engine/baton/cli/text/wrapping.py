"""Text in lines of a terminal's width."""

from __future__ import annotations

from collections.abc import Iterator


def wrapped(text: str, width: int | None, first: str = "", rest: str = "") -> Iterator[str]:
    """The text in lines of at most `width` columns, broken between words, which begin with `first` and then with `rest`.

    width: None for one line, however long. A word that no line has room for goes on in the next.
    """
    from rich.cells import cell_len, chop_cells

    if width is None or cell_len(first + text) <= width:
        yield first + text
        return
    room = max(width - max(cell_len(first), cell_len(rest)), 2)
    begin, line = first, ""
    for word in text.split(" "):
        if line and cell_len(begin + line) + 1 + cell_len(word) <= width:
            line += f" {word}"
            continue
        if line:
            yield begin + line
            begin = rest
        *full, line = chop_cells(word, room) or [""]
        for piece in full:
            yield begin + piece
            begin = rest
    yield begin + line
