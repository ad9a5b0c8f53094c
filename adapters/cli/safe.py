"""Keep texts of others from commanding the terminal."""

from __future__ import annotations

_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160)) if chr(c) not in "\n\t"}
# What turns the direction of writing around, and so may show a text as another one.
_CONTROLS.update(dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"))


def safe(text: str) -> str:
    """Replace control characters, of which a terminal takes some for commands, one for one.

    Example:
        >>> safe("tea\\x1b[2J")
        'tea\ufffd[2J'
    """
    return text.translate(_CONTROLS)
