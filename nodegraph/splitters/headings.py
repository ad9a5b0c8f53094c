"""Find the headings of texts in the markups that files are written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .markdown_splitter import markdown_headings

Heading = tuple[int, int, str]
"""Where a heading begins, its level from 1, and its text."""

_RST_LINE = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")

_ASCIIDOC = re.compile(r"(={1,6})[ \t]+(\S.*)$")

_ASCIIDOC_FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,})\s*$")

_LATEX = re.compile(
    r"^[^%\n]*?\\(part|chapter|section|subsection|subsubsection|paragraph)\*?[ \t]*"
    r"(?:\[[^\]\n]*\])?\{((?:[^{}]|\{[^{}]*\})*)\}",
    re.M,
)

_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")

_ORG = re.compile(r"(\*{1,6})[ \t]+(\S.*)$")

_TOML = re.compile(r"\[{1,2}([^\[\]]+)\]{1,2}[ \t]*(?:#.*)?$")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def rst_headings(text: str) -> Iterator[Heading]:
    r"""Yield the headings of reStructuredText: underlined, or lines above and below.

    Example:
        >>> list(rst_headings("Tea\n===\n\nGreen\n-----\ntext"))
        [(0, 1, 'Tea'), (9, 2, 'Green')]
    """
    lines = list(_lines(text))
    levels: dict[tuple[str, bool], int] = {}
    for number in range(len(lines) - 1):
        at, line = lines[number]
        under = lines[number + 1][1]
        title = line.strip()
        if not title or not _RST_LINE.match(under) or _RST_LINE.match(line):
            continue
        if len(under.rstrip()) < len(title):
            continue
        above_at, above = lines[number - 1] if number else (0, "")
        is_overlined = bool(above) and above.rstrip() == under.rstrip()
        if not is_overlined and (line[:1].isspace() or above.strip()):
            continue
        level = levels.setdefault((under[0], is_overlined), len(levels) + 1)
        yield (above_at if is_overlined else at), min(level, 6), title


def asciidoc_headings(text: str) -> Iterator[Heading]:
    r"""Yield the headings of AsciiDoc; those in blocks of code are none.

    Example:
        >>> list(asciidoc_headings("= Tea\n\n----\n== no\n----\n== Green"))
        [(0, 1, 'Tea'), (23, 2, 'Green')]
    """
    fence = ""
    for at, line in _lines(text):
        if match := _ASCIIDOC_FENCE.match(line):
            fence = "" if fence == match[1] else fence or match[1]
        elif not fence and (match := _ASCIIDOC.match(line)):
            yield at, len(match[1]), match[2].strip()


def latex_headings(text: str) -> Iterator[Heading]:
    r"""Yield the headings of LaTeX: parts, chapters, sections.

    Example:
        >>> list(latex_headings("\\section{Tea}\n% \\section{no}\n\\subsection*{The {\\em green}}"))
        [(0, 1, 'Tea'), (29, 2, 'The green')]
    """
    found = [(match, _LATEX_LEVELS.index(match[1])) for match in _LATEX.finditer(text)]
    top = min((level for _, level in found), default=0)
    for match, level in found:
        title = re.sub(r"\\[a-zA-Z]+[ \t]*|[{}]", "", match[2])
        yield match.start(), level - top + 1, " ".join(title.split())


def org_headings(text: str) -> Iterator[Heading]:
    """Yield the headings of Org files: lines that begin with stars."""
    for at, line in _lines(text):
        if match := _ORG.match(line):
            yield at, len(match[1]), match[2].strip()


def toml_headings(text: str) -> Iterator[Heading]:
    r"""Yield the tables of TOML and the sections of INI files.

    Example:
        >>> list(toml_headings("[tea]\na = 1\n[tea.green]\nb = 2"))
        [(0, 1, 'tea'), (12, 2, 'tea.green')]
    """
    for at, line in _lines(text):
        if match := _TOML.match(line):
            name = match[1].strip()
            yield at, min(name.count(".") + 1, 6), name


def no_headings(text: str) -> Iterator[Heading]:
    """Yield nothing: of programs, tables, and texts without a markup."""
    yield from ()


_BY_SUFFIX: dict[str, Callable[[str], Iterator[Heading]]] = {
    ".rst": rst_headings,
    ".adoc": asciidoc_headings,
    ".asciidoc": asciidoc_headings,
    ".tex": latex_headings,
    ".ltx": latex_headings,
    ".org": org_headings,
    ".toml": toml_headings,
    ".ini": toml_headings,
    ".cfg": toml_headings,
}

_WITHOUT = frozenset(
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .go .rs .c .h .cc .cpp .cxx .hpp .hh .rb .cs .php "
    ".sh .bash .kt .kts .swift .scala .lua .r .pl .pm .sql .css .scss .vue .dart .ex .exs .hs .jl "
    ".m .mm .zig .proto .graphql .tf .csv .tsv .log .json .yaml .yml .xml .conf .properties .srt "
    ".vtt .po".split()
)


def headings_in(text: str, file_name: str = "") -> Iterator[Heading]:
    r"""Yield the headings of a file's text, by its name; those of Markdown where it tells nothing.

    Example:
        >>> list(headings_in("# Tea", "a.md")), list(headings_in("# a comment", "a.py"))
        ([(0, 1, 'Tea')], [])
    """
    name = file_name.lower()
    suffix = name[name.rfind(".") :] if "." in name else ""
    if suffix in _WITHOUT:
        return no_headings(text)
    find = _BY_SUFFIX.get(suffix)
    return markdown_headings(text) if find is None else find(text)
