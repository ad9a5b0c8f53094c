"""Functions shared by the readers of Office files: XML, equations, charts, omitted elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from .markup import subscript

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from ...nodegraph.readers.source_files import SourceFile


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace. A comment has no name."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """Return an attribute by its name without a namespace. Empty: missing."""
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), "")


def integer(text: str | None, default: int = 0) -> int:
    """Return a number of an XML attribute, or the default if it is missing or not a number."""
    match = re.fullmatch(r"-?\d{1,9}", text or "")
    return int(match[0]) if match else default


def named(element: Element, *names: str) -> Iterator[Any]:
    """Yield the elements below an element with one of these names without a namespace."""
    return (inner for inner in element.iter() if local_name(inner) in names)


def texts(element: Element, *names: str) -> str:
    """Return the text of all elements with one of these names, such as ``t``."""
    return "".join(inner.text or "" for inner in named(element, *names))


_GROUPED = re.compile(r"[\w.′'∞]*|[([][^()\[\]]*[)\]]|\w+\([^()]*\)")

_OPERATOR = re.compile(r"(?<=[\w)\]!′])\s*([=+−±×÷<>≤≥≈≠≡→⇒∈])\s*(?=\S)")


def _grouped(text: str) -> str:
    return text if _GROUPED.fullmatch(text) else f"({text})"


def _marked(mark: str, text: str) -> str:
    return f"{mark}{_grouped(text)}" if text else ""


def _raised(base: str, power: str) -> str:
    return f"{_grouped(base)}{_marked('^', power)}"


def _lowered(base: str, index: str) -> str:
    return f"{_grouped(base)}{subscript(base, _grouped(index))}"


def _root(base: str, degree: str = "") -> str:
    return f" root({degree}, {base})" if degree else f" sqrt({base})"


_WITH_PARTS: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("sSup", "msup", "limUpp", "mover"), _raised),
    **dict.fromkeys(("sSub", "msub", "limLow", "munder"), _lowered),
    **dict.fromkeys(
        ("sSubSup", "msubsup", "munderover"), lambda b, i, p: f"{_lowered(b, i)}^{_grouped(p)}"
    ),
    **dict.fromkeys(("f", "mfrac"), lambda a, b: f"{_grouped(a)}/{_grouped(b)}"),
    "sPre": lambda index, power, base: f"_{_grouped(index)}^{_grouped(power)}{base}",
    "rad": lambda degree, base: _root(base, degree),
    "mroot": _root,
    "func": lambda name, of: f"{name} {of}" if of[:1].isalnum() else f"{name}{of}",
}
"""The text of an equation's part from the texts of its children."""

_SEPARATORS = {"m": "; ", "mtable": "; ", "eqArr": "; ", "mr": ", ", "mtr": ", "}


def equation(element: Element) -> str:
    """Return an equation of Office (OMML) or of MathML as text, such as ``a^2 + b``."""
    return _OPERATOR.sub(r" \1 ", " ".join(_equation(element).split()))


def _equation(element: Element) -> str:
    name = local_name(element)
    if name in ("t", "mi", "mn", "mo", "mtext", "ms"):
        return element.text or ""
    inner = [e for e in element if not local_name(e).endswith(("Pr", "annotation"))]
    parts = list(map(_equation, inner))
    properties = {
        local_name(value): attribute(value, "val")
        for child in element
        if local_name(child) == f"{name}Pr"
        for value in child
    }
    if name in _WITH_PARTS:
        try:
            return _WITH_PARTS[name](*map(str.strip, parts))
        except TypeError:  # missing parts
            return " ".join(parts)
    if name == "nary":
        lower, upper, of = [*parts, "", "", ""][:3]
        sign = f" {properties.get('chr') or '∫'}"
        return f"{sign}{_marked('_', lower)}{_marked('^', upper)} {of}"
    if name == "d":
        begin, end = properties.get("begChr", "("), properties.get("endChr", ")")
        return f"{begin}{(properties.get('sepChr') or '|').join(parts)}{end}"
    text = _SEPARATORS.get(name, "").join(parts)
    return f"[{text}]" if name in ("m", "mtable") else _root(text) if name == "msqrt" else text


def drawing_lines(root: Element) -> list[str]:
    """Return the texts of a SmartArt diagram, or the title, the axes and the series of a chart."""
    if local_name(root) == "dataModel":
        return [text for point in named(root, "pt") if (text := texts(point, "t").strip())]
    if local_name(root) != "chartSpace":
        return []
    titles = [" ".join(texts(title, "t", "v").split()) for title in named(root, "title")]
    lines = [f"Chart: {'; '.join(filter(None, titles))}"]
    for series in named(root, "ser"):
        heads, values = (
            [texts(point, "v") for part in named(series, *kinds) for point in named(part, "pt")]
            for kinds in (("cat", "xVal"), ("val", "yVal"))
        )
        pairs = (" ".join(pair).strip() for pair in zip_longest(heads, values, fillvalue=""))
        name = "".join(texts(part, "v") for part in named(series, "tx"))
        lines.append(f"{name}: {', '.join(pairs)}".removeprefix(": "))
    return lines


def running_heads(parts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the different headers and footers with letters, from their kinds and texts."""
    found = ((kind.capitalize(), " ".join(text.split())) for kind, text in parts)
    heads = (f"{kind}: {text}" for kind, text in found if any(map(str.isalpha, text)))
    return list(dict.fromkeys(heads))


def note_left_out(source: SourceFile, root: Element, kinds: Mapping[str, Sequence[str]]) -> None:
    """Note the elements that a reader leaves out, with the paragraph of the first element.

    Args:
        source: The file.
        root: The XML of its text.
        kinds: The names of the elements, by kind of note.
    """
    for kind, names in kinds.items():
        if count := sum(1 for _ in named(root, *names)):
            paragraphs = (p for p in named(root, "p") if next(named(p, *names), None) is not None)
            first = next(paragraphs, root)
            text = texts(first, "t") or "".join(first.itertext())
            source.note(kind, " ".join(text.split())[:60], count)
