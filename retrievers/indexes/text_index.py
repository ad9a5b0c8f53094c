"""The inverted index of one group: kept in step with the graph, searched for the best slots."""

from __future__ import annotations

import logging
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import Stemmer

from ...nodegraph import Changes, NodeGraph
from ...nodegraph.hashing import digest, fingerprint
from ...nodegraph.progress import track
from ..filters import Condition
from ..results import Hits
from ..text_analyzer import Analyzer
from . import array_files
from .array_files import pack, unpack
from .max_score import Posting, TermWeights, best_slots
from .node_table import Slots
from .postings import Postings

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int32]

_LONG = 1_000  # nodes whose indexing is worth showing

_KEPT = 4_000_000  # postings that are kept weighed, at least

_GAPS = 1_000  # empty slots beyond which closing the gaps is thought of

# Changes that the file lacks: beyond so many, and that share of the nodes, it is written at once;
# with fewer than the last number it is not even when the graph is closed.
_UNSAVED = 1_000

_UNSAVED_SHARE = 8

_WORTH_SAVING = 250

# Count up when TextAnalyzer gives other terms: what was analysed before is made again then.
_ANALYSIS = 1


class TextIndex:
    """Find the nodes of a group that share terms with a query.

    Adding, changing and removing nodes costs what those nodes cost, amortised; the statistics
    are always those of the nodes that are there. Call ``sync`` and ``search`` while the graph is
    held (``graph.reading``).

    Where the graph has a place for it (``graph.index_file``) the index is kept in a file, which
    is used when it fits the graph and the analyzer, and brought up to date from there.
    """

    def __init__(self, graph: NodeGraph, group: str, analyzer: Analyzer) -> None:
        self._graph = graph
        self._group = group
        self._analyzer = analyzer
        self._syncing = threading.Lock()
        self._local = threading.local()
        self._fingerprint: str | None = None  # None until it is needed
        self._clear()

    def _clear(self) -> None:
        self.slots = Slots()
        self.total_length = 0
        self._postings = Postings()
        self._lengths: Ints = np.zeros(0, np.int32)
        self._known: dict[str, Posting] = {}
        self._known_size = 0
        self._frequencies: Ints | None = None
        self._revision = 0
        self._unsaved = 0

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.slots.living

    def ready(self) -> None:
        """Do nothing: texts are analysed when they are taken in."""

    def sync(self) -> None:
        """Take in what has changed in the graph since the last time."""
        if self._revision == self._graph.revision(self._group):
            return
        with self._syncing:
            if self._revision == self._graph.revision(self._group):
                return
            try:
                if not self._revision:
                    self._load()
                self._apply(self._graph.changes(self._group, self._revision))
            except BaseException:  # an analyzer that raises, Ctrl-C: nothing half done stays
                self._clear()
                raise
            if self._unsaved > _UNSAVED + self.size // _UNSAVED_SHARE:
                self._save()

    def close(self) -> None:
        """Keep what is worth keeping; the index can be used on."""
        with self._syncing:
            if self._unsaved > _WORTH_SAVING:
                self._save()

    def document_frequency(self, term: str) -> int:
        """Return in how many nodes a term is."""
        return len(self.posting(term).slots)

    def document_frequencies(self) -> Ints:
        """Return that for every term of the index, ascending."""
        if self._frequencies is None:
            self._frequencies = np.sort(self._postings.document_frequencies(self.slots.alive))
        return self._frequencies

    def search(
        self, query: TermWeights, limit: int | None, conditions: Mapping[str, Condition]
    ) -> Hits:
        """Return the best nodes, ties in document order.

        The heaviest terms are added up first, in every index that is searched for the query, so
        that equal nodes have equal scores wherever they are.

        Args:
            query: From ``Bm25.prepare``, for this index among others.
            limit: How many; None for all that share a term.
            conditions: What their metadata must meet.
        """
        terms = sorted(query.weights.items(), key=lambda item: (-item[1], item[0]))
        every = [(weight, self.posting(term)) for term, weight in terms]
        postings = [(weight, posting) for weight, posting in every if len(posting.slots)]
        slots, allowed = self.slots, self.slots.matching(conditions)
        with self._scratch() as scratch:
            found, scores = best_slots(
                postings, query.saturation, scratch, limit, allowed, slots.orders
            )
        return Hits([slots.ids[slot] for slot in found.tolist()], scores.tolist())

    def _apply(self, changes: Changes) -> None:
        if changes.complete:
            self._clear()
        gone = self.slots.remove(changes.removed)
        self.total_length -= int(self._lengths[gone].sum())
        self._add(changes)
        if len(self.slots) > 2 * self.slots.living + _GAPS:
            alive = self.slots.alive
            self._lengths = self._lengths[: len(alive)][alive]
            self._postings.compact(alive)
            self.slots.compact()
        self._known, self._known_size, self._frequencies = {}, 0, None
        self._revision = changes.revision
        self._unsaved += len(changes.added) + len(changes.removed)

    def _add(self, changes: Changes) -> None:
        first = self.slots.add(changes.added)
        new = changes.added
        show = self._graph.progress if len(new) >= _LONG else False
        shown = track(new, len(new), f"indexing {self._group}", " nodes", show)
        texts = (self._analyzer(node.text) for node in shown)
        lengths = self._postings.extend(first, texts)
        self.total_length += sum(lengths)
        room = len(self.slots) - len(self._lengths)
        if room > 0:
            self._lengths = np.concatenate(
                [self._lengths, np.zeros(max(room, len(self._lengths)), np.int32)]
            )
        self._lengths[first : len(self.slots)] = lengths

    def posting(self, term: str) -> Posting:
        """Return a term's living postings, kept for the next query until they are many."""
        posting = self._known.get(term)
        if posting is None:
            slots, counts = self._postings.get(term)
            if self.slots.living < len(self.slots):
                alive = self.slots.alive[slots]
                slots, counts = slots[alive], counts[alive]
            if self._known_size > _KEPT + len(self._postings) // 4:
                self._known, self._known_size = {}, 0
            posting = self._known[term] = Posting(slots, counts, self._lengths)
            self._known_size += len(slots)
        return posting

    @contextmanager
    def _scratch(self) -> Iterator[Floats]:
        """Lend this thread's array of zeros, one a slot, to be given back as zeros."""
        scratch: Floats | None = getattr(self._local, "scratch", None)
        self._local.scratch = None  # what is interrupted leaves no half sums behind
        if scratch is None or len(scratch) < len(self.slots):
            scratch = np.zeros(len(self.slots) * 5 // 4)
        yield scratch[: len(self.slots)]
        self._local.scratch = scratch

    # The file

    def _file(self) -> Path | None:
        """Return where the index is kept, None where the graph has no place for it."""
        if self._graph.index_file("text") is None:
            return None
        if self._fingerprint is None:  # not before: a large analyzer takes its time
            self._fingerprint = fingerprint(self._analyzer)
        return self._graph.index_file(f"text-{digest(self._group, self._fingerprint)}")

    def _header(self) -> dict[str, Any]:
        """Return what has to be equal for the file to be of use."""
        return {
            "kind": "text",
            "group": self._group,
            "analyzer": self._fingerprint,
            "analysis": [_ANALYSIS, unicodedata.unidata_version, Stemmer.version()],
        }

    def _save(self) -> None:
        """Write the file; what prevents it is logged, since the index can be made again."""
        self._unsaved = 0
        try:
            path = self._file()
            if path is not None:
                arrays = {**self.slots.arrays(), **self._postings.arrays()}
                arrays["lengths"] = pack(self._lengths[: len(self.slots)])
                array_files.save(path, {**self._header(), "revision": self._revision}, arrays)
        except TypeError as error:
            logger.debug("the index of group %r is not kept: %s", self._group, error)
        except Exception as error:
            logger.warning("the index of group %r could not be kept: %s", self._group, error)

    def _load(self) -> None:
        """Become what was kept, where it fits; else stay empty."""
        path: Path | None = None
        try:
            path = self._file()
            kept = None if path is None else array_files.load(path)
            if kept is not None:
                self._take(*kept)
        except Exception as error:  # whatever is in the file, the index can be made again
            logger.warning("the index in %s does not fit, and is made again: %s", path, error)
            self._clear()

    def _take(self, header: Mapping[str, Any], arrays: array_files.Arrays) -> None:
        expected = self._header()
        if {name: header.get(name) for name in expected} != expected:
            logger.debug("a kept index is of %r, not of %r", header, expected)
            return
        slots, postings = Slots.from_arrays(arrays), Postings.from_arrays(arrays)
        lengths = unpack(arrays["lengths"]).view(np.int32)
        if len(lengths) != len(slots):
            raise ValueError(f"it has the lengths of {len(lengths)} nodes of {len(slots)}")
        self.slots, self._postings, self._lengths = slots, postings, lengths
        self.total_length = int(lengths[slots.alive].sum())
        self._revision = int(header["revision"])
