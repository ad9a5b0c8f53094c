"""Rankings: fuse, merge, lift, diversify and cut them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from operator import itemgetter
from typing import Literal, TypeVar, get_args
from uuid import UUID

import numpy as np

from ..nodegraph.document import Document
from ..nodegraph.errors import nearest_names
from ..nodegraph.node import Node
from .filters import DOCUMENT_ID
from .results import Hits, QueryVariant, ScoredNode
from .validation import check_number

Mode = Literal["rrf", "relative", "distribution", "concat"]

Key = TypeVar("Key", bound=Hashable)

RANK_CONSTANT = 60

_SCORE_FIELD = "relevance_score"
"""The metadata field in which rerankers of LangChain write a score."""


def fuse(
    results: Sequence[Sequence[ScoredNode]],
    mode: Mode = "rrf",
    weights: Sequence[float] | None = None,
    top_k: int | None = None,
    rank_constant: float = RANK_CONSTANT,
    merge_by: str | None = None,
) -> list[ScoredNode]:
    """Make one ranking of several; ties go by the first ranking that has the node, then by place.

    A node that one ranking has twice counts there once, at its best place. With ``merge_by`` that
    holds for nodes with the same value of a metadata field, too: the first of them stands for all.

    - ``"rrf"``: a node's score is the sum of ``weight / (rank_constant + place)`` over the
      rankings that have it (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms
      Condorcet and individual rank learning methods", 2009).
    - ``"relative"``: the weighted mean of its scores, each ranking's put between 0, its last
      result, and 1, its first (Lee, "Analyses of multiple evidence combination", 1997); where
      all scores of a ranking are equal they are 1.
    - ``"distribution"``: the same, a ranking's scores being put between 0, three standard
      deviations below their mean, and 1, as many above (Mazzeschi, "Distribution-based score
      fusion", 2023).
    - ``"concat"``: its highest score times the weight (below 0, divided by it).

    Args:
        results: The rankings, best first.
        mode: How scores are made.
        weights: What each ranking counts, 1 by default; 0 leaves it out.
        top_k: How many results at most, None for all.
        rank_constant: For ``"rrf"``.
        merge_by: The metadata field. Nodes without it, or with None, are merged by their id.
            ``"document.id"`` merges by the ids of documents alone, also where texts are equal.
    """
    weighing = [1.0] * len(results) if weights is None else list(weights)
    total = sum(weighing) if mode in ("relative", "distribution") else 1.0
    shares: list[ScoredNode] = []  # what each ranking adds to a node's score
    for ranking, weight in zip(results, weighing, strict=True):
        if not weight:
            continue
        distinct = by_node(ranking, merge_by)
        scores = _SCORES[mode]([same[0].score for same in distinct], rank_constant)
        for same, score in zip(distinct, scores, strict=True):
            part = score * weight if score >= 0 else score / weight
            evidence = tuple(replace(e, share=part / total) for r in same for e in r.evidence)
            shares.append(ScoredNode(same[0].node, part, evidence))
    join = max if mode == "concat" else math.fsum
    fused = [
        merge(same[0].node, same, join(result.score for result in same) / total)
        for same in by_node(shares, merge_by)
    ]
    return sorted(fused, key=lambda result: -result.score)[:top_k]


def fused_scores(
    rankings: Sequence[Mapping[Key, float]],
    mode: Mode,
    weights: Sequence[float],
    rank_constant: float = RANK_CONSTANT,
) -> tuple[dict[Key, float], list[dict[Key, float]]]:
    """Fuse rankings like ``fuse``, by the keys of nodes.

    Args:
        rankings: The scores of each ranking by key, best first.
        mode: See ``fuse``.
        weights: The weight of each ranking, above 0.
        rank_constant: For ``"rrf"``.

    Returns:
        The fused scores, best first, and the share of each ranking in them.
    """
    total = sum(weights) if mode in ("relative", "distribution") else 1.0
    parts: list[dict[Key, float]] = []
    of_nodes = defaultdict[Key, list[float]](list)
    for ranking, weight in zip(rankings, weights, strict=True):
        scores = _SCORES[mode]([*ranking.values()], rank_constant)
        shares = [score * weight if score >= 0 else score / weight for score in scores]
        parts.append({key: share / total for key, share in zip(ranking, shares, strict=True)})
        for key, share in zip(ranking, shares, strict=True):
            of_nodes[key].append(share)
    join = max if mode == "concat" else math.fsum
    joined = [(key, join(of_node) / total) for key, of_node in of_nodes.items()]
    joined.sort(key=itemgetter(1), reverse=True)
    return dict(joined), parts


def scaled(shares: Sequence[float | None], score: float) -> list[float | None]:
    """Scale shares so that their sum is a score. If all are 0, they become equal."""
    given = [share for share in shares if share is not None]
    total = sum(given)
    return [
        None if share is None else score * share / total if total else score / len(given)
        for share in shares
    ]


def by_node(results: Iterable[ScoredNode], merge_by: str | None = None) -> list[list[ScoredNode]]:
    """Return the results of each node, or metadata value, in the order of each one's first.

    A document of LangChain is also the same as one with its text and metadata, unless both have
    ids of their authors: a store gives a UUID to a document that has no id, and a retriever that
    holds the document gives none.
    """
    results = list(results)
    keys = [_node_key(result.node, merge_by) for result in results]
    if merge_by != DOCUMENT_ID and any(_is_foreign(result.node) for result in results):
        keys = _keys_by_content(keys, results)
    same: dict[tuple[str, str], list[ScoredNode]] = {}
    for key, result in zip(keys, results, strict=True):
        same.setdefault(key, []).append(result)
    return list(same.values())


def _node_key(node: Node, merge_by: str | None) -> tuple[str, str]:
    if merge_by == DOCUMENT_ID:
        return DOCUMENT_ID, node.document_id or node.id
    value = None if merge_by is None else node.metadata.get(merge_by)
    if value is not None:
        return type(value).__name__, repr(value)
    # Two graphs may give the same id to documents with different texts.
    return node.id, node.text


def _keys_by_content(
    keys: Sequence[tuple[str, str]], results: Sequence[ScoredNode]
) -> list[tuple[str, str]]:
    """Return one key for a framework's documents, and one node of a graph, of equal content.

    Nodes of graphs are told apart by their ids: a text may be in a document twice.
    """
    resolved: dict[tuple[str, str], tuple[str, str]] = {}
    of_content: dict[str, tuple[str, str]] = {}
    with_node: set[tuple[str, str]] = set()
    author_ids: dict[tuple[str, str], str] = {}
    for key, result in zip(keys, results, strict=True):
        if key not in resolved:
            foreign, author_id = _is_foreign(result.node), _author_id(result.node)
            first = of_content.setdefault(_content_id(result.node), key)
            merges = foreign or first not in with_node
            if author_id is not None:
                merges = merges and author_ids.setdefault(first, author_id) == author_id
            resolved[key] = first if merges else key
            if not foreign:
                with_node.add(resolved[key])
    return [resolved[key] for key in keys]


def _is_foreign(node: Node) -> bool:
    return hasattr(node, "original")  # a ``ForeignNode``


def _author_id(node: Node) -> str | None:
    """Return the id of a document of LangChain, None if a store seems to have made it."""
    document_id = getattr(getattr(node, "original", None), "id", None)
    try:
        UUID(document_id)
    except (AttributeError, TypeError, ValueError):
        return document_id if isinstance(document_id, str) else None
    return None


def _content_id(node: Node) -> str:
    """Return the id that a document of a node's text and metadata has if it has none.

    LlamaIndex's nodes always have one: they are the same if they are of the same document, too.
    """
    fields = {field: value for field, value in node.metadata.items() if field != _SCORE_FIELD}
    created = Document(node.text, fields).id
    has_id = hasattr(getattr(node, "original", None), "node_id")
    return f"{created} of {node.document_id or node.id}" if has_id else created


def merge(node: Node, results: Sequence[ScoredNode], score: float) -> ScoredNode:
    """Return a node as the result of several results, with the evidence of all of them."""
    evidence = dict.fromkeys(match for result in results for match in result.evidence)
    return ScoredNode(node, score, tuple(evidence))


def joined_span(first: Node, last: Node, template: Node, text: str, content: str) -> Node:
    """Return a node for the text from one node to another, which the graph does not have.

    It has the group, parent and metadata of the template.
    """
    return replace(
        template,
        text=text,
        content=content,
        start=None,
        end=None,
        offset=None,
        id=f"{first.id}..{last.id}",
        order=first.order,
    )


def check_mode(mode: Mode) -> Mode:
    """Return what is a mode.

    Raises:
        ValueError: If it is none.
    """
    if mode not in get_args(Mode):
        raise ValueError(f"no mode {mode!r}; there is {nearest_names(str(mode), get_args(Mode))}")
    return mode


def _relative(scores: Sequence[float], rank_constant: float) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high <= low:
        return [1.0] * len(scores)
    # Rounded, so that what is equally far up ties.
    relative: list[float] = ((np.array(scores) - low) / (high - low)).round(12).tolist()
    return relative


def _distribution(scores: Sequence[float], rank_constant: float) -> list[float]:
    if not scores:
        return []
    import statistics  # with its fractions and decimals, for this mode alone

    mean, deviation = statistics.fmean(scores), statistics.pstdev(scores)
    if not deviation:
        return [0.5] * len(scores)
    low, width = mean - 3 * deviation, 6 * deviation
    return [round(min(1.0, max(0.0, (score - low) / width)), 12) for score in scores]


_SCORES: Mapping[str, Callable[[Sequence[float], float], list[float]]] = {
    "rrf": lambda scores, constant: [1 / (constant + n) for n in range(1, len(scores) + 1)],
    "relative": _relative,
    "distribution": _distribution,
    "concat": lambda scores, _: list(scores),
}


def merge_hits(
    hits_by_index: Sequence[Hits], limit: int | None, min_score: float
) -> tuple[list[tuple[float, int, str]], bool]:
    """Merge the hits of several indexes, best first, ties by index, as far as they are certain.

    An index that returned ``limit`` hits may have more. Hits that rank below its last one are
    left out.

    Args:
        hits_by_index: The hits of each index.
        limit: The maximum number of hits per index. None: all hits.
        min_score: The lowest score.

    Returns:
        The score, the number of the index and the node id of each hit; and whether there may be
        more.
    """
    rows: list[tuple[float, int, str]] = []
    ends: set[tuple[float, int, str]] = set()
    for at, (ids, scores) in enumerate(hits_by_index):
        is_cut = bool(scores) and scores[-1] < min_score
        count = sum(score >= min_score for score in scores) if is_cut else len(scores)
        rows += zip(scores[:count], repeat(at), ids)
        if len(ids) == limit and not is_cut:
            ends.add(rows[-1])
    if len(hits_by_index) > 1:
        rows.sort(key=lambda row: (-row[0], row[1]))
    if not ends:
        return rows, False
    certain = next(position for position, row in enumerate(rows, 1) if row in ends)
    return rows[:certain], True


Lift = Literal["max", "sum", "mean"]


_SECOND = 0.5  # what a target's second best hit counts beside its best


def lifted_score(scores: Sequence[float], how: Lift) -> float:
    """Return what a target scores that has hits with these scores, one at least.

    - ``"max"``: the best.
    - ``"sum"``: the best and half of the second best, if that is above 0. A plain sum would rank
      by length: of documents of uneven length it finds the longest.
    - ``"mean"``: the mean of all.

    Args:
        scores: In any order.
        how: One of the three.

    Example:
        >>> [lifted_score([4.0, 2.0, 3.0], how) for how in ("max", "sum", "mean")]
        [4.0, 5.5, 3.0]
    """
    if how == "mean":
        return sum(scores) / len(scores)
    best, *others = sorted(scores, reverse=True)
    return best + _SECOND * max(0.0, others[0]) if how == "sum" and others else best


def cut_scores(
    results: Sequence[ScoredNode],
    cut_off: float | None = None,
    relative_cut: float | None = None,
) -> list[ScoredNode]:
    """Return the results that score enough, in their order.

    QAnything keeps what its reranker gives 0.28 and more, and stops at half of the top score:
    ``cut_off=0.28, relative_cut=0.5``.

    Args:
        results: Scored nodes.
        cut_off: Keeps scores that are this or more.
        relative_cut: Keeps scores that are at least this share of the top score. Below zero a
            share of a score would be above it, so it is the distance that counts: a score may
            be ``(1 - relative_cut) * abs(top)`` below the top. With 0.5 that is 0.4 for a top
            score of 0.8, -3 for one of -2, and 0 for one of 0, where only its equals stay. It
            says most where scores are probabilities.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> found = [ScoredNode(Node("tea"), score) for score in (0.8, 0.5, 0.3, 0.1)]
        >>> [result.score for result in cut_scores(found, relative_cut=0.5)]
        [0.8, 0.5]
        >>> [result.score for result in cut_scores(found, cut_off=0.3)]
        [0.8, 0.5, 0.3]
    """
    least = -math.inf if cut_off is None else cut_off
    if relative_cut is not None and results:
        top = max(result.score for result in results)
        share = relative_cut if top >= 0 else 2 - relative_cut
        least = max(least, share * top)
    return [result for result in results if result.score >= least]


def check_cuts(cut_off: float | None, relative_cut: float | None) -> None:
    """Check the limits that scores have to reach.

    Raises:
        TypeError: If one is no number.
        ValueError: If one is out of range.
    """
    for name, number in (("cut_off", cut_off), ("relative_cut", relative_cut)):
        if number is None:
            continue
        check_number(number, name)
        if math.isnan(number):
            raise ValueError(f"{name} is a number, not {number!r}")
    if relative_cut is not None and not 0 <= relative_cut <= 1:
        raise ValueError(f"relative_cut is a share of the top score, 0 to 1, not {relative_cut!r}")


def with_variant(results: Sequence[ScoredNode], variant: QueryVariant) -> list[ScoredNode]:
    """Return results whose evidence has a variant of the query before its own."""
    return [
        replace(
            result,
            evidence=tuple(
                replace(match, variants=(variant, *match.variants)) for match in result.evidence
            ),
        )
        for result in results
    ]
