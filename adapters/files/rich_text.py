"""Rewrite RTF files so that the anydoc library reads their formatting and page headers.

Superscripts, subscripts, strikethrough text, list labels, headers and footers are rewritten.
"""

from __future__ import annotations

import re

from ...nodegraph.readers.source_files import SourceFile
from .hidden_text import without_hidden_rich_text

HEAD_MARK = "\ue030"
"""The character that marks the start of each slide, and of each page header or footer in RTF."""

_NUMBER = r"(?=(?:\\[a-z]+-?\d*){0,9}\s\d)"  # this may follow other formatting properties

_DELETED = r"(?<!\\)\{(?:\\(?!deleted)[a-z]+-?\d*\s?)*\\deleted\b(?:[^{}\\]|\\(?!deleted0).)*\}"

_RTF_MARKS = (
    (r"\\i(?![a-z])", r"\\shad"),  # this effect does not change the text
    (r"\\striked?1?(?![a-z\d])", r"\\strike\\i"),
    (r"\\striked?0", r"\\strike0\\i0"),
    (r"\\super(?![a-z])", r"\\strike"),
    (r"\\sub(?![a-z])", r"\\i"),
    (rf"\\up[1-9]\d*{_NUMBER}", r"\\strike"),
    (rf"\\dn[1-9]\d*{_NUMBER}", r"\\i"),
    (r"\\(?:nosupersub(?![a-z\d])|(?:up|dn)0)", r"\\strike0\\i0"),
    (_DELETED, ""),
    (r"\{\\listtext(?![a-z])(?:\\pard|\\plain|\s)*([^{}]*)\}", r"{\\u57397?\1\\u57398?}"),
    (r"\{\\(header|footer)[lrf]?(?![a-z])", rf"{{\\footnote\\u{ord(HEAD_MARK)}?\1 "),
)
"""Patterns in RTF files and their replacements.

They match superscripts, subscripts, strikethrough text, list labels, headers and footers.
"""


_RTF_LEFT_OUT = {
    "pictures left out": r"\\pict(?![a-z])",
    "comments left out": r"\\atnid(?![a-z])",
    "embedded objects left out": r"\\object(?![a-z])",
    "deleted passages left out": _DELETED,
    "deleted passages read as text": r"\\deleted\b(?![^{}]{0,500}\})",
}


_RTF_BRACE = re.compile(r"\\.|([{}])", re.S)


def rewritten_rich_text(source: SourceFile) -> bytes:
    """Return an RTF file in a form that the anydoc library can read.

    Notes are recorded about everything that is left out.
    """
    data = source.path.read_bytes().decode("latin-1")
    depth = 0
    for brace in _RTF_BRACE.findall(data.rstrip("\0\r\n ")):
        depth += (brace == "{") - (brace == "}")
        if depth < 0:
            break
    if depth and "\\bin" not in data:  # binary data of pictures may contain braces
        source.note("unbalanced groups, so that text may be missing", "", abs(depth))
    data = without_hidden_rich_text(data, source)
    for kind, pattern in _RTF_LEFT_OUT.items():
        if found := list(re.finditer(pattern, data)):
            before = re.findall(r"\\par(?![a-z])", data[: found[0].start()])
            source.note(kind, f"paragraph {len(before) + 1}", len(found))
    for pattern, replacement in _RTF_MARKS:
        data = re.sub(rf"(?<!\\){pattern}", replacement, data)
    return data.encode("latin-1")
