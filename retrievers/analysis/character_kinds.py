"""Fast tests of which characters a text can contain, so that slower searches can be skipped.

Each byte of a text is replaced by its kind, and short sequences of kinds are searched. This is
faster than a regular expression, which compares each character with several classes.
"""

from __future__ import annotations

import re

# The pattern of the bytes of each kind. In UTF-8, the first byte of a character shows its script.
_PATTERNS = {
    b"A": b"[A-Z]",
    b"a": b"[a-z]",
    b"0": b"[0-9]",
    b"d": b"[\xd8-\xe1\xea\xf0-\xff]",  # scripts that may have their own digits, such as Arabic
    b"x": b"[\xe3-\xe9\xeb-\xef]",  # Chinese, Japanese and Korean
    b".": b"[^A-Za-z0-9 \xd8-\xe1\xe3-\xff]",  # European scripts, Hebrew and signs
}


def _kinds_of_bytes() -> bytes:
    kinds = bytearray(range(256))
    for kind, pattern in _PATTERNS.items():
        for byte in re.findall(pattern, bytes(range(256))):
            kinds[byte[0]] = kind[0]
    return bytes(kinds)


_KINDS = _kinds_of_bytes()


def kinds_of(text: str) -> bytes:
    """Classify each byte of a text, for example as a capital or a digit.

    Example:
        >>> kinds_of("Error E 105")
        b'Aaaaa A 000'
    """
    return text.encode("utf-8", "surrogatepass").translate(_KINDS)


def has_camel_case(kinds: bytes) -> bool:
    """Return whether a text contains a capital after a letter, ignoring words in capitals.

    Example:
        >>> has_camel_case(kinds_of("call getName")), has_camel_case(kinds_of("the USA"))
        (True, False)
    """
    return b"aA" in kinds or b"AAa" in kinds


def may_have_codes_apart(kinds: bytes) -> bool:
    """Return whether a text contains a capital, a space and a digit in sequence.

    Example:
        >>> may_have_codes_apart(kinds_of("Error E 105")), may_have_codes_apart(kinds_of("Error 5"))
        (True, False)
    """
    return b"A 0" in kinds


def may_have_foreign_digits(kinds: bytes) -> bool:
    """Return whether a text contains characters of a script that may have its own digits.

    Example:
        >>> may_have_foreign_digits(kinds_of("पृष्ठ ३")), may_have_foreign_digits(kinds_of("三"))
        (True, False)
    """
    return b"d" in kinds


def may_have_chinese(kinds: bytes) -> bool:
    """Return whether a text may contain Chinese characters.

    Example:
        >>> may_have_chinese(kinds_of("三")), may_have_chinese(kinds_of("größer"))
        (True, False)
    """
    return b"x" in kinds or b"d" in kinds
