"""Decode the bytes of texts, web pages, tables, mail and books."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import ReadError
from .source_files import SourceFile

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_CONTROL = bytes([*range(9), *range(14, 27), *range(28, 32), 127])

_XML_LABEL = re.compile(rb"""\s*<\?xml[^>]{0,80}?\bencoding\s*=\s*["']([\w.:-]+)""", re.I)

_META_LABEL = re.compile(rb"""<meta[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]+)""", re.I)

_SUPERSETS = dict(
    pair.split(":")
    for pair in (
        "ascii:cp1252 iso8859-1:cp1252 iso8859-9:cp1254 iso8859-11:cp874 tis-620:cp874 "
        "gb2312:gb18030 gbk:gb18030 big5:big5hkscs shift_jis:cp932 euc_kr:cp949"
    ).split()
)
"""The encodings that browsers use for a declared encoding (WHATWG, "Encoding"), by codec name."""

_LABELS = dict(
    pair.split(":")
    for pair in (
        "gb_2312:gbk gb_2312-80:gbk csgb2312:gbk cn-big5:big5 ksc_5601:cp949 cseuckr:cp949 "
        "ks_c_5601-1989:cp949 iso-ir-149:cp949 31j:cp932 874:cp874 dos-874:cp874 "
        "koi:koi8-r koi8:koi8-r koi8-ru:koi8-u mac:mac-roman unicode:utf-8 unicode-1-1-utf-8:utf-8"
    ).split()
)
"""Labels of the WHATWG table that Python does not know, without ``x-`` and ``windows-``."""


def is_text(head: bytes) -> bool:
    """Return whether the first bytes of a file are text."""
    return b"\0" not in head or head.startswith(tuple(mark for mark, _ in BYTE_ORDER_MARKS))


def codec_of(label: str) -> str | None:
    """Return the codec of a declared label, as browsers understand the label. None: unknown.

    Example:
        >>> [codec_of(label) for label in ("ISO-8859-1", "x-sjis", "ks_c_5601-1987", "none")]
        ['cp1252', 'cp932', 'cp949', None]
    """
    label = label.strip().lower()
    short = re.sub(r"^(?:x-)*(?:windows-(?=874|949|31j))?", "", label)
    try:
        name = codecs.lookup(_LABELS.get(short, short)).name
    except (LookupError, ValueError):  # ValueError: a null character
        return None
    return _SUPERSETS.get(name, name)


def decoded(source: SourceFile, *, is_html: bool = False) -> str:
    """Return the text of a file.

    Raises:
        ReadError: If the file is not text.
    """
    data = source.path.read_bytes()
    return decode(data, source, label_in(data, is_html=is_html))


def label_in(data: bytes, *, is_html: bool = True) -> str:
    """Return the encoding that an XML file or a page declares, or an empty string."""
    match = _XML_LABEL.match(data) or (_META_LABEL.search(data[:4000]) if is_html else None)
    label = match[1].decode("ascii", "replace").lower() if match else ""
    # The declaration was readable, so the text is not UTF-16.
    return "utf-8" if label.startswith("utf-16") else label


def decode(data: bytes, source: SourceFile, label: str = "", place: str = "") -> str:
    r"""Decode the bytes of a file or of a part of it. Line ends become ``\n``.

    Encoding: byte order mark, then the declared label, then UTF-8, then ``options.encoding``,
    then detection. A few invalid bytes are replaced and noted.

    Args:
        data: The bytes.
        source: The file. It records the encoding.
        label: The declared encoding.
        place: The part of the file for notes. Empty: the line.

    Raises:
        ReadError: If the bytes are not text.
    """
    text, encoding = _decoded(data, source, label)
    controls = len(data) - len(data.translate(None, _CONTROL))
    if encoding.startswith(("utf-16", "utf-32", "iso2022")):  # these encodings use control bytes
        controls = len(text) - len(text.translate(dict.fromkeys(_CONTROL)))
    if controls > len(text) // 1000 + ("\0" not in text):
        raise ReadError(
            f"{source.path} is not text: it has {controls:,} control characters among "
            f"{len(text):,}; remove it, or register a reader for it",
            "not text",
            skippable=True,
        )
    if encoding != "utf-8" and not text.isascii() and encoding not in source.encodings:
        source.encodings.append(encoding)
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    if count := text.count("\ufffd") - data.count("\ufffd".encode()):
        line = text.count("\n", 0, text.index("\ufffd")) + 1
        source.note(f"bytes that are not {encoding}", place or f"line {line}", count)
    return text


def _decoded(data: bytes, source: SourceFile, label: str) -> tuple[str, str]:
    given = source.options.encoding
    mark = next((name for bom, name in BYTE_ORDER_MARKS if data.startswith(bom)), "")
    declared = codec_of(label) or ""
    steps = [(mark, "strict"), (mark, "replace")] if mark else []
    if not mark or (given and mark != "utf-8-sig"):
        steps += [(declared, "strict"), ("utf-8", "strict")]
        steps += [("utf-8", "replace"), (declared, "replace")]
    for name, errors in steps:
        if name and (text := _text(data, name, errors)) is not None:
            return text, name.removesuffix("-sig")
    last = given or mark.removesuffix("-sig")
    if not last:
        last = detected(data, source.usual_encoding) or "utf-8"
        if sum(byte > 127 for byte in data) < _FEW:
            source.guesses.append(last)
    try:
        return data.decode(last), last
    except UnicodeDecodeError as error:
        offset = error.start + len(data) - len(error.object)  # without the byte order mark
    names = _CANDIDATES[:-1] if b"\0" not in data else ()
    fitting = [name for name in names if _text(data, name) is not None][:3]
    fit = f" (its bytes fit {', '.join(fitting)})" if fitting else ""
    advice = f"{fit}: ReadOptions(encoding={fitting[0] if fitting else 'gb18030'!r})"
    raise ReadError(
        f"{source.path} is not {last.upper()}: byte {data[offset]:#04x} at offset {offset}; "
        f"convert it, set its encoding{advice}, or register a reader: "
        f'@register_reader("{source.path.suffix}")',
        "not text",
    )


def _text(data: bytes, name: str, errors: str = "strict") -> str | None:
    """Return the text of bytes, None if too many bytes are invalid."""
    try:
        text = data.decode(name, errors)
    except UnicodeDecodeError:
        return None
    if errors == "strict":
        return text
    bad = text.count("\ufffd")
    is_marked = name in dict(BYTE_ORDER_MARKS).values()
    good = len(text) / 5 if is_marked else sum(c > "\x7f" for c in text) - bad
    return text if 4 * bad <= good else None


_CANDIDATES = (
    *("gb18030", "big5", "euc_jp", "shift_jis", "euc_kr", "cp1252", "cp1250", "cp1251"),
    *("koi8_r", "iso8859_7", "cp1255", "cp1256", "latin_1"),
)

_MARKS = frozenset("‘’‚“”„…–—•«»°§€£©®ºª·¿¡´\xa0\xad")

_LATIN = [
    line.split(" | ")[1:]
    for line in Path(__file__).with_name("latin.txt").read_text("utf-8").splitlines()[1:]
]
"""Languages in Latin letters: their encodings, letters beyond ASCII, and frequent words."""


_FEW = 30  # bytes above 127; fewer are not enough for a sure detection


def detected(data: bytes, usual: str = "") -> str | None:
    """Detect the encoding of bytes that are not UTF-8. Return None for binary data.

    Texts in Latin letters have the encoding whose letters and words fit one language best. Short
    texts that consist of common characters in GB18030 are in GB18030. Other texts are left to
    ``charset-normalizer``.

    Args:
        data: The bytes.
        usual: The usual encoding of the folder. It decides if others fit as well, or none fits.

    Example:
        >>> detected("绿茶和红茶".encode("gb18030")), detected(bytes(range(256)))
        ('gb18030', None)
    """
    if b"\0" in data[:4096]:
        return None
    start = max(0, next((i for i, byte in enumerate(data) if byte > 127), 0) - 500)
    sample = data[start : start + 20_000]
    high = sum(byte > 127 for byte in sample)
    guesses = _guesses(sample, high, usual)
    return next((name for name in guesses if name and _text(data, name) is not None), None)


def _guesses(sample: bytes, high: int, usual: str) -> Iterator[str]:
    """Yield probable encodings, the most probable first."""
    if high < 4 and len(sample) < 40:  # too short to detect
        yield usual
        return
    if high < 120 and _common_share(sample, high) > 0.8:
        yield "gb18030"
    yield from _latin(sample, high, usual)
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_CANDIDATES)).best()
    if best is not None:
        name = _SUPERSETS.get(codecs.lookup(best.encoding).name, str(best.encoding))
        is_windows = name == "iso8859_7" and not _GREEK_CAPITAL.search(sample)
        yield "cp1253" if is_windows else name
    if high > 200:
        yield from ("gb18030", "big5hkscs")
    yield usual


# An accented capital letter in ISO 8859-7. The same byte is a mark in Windows-1253.
_GREEK_CAPITAL = re.compile(rb"(?<![\xb8-\xfe])\xb6[\xdc-\xfe]")


def _latin(sample: bytes, high: int, usual: str) -> Iterator[str]:
    """Yield the encoding of a text in Latin letters, if its letters are those of a language."""
    if high > 0.4 * sum(byte > 127 or chr(byte).isalpha() for byte in sample):
        return
    words = re.findall(rb"[a-z\x80-\xff]+", sample.lower())
    best = (0.0, "")
    for names, letters, frequent in _LATIN:
        known = set(frequent.encode().split())
        score = sum(word in known for word in words) / max(1, len(words))
        for name in names.split():
            text = sample.decode(name, "replace")
            beyond = [c for c in text if c > "\x7f" and c not in _MARKS]
            share = sum(c in letters or c.lower() in letters for c in beyond) / max(1, len(beyond))
            fit = share + score + (name == usual) / 20
            if share > 0.9 and fit > best[0]:
                best = (fit, name)
    if best[1]:
        yield best[1]


def _common_share(sample: bytes, high: int) -> float:
    """Return the share of the bytes above 127 that are common characters of GB2312."""
    common = 0
    for character in _text(sample, "gb18030") or _text(sample[:-1], "gb18030") or "":
        if character > "\x7f":
            pair = character.encode("gb18030")
            is_common = len(pair) == 2 and (0xB0 <= pair[0] <= 0xD7 or pair[0] in (0xA1, 0xA3))
            common += is_common and pair[1] > 0xA0
    return 2 * common / high if high else 0
