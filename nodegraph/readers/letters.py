"""Rank character encodings by the probability of the decoded text.

The file ``letters.npz`` contains the frequencies of characters and letter pairs in 40 languages,
which were derived from lingua (https://github.com/pemistahl/lingua-py, Apache License 2.0). It is
created by ``benchmarks/train_encodings.py`` and evaluated by ``benchmarks/encodings.py``.

The cost of an encoding is the negative logarithm of the probability of the decoded text in the
language that fits best.
"""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Costs = npt.NDArray[np.float32]
    Places = npt.NDArray[np.intp]
    Flags = npt.NDArray[np.bool_]

_WESTERN = "ca da de en es fi fr is it nb nl pt sv".split()
_CENTRAL = "cs de hr hu pl ro sk sl sq".split()
_BALTIC = "et lt lv".split()
_LATIN = frozenset([*_WESTERN, *_CENTRAL, *_BALTIC, "tr", "vi"])
_CYRILLIC = "be bg mk ru sr uk".split()

ALPHABETS = {
    "cp1252": _WESTERN,
    "cp1250": _CENTRAL,
    "cp1251": _CYRILLIC,
    "cp1253": ["el"],
    "cp1254": ["tr"],
    "cp1255": ["he"],
    "cp1256": ["ar", "fa"],
    "cp1257": _BALTIC,
    "cp1258": ["vi"],
    "cp874": ["th"],
    "iso8859-2": _CENTRAL,
    "iso8859-5": _CYRILLIC,
    "iso8859-6": ["ar"],
    "iso8859-7": ["el"],
    "iso8859-13": _BALTIC,
    "iso8859-15": _WESTERN,
    "koi8-r": ["ru"],
    "koi8-u": ["uk"],
    "cp437": _WESTERN,
    "cp737": ["el"],
    "cp775": _BALTIC,
    "cp850": _WESTERN,
    "cp852": _CENTRAL,
    "cp857": ["tr"],
    "cp862": ["he"],
    "cp866": _CYRILLIC,
    "mac-cyrillic": _CYRILLIC,
    "mac-roman": _WESTERN,
}
"""The single-byte encodings, and the languages that are written in each of them."""

CHARACTERS = {
    "gb18030": "zh",
    "big5hkscs": "zh",
    "cp932": "ja",
    "euc_jp": "ja",
    "cp949": "ko",
}
"""The multi-byte encodings, and the language that is written in each of them."""

_JAPANESE = ("cp932", "euc_jp")
_RARE = frozenset("cp737 cp775 cp857 cp862 euc_jp iso8859-15 mac-cyrillic mac-roman".split())

_STEP = 8  # the same value as in the training script
_SIGN = 5.0  # cost of quotation marks, dashes and other common symbols
_OTHER = 12.0  # cost of a letter that does not occur in the language
_ODD_CASE = 4.0  # cost of an uppercase letter after a lowercase letter
_SIGN_IN_WORD = 2.0  # cost of a symbol next to a letter
_MIXED_WORD = 6.0  # cost of a Latin letter next to a letter of a different alphabet
_UNKNOWN = 16.0  # cost of a character that does not occur in the language
_WITHOUT_KANA = 4.0
_RARE_CODEC = 4.0
_USUAL = 4.0  # bonus for the most common encoding of the folder
_IMPOSSIBLE = 1e9
_SIGNS = frozenset("“”‘’‚„«»–—…•·§©®°€£¿¡№、。，！？：；（）「」『』《》〈〉【】・ー～％\u3000\xa0")


def ranked(sample: bytes, usual: str = "") -> list[str]:
    """Return the encodings for which a text is plausible, the most probable first.

    Args:
        sample: The first kilobytes of the text. The last character may be incomplete.
        usual: The most common encoding of other files in the folder. It is preferred to similar
            encodings.
    """
    pairs = _Pairs.of(sample)
    costs = {codec: pairs.cost(codec) for codec in ALPHABETS}
    for codec in CHARACTERS:
        costs[codec] = _cost_of_characters(sample, codec)
    for codec in _RARE:
        costs[codec] += _RARE_CODEC
    if usual in costs:
        costs[usual] -= _USUAL + costs[usual] / 20
    possible = [codec for codec, cost in costs.items() if cost < _IMPOSSIBLE]
    return sorted(possible, key=costs.__getitem__)


class _Pairs(NamedTuple):
    """The distinct byte pairs in a text, and the number of times each pair occurs."""

    first: Places
    second: Places
    counts: Costs

    @classmethod
    def of(cls, sample: bytes) -> _Pairs:
        import numpy as np

        values = np.frombuffer(b" " + sample + b" ", np.uint8).astype(np.intp)
        counts = np.bincount(values[:-1] * 256 + values[1:], minlength=1 << 16)
        found = np.flatnonzero(counts)
        return cls(found // 256, found % 256, counts[found].astype(np.float32))

    def cost(self, codec: str) -> float:
        """Return the cost (negative log probability) of the text in the most probable language."""
        page = _page(codec)
        if page.is_invalid[self.second].any():
            return _IMPOSSIBLE
        is_odd_case = page.is_small[self.first] & page.is_capital[self.second]
        before = page.is_letter[self.first] & page.is_sign[self.second]
        after = page.is_sign[self.first] & page.is_letter[self.second]
        cost = _ODD_CASE * float(self.counts[is_odd_case].sum())
        cost += _SIGN_IN_WORD * float(self.counts[before | after].sum())
        return cost + float((self._costs(codec) @ self.counts).min())

    def _costs(self, codec: str) -> Costs:
        """Return the costs (negative log probabilities) of the byte pairs.

        The array has one row for each language of the encoding.
        """
        letters = _letters_of(codec)
        costs = _pair_costs()[
            letters.languages[:, None],
            letters.places[:, self.first],
            letters.places[:, self.second],
        ]
        costs = costs + letters.extra[:, self.second]
        # In Chinese or Russian, pairs of ASCII characters cost nothing. Here, they help to
        # distinguish similar languages.
        is_ascii = (self.first < 128) & (self.second < 128)
        if ALPHABETS[codec][0] in _LATIN:
            costs[:, is_ascii] -= _ascii_costs()[self.first[is_ascii], self.second[is_ascii]]
            return costs
        is_letter = _page(codec).is_letter
        is_mixed = (self.first < 128) != (self.second < 128)
        is_mixed &= is_letter[self.first] & is_letter[self.second]
        costs[:, is_mixed] += _MIXED_WORD
        costs[:, is_ascii] = 0
        return costs


@cache
def _arrays() -> dict[str, Any]:
    import numpy as np

    with np.load(Path(__file__).with_name("letters.npz")) as file:
        return dict(file)


@cache
def _alphabets() -> dict[str, str]:
    names: dict[str, str] = json.loads(_arrays()["letters"].tobytes())
    return names


@cache
def _languages() -> list[str]:
    """Return the languages that are written with an alphabet."""
    return sorted(set().union(*ALPHABETS.values()))


@cache
def _pair_costs() -> Costs:
    """Return the costs (negative log probabilities) of letter pairs for each language.

    Letter 0 represents all characters that are not letters of the language.
    """
    import numpy as np

    tables = [_arrays()[name] for name in _languages()]
    size = max(len(table) for table in tables)
    costs = np.zeros((len(tables), size, size), np.float32)
    for at, table in enumerate(tables):
        costs[at, : len(table), : len(table)] = table / _STEP
    return costs


class _Page(NamedTuple):
    """The characters that the 256 byte values represent in a single-byte encoding."""

    text: str
    is_invalid: Flags
    is_small: Flags
    is_capital: Flags
    is_letter: Flags
    is_sign: Flags


@cache
def _page(codec: str) -> _Page:
    import numpy as np

    text = "".join(bytes([byte]).decode(codec, "replace") for byte in range(256))
    return _Page(
        text,
        np.array([c == "\ufffd" or "\x80" <= c <= "\x9f" for c in text]),
        np.array([c.islower() for c in text]),
        np.array([c.isupper() for c in text]),
        np.array([c.isalpha() for c in text]),
        np.array([_is_sign(c) for c in text]),
    )


def _is_sign(character: str) -> bool:
    """Return whether a character is a non-ASCII symbol that does not occur inside words."""
    if character.isascii() or character.isalpha() or character == "’":
        return False
    return not unicodedata.category(character).startswith("M")


class _Letters(NamedTuple):
    """The letters in each language of an encoding, with one row per language.

    There is one column for each of the 256 byte values.
    """

    languages: Places
    """The indexes of the languages in the table of frequencies."""

    places: Places
    """The row of each letter in the table of its language, or 0 for letters of other languages."""

    extra: Costs
    """An additional cost for each byte, which is added to the cost of a pair."""


@cache
def _letters_of(codec: str) -> _Letters:
    import numpy as np

    text = _page(codec).text
    names = ALPHABETS[codec]
    places = np.array([_places(name, text) for name in names])
    extra = np.array([_sign_cost(character) for character in text], np.float32)
    languages = [_languages().index(name) for name in names]
    return _Letters(np.array(languages), places, np.where(places > 0, np.float32(0), extra))


def _places(language: str, text: str) -> list[int]:
    """Return the row of each character in the table of a language, or 0 if it is not a letter."""
    place = {letter: at for at, letter in enumerate(_alphabets()[language], 1)}
    return [place.get(character.lower(), 0) for character in text]


def _sign_cost(character: str, other: float = _OTHER) -> float:
    """Return the cost (negative log probability) of a character that is not a letter."""
    if character.isascii():
        return 0
    return _SIGN if character in _SIGNS else other


@cache
def _ascii_costs() -> Costs:
    """Return the average costs (negative log probabilities) of pairs of ASCII characters.

    The average is taken over all languages with Latin letters.
    """
    import numpy as np

    text = "".join([chr(byte) for byte in range(128)])
    tables = []
    for name in sorted(_LATIN):
        places = _places(name, text)
        tables.append(_pair_costs()[_languages().index(name)][np.ix_(places, places)])
    mean: Costs = np.mean(tables, axis=0)
    return mean


@cache
def _character_costs(language: str) -> dict[str, float]:
    names = _alphabets()[language]
    costs = _arrays()[language] / _STEP
    return dict(zip(names, costs.tolist(), strict=True))


def _cost_of_characters(sample: bytes, codec: str) -> float:
    """Return the cost (negative log probability) of a text in a multi-byte encoding."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(sample)
    except UnicodeDecodeError:
        return _IMPOSSIBLE
    costs = _character_costs(CHARACTERS[codec])
    is_without_kana = codec in _JAPANESE and not re.search("[ぁ-ヿ]", text)
    total = _WITHOUT_KANA if is_without_kana else 0.0
    for character, count in Counter(text).items():
        if character in costs:
            total += count * costs[character]
        else:
            total += count * _sign_cost(character, _UNKNOWN)
    return total
