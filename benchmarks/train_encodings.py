"""Create the table of letter frequencies for encoding detection, ``nodegraph/readers/letters.npz``.

The frequencies of letters and letter pairs come from lingua (``pip install
"lingua-language-detector<2" brotli``), where they were counted in news texts (Apache License 2.0).
No text from ``benchmarks/encodings.py`` is used. ``python benchmarks/train_encodings.py`` takes
about a minute.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

ALPHABETS = (
    "ar be bg ca cs da de el en es et fa fi fr he hr hu is it lt lv mk nb nl pl pt ro ru sk sl sq "
    "sr sv th tr uk vi"
).split()
"""Languages that are written with an alphabet. For these, letter pairs are counted."""

CHARACTERS = {"ja": 3000, "ko": 2000, "zh": 6000}
"""Languages with many characters, and the number of their most frequent characters to keep."""

TARGET = Path(__file__).parents[1] / "nodegraph" / "readers" / "letters.npz"

STEP = 8
"""The scale of the costs in the table. A cost is the negative natural logarithm of a probability,
multiplied by this number."""

TONES = "\u0300\u0301\u0303\u0309\u0323"


def counts(language: str, kind: str) -> Counter[str]:
    """Return the relative frequencies of the n-grams of a language."""
    import brotli

    path = files("lingua") / "language-models" / language / f"{kind}.json.br"
    grams = json.loads(brotli.decompress(path.read_bytes()))["ngrams"]
    found: Counter[str] = Counter()
    for fraction, names in grams.items():
        above, below = fraction.split("/")
        for name in names.split(" "):
            found[name] += int(above) / int(below)
    return found


def split_tones(text: str) -> str:
    """Separate the tone marks from the letters of a Vietnamese text, as in Windows-1258."""
    made = ""
    for character in text:
        parts = unicodedata.normalize("NFD", character)
        tones = "".join(part for part in parts if part in TONES)
        rest = "".join(part for part in parts if part not in TONES)
        made += unicodedata.normalize("NFC", rest) + tones
    return made


def pairs(language: str) -> tuple[str, npt.NDArray[np.uint8]]:
    """Return the letters of a language, and a table with the costs of letter pairs.

    The row is the first letter of a pair, and the column is the second letter. Row 0 and column 0
    represent all characters that are not letters of the language.
    """
    single = counts(language, "unigrams")
    double: Counter[str] = Counter()
    # lingua contains the conditional probability of a pair, given its first letter.
    for pair, share in counts(language, "bigrams").items():
        weight = share * single[pair[0]]
        text = split_tones(pair) if language == "vi" else pair
        for at in range(len(text) - 1):
            double[text[at : at + 2]] += weight
    totals: Counter[str] = Counter()
    for pair, weight in double.items():
        totals[pair[1]] += weight
    letters = "".join(letter for letter, count in totals.most_common(90) if count > 2e-6)
    place = {letter: at for at, letter in enumerate(letters, 1)}
    table = np.full((len(letters) + 1, len(letters) + 1), 1e-7)
    for pair, weight in double.items():
        if pair[0] in place and pair[1] in place:
            table[place[pair[0]], place[pair[1]]] += weight
    inside = table[1:, 1:]
    # lingua does not count the ends of words. On average, five of six letters are followed by a
    # letter.
    table[1:, 0] = inside.sum(axis=1) / 5
    table[0, 1:] = inside.sum(axis=0) / 5
    table[0, 0] = inside.sum() / 40
    shares = table / table.sum(axis=1, keepdims=True)
    return letters, quantized(np.maximum(shares, 1e-6))


def quantized(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Convert probabilities to costs, rounded to integers from 0 to 255."""
    return np.minimum(np.round(-np.log(shares) * STEP), 255).astype(np.uint8)


def characters(language: str, count: int) -> tuple[str, npt.NDArray[np.uint8]]:
    """Return the most frequent characters of a language and their costs."""
    common = counts(language, "unigrams").most_common(count)
    total = math.fsum(share for _, share in common)
    shares = np.array([share / total for _, share in common])
    return "".join(letter for letter, _ in common), quantized(shares)


def main() -> None:
    """Compute the table and write it to a file."""
    arrays: dict[str, npt.NDArray[np.uint8]] = {}
    letters: dict[str, str] = {}
    for language in ALPHABETS:
        letters[language], arrays[language] = pairs(language)
    for language, count in CHARACTERS.items():
        letters[language], arrays[language] = characters(language, count)
    text = json.dumps(letters, ensure_ascii=False).encode()
    np.savez_compressed(TARGET, letters=np.frombuffer(text, np.uint8), **arrays)
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes, {len(letters)} languages")


if __name__ == "__main__":
    main()
