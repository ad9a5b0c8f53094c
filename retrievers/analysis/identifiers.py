"""Names of programs in any text: ``getUserName``, ``run_target``, ``HTTPServer2``."""

from __future__ import annotations

import re

from ...nodegraph.splitters.tokens import UNSPACED

# Begins with a plain set of characters, so that prose is passed over quickly.
CAMEL = re.compile(r"[A-Z](?:(?<=[a-z][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")

_CHARACTER = rf"[^\W{UNSPACED}]"

_IDENTIFIER = re.compile(
    rf"(?<!{_CHARACTER}){_CHARACTER}*?"
    rf"(?:[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])|[^\W_{UNSPACED}]_+(?=[^\W_{UNSPACED}]))"
    rf"{_CHARACTER}*"
)

# A plural of capitals, capitals that end before a word, a word, a number.
_PART = re.compile(r"[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?(?:(?![A-Z])[^\W\d_])+|\d+")


# McDonald, YouTube, PlayStation: a class in a program, and a name that is one word in prose.
_NAME = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")

# What programs have, and prose hardly ever.
_CODE = re.compile(r"[{}=]|\(\)|[^\W_]_[^\W_]|::|->")


def with_parts(text: str) -> str:
    """Return a text in which every name of several parts is followed by these.

    The name itself loses its underscores, so that the ways to write one name are one word. Two
    capitalised words in one, as in ``PlayStation``, are taken apart in programs only. Only texts
    that have an underscore or ``CAMEL`` have names of several parts. The time it takes grows with
    the text's length.

    Example:
        >>> with_parts("call getUserName or run_target")
        'call getUserName get User Name or runtarget run target'
    """
    is_code = _CODE.search(text) is not None

    def expanded(match: re.Match[str]) -> str:
        name = match[0]
        if not is_code and _NAME.fullmatch(name):
            return name
        whole = name.replace("_", "")
        expanded = " ".join([whole, *(part for part in _parts(name) if part != whole)])
        # A sign may stand on the underscore beside, which keeps the words apart.
        return f"{'_' * (name[0] == '_')}{expanded}{'_' * (name[-1] == '_')}"

    return _IDENTIFIER.sub(expanded, text)


def _parts(name: str) -> list[str]:
    parts: list[str] = []
    for word in name.split("_"):
        pieces = _PART.findall(word)
        if len(pieces) > 1:  # the letter of xAxis and iPhone says nothing
            kept = [piece for piece in pieces if len(piece) > 1 or piece.isdigit()]
            # Asked for alone, a word is taken to pieces by capitals only; some are left out.
            is_part = "_" in name and (len(kept) < len(pieces) or not CAMEL.search(word))
            pieces = [*kept, word] if is_part else kept
        parts += pieces if len(pieces) > 1 or "_" in name else []
    return parts
