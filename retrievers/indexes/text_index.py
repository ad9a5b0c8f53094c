"""The inverted index of a group: postings, statistics, search for the best nodes."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import Stemmer

from ...nodegraph.concurrency import track
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import Node
from ..analysis.inversion import MOST_TEXTS, InvertedTexts, invert
from ..analysis.text_analyzer import Analyzer
from ..filters import Filter
from ..results import Hits
from .accelerator import WORTH_LOADING, accelerator
from .array_files import Arrays
from .compiled_search import can_search, compiled_best_rows
from .impact_lists import Floats, ImpactLists, Ints, QueryLists, Saturation
from .max_score import Scratch, TermWeights, best_rows
from .node_table import NodeTable
from .postings import Postings
from .synced_index import SyncedIndex

_LONG = 1_000  # nodes whose indexing is worth a progress bar

# Postings that are cached with what they add to scores, at eight bytes each: so many, and this
# share of all. A million passages have 90 million, and questions soon want half of them.
_CACHED = 4_000_000

_CACHED_SHARE = 8

_MOST_FREQUENCIES = 100_000  # terms of which it is remembered in how many nodes they are

_MOST_UNWEIGHED = 10_000  # terms whose postings are cached until a search weighs them

_MOST_SATURATIONS = 2  # settings by which postings are cached

_PORTION = 4_096  # nodes that are held at a time

_BATCH = 1_000_000  # characters that are analysed together

# Count up when TextAnalyzer returns other terms: older files are rebuilt then.
_ANALYSIS = 3


class DocumentFrequency(dict[str, int]):
    """Tell in how many nodes a term is, for one state of an index, and remember it.

    A dictionary, so that a term that it contains costs no call.

    Args:
        count: Counts the nodes of a term.

    Attributes:
        memo: What analyzers remember of the state; see ``TextAnalyzer.weigh``.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count
        self.memo: dict[object, Any] = {}

    def __missing__(self, term: str) -> int:
        if len(self) > _MOST_FREQUENCIES:
            self.clear()
        self[term] = number = self._count(term)
        return number

    __call__ = dict.__getitem__


class TermStatistics(Protocol):
    """What a query is weighed by, for one state of an index."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        ...

    @property
    def total_length(self) -> int:
        """How many terms all nodes have together."""
        ...

    @property
    def frequency(self) -> DocumentFrequency:
        """In how many nodes a term is."""
        ...


class TextIndex(SyncedIndex):
    """Search the nodes of a group that share terms with a query.

    Adding, changing and removing nodes costs what those nodes cost, amortised; the statistics
    are always those of the nodes that are in the group now. Call ``sync`` and ``search`` while
    the graph is held (``graph.reading``).

    Where the graph has a folder for it (``graph.index_file``) the index is stored in a file,
    which is used while group and analyzer are the same.

    Attributes:
        table: The nodes by row.
        total_length: How many terms all nodes have together.
        frequency: In how many nodes a term is, as they are now.
    """

    uses_search_text = True
    streams = True
    maps_file = True

    def __init__(self, graph: NodeGraph, group: str, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._fingerprint: str | None = None  # of the analyzer; None until it is needed
        self._local = threading.local()
        self._searched = 0  # nodes, over all queries, without compiled loops
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove everything."""
        self.table = NodeTable()
        self.total_length = 0
        self._postings = Postings()
        self._lengths: Ints = np.zeros(0, np.int32)
        self._clear_cache()

    def _clear_cache(self) -> None:
        self._weighed: dict[Saturation, ImpactLists] = {}
        self._latest: ImpactLists | None = None
        self._unweighed: dict[str, tuple[Ints, Ints]] = {}
        self.frequency = DocumentFrequency(self._count)
        self._frequencies: Ints | None = None

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.table.living

    # Searching

    def statistics(self, query: str) -> TextIndex:
        """Return what a query is weighed by: itself."""
        return self

    def document_frequency(self, term: str) -> int:
        """Return in how many nodes a term is."""
        return self.frequency[term]

    def _count(self, term: str) -> int:
        if len(self._unweighed) > _MOST_UNWEIGHED:
            self._unweighed = {}
        postings = self._unweighed[term] = self.postings(term)
        return len(postings[0])

    def document_frequencies(self) -> Ints:
        """Return that for every term of the index, ascending."""
        if self._frequencies is None:
            self._frequencies = np.sort(self._postings.document_frequencies(self.table.alive))
        return self._frequencies

    def search(self, query: TermWeights, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes, ties in document order.

        The heaviest terms are added up first, in every index that is searched for the query, so
        that equal nodes have equal scores in all of them.

        Args:
            query: From ``Bm25.prepare``, for this index among others.
            limit: How many; None for all that share a term.
            filter: What their metadata must meet.
        """
        table = self.table
        orders = table.orders
        kernel = accelerator.loaded
        if kernel is None:
            self._searched += len(orders)
            if self._searched >= WORTH_LOADING:
                kernel = accelerator.kernel()
        lists, matching = self._lists(query), table.matching(filter)
        scratch = self._take_scratch(len(orders))
        if kernel is not None and can_search(lists, limit):
            rows, scores = compiled_best_rows(kernel, lists, scratch, limit, matching, orders)
        else:
            rows, scores = best_rows(lists, scratch, limit, matching, orders)
        self._local.scratch = scratch
        return Hits(table.ids.take(rows), scores.tolist())

    def _lists(self, query: TermWeights) -> QueryLists:
        """Return the query's terms, weighed, the heaviest first."""
        weight_of = query.weights.__getitem__
        terms = sorted(sorted(query.weights), key=weight_of, reverse=True)  # ties by the terms
        weighed = self._impact_lists(query.saturation)
        slots = weighed.slots(terms, self._read)
        weights = np.array([*map(weight_of, terms)])
        return QueryLists(weighed.arrays, np.array(slots, np.int64), weights)

    def _impact_lists(self, saturation: Saturation) -> ImpactLists:
        lists = self._latest
        if lists is None or lists.full or lists.saturation is not saturation:
            lists = self._weighed.get(saturation)
            if lists is None or lists.full:
                if len(self._weighed) >= _MOST_SATURATIONS:
                    self._weighed = {}
                most = _CACHED + len(self._postings) // _CACHED_SHARE
                lists = self._weighed[saturation] = ImpactLists(saturation, self._lengths, most)
            self._latest = lists
        return lists

    def _read(self, term: str) -> tuple[Ints, Ints]:
        return self._unweighed.pop(term, None) or self.postings(term)

    def impacts(self, term: str, saturation: Saturation) -> tuple[Ints, Floats]:
        """Return the rows of a term, and what it adds to each for a weight of 1."""
        lists = self._impact_lists(saturation)
        (slot,) = lists.slots([term], self._read)
        begin, end = lists.arrays.starts[slot : slot + 2]
        return lists.arrays.rows[begin:end], lists.arrays.impacts(begin, end)

    def postings(self, term: str) -> tuple[Ints, Ints]:
        """Return the living rows of a term, ascending, and how often each has it."""
        rows, counts = self._postings.get(term)
        if self.table.living < len(self.table):
            alive = self.table.alive[rows]
            rows, counts = rows[alive], counts[alive]
        return rows, counts

    def _take_scratch(self, rows: int) -> Scratch:
        """Take this thread's arrays, which are put back when they are zeros again.

        An interrupt must not leave partial sums in them for the next search.
        """
        scratch: Scratch | None = getattr(self._local, "scratch", None)
        self._local.scratch = None
        if scratch is None or len(scratch.sums) < rows:
            size = rows * 5 // 4
            scratch = Scratch(np.zeros(size), np.empty(size + 1, np.int32))
        return scratch

    # Following the graph

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes; their postings stay until gaps are closed."""
        rows = self.table.remove(ids)
        self.total_length -= int(self._lengths[rows].sum())

    def add(self, nodes: Sequence[Node], prepared: None = None) -> None:
        """Analyse and add nodes."""
        first = len(self.table)
        show = self._graph.progress if len(nodes) >= _LONG else False
        tracked = track(nodes, len(nodes), f"indexing {self._group}", " nodes", show)
        texts = chain.from_iterable(map(self._added, _portions(tracked)))
        lengths = self._postings.extend(first, map(self._invert, batches(texts)))
        self.total_length += int(lengths.sum())
        missing = len(self.table) - len(self._lengths)
        if missing > 0:
            growth = np.zeros(max(missing, len(self._lengths)), np.int32)
            self._lengths = np.concatenate([self._lengths, growth])
        self._lengths[first : len(self.table)] = lengths

    def _added(self, nodes: Sequence[Node]) -> list[str]:
        """Number nodes; return their texts."""
        self.table.add(nodes)
        return self._graph.reader.searched_texts(nodes)

    def _invert(self, texts: Sequence[str]) -> InvertedTexts:
        return inverted(self._analyzer, texts)

    def finish(self) -> None:
        """Close gaps, and drop what was computed for queries."""
        if self.table.sparse:
            alive = self.table.alive
            self._lengths = self._lengths[: len(alive)][alive]
            self._postings.compact(alive)
            self.table.compact()
        self._clear_cache()

    # The file

    def file_name(self) -> str:
        """Return the file's name, one for each analyzer."""
        if self._fingerprint is None:  # not before: a large analyzer takes its time
            self._fingerprint = fingerprint(self._analyzer)
        return f"text-{self._fingerprint}"

    def header(self) -> dict[str, Any]:
        """Return the settings that a stored index must have been built with."""
        return {
            "kind": "text",
            "analyzer": self._fingerprint,
            "analysis": analysis_version(),
        }

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        lengths = self._lengths[: len(self.table)]
        return {**self.table.arrays(), **self._postings.arrays(), "lengths": lengths}

    def restore(self, arrays: Arrays) -> None:
        """Set the empty index to what ``arrays`` returned."""
        table, postings = NodeTable.from_arrays(arrays), Postings.from_arrays(arrays)
        lengths = arrays["lengths"]
        if len(lengths) != len(table):
            raise ValueError(f"it has the lengths of {len(lengths)} nodes of {len(table)}")
        self.table, self._postings, self._lengths = table, postings, lengths
        self.total_length = int(lengths[table.alive].sum())


def analysis_version() -> list[Any]:
    """Return what the terms of a text depend on beside the analyzer."""
    return [_ANALYSIS, unicodedata.unidata_version, Stemmer.version()]


def inverted(analyzer: Analyzer, texts: Sequence[str]) -> InvertedTexts:
    """Analyse the texts of an index, ``MOST_TEXTS`` at most."""
    own = getattr(analyzer, "invert", None)
    together: Callable[[Sequence[str]], InvertedTexts] | None = own
    if together is not None:
        return together(texts)
    return invert(texts, getattr(analyzer, "indexed", analyzer))


def _portions(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    iterator = iter(nodes)
    while some := list(islice(iterator, _PORTION)):
        yield some


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in lists that are analysed together."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > _BATCH or len(batch) == MOST_TEXTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
