"""Which node of a group has which term how often, and in how many nodes each is, in the store."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from ...nodegraph.store import NodeStore
from ...nodegraph.word_table import NodeTerms, TermFrequency, WordedNode, WordTotals

if TYPE_CHECKING:
    from ...nodegraph.word_table import Numbers

_PAGE = 256  # terms whose frequencies are stored together

_MAX_CACHED = 300_000  # numbers of terms in memory, above which the store is asked again

_HEAD = struct.Struct("<qQII")  # order, length, bytes of the id, terms


class WordStatistics:
    """Read and write the terms of a collection's nodes.

    Three kinds of values: the terms of each node by its key, the number of each term by its hash,
    and pages of how many nodes have each number. Changes are collected, and written by ``flush``;
    the caller does that in one transaction with what says that they are there.

    Args:
        store: The graph's store.
        collection: The collection's name.
        totals: Its totals.
    """

    def __init__(self, store: NodeStore, collection: str, totals: WordTotals) -> None:
        self._store = store
        self._nodes, self._terms, self._pages = (
            f"{collection} {kind}" for kind in ("nodes", "terms", "frequencies")
        )
        self.totals = totals
        self._last = totals.terms
        self._known: dict[str, int] = {}  # numbers of terms by hash
        self._frequencies: dict[int, Numbers] = {}  # pages that have changed
        self._put: dict[str, bytes] = {}
        self._gone: set[str] = set()
        self._new: dict[str, int] = {}

    # Reading

    def nodes(self, keys: Collection[str]) -> dict[str, NodeTerms]:
        """Return the terms of those nodes that are there, by key."""
        stored = self._store.get_values(self._nodes, keys)
        return {key: _unpacked(value) for key, value in stored.items()}

    def frequencies(self, terms: Collection[object]) -> dict[object, TermFrequency]:
        """Return the number of each term, and in how many nodes it is."""
        hashes = {term: _hash(term) for term in terms}
        stored = self._store.get_values(self._terms, [*{*hashes.values()}])
        numbers = {term: int(stored.get(key, b"0")) for term, key in hashes.items()}
        pages = self._read_pages({number // _PAGE for number in numbers.values() if number})
        return {
            term: TermFrequency(n, int(pages[n // _PAGE][n % _PAGE]) if n else 0)
            for term, n in numbers.items()
        }

    def _read_pages(self, pages: Collection[int]) -> dict[int, Numbers]:
        import numpy as np

        stored = self._store.get_values(self._pages, [*map(str, pages)]) if pages else {}
        result = {page: np.zeros(_PAGE, np.int64) for page in pages}
        for page, value in stored.items():
            result[int(page)] = np.frombuffer(zlib.decompress(value), "<i8").copy()
        return result

    # Writing

    def change(
        self, removed: Collection[str], added: Mapping[str, WordedNode]
    ) -> dict[str, NodeTerms]:
        """Collect a change: remove nodes by key, then add or replace nodes; return these.

        Args:
            removed: Keys, also unknown ones.
            added: Nodes by key.
        """
        import numpy as np

        numbers = self._numbers({term for row in added.values() for term in row.terms})
        old = self.nodes([*{*removed, *added}])
        nodes, length = self.totals.nodes - len(old), self.totals.length
        length -= sum(node.length for node in old.values())
        max_length = self.totals.longest
        changes = [(node.term_ids, -1) for node in old.values()]
        result: dict[str, NodeTerms] = {}
        for key, row in added.items():
            of_node = np.fromiter((numbers[term] for term in row.terms), np.int64, len(row.terms))
            positions = np.argsort(of_node)
            changes.append((of_node, 1))
            node = NodeTerms(
                row.id, row.order, row.length, of_node[positions], row.counts[positions]
            )
            self._put[key] = _packed(node)
            result[key] = node
            nodes, length, max_length = nodes + 1, length + row.length, max(max_length, row.length)
        self._gone |= old.keys() - added.keys()
        self._count(changes)
        self.totals = WordTotals(nodes, length, max_length, self._last)
        return result

    def _numbers(self, terms: Collection[object]) -> dict[object, int]:
        """Return the number of each term; new ones get the next."""
        hashes = {term: _hash(term) for term in terms}
        existing = self._known
        if missing := [key for key in hashes.values() if key not in existing]:
            stored = self._store.get_values(self._terms, missing)
            existing.update((key, int(number)) for key, number in stored.items())
            for key in missing:
                if key not in existing:
                    self._last += 1
                    existing[key] = self._new[key] = self._last
        return {term: existing[key] for term, key in hashes.items()}

    def _count(self, changes: Iterable[tuple[Numbers, int]]) -> None:
        import numpy as np

        by_step = {1: [np.zeros(0, np.int64)], -1: [np.zeros(0, np.int64)]}
        for numbers, step in changes:
            by_step[step].append(numbers)
        for step, parts in by_step.items():
            numbers, counts = np.unique(np.concatenate(parts), return_counts=True)
            pages, starts = np.unique(numbers // _PAGE, return_index=True)
            self._frequencies.update(self._read_pages({*pages.tolist()} - self._frequencies.keys()))
            ends = np.append(starts, len(numbers))[1:]
            for page, start, end in zip(pages.tolist(), starts, ends, strict=True):
                positions = numbers[start:end] % _PAGE
                self._frequencies[page][positions] += step * counts[start:end]

    def flush(self, *, frequencies: bool = True) -> None:
        """Write what was collected.

        Args:
            frequencies: Also the frequencies, of which each batch of many changes most: they may
                wait for the last.
        """
        with self._store.transaction():
            self._store.put_values(self._nodes, self._put)
            if self._gone:
                self._store.delete_values(self._nodes, [*self._gone])
            if self._new:
                as_bytes = {key: str(number).encode() for key, number in self._new.items()}
                self._store.put_values(self._terms, as_bytes)
            if frequencies and self._frequencies:
                pages = {
                    str(page): zlib.compress(counts.astype("<i8").tobytes(), 1)
                    for page, counts in self._frequencies.items()
                }
                self._store.put_values(self._pages, pages)
        self._put, self._gone, self._new = {}, set(), {}
        if len(self._known) > _MAX_CACHED:
            self._known = {}

    def delete(self) -> None:
        """Delete everything."""
        with self._store.transaction():
            for kind in (self._nodes, self._terms, self._pages):
                self._store.delete_values(kind)


def _hash(term: object) -> str:
    """Hash a term, which is a text for most analyzers."""
    text = f"t{term}" if isinstance(term, str) else f"o{term!r}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _packed(node: NodeTerms) -> bytes:
    """Return a node as bytes: numbers as the steps between them, bytes of one rank together."""
    import numpy as np

    node_id = node.id.encode("utf-8", "surrogatepass")
    head = _HEAD.pack(node.order, node.length, len(node_id), len(node.term_ids))
    both = np.concatenate([np.diff(node.term_ids, prepend=0), node.counts]).astype("<u4")
    ranks = both.view(np.uint8).reshape(-1, 4).T.tobytes()
    return head + node_id + zlib.compress(ranks, 1)


def _unpacked(value: bytes) -> NodeTerms:
    import numpy as np

    order, length, size, terms = _HEAD.unpack_from(value)
    start = _HEAD.size + size
    ranks = np.frombuffer(zlib.decompress(value[start:]), np.uint8).reshape(4, -1)
    both = np.ascontiguousarray(ranks.T).view("<u4").ravel().astype(np.int64)
    node_id = value[_HEAD.size : start].decode("utf-8", "surrogatepass")
    return NodeTerms(node_id, order, length, np.cumsum(both[:terms]), both[terms:])
