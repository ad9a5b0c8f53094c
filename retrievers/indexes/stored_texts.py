"""A list of texts in a file, from which single texts can be read and looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, smallest, stored
from .stored_array import Array, StoredArray

_MAX_EQUAL = 64  # the maximum number of equal hashes in a valid file

_HASH_BYTES = 4

_ID_BYTES = 12

Places = npt.NDArray[np.int64]

Hashes = npt.NDArray[np.uint32]


class StoredTexts:
    """A list of texts in a file. A text is decoded when it is read.

    Args:
        data: The texts in UTF-8, concatenated.
        ends: The end of each text in the data.
    """

    def __init__(self, data: StoredArray, ends: StoredArray) -> None:
        self._data = data
        self._view = data.array.data
        self._ends = ends

    @classmethod
    def from_arrays(cls, arrays: Arrays, name: str) -> StoredTexts:
        """Restore texts from the result of ``pack_texts``.

        Raises:
            ValueError: If an array is missing, or has the wrong type.
        """
        data = stored(arrays, name, np.uint8, None)
        if f"{name}_ends" not in arrays:
            return StoredIds(data)
        return cls(data, stored(arrays, f"{name}_ends", np.unsignedinteger, None))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> str:
        start = self._ends.item(place - 1) if place else 0
        return self._text(start, self._ends.item(place))

    def take(self, places: Places) -> list[str]:
        """Return the texts at the given positions.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        ends = self._ends.take(places).astype(np.int64)
        starts = self._ends.take(np.maximum(places, 1) - 1).astype(np.int64)
        starts[places == 0] = 0
        self._check_spans(starts, ends)
        self._data.check(starts, ends)
        return [self._decoded(*span) for span in zip(starts.tolist(), ends.tolist(), strict=True)]

    def all(self) -> list[str]:
        """Return all texts.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        data = self._data.whole().tobytes()
        ends = self._ends.whole().astype(np.int64)
        starts = np.append(0, ends[:-1]) if len(ends) else ends
        self._check_spans(starts, ends)
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        if data.isascii():
            text = data.decode("ascii")
            return [text[start:end] for start, end in spans]
        return [self._decoded(start, end) for start, end in spans]

    def _check_spans(self, starts: Places, ends: Places) -> None:
        if np.any((starts > ends) | (ends > len(self._data))):
            self._ends.refuse("it must ascend within the data")

    def _text(self, start: int, end: int) -> str:
        if not start <= end <= len(self._view):
            self._ends.refuse("it must ascend within the data")
        self._data.part(start, end)
        return self._decoded(start, end)

    def _decoded(self, start: int, end: int) -> str:
        try:
            return str(self._view[start:end], "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            self._data.refuse(str(error))

    def arrays(self, name: str, more: Sequence[str]) -> Arrays:
        """Return these texts and additional texts as arrays for a file.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        former = self._data.whole()
        ends = self._ends.whole()
        if not more:
            return {name: former, f"{name}_ends": ends}
        added = _pack_as_text(name, more)
        of_added = added[f"{name}_ends"].astype(np.int64) + len(former)
        return {
            name: np.concatenate([former, added[name]]),
            f"{name}_ends": smallest(np.concatenate([ends.astype(np.int64), of_added])),
        }


class StoredIds(StoredTexts):
    """A list of generated node ids in a file, which are stored as bytes instead of text.

    Args:
        data: The ids, concatenated.

    Raises:
        ValueError: If the data ends within an id.
    """

    def __init__(self, data: StoredArray) -> None:
        if len(data) % _ID_BYTES:
            raise ValueError(
                f"the length of stored ids must be a multiple of {_ID_BYTES} bytes, got {len(data)}"
            )
        self._data = data
        self._rows = data.array.reshape(-1, _ID_BYTES)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> str:
        start = place * _ID_BYTES
        return self._data.part(start, start + _ID_BYTES).tobytes().hex()

    def take(self, places: Places) -> list[str]:
        """Return the ids at the given positions.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        starts = places * _ID_BYTES
        self._data.check(starts, starts + _ID_BYTES)
        return _as_ids(self._rows.take(places, axis=0).tobytes())

    def all(self) -> list[str]:
        """Return all ids.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        return _as_ids(self._data.whole().tobytes())

    def arrays(self, name: str, more: Sequence[str]) -> Arrays:
        """Return these ids and additional texts as arrays for a file.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        if not _are_ids(more):
            return _pack_as_text(name, [*self.all(), *more])
        return {name: np.concatenate([self._data.whole(), _id_bytes(more)])}


class TextLookup:
    """A lookup of the positions of texts in a file.

    The hashes of the texts are sorted, so that a lookup reads only a few values.

    Args:
        texts: The texts. Some of them can be missing from the lookup.
        hashes: The hashes of the texts, in ascending order.
        places: For each hash, the position of its text.
    """

    def __init__(self, texts: StoredTexts, hashes: StoredArray, places: StoredArray) -> None:
        self._texts = texts
        self._hashes = hashes
        self._places = places

    @classmethod
    def from_arrays(cls, arrays: Arrays, name: str, texts: StoredTexts) -> TextLookup:
        """Restore a lookup from the result of ``pack_lookup``.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
        """
        hashes = stored(arrays, f"{name}_hashes", np.uint32, None)
        places = stored(arrays, f"{name}_places", np.unsignedinteger, len(hashes))
        return cls(texts, hashes, places)

    def find(self, texts: Sequence[str]) -> list[int]:
        """Return the position of each text, or -1 if a text is not in the list.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        if len(texts) == 1:
            return [self.find_one(texts[0])]
        hashes = hashes_of(texts)
        first = self._hashes.array.searchsorted(hashes)
        return [
            self._place(text, hashed, at)
            for text, hashed, at in zip(texts, hashes.tolist(), first.tolist(), strict=True)
        ]

    def find_one(self, text: str) -> int:
        """Return the position of a text, or -1 if the text is not in the list.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        hashed = int.from_bytes(_hash_of(text), "little")
        at = int(self._hashes.array.searchsorted(np.uint32(hashed)))
        return self._place(text, hashed, at)

    def _place(self, text: str, hashed: int, at: int) -> int:
        """Return the position of a text.

        Args:
            text: The text.
            hashed: The hash of the text.
            at: The number of hashes that are lower.
        """
        number = at
        hashes = self._hashes
        size = len(hashes.array)
        while number < size and hashes.item(number) == hashed:
            if number == at + _MAX_EQUAL:
                hashes.refuse("too many values are equal")
            place: int = self._places.item(number)
            self._check_place(place)
            if self._texts[place] == text:
                return place
            number += 1
        self._check_missing(hashed, at, number)
        return -1

    def _check_missing(self, hashed: int, first: int, last: int) -> None:
        """Verify that a hash is really missing, by comparing it with the hash before or after it.

        Args:
            hashed: The hash.
            first: The number of hashes that are lower.
            last: The number of hashes that are lower or equal.

        Raises:
            MissingNodeError: If this neighboring hash is wrong.
        """
        if first:
            is_right = self._checked_hash(first - 1) < hashed
        elif last < len(self._hashes):
            is_right = self._checked_hash(last) > hashed
        else:
            is_right = True
        if not is_right:
            self._hashes.refuse("it must ascend")

    def _checked_hash(self, number: int) -> int:
        """Return a hash after verifying that it belongs to its text."""
        place = self._places.item(number)
        self._check_place(place)
        hashed: int = self._hashes.item(number)
        if hashes_of([self._texts[place]]) != hashed:
            self._hashes.refuse(f"the hash of text {place} differs")
        return hashed

    def pairs(self) -> tuple[Hashes, Places]:
        """Return the hash and the position of each text.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        places = self._places.whole().astype(np.int64)
        self._check_place(int(places.max(initial=-1)))
        return self._hashes.whole(), places

    def _check_place(self, place: int) -> None:
        if place >= len(self._texts):
            self._places.refuse(f"{place} of {len(self._texts)}")


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Return a 4-byte hash of each text.

    Different texts can have the same hash. With enough computing power, many such texts can be
    constructed. If an index contains more than 64 of them, it is rebuilt instead of read.
    """
    return np.frombuffer(b"".join([_hash_of(text) for text in texts]), "<u4")


def _hash_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


def pack_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Convert a list of texts to arrays for a file.

    Example:
        >>> StoredTexts.from_arrays(pack_texts("names", ["tea", "长江"]), "names").all()
        ['tea', '长江']
    """
    if texts and _are_ids(texts):
        return {name: _id_bytes(texts)}
    return _pack_as_text(name, texts)


def _pack_as_text(name: str, texts: Sequence[str]) -> Arrays:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {name: np.frombuffer(b"".join(encoded), np.uint8), f"{name}_ends": smallest(ends)}


def _are_ids(texts: Sequence[str]) -> bool:
    """Return whether all texts are generated ids."""
    if any([len(text) != 2 * _ID_BYTES for text in texts]):
        return False
    joined = "".join(texts)
    try:
        return bytes.fromhex(joined).hex() == joined
    except ValueError:
        return False


def _id_bytes(ids: Sequence[str]) -> Array:
    return np.frombuffer(bytes.fromhex("".join(ids)), np.uint8)


def _as_ids(data: bytes) -> list[str]:
    """Convert concatenated bytes to the ids that they encode."""
    digits = data.hex()
    size = 2 * _ID_BYTES
    return [digits[start : start + size] for start in range(0, len(digits), size)]


def pack_lookup(name: str, hashes: Hashes, places: Places) -> Arrays:
    """Convert a lookup of texts to arrays for a file.

    Args:
        name: The name of the texts.
        hashes: The hashes of the texts.
        places: The positions of the texts in their list.

    Example:
        >>> names = ["tea", "长江", "cup"]
        >>> lookup = pack_lookup("names", hashes_of(names), np.arange(3))
        >>> arrays = {**pack_texts("names", names), **lookup}
        >>> texts = StoredTexts.from_arrays(arrays, "names")
        >>> TextLookup.from_arrays(arrays, "names", texts).find(["cup", "tea", "milk"])
        [2, 0, -1]
    """
    order = np.argsort(hashes, kind="stable")
    of_hashes = smallest(places.take(order))
    return {f"{name}_hashes": hashes.take(order), f"{name}_places": of_hashes}
