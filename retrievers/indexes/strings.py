"""Texts as arrays of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .packing import pack, unpack

Bytes = npt.NDArray[np.uint8]


def join(texts: Sequence[str]) -> tuple[Bytes, Bytes]:
    """Write texts one after the other, and their lengths.

    Any text will do, also one with lone surrogates. Where all are hexadecimal, as digests are,
    two characters share a byte; so there are fewer bytes than characters only then.

    Returns:
        The texts' bytes and the packed lengths, both for ``split``.
    """
    whole = "".join(texts)
    try:
        data = bytes.fromhex(whole)
    except ValueError:
        data = b""
    if data.hex() != whole:
        data = whole.encode("utf-8", "surrogatepass")
    return np.frombuffer(data, np.uint8), pack([*map(len, texts)])


def split(data: Bytes, lengths: Bytes) -> list[str]:
    """Read the texts that ``join`` wrote.

    Raises:
        ValueError: If the lengths don't fit the texts.
    """
    ends = np.cumsum(unpack(lengths), dtype=np.int64)
    size = int(ends[-1]) if len(ends) else 0
    raw = data.tobytes()
    whole = raw.hex() if len(raw) < size else raw.decode("utf-8", "surrogatepass")
    if len(whole) != size:
        raise ValueError(f"the texts have {len(whole)} characters, not {size}")
    places = [0, *ends.tolist()]
    return [whole[begin:end] for begin, end in pairwise(places)]
