"""Check whether the sources of an answer are still up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ..base_retriever import BaseRetriever, inner_retrievers, with_all_inner
from ..call import Call
from ..filters import Filters, all_of, parse_filters
from ..protocols import RetrieverProtocol
from ..restricted_retriever import RestrictedRetriever
from ..results import ScoredNode
from .answer import Answer, Source


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """The changes in the sources of an answer, as returned by ``QueryEngine.check_current``.

    Attributes:
        changed: The cited sources whose text has changed in the document.
        removed: The cited sources whose document was removed.
        new: The results of a new search that were not found by the search for the answer.
    """

    changed: tuple[Source, ...] = ()
    removed: tuple[Source, ...] = ()
    new: tuple[ScoredNode, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether no source has changed."""
        return not (self.changed or self.removed or self.new)


def without_strategies(retriever: RetrieverProtocol) -> RetrieverProtocol:
    """Return a copy of a retriever that does not call a language model.

    Raises:
        ValueError: If a retriever calls a model and does not wrap exactly one other retriever.
    """
    inner = inner_retrievers(retriever)
    if getattr(retriever, "calls_model", False) or not (inner or _is_free(retriever)):
        if len(inner) != 1:
            raise ValueError(
                f"check_current searches without a language model, and {retriever!r:.80} needs one"
            )
        return without_strategies(inner[0][1])
    if isinstance(retriever, BaseRetriever) and not _is_free(retriever):
        return retriever.with_inner_retrievers({n: without_strategies(item) for n, item in inner})
    return retriever


def _is_free(retriever: object) -> bool:
    return bool(getattr(retriever, "is_free", True))


def compare_sources(
    answer: Answer, results: Sequence[ScoredNode], retrievers: Iterable[object]
) -> SourceChanges:
    """Compare the sources of an answer with the current documents and with a new search.

    Args:
        answer: The answer.
        results: The results of the new search.
        retrievers: The retrievers of the answer. Documents outside of their restrictions are
            treated as removed.

    Raises:
        ValueError: If the retrievers do not search a graph.
    """
    parts: list[object] = []
    for retriever in retrievers:
        parts += with_all_inner(retriever)
    documents = _documents_now(answer, parts)
    found = {_key(result) for result in results}
    changed = []
    removed = []
    for source in answer.cited:
        missing = [r for r in source.results if r.node.document_id and _key(r) not in found]
        if any(result.node.document_id not in documents for result in missing):
            removed.append(source)
        elif not all(_exists(r.node, *documents[r.node.document_id]) for r in missing):
            changed.append(source)
    known = {_key(result) for result in answer.results}
    new = tuple(result for result in results if _key(result) not in known)
    return SourceChanges(tuple(changed), tuple(removed), new)


def _documents_now(
    answer: Answer, retrievers: Sequence[object]
) -> dict[str, tuple[NodeGraph, Node]]:
    """Return the cited documents that still exist and may be read, by id."""
    restrictions = [_restriction(retriever) for retriever in retrievers]
    allowed = parse_filters(all_of(Call.begin().restriction, *restrictions))
    ids: dict[str, None] = {}
    for source in answer.cited:
        ids |= dict.fromkeys(result.node.document_id for result in source.results)
    graphs: dict[NodeGraph, None] = {}
    for retriever in retrievers:
        owned = (getattr(retriever, "graph", None), *getattr(retriever, "graphs", ()))
        graphs |= dict.fromkeys(graph for graph in owned if isinstance(graph, NodeGraph))
    if not graphs:
        raise ValueError(
            f"check_current compares documents of a NodeGraph, got {retrievers[0]!r:.80}"
        )
    documents: dict[str, tuple[NodeGraph, Node]] = {}
    for graph in graphs:
        existing = graph.reader.existing_nodes([*ids])
        documents |= {node.id: (graph, node) for node in existing if allowed.matches(node)}
    return documents


def _restriction(item: object) -> Filters | None:
    if isinstance(item, RestrictedRetriever):
        return item.filters() if callable(item.filters) else item.filters
    return getattr(item, "_restriction", None)


def _key(result: ScoredNode) -> tuple[str, str]:
    """Return a key that stays the same if a text moves within its document."""
    return result.node.document_id, result.node.text


def _exists(node: Node, graph: NodeGraph, document: Node) -> bool:
    """Return whether the text of a node still exists, in its document or as a generated node."""
    if node.group == ROOT or node.start is not None:
        return node.text in document.text
    return any(other.text == node.text for other in graph.reader.existing_nodes([node.id]))
