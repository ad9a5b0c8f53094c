"""Functions that fuse, merge and truncate rankings, and compute the scores of targets."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Literal, TypeVar, get_args
from uuid import UUID

import numpy as np
import numpy.typing as npt

from ..nodegraph.document import Document
from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import Node
from .filters import DOCUMENT_ID
from .results import Evidence, QueryVariant, ScoredNode
from .validation import check_number, choice

logger = logging.getLogger(__name__)

Mode = Literal["rrf", "relative", "distribution", "concat"]

Key = TypeVar("Key", bound=Hashable)

RANK_CONSTANT = 60

_SCORE_FIELD = "relevance_score"
"""The metadata field in which LangChain rerankers store scores."""


def fuse(
    results: Sequence[Sequence[ScoredNode]],
    mode: Mode = "rrf",
    weights: Sequence[float] | None = None,
    top_k: int | None = None,
    rank_constant: float = RANK_CONSTANT,
    merge_by: str | None = None,
) -> list[ScoredNode]:
    """Fuse several rankings into one.

    Results with equal scores are ordered by the first ranking that contains them, and then by their
    rank. A node that occurs twice in a ranking is counted once, at its best rank. If ``merge_by``
    is given, nodes with an equal value of this metadata field are treated as one node, which is
    represented by the first of them.

    - ``"rrf"``: The sum of ``weight / (rank_constant + rank)`` over all rankings that contain the
      node (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
      individual rank learning methods", 2009).
    - ``"relative"``: The weighted mean of the scores, which are scaled in each ranking from 0 (last
      result) to 1 (first result) (Lee, "Analyses of multiple evidence combination", 1997). If all
      scores of a ranking are equal, they become 1.
    - ``"distribution"``: The weighted mean of the scores, which are scaled in each ranking from 0
      (three standard deviations below the mean) to 1 (three standard deviations above the mean)
      (Mazzeschi, "Distribution-based score fusion", 2023).
    - ``"concat"``: The highest score multiplied by the weight. A score below 0 is divided by the
      weight.

    Args:
        results: The rankings, best results first.
        mode: The method of fusion.
        weights: The weight of each ranking. Defaults to 1. A ranking with a weight of 0 is ignored.
        top_k: The maximum number of results. If None, all results are returned.
        rank_constant: The constant of ``"rrf"``.
        merge_by: The name of the metadata field. Nodes without a value are merged by their id. With
            ``"document.id"``, equal texts of different documents are not merged.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> green = ScoredNode(Node("Green tea.", id="a"), 2.0)
        >>> black = ScoredNode(Node("Black tea.", id="b"), 1.0)
        >>> [result.node.id for result in fuse([[green, black], [black]])]
        ['b', 'a']
    """
    if weights is None:
        weights = [1.0] * len(results)
    used = [ranking for ranking, weight in zip(results, weights, strict=True) if weight]
    groups = by_node(chain.from_iterable(used), merge_by)
    numbers: dict[int, int] = {}  # the numbers of groups, by the ids of results
    for number, group in enumerate(groups):
        numbers |= {id(result): number for result in group}
    rankings: list[dict[int, float]] = []
    for ranking in used:
        scores: dict[int, float] = {}
        for result in ranking:
            scores.setdefault(numbers[id(result)], result.score)
        rankings.append(scores)
    fused, shares = fused_scores(rankings, mode, [w for w in weights if w], rank_constant)
    evidence: dict[int, dict[Evidence, None]] = {number: {} for number in fused}
    for ranking, of_ranking in zip(used, shares, strict=True):
        for result in ranking:
            number = numbers[id(result)]
            for match in result.evidence:
                evidence[number][replace(match, share=of_ranking[number])] = None
    merged = [ScoredNode(groups[n][0].node, s, tuple(evidence[n])) for n, s in fused.items()]
    return in_document_order(merged)[:top_k]


def in_document_order(results: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Sort results that have equal scores and belong to the same document by their position.

    Results of other documents keep their ranks.
    """
    ordered: list[ScoredNode] = []
    if len({result.score for result in results}) == len(results):
        return [*results]
    for _, run in groupby(results, attrgetter("score")):
        tied = [*run]
        ordered += tied if len(tied) == 1 else _by_position(tied)
    return ordered


def _by_position(tied: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Sort the results of each document by their position. The ranks of the documents are kept."""
    documents = [
        (id(result.node.graph), result.node.document_id or result.node.id) for result in tied
    ]
    by_document: dict[Hashable, list[ScoredNode]] = {}
    for document, result in zip(documents, tied, strict=True):
        by_document.setdefault(document, []).append(result)
    if len(by_document) == len(tied):
        return [*tied]
    for results in by_document.values():
        results.sort(key=lambda result: (result.node.start or 0, result.node.order))
    return [by_document[document].pop(0) for document in documents]


def fused_scores(
    rankings: Sequence[Mapping[Key, float]],
    mode: Mode,
    weights: Sequence[float],
    rank_constant: float = RANK_CONSTANT,
) -> tuple[dict[Key, float], list[dict[Key, float]]]:
    """Fuse rankings as in ``fuse``, but by the keys of nodes.

    Args:
        rankings: The scores of each ranking by key, best first.
        mode: The method of fusion. See ``fuse``.
        weights: The weight of each ranking, which must be above 0.
        rank_constant: The constant of ``"rrf"``.

    Returns:
        The fused scores, best first, and the share of each ranking in them.
    """
    total = sum(weights) if mode in ("relative", "distribution") else 1.0
    parts: list[dict[Key, float]] = []
    of_nodes = defaultdict[Key, list[float]](list)
    for ranking, weight in zip(rankings, weights, strict=True):
        scores = np.array(_SCORES[mode]([*ranking.values()], rank_constant), np.float64)
        shares = scores * weight
        is_negative = scores < 0
        if is_negative.any():
            shares[is_negative] = scores[is_negative] / weight
        for key, share in zip(ranking, shares.tolist(), strict=True):
            of_nodes[key].append(share)
        parts.append(dict(zip(ranking, (shares / total).tolist(), strict=True)))
    join = max if mode == "concat" else math.fsum
    joined = [(key, join(of_node) / total) for key, of_node in of_nodes.items()]
    joined.sort(key=itemgetter(1), reverse=True)
    return dict(joined), parts


def scaled(shares: Sequence[float | None], score: float) -> list[float | None]:
    """Scale shares so that their sum equals a score. If all shares are 0, they become equal."""
    given = [share for share in shares if share is not None]
    total = sum(given)
    if not total:
        return [share if share is None else score / len(given) for share in shares]
    return [share if share is None else score * share / total for share in shares]


def by_node(results: Iterable[ScoredNode], merge_by: str | None = None) -> list[list[ScoredNode]]:
    """Group results by node or by a metadata value. The groups are ordered by their first results.

    LangChain documents with the same text and metadata are also grouped, unless both have ids that
    were assigned by their author. This is necessary because a vector store assigns a UUID to a
    document without an id, while other retrievers return the same document without an id.
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
    # Two graphs can contain documents with the same id but different texts.
    return node.id, node.text


def _keys_by_content(
    keys: Sequence[tuple[str, str]], results: Sequence[ScoredNode]
) -> list[tuple[str, str]]:
    """Return the keys of results, so that documents of other frameworks can be merged with nodes.

    A document and a node with equal content share a key. Nodes of a graph have different keys even
    if their texts are equal.
    """
    resolved: dict[tuple[str, str], tuple[str, str]] = {}
    of_content: dict[str, tuple[str, str]] = {}
    with_node: set[tuple[str, str]] = set()
    author_ids: dict[tuple[str, str], str] = {}
    for key, result in zip(keys, results, strict=True):
        if key not in resolved:
            foreign = _is_foreign(result.node)
            author_id = _author_id(result.node)
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
    """Return the id of a LangChain document, or None if it is a UUID.

    A UUID was probably assigned by a vector store.
    """
    document_id = getattr(getattr(node, "original", None), "id", None)
    try:
        UUID(document_id)
    except (AttributeError, TypeError, ValueError):
        return document_id if isinstance(document_id, str) else None
    return None


def _content_id(node: Node) -> str:
    """Return an id that is equal for nodes with the same text and metadata.

    Scores in the metadata are ignored. For a LlamaIndex node, the id of its document, or its own id
    if it has no document, is appended, so only nodes with the same appended id are equal.
    """
    fields = {field: value for field, value in node.metadata.items() if field != _SCORE_FIELD}
    created = Document(node.text, fields).id
    has_id = hasattr(getattr(node, "original", None), "node_id")
    return f"{created} of {node.document_id or node.id}" if has_id else created


def merge(node: Node, results: Sequence[ScoredNode], score: float) -> ScoredNode:
    """Merge several results into one result for a node, with all of their evidence."""
    evidence = dict.fromkeys(chain.from_iterable(result.evidence for result in results))
    return ScoredNode(node, score, tuple(evidence))


def joined_span(first: Node, last: Node, template: Node, text: str, content: str) -> Node:
    """Create a node for the text from one node to another, which is not stored in the graph.

    The group, parent and metadata are copied from ``template``.
    """
    placed = replace(template, start=None, end=None, offset=None, order=first.order)
    return replace(placed, text=text, content=content, id=f"{first.id}..{last.id}")


def check_mode(mode: Mode) -> Mode:
    """Validate a method of fusion, and return it.

    Raises:
        ValueError: If the mode is unknown.
    """
    return choice(mode, "mode", get_args(Mode))


def _relative(scores: Sequence[float], rank_constant: float) -> npt.ArrayLike:
    low = min(scores, default=0.0)
    high = max(scores, default=0.0)
    if high <= low:
        return [1.0] * len(scores)
    # Rounding preserves ties despite floating-point errors.
    return ((np.array(scores) - low) / (high - low)).round(12)


def _distribution(scores: Sequence[float], rank_constant: float) -> npt.ArrayLike:
    if not scores:
        return []
    import statistics  # imported here, since it is slow and only this mode uses it

    mean = statistics.fmean(scores)
    deviation = statistics.pstdev(scores)
    if not deviation:
        return [0.5] * len(scores)
    low = mean - 3 * deviation
    width = 6 * deviation
    return [round(min(1.0, max(0.0, (score - low) / width)), 12) for score in scores]


_SCORES: Mapping[str, Callable[[Sequence[float], float], npt.ArrayLike]] = {
    "rrf": lambda scores, constant: [1 / (constant + n) for n in range(1, len(scores) + 1)],
    "relative": _relative,
    "distribution": _distribution,
    "concat": lambda scores, _: list(scores),
}


Lift = Literal["max", "sum", "mean"]


_SECOND = 0.5  # the weight of the second best matching node of a target


def lifted_score(scores: Sequence[float], how: Lift) -> float:
    """Compute the score of a target from the scores of its matching nodes.

    - ``"max"``: The best score.
    - ``"sum"``: The best score plus half of the second best score if this is above 0. A sum over
      all scores would favor long documents.
    - ``"mean"``: The mean of all scores.

    Args:
        scores: The scores of the matching nodes, at least one, in any order.
        how: The method.

    Example:
        >>> [lifted_score([4.0, 2.0, 3.0], how) for how in ("max", "sum", "mean")]
        [4.0, 5.5, 3.0]
    """
    if how == "mean":
        return sum(scores) / len(scores)
    if how == "max" or len(scores) == 1:
        return max(scores)
    best, second, *_ = sorted(scores, reverse=True)
    return best + _SECOND * max(0.0, second)


def cut_scores(
    results: Sequence[ScoredNode], min_score: float | None = None, relative_cut: float | None = None
) -> list[ScoredNode]:
    """Remove results with low scores.

    QAnything uses ``min_score=0.28, relative_cut=0.5``.

    Args:
        results: The results, in any order. The order is kept.
        min_score: The minimum score.
        relative_cut: The minimum score as a share of the highest score, which is useful if scores
            are probabilities. For a negative highest score, the minimum is ``top - (1 -
            relative_cut) * abs(top)``. For example, with a value of 0.5, the minimum is 0.4 for a
            highest score of 0.8, and -3 for a highest score of -2.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> found = [ScoredNode(Node("tea"), score) for score in (0.8, 0.5, 0.3, 0.1)]
        >>> [result.score for result in cut_scores(found, relative_cut=0.5)]
        [0.8, 0.5]
        >>> [result.score for result in cut_scores(found, min_score=0.3)]
        [0.8, 0.5, 0.3]
    """
    least = -math.inf if min_score is None else min_score
    if relative_cut is not None and results:
        top = max(result.score for result in results)
        share = relative_cut if top >= 0 else 2 - relative_cut
        least = max(least, share * top)
    return [result for result in results if result.score >= least]


_LOGGED: set[Hashable] = set()


def logged_messages(graph: NodeGraph | None) -> set[Hashable]:
    """Return the messages that were logged for a graph, or for nodes without a graph (None).

    The messages of a graph are stored until it is closed.
    """
    if graph is None:
        return _LOGGED
    messages: set[Hashable] = graph.reader.shared("logged messages", set)
    return messages


def log_threshold(owner: str, min_score: float | None, results: Sequence[ScoredNode]) -> None:
    """Log a message, once per graph, if no result reaches the minimum score."""
    if not results:
        return
    message = (owner, min_score)
    logged = logged_messages(results[0].node.graph)
    if message in logged:
        return
    logged.add(message)
    logger.warning(
        "%s: the best of %s results scores %.4f, below the minimum score %s",
        owner,
        len(results),
        max(result.score for result in results),
        min_score,
    )


def check_cuts(min_score: float | None, relative_cut: float | None) -> None:
    """Validate the minimum scores of ``cut_scores``.

    Raises:
        TypeError: If a limit is not a number.
        ValueError: If a limit is out of range.
    """
    for name, number in (("min_score", min_score), ("relative_cut", relative_cut)):
        if number is not None:
            check_number(number, name)
    if relative_cut is not None and not 0 <= relative_cut <= 1:
        raise ValueError(f"relative_cut must be from 0 to 1, got {relative_cut!r}")


def with_variant(results: Sequence[ScoredNode], variant: QueryVariant) -> list[ScoredNode]:
    """Insert a query variant before the existing variants in the evidence of results."""
    varied = []
    for result in results:
        evidence = [replace(m, variants=(variant, *m.variants)) for m in result.evidence]
        varied.append(replace(result, evidence=tuple(evidence)))
    return varied
