"""Analyse many texts, and say in which of them each term is."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_TEXTS = 1 << 16
"""Texts that may be inverted at a time."""

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class InvertedTexts:
    """Hold the terms of some texts, each with the texts that have it.

    Attributes:
        terms: Each term once.
        sizes: In how many texts each is, (terms,).
        rows: The numbers of these texts, ascending, term after term.
        counts: How often each has the term.
        lengths: How many terms each text has, (texts,).
    """

    terms: Sequence[str]
    sizes: Ints
    rows: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.unsignedinteger[Any]]
    lengths: Ints


def invert(texts: Sequence[str], analyze: Callable[[str], Iterable[str]]) -> InvertedTexts:
    """Analyse texts one by one.

    Args:
        texts: At most ``MAX_TEXTS``.
        analyze: Returns the terms of a text, each as often as it occurs.

    Example:
        >>> inverted = invert(["tea", "green tea"], str.split)
        >>> inverted.terms, inverted.sizes.tolist(), inverted.rows.tolist()
        (['tea', 'green'], [2, 1], [0, 1, 1])
    """
    numbers = _Numbers()
    tokens, lengths = array("q"), []
    for text in texts:
        before = len(tokens)
        tokens.extend(map(numbers.__getitem__, analyze(text)))
        lengths.append(len(tokens) - before)
    keys = np.frombuffer(tokens, np.int64) << 16
    keys |= np.repeat(np.arange(len(lengths)), lengths)
    _, sizes, rows, counts = count_keys(keys)
    return InvertedTexts(list(numbers), sizes, rows, counts, np.array(lengths, np.int32))


class _Numbers(dict[str, int]):
    """Number terms in the order in which they are seen."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


def count_keys(
    keys: npt.NDArray[np.int64],
) -> tuple[
    npt.NDArray[np.int64], Ints, npt.NDArray[np.uint16], npt.NDArray[np.unsignedinteger[Any]]
]:
    """Sort and count tokens: the number of a term times 65,536, plus that of a text, each.

    Returns:
        The numbers of the terms, ascending; in how many texts each is; these texts; how often
        each has the term.
    """
    keys = np.sort(keys)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(starts, append=len(keys))
    pairs = keys[starts]
    rows = (pairs & 0xFFFF).astype(np.uint16)
    pairs >>= 16
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    sizes = np.diff(firsts, append=len(pairs)).astype(np.int32)
    return pairs[firsts], sizes, rows, counts.astype(np.min_scalar_type(counts.max(initial=0)))
