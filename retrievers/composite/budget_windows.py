"""Search windows of whole sentences, as spans over the sentences of passages that were found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import tokens_before
from ...nodegraph.splitters.passage_splitter import LIST_ITEM
from ..indexes.bm25_scores import Floats, Saturation, TermWeights
from ..indexes.text_index import TextIndex
from ..ranking import joined_span
from ..results import Results, ScoredNode
from ..token_budget import TokenBudget
from .relevance import descending

SIZES = (100, 200, 400)
"""How many tokens windows have at most. Single sentences are windows, too."""

_PASSAGES = 20  # of which windows are searched: of more for large budgets

_PAGED_PASSAGES = 50  # of which there may be many pages

_TOKENS_A_PASSAGE = 40  # of the wanted ones, for each passage

_FADING = 0.95  # of a passage's strength with each rank

_FULL = 0.95  # of the tokens that are wanted: then no further window is looked for

_COUNTS = Saturation(k1=1e9, b=0.0, average_length=1.0)  # of which an impact is a count

_HEADING = re.compile(r"#{1,6}[ \t][^\n]*|[^\n]+\n([*=~^\"+#-])\1{2,}")

_UNDERLINES = tuple('*=~^"+#-')

Run = tuple[int, int]
"""The first of some sentences, and the one behind the last."""

Ints = npt.NDArray[np.int64]


def passages_within(budget: TokenBudget) -> int:
    """Return of how many passages windows are for a budget."""
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
    """Return the best windows of passages, within a budget and as much again.

    A window is a run of whole sentences: one, or as many as have 100, 200 or 400 tokens. Each
    size gives each sentence the BM25 score of the best window that it is in, as a share of the
    best of that size, and so do the vectors of sentences. The sum says how well a sentence answers
    together with those around it. The best sentence of a passage is as strong as the passage (its
    score, a twentieth less with each rank), the others have a share of that, and a window the mean
    of its sentences. Where links alone lead to a passage, those count that have the names. Windows
    are taken best first, each without what better ones have; those that touch are one result.
    What only repeats sentences is left out.

    A window reaches from a passage into the next one if both were found. It does not end behind
    a heading or another introduction (a sentence with a colon at its end), and starts with those
    that stand before its first sentence, or with what introduces the list that this is in.

    Args:
        graph: The graph, which is held.
        sentences: The group of the sentences of passages.
        found: The passages, best first.
        query: The query's terms, weighed for passages.
        words: Looks up the words of sentences.
        budget: How many tokens are wanted. The results have so many first, and as many again.
        vectors: What the vectors of each embedding count.
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
    scores = np.array([max(row.passage.score for row in rows[slice(*run)]) for run in runs])
    return [
        text.result(run, score)
        for run, score in zip(runs, descending(scores).tolist(), strict=True)
    ] + others


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A sentence, and the passage that it is in.

    Attributes:
        node: The sentence.
        passage: The result that its passage is.
        strength: How strong the passage is.
        continues: Whether it stands next to the sentence before it.
    """

    node: Node
    passage: ScoredNode
    strength: float
    continues: bool


def _rows(graph: NodeGraph, sentences: str, found: Results) -> list[_Row]:
    """Return the sentences of passages, neighbours one after the other."""
    strengths = {result.node.id: result.score * _FADING**rank for rank, result in enumerate(found)}
    rows: list[_Row] = []
    last: Node | None = None
    for passage in sorted(found, key=lambda result: result.node.order):
        node = passage.node
        children = graph.reader.children_in(sentences, node)
        if any(child.offset is None for child in children):
            continue
        continues = last is not None and _is_next(last, node)
        for child in children:
            rows.append(_Row(child, passage, strengths[node.id], continues))
            continues = True
        last = node
    return rows


def _is_next(node: Node, following: Node) -> bool:
    # A document's nodes of a group are numbered without gaps.
    if node.document_id != following.document_id or node.order + 1 != following.order:
        return False
    return node.end is not None and following.start is not None and node.end <= following.start


def _is_on_a_new_line(row: _Row, following: _Row) -> bool:
    if row.passage is not following.passage:
        return True
    stop = (row.node.offset or 0) + len(row.node.text)
    return "\n" in row.passage.node.text[stop : following.node.offset]


class _Sentences:
    """Sentences of passages, as arrays.

    Args:
        rows: The sentences.
    """

    def __init__(self, rows: Sequence[_Row]) -> None:
        self.rows = rows
        size = len(rows)
        places = np.arange(size + 1)
        starts = [at for at, row in enumerate(rows) if not row.continues]
        ends = np.repeat([*starts[1:], size], np.diff([*starts, size]))
        self._tokens = token_counts([row.node.text for row in rows])
        total = self._total = np.concatenate([[0], np.cumsum(self._tokens)])
        self._stops = [
            np.clip(total.searchsorted(total[:-1] + size, "right") - 1, places[1:], ends)
            for size in (0, *SIZES)
        ]
        self._lengths = [total[stops] - total[:-1] for stops in self._stops]
        self._starts, self._ends = self._bounds()
        self._taken = bytearray(size)  # 1 for each sentence that was returned
        self._texts = set[str]()  # of these

    def _bounds(self) -> tuple[Ints, Ints]:
        """Return where windows may start and stop, at or before each place.

        Neither is behind an introduction. A window that would start with an item of a list starts
        with what introduces the list, where no more tokens than the smallest window has are
        between them.
        """
        starts = np.arange(len(self.rows) + 1)
        stops = starts.copy()
        introduction = -1  # of the list in which the row before is
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
        """Return how well each sentence answers, together with those around it."""
        ids = [row.node.id for row in self.rows]
        once = dict.fromkeys(query.weights, 1.0)
        counts = np.rint(words.term_scores(ids, query._replace(weights=once, saturation=_COUNTS)))
        total = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
        weights = np.array([*query.weights.values()])
        values = np.zeros(len(ids))
        for size, stops, lengths in zip((0, *SIZES), self._stops, self._lengths, strict=True):
            average = float(size or lengths.mean())
            norms = replace(query.saturation, average_length=average).norms(lengths)
            impacts = query.saturation.weighed(total[stops] - total[:-1], norms[:, None])
            values += _share(_best_around(impacts @ weights, stops))
        for key, weight in vectors.items():
            values += weight * _share(self._vector_scores(key))
        passages = [id(row.passage) for row in self.rows]
        starts = [0, *(at for at, (a, b) in enumerate(pairwise(passages), 1) if a != b)]
        best = np.maximum.reduceat(values, starts).repeat(np.diff([*starts, len(ids)]))
        if not best.all():  # of a passage to which links alone lead: where their names stand
            without = best == 0
            values = np.where(without, [_mentions(row) for row in self.rows], values)
            best = np.where(without, 2.0, best)
        shares = values / best
        scored: Floats = shares * [row.strength for row in self.rows]
        return scored

    def _vector_scores(self, key: str) -> Floats:
        """Return by how much each sentence is nearer than the last that was found."""
        scores = {
            match.node.id: match.score
            for row in self.rows
            for match in row.passage.evidence
            if match.embed_key == key
        }
        last = min(scores.values(), default=0.0)
        return np.array([scores.get(row.node.id, last) - last for row in self.rows])

    def windows(self, values: Floats, max_tokens: int) -> list[Run]:
        """Return windows, best first, without their introductions where these do not fit."""
        total = np.concatenate([[0.0], np.cumsum(values)])
        stops = np.concatenate(self._stops)
        starts = np.tile(np.arange(len(values)), len(self._stops))
        means = (total[stops] - total[starts]) / (stops - starts)
        order = np.argsort(-means, kind="stable")
        starts, stops = starts[order], self._ends[stops[order]]
        introduced = self._starts[starts]
        fits = self._total[stops] - self._total[introduced] <= max_tokens
        starts = np.where(fits, introduced, starts)
        return [*zip(starts.tolist(), stops.tolist(), strict=True)]

    def runs(self, windows: Iterable[Run], max_tokens: int) -> list[Run]:
        """Return the best windows within so many tokens, those that touch as one.

        What earlier calls returned is left out, and so are windows that only repeat sentences.

        Args:
            windows: The windows, best first.
            max_tokens: How many tokens.
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
        return [*dict.fromkeys(self._around(row, chosen) for row in first)]

    def _around(self, row: int, chosen: bytearray) -> Run:
        start, stop = row, row + 1
        while self.rows[start].continues and chosen[start - 1]:
            start -= 1
        while stop < len(chosen) and chosen[stop] and self.rows[stop].continues:
            stop += 1
        return start, stop

    def result(self, run: Run, score: float) -> ScoredNode:
        """Return sentences as one result, with the evidence of their passages."""
        rows = self.rows[slice(*run)]
        passages = list({row.passage.node.id: row.passage for row in rows}.values())
        node = _node(rows, [passage.node for passage in passages])
        return ScoredNode(node, score, tuple(e for passage in passages for e in passage.evidence))


def _node(rows: Sequence[_Row], passages: Sequence[Node]) -> Node:
    """Return sentences as one node: a sentence, a passage, or a span from one to another."""
    first, last = rows[0].node, rows[-1].node
    if len(rows) == 1:
        return first
    passage = passages[0]
    start, end = first.offset or 0, (last.offset or 0) + len(last.text)
    if len(passages) == 1 and (start, end) == (0, len(passage.text)):
        return passage
    text = passage.text[start:end] if len(passages) == 1 else last.root.text[first.start : last.end]
    node = joined_span(first, last, first, text, text)
    return replace(node, start=first.start, end=last.end, offset=first.offset)


def _mentions(row: _Row) -> float:
    """Return 2 for a sentence with a name by which its passage was found, else 1."""
    names = (m.node.text for m in row.passage.evidence if not m.node.document_id)
    text = row.node.text.casefold()
    return 2.0 if any(name.casefold() in text for name in names) else 1.0


def _introduces(text: str) -> bool:
    """Return whether a sentence is a heading, or announces what follows."""
    if text.endswith((":", "：")):
        return True
    is_like_one = text.startswith("#") or text.endswith(_UNDERLINES)
    return is_like_one and _HEADING.fullmatch(text) is not None


def token_counts(texts: Sequence[str]) -> list[int]:
    """Return what ``count_tokens`` returns of each text; they are counted together."""
    stops = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    counts: list[int] = np.diff(tokens_before("\n".join([*texts, ""]))[stops], prepend=0).tolist()
    return counts


def _best_around(scores: Floats, stops: Ints) -> Floats:
    """Return for each sentence the best score of the windows that it is in."""
    places = np.arange(len(stops))
    first = stops.searchsorted(places, "right")
    bounds = np.stack([first, places + 1], axis=1).ravel()
    best: Floats = np.maximum.reduceat(np.append(scores, 0.0), bounds)[::2]
    return best


def _share(scores: Floats) -> Floats:
    """Return scores as shares of the highest."""
    return scores / (scores.max(initial=0.0) or 1.0)
