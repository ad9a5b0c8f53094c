"""Detect the character encoding of text files, web pages, tables, emails and books."""

from __future__ import annotations

import codecs
import re
import unicodedata

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

_ESCAPES = (
    (b"\x1b$B", "iso2022_jp_ext"),
    (b"\x1b$@", "iso2022_jp_ext"),
    (b"\x1b$)C", "iso2022_kr"),
)

_MIN_UTF_16 = 8  # minimum number of characters in UTF-16 text without a byte order mark

# control characters, unassigned and private characters, and surrogates
_NOT_IN_TEXTS = {"Cc", "Cn", "Co", "Cs"}

_META_LABEL = re.compile(rb"""<meta[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]+)""", re.I)


def is_text(head: bytes) -> bool:
    """Return whether the first bytes of a file look like text."""
    return b"\0" not in head or head.startswith(tuple(mark for mark, _ in BYTE_ORDER_MARKS))


def codec_of(label: str) -> str | None:
    """Return the Python codec for an encoding label, as interpreted by web browsers, or None.

    Example:
        >>> [codec_of(label) for label in ("ISO-8859-1", "x-sjis", "ks_c_5601-1987", "none")]
        ['cp1252', 'cp932', 'cp949', None]
    """
    import webencodings

    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):  # The label contains a null character.
        name = ""
    known = webencodings.lookup(label) or webencodings.lookup(name.replace("_", "-"))
    # The codec is unknown to Python.
    if known and known.name not in ("replacement", "x-user-defined"):
        name = known.codec_info.name
    if name == "gbk":
        return "gb18030"  # a superset of the declared encoding
    return name or None


def decoded(source: SourceFile, *, is_html: bool = False) -> str:
    """Decode the content of a file and return the text.

    Raises:
        ReadError: If the file does not contain text.
    """
    data = source.path.read_bytes()
    return decode(data, source, label_in(data, is_html=is_html))


def label_in(data: bytes, *, is_html: bool = True) -> str:
    """Return the encoding declared in an XML file or web page, or an empty string."""
    match = _XML_LABEL.match(data)
    if match is None and is_html:
        match = _META_LABEL.search(data[:4000])
    if match is None:
        return ""
    label = match[1].decode("ascii", "replace")
    codec = codec_of(label) or ""
    # The declaration is readable as ASCII, so the text cannot be UTF-16.
    if codec.startswith("utf-16"):
        return "utf-8"
    return label


def decode(data: bytes, source: SourceFile, label: str = "", place: str = "") -> str:
    r"""Decode the bytes of a file or of a part of it. Line breaks are converted to ``\n``.

    The encoding is determined by the first of the following that applies: a byte order mark, the
    declared label, escape sequences (ISO-2022), the byte pattern of UTF-16, valid UTF-8,
    ``options.encoding``, and detection. If only a few bytes are invalid, they are replaced, and the
    replacement is reported.

    Args:
        data: The bytes to decode.
        source: The file, in which the encoding is recorded.
        label: The declared encoding, or an empty string.
        place: The name of the part of the file, for the report. If it is empty, the line number is
            reported.

    Raises:
        ReadError: If the bytes do not represent text.
    """
    text, encoding = _decoded(data, source, label)
    controls = len(data) - len(data.translate(None, _CONTROL))
    # Texts in these encodings contain control bytes.
    if encoding.startswith(("utf-16", "utf-32", "iso2022")):
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
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if count := text.count("\ufffd") - data.count("\ufffd".encode()):
        line = text.count("\n", 0, text.index("\ufffd")) + 1
        source.note(f"bytes that are not {encoding}", place or f"line {line}", count)
    return text


def _decoded(data: bytes, source: SourceFile, label: str) -> tuple[str, str]:
    """Decode bytes, and return the text and its encoding.

    Raises:
        ReadError: If no encoding is suitable.
    """
    given = source.options.encoding
    mark = next((name for bom, name in BYTE_ORDER_MARKS if data.startswith(bom)), "")
    declared = codec_of(label) or ""
    evident = _escaped(data) or _unmarked_utf_16(data)
    for name, errors in _declared_encodings(mark, declared, evident, given):
        if not name:
            continue
        text = _text(data, name, errors)
        if text is not None:
            return text, name.removesuffix("-sig")
    last = given or mark.removesuffix("-sig")
    if not last:
        last = detected(data, source.usual_encoding) or "utf-8"
        if sum(byte > 127 for byte in data) < _FEW:
            source.guesses.append(last)
    try:
        return data.decode(last), last
    except UnicodeDecodeError as error:
        raise _undecodable(data, source, last, error) from None


def _escaped(data: bytes) -> str:
    """Return the encoding of ASCII text that contains escape sequences, or an empty string."""
    if not data.isascii():
        return ""
    return next((name for escape, name in _ESCAPES if escape in data), "")


def _unmarked_utf_16(data: bytes) -> str:
    """Detect UTF-16 without a byte order mark, and return its byte order or an empty string.

    In UTF-16, the high bytes have fewer different values than the low bytes, since the letters of a
    text belong to few alphabets.
    """
    if b"\0" not in data or len(data) % 2:
        return ""
    orders = [name for name in ("utf-16-le", "utf-16-be") if _is_utf_16(data, name)]
    return min(orders, key=lambda name: len(set(data[name == "utf-16-le" :: 2])), default="")


def _is_utf_16(data: bytes, name: str) -> bool:
    text = _text(data, name)
    if text is None or len(text) < _MIN_UTF_16:
        return False
    if not any(character.isspace() for character in text):
        return False
    categories = {unicodedata.category(letter) for letter in set(text) if not letter.isspace()}
    return categories.isdisjoint(_NOT_IN_TEXTS)


def _declared_encodings(
    mark: str, declared: str, evident: str, given: str | None
) -> list[tuple[str, str]]:
    """Return the encodings to try before detection, each with a mode for decoding errors.

    Args:
        mark: The encoding indicated by a byte order mark, or an empty string.
        declared: The encoding declared in the text, or an empty string.
        evident: The encoding indicated by escape sequences or byte pairs, or an empty string.
        given: The encoding set by the user, or None.
    """
    of_mark = [(mark, "strict"), (mark, "replace")]
    if mark and (not given or mark == "utf-8-sig"):
        return of_mark
    of_bytes = [(evident, "strict"), (evident, "replace")]
    of_utf_8 = [("utf-8", "strict"), ("utf-8", "replace")]
    return [*of_mark, (declared, "strict"), *of_bytes, *of_utf_8, (declared, "replace")]


def _undecodable(
    data: bytes, source: SourceFile, encoding: str, error: UnicodeDecodeError
) -> ReadError:
    """Create an error for bytes that are invalid in an encoding. It suggests suitable encodings."""
    offset = error.start + len(data) - len(error.object)  # The byte order mark is left out.
    path = source.path
    fitting: list[str] = []
    if b"\0" not in data:
        fitting = [name for name in _fitting(data, "") if _is_plausible(data, name)]
    if fitting and data.decode(fitting[0]) == _text(data, "cp1252"):
        fitting = list(dict.fromkeys(["cp1252", *fitting]))
    advice = ": ReadOptions(encoding='gb18030')"
    if fitting:
        advice = f" (its bytes fit {', '.join(fitting[:3])}): ReadOptions(encoding={fitting[0]!r})"
    return ReadError(
        f"{path} is not {encoding.upper()}: byte {data[offset]:#04x} at offset {offset}; "
        f"convert it, set its encoding{advice}, or register a reader: "
        f'register_reader("{path.suffix or f"{path.name}*"}", reader)',
        "not text",
    )


def _text(data: bytes, name: str, errors: str = "strict") -> str | None:
    """Decode bytes, or return None if too many of them are invalid."""
    try:
        text = data.decode(name, errors)
    except (UnicodeError, LookupError):  # The label is, for example, "hex".
        return None
    if errors == "strict":
        return text
    bad = text.count("\ufffd")
    if name in dict(BYTE_ORDER_MARKS).values():
        good = len(text) / 5
    else:
        good = sum(character > "\x7f" for character in text) - bad
    if 4 * bad > good:
        return None
    return text


_FEW = 30  # minimum number of bytes above 127 for reliable detection


def detected(data: bytes, usual: str = "") -> str | None:
    """Detect the encoding of text that is not UTF-8. Return None for binary data.

    The encodings are ranked by the letter frequencies of 40 languages.

    Args:
        data: The bytes of the text.
        usual: The most common encoding of other files in the folder. It is preferred unless another
            encoding fits much better.

    Example:
        >>> detected("绿茶和红茶".encode("gb18030")), detected(bytes(range(256)))
        ('gb18030', None)
    """
    if b"\0" in data[:4096]:
        return None
    if len(data) < _SHORT and sum(byte > 127 for byte in data) < _MIN_LETTERS:
        if usual and _is_plausible(data, usual):
            return usual
        return None
    return next((name for name in _fitting(data, usual) if _is_plausible(data, name)), None)


_SHORT = 40  # number of bytes

_MIN_LETTERS = 4  # minimum number of bytes above 127 to recognize a short text

_MAX_LETTERS = 100  # maximum number of different bytes above 127 in a single-byte encoding


def _is_plausible(data: bytes, name: str) -> bool:
    """Return whether bytes decode to assigned characters from a plausible number of alphabets."""
    text = _text(data, name)
    if text is None:
        return False
    if not all(_is_assigned(character) for character in set(text)):
        return False
    has_one_byte_each = len(text) == len(data)
    if not has_one_byte_each:
        return True
    return sum(byte > 127 for byte in set(data)) <= _MAX_LETTERS


def _is_assigned(character: str) -> bool:
    """Return whether a character is assigned in Unicode and is not a control character.

    Control characters in ASCII are accepted.
    """
    return unicodedata.category(character) != "Cn" and not "\x80" <= character <= "\x9f"


_SAMPLE = 20_000  # number of bytes that are compared with the languages


def _fitting(data: bytes, usual: str) -> list[str]:
    """Return the encodings that are plausible for a text, the most probable first."""
    from .letters import ranked

    first = next((at for at, byte in enumerate(data) if byte > 127), 0)
    start = max(0, first - 500)
    return ranked(data[start : start + _SAMPLE], usual)
