"""Select the best windows of whole sentences from the passages that were found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import tokens_before
from ...nodegraph.splitters.passage_splitter import LIST_ITEM
from ..indexes.bm25_weights import Floats, Saturation, TermWeights
from ..indexes.text_index import TextIndex
from ..ranking import joined_span
from ..results import Results, ScoredNode
from ..token_budget import TokenBudget
from .relevance import descending

SIZES = (100, 200, 400)
"""The maximum numbers of tokens of windows. Single sentences are used as windows as well."""

_PASSAGES = 20  # the minimum number of passages; large budgets use more

_PAGED_PASSAGES = 50  # the minimum number of passages if results have several pages

_TOKENS_A_PASSAGE = 40  # the number of tokens in the budget per passage

_FADING = 0.95  # the factor by which the strength of a passage decreases per rank

_FULL = 0.95  # the share of the budget at which the selection of windows stops

# Converts the weights in the index to term counts.
_COUNTS = Saturation(k1=1e9, b=0.0, average_length=1.0)

_HEADING = re.compile(r"#{1,6}[ \t][^\n]*|[^\n]+\n([*=~^\"+#-])\1{2,}")

_UNDERLINES = tuple('*=~^"+#-')

Run = tuple[int, int]
"""The index of the first sentence, and the index after the last sentence."""

Ints = npt.NDArray[np.int64]


def passages_within(budget: TokenBudget) -> int:
    """Return the number of passages from which windows are selected for a token budget."""
    least = _PAGED_PASSAGES if budget.pages else _PASSAGES
    return max(least, (budget.max_tokens or 0) // _TOKENS_A_PASSAGE)


def search_windows(
    graph: NodeGraph,
    sentences: str,
    found: Results,
    query: TermWeights,
    words: TextIndex,
    budget: TokenBudget,
    vectors: Mapping[str, float],
) -> Results:
    """Return the best windows of passages, up to twice the token budget.

    A window is a sequence of whole sentences: a single sentence, or up to 100, 200 or 400 tokens.
    For each of these sizes, a sentence is assigned the BM25 score of its best window, relative to
    the best window of that size. If sentences have vectors, their relative scores are added. The
    sum rates a sentence together with its context.

    The best sentence of a passage is assigned the strength of the passage (its score, reduced by 5
    % per rank), and the other sentences are scaled accordingly. The score of a window is the mean
    over its sentences. If a passage was found only through links, sentences that contain the
    linking names count twice. Windows are selected in order of score, without the sentences of
    better windows. Adjacent windows are merged into one result. Windows that only repeat other
    sentences are dropped.

    A window can extend into the next passage if both passages were found. It never ends after an
    introduction, which is a heading or a sentence that ends with a colon. It includes the
    introductions before its first sentence. If it starts with a list item, it also includes the
    introduction of the list.

    Args:
        graph: The graph. Its lock must be held.
        sentences: The name of the group that contains the sentences of passages.
        found: The passages, best first.
        query: The terms of the query, weighted for passages.
        words: The text index of sentences.
        budget: The token budget. The first results fit into the budget, and further results use up
            to the same number of tokens.
        vectors: The weight of the vectors of each embedding.
    """
    max_tokens = budget.max_tokens
    assert max_tokens is not None
    rows = _rows(graph, sentences, found)
    if not rows:
        return found
    with_sentences = {row.passage.node.id for row in rows}
    others = [result for result in found if result.node.id not in with_sentences]
    text = _Sentences(rows)
    windows = text.windows(text.values(query, words, vectors), max_tokens)
    runs = text.runs(windows, max_tokens)
    while following := text.runs(windows, max_tokens):
        runs += following
        if len(runs) >= budget.pages:
            break
    scores = descending([text.score(run) for run in runs])
    return [text.result(*ranked) for ranked in zip(runs, scores, strict=True)] + others


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A sentence together with its passage.

    Attributes:
        node: The sentence.
        passage: The search result for the passage.
        strength: The strength of the passage.
        continues: Whether the sentence directly follows the sentence of the previous row.
    """

    node: Node
    passage: ScoredNode
    strength: float
    continues: bool


def _rows(graph: NodeGraph, sentences: str, found: Results) -> list[_Row]:
    """Return the sentences of passages in document order."""
    strengths = {result.node.id: result.score * _FADING**rank for rank, result in enumerate(found)}
    rows: list[_Row] = []
    last: Node | None = None
    for passage in sorted(found, key=lambda result: result.node.order):
        node = passage.node
        children = graph.reader.children_in(sentences, node)
        if any(child.offset is None for child in children):
            continue
        continues = last is not None and _follows(last, node)
        for child in children:
            rows.append(_Row(child, passage, strengths[node.id], continues))
            continues = True
        last = node
    return rows


def _follows(last: Node, node: Node) -> bool:
    """Return whether a passage directly follows another passage of the same document."""
    if last.end is None or node.start is None or last.end > node.start:
        return False
    # The values of `order` are consecutive for the nodes of a document in a group.
    return (last.document_id, last.order + 1) == (node.document_id, node.order)


class _Sentences:
    """The sentences of passages, with their lengths and windows as arrays.

    Args:
        rows: The sentences.
    """

    def __init__(self, rows: Sequence[_Row]) -> None:
        self.rows = rows
        size = len(rows)
        places = np.arange(size + 1)
        starts = [at for at, row in enumerate(rows) if not row.continues]
        ends = np.repeat([*starts[1:], size], np.diff([*starts, size]))
        texts = [row.node.text for row in rows]
        ends_of_texts = np.cumsum([0, *(len(text) + 1 for text in texts)])
        total = self._total = tokens_before("\n".join([*texts, ""]))[ends_of_texts].astype(np.int64)
        self._tokens: list[int] = np.diff(total).tolist()
        self._stops = [
            np.clip(total.searchsorted(total[:-1] + size, "right") - 1, places[1:], ends)
            for size in (0, *SIZES)
        ]
        self._lengths = [total[stops] - total[:-1] for stops in self._stops]
        self._starts, self._ends = self._bounds()
        self._taken = bytearray(size)  # 1 for each sentence that was returned
        self._texts = set[str]()  # the texts of returned sentences

    def _bounds(self) -> tuple[Ints, Ints]:
        """Return the nearest permitted start and end of a window at or before each position.

        A window never starts or ends directly after an introduction. A window whose first sentence
        is a list item starts with the introduction of the list, unless it is further away than the
        size of the smallest window.
        """
        starts = np.arange(len(self.rows) + 1)
        stops = starts.copy()
        introduction = -1  # the position of the introduction of the current list
        for at, (row, following) in enumerate(pairwise(self.rows), 1):
            is_item = LIST_ITEM.match(following.node.text) is not None
            if not following.continues:
                introduction = -1
            elif _introduces(row.node.text):
                starts[at] = stops[at] = starts[at - 1]
                introduction = starts[at] if is_item else -1
            elif introduction >= 0 and not is_item and _is_on_a_new_line(row, following):
                introduction = -1
            elif introduction >= 0 and self._total[at] - self._total[introduction] <= SIZES[0]:
                starts[at] = introduction
        return starts, stops

    def values(self, query: TermWeights, words: TextIndex, vectors: Mapping[str, float]) -> Floats:
        """Return the scores of sentences, which take their context into account."""
        values = self._word_scores(query, words)
        for key, weight in vectors.items():
            values += weight * _share(self._vector_scores(key))
        passages = [id(row.passage) for row in self.rows]
        starts = np.flatnonzero(np.diff(passages, prepend=0))
        sizes = np.diff(starts, append=len(values))
        best = np.maximum.reduceat(values, starts).repeat(sizes)
        # If a passage was found only through links, sentences with the linking names count twice.
        if not best.all():
            without = best == 0
            values = np.where(without, [1.0 + _has_link_name(row) for row in self.rows], values)
            best = np.where(without, 2.0, best)
        shares = values / best
        scored: Floats = shares * [row.strength for row in self.rows]
        return scored

    def _word_scores(self, query: TermWeights, words: TextIndex) -> Floats:
        """Return the BM25 scores of the best window around each sentence, summed over all sizes."""
        ids = [row.node.id for row in self.rows]
        once = dict.fromkeys(query.weights, 1.0)
        counts = np.rint(words.term_scores(ids, query._replace(weights=once, saturation=_COUNTS)))
        total = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
        weights = np.array([*query.weights.values()])
        scores = np.zeros(len(ids))
        for size, stops, lengths in zip((0, *SIZES), self._stops, self._lengths, strict=True):
            average = float(size or lengths.mean())
            norms = query.saturation._replace(average_length=average).norms(lengths)
            impacts = query.saturation.weighed(total[stops] - total[:-1], norms[:, None])
            scores += _share(_best_around(impacts @ weights, stops))
        return scores

    def _vector_scores(self, key: str) -> Floats:
        """Return the scores of sentences by one embedding, relative to the lowest score."""
        scores: dict[str, float] = {}
        for row in self.rows:
            for match in row.passage.evidence:
                if match.embed_key == key and match.node.group == row.node.group:
                    scores[match.node.id] = match.score
        last = min(scores.values(), default=0.0)
        return np.array([scores.get(row.node.id, last) - last for row in self.rows])

    def windows(self, values: Floats, max_tokens: int) -> list[Run]:
        """Return all windows, best first.

        An introduction that exceeds the token budget is omitted.
        """
        total = np.concatenate([[0.0], np.cumsum(values)])
        stops = np.concatenate(self._stops)
        starts = np.tile(np.arange(len(values)), len(self._stops))
        means = (total[stops] - total[starts]) / (stops - starts)
        order = np.argsort(-means, kind="stable")
        starts = starts[order]
        stops = self._ends[stops[order]]
        introduced = self._starts[starts]
        fits = self._total[stops] - self._total[introduced] <= max_tokens
        starts = np.where(fits, introduced, starts)
        return [*zip(starts.tolist(), stops.tolist(), strict=True)]

    def runs(self, windows: Iterable[Run], max_tokens: int) -> list[Run]:
        """Return the best windows within a token budget. Adjacent windows are merged.

        Sentences that earlier calls returned are skipped, and so are windows that only repeat the
        texts of other sentences.

        Args:
            windows: The windows, best first.
            max_tokens: The token budget.
        """
        chosen = bytearray(len(self.rows))
        first: list[int] = []
        tokens = 0
        for start, stop in windows:
            if self._taken.find(0, start, stop) < 0:
                continue
            new = [row for row in range(start, stop) if not self._taken[row]]
            cost = sum(self._tokens[row] for row in new)
            if tokens + cost > max_tokens and self._texts:
                continue
            texts = {self.rows[row].node.text for row in new}
            if texts <= self._texts:
                continue
            self._texts |= texts
            for row in new:
                self._taken[row] = chosen[row] = 1
            first.append(new[0])
            tokens += cost
            if tokens > _FULL * max_tokens:
                break
        runs: dict[Run, None] = {}
        for start in first:
            stop = start + 1
            while self.rows[start].continues and chosen[start - 1]:
                start -= 1
            while stop < len(chosen) and chosen[stop] and self.rows[stop].continues:
                stop += 1
            runs[start, stop] = None
        return [*runs]

    def score(self, run: Run) -> float:
        """Return the highest score among the passages of a sequence of sentences."""
        return max([row.passage.score for row in self.rows[slice(*run)]])

    def result(self, run: Run, score: float) -> ScoredNode:
        """Convert a sequence of sentences to a result: a sentence, a passage or a longer span."""
        rows = self.rows[slice(*run)]
        passages = {row.passage.node.id: row.passage for row in rows}
        evidence = tuple(chain.from_iterable(found.evidence for found in passages.values()))
        first = rows[0].node
        last = rows[-1].node
        if len(rows) == 1:
            return ScoredNode(first, score, evidence)
        passage = rows[0].passage.node
        start = first.offset or 0
        end = (last.offset or 0) + len(last.text)
        if len(passages) > 1:
            text = last.root.text[first.start : last.end]
        elif (start, end) == (0, len(passage.text)):
            return ScoredNode(passage, score, evidence)
        else:
            text = passage.text[start:end]
        node = joined_span(first, last, first, text, text)
        node = replace(node, start=first.start, end=last.end, offset=first.offset)
        return ScoredNode(node, score, evidence)


def _is_on_a_new_line(row: _Row, following: _Row) -> bool:
    if row.passage is not following.passage:
        return True
    stop = (row.node.offset or 0) + len(row.node.text)
    return "\n" in row.passage.node.text[stop : following.node.offset]


def _introduces(text: str) -> bool:
    """Return whether a sentence introduces the next one.

    This is the case for a heading and for a sentence that ends with a colon.
    """
    if text.endswith((":", "：")):
        return True
    is_like_one = text.startswith("#") or text.endswith(_UNDERLINES)
    return is_like_one and _HEADING.fullmatch(text) is not None


def _has_link_name(row: _Row) -> bool:
    """Return whether a sentence contains a name through which its passage was found."""
    names = (m.node.text for m in row.passage.evidence if not m.node.document_id)
    text = row.node.text.casefold()
    return any(name.casefold() in text for name in names)


def _best_around(scores: Floats, stops: Ints) -> Floats:
    """Return the score of the best window that contains each sentence."""
    places = np.arange(len(stops))
    first = stops.searchsorted(places, "right")
    bounds = np.stack([first, places + 1], axis=1).ravel()
    best: Floats = np.maximum.reduceat(np.append(scores, 0.0), bounds)[::2]
    return best


def _share(scores: Floats) -> Floats:
    """Divide scores by the highest score."""
    return scores / (scores.max(initial=0.0) or 1.0)
