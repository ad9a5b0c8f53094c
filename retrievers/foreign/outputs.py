"""Convert the outputs of functions and of retrievers of other frameworks to results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.node import ROOT, Node
from ..results import Evidence, ScoredNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForeignNode(Node):
    """A node that represents a document of another framework and does not belong to a graph.

    Its text, metadata and id can be used by rerankers, fusions, strategies and citations. It has no
    parent, children or neighbors.

    Attributes:
        original: The original document or node, which the adapters return, or None for a plain
            text.
        sources: The sources, if the node is an answer.
    """

    original: Any = field(default=None, repr=False)
    sources: tuple[ScoredNode, ...] = field(default=(), repr=False)

    def __reduce__(self) -> tuple[Callable[..., Node], tuple[Any, ...]]:
        names = ("text", "start", "end", "id", "document_id", "original", "sources")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        return partial(ForeignNode, own_metadata=dict(self.own_metadata), **fields), ()


SCORE_KEY = "relevance_score"
"""The metadata field that contains the score of a document."""

TEXT_KEYS = ("text", "page_content", "content")
"""The keys under which a mapping can contain its text."""

ANSWER_KEYS = ("answer", "result", "output", "response")
"""The keys under which the output of a chain can contain the answer."""

_ANSWER_NAMES = " or ".join([repr(key) for key in ANSWER_KEYS])

SOURCE_KEYS = ("context", "source_documents", "documents")
"""The keys under which the output of a chain can contain the documents."""

NOTHING = "Empty Response"
"""The answer of LlamaIndex if nothing was retrieved."""

ANSWER_OF = "answer of "
"""The prefix of ``similarity`` in the evidence of an answer."""

BY_RANK = ", by rank"
"""The suffix of ``similarity`` in evidence whose scores are reciprocal ranks: 1, 1/2, 1/3."""


def read_output(output: Any, name: str, query: str) -> list[ScoredNode]:
    """Convert the output of a function or of another framework's retriever to results.

    Documents keep their order, and duplicates are dropped. The original scores are used if all
    documents have a score and the scores are in descending order. In all other cases (for example,
    if the values are distances), the score is the reciprocal rank (1, 1/2, 1/3), and ``similarity``
    in the evidence ends with ``", by rank"``. An answer becomes a single result, with its sources
    as further evidence. An empty answer is ignored.

    Args:
        output: A list or an answer. The items of a list can be LangChain documents, LlamaIndex
            nodes, texts, mappings with a ``text`` (and optionally ``id``, ``document_id``,
            ``start``, ``end``, ``metadata`` and ``score``), or pairs of any of these and a score.
            An answer can be a text, a response, a message, or a mapping with an answer.
        name: The name of the retriever in evidence.
        query: The query.

    Raises:
        TypeError: If the output has any other type.

    Example:
        >>> from types import SimpleNamespace
        >>> tea = SimpleNamespace(page_content="Tea", metadata={}, id="t")
        >>> [result, _] = read_output([(tea, 0.8), ("Milk", 0.3)], "store", "tea?")
        >>> result.score, result.evidence[0].similarity
        (0.8, 'store')
        >>> [result, _] = read_output([(tea, 0.3), ("Milk", 0.8)], "store", "tea?")
        >>> result.score, result.evidence[0].similarity
        (1.0, 'store, by rank')
        >>> read_output("Tea is a drink.", "chain", "tea?")[0].node.text
        'Tea is a drink.'
    """
    text, results = read_sources(output, name, query)
    if text is None:
        return results
    if not (text := text.strip()):
        return []
    node = _text_node(text, {"title": f"{name}: {query}"}, sources=tuple(results))
    evidence = [Evidence(node, 1.0, ANSWER_OF + name, query)]
    for result in results:
        evidence += result.evidence
    return [ScoredNode(node, 1.0, tuple(evidence))]


def read_sources(output: Any, name: str, query: str) -> tuple[str | None, list[ScoredNode]]:
    """Return an answer, or None if the output contains no answer, and its sources.

    See ``read_output`` for the arguments.
    """
    answer, documents = _answer(output) or (None, output)
    if not _is_list(documents):
        raise TypeError(
            f"{name} must return a list of documents, nodes or texts, or an answer (a text, or a "
            f"mapping with {_ANSWER_NAMES}), got {output!r:.80}"
        )
    items = [_item(document, name) for document in documents]
    scores = [score for _, score, _ in items if score is not None and score == score]
    label = name
    is_ranking = scores == sorted(scores, reverse=True)
    if not is_ranking or len(scores) < len(items):
        label = name + BY_RANK
        scores = [1 / rank for rank in range(1, len(items) + 1)]
    results: dict[tuple[str, str], ScoredNode] = {}
    for (node, _, earlier), score in zip(items, scores, strict=True):
        evidence = earlier or (Evidence(node, score, label, query),)
        results.setdefault((node.id, node.text), ScoredNode(node, score, evidence))
    return answer, sorted(results.values(), key=lambda result: -result.score)


def read_answer(
    output: Any, documents: Iterable[Any] | None = None
) -> tuple[str, list[ScoredNode]]:
    """Return the text of an answer and its documents, in order and including duplicates.

    Args:
        output: An answer, which can be a text, a response, a message, or a mapping with an answer.
        documents: Documents that replace those in the output. They can be nodes, results, texts or
            documents, including documents of LangChain or LlamaIndex.

    Raises:
        TypeError: If the output is not an answer, or a document has an unsupported type.
    """
    if (answer := _answer(output)) is None:
        raise TypeError(
            "an answer must be a text, a message, a response, or a mapping with "
            f"{_ANSWER_NAMES}, got {output!r:.80}"
        )
    text, sources = answer
    if documents is None:
        documents = sources
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
        raise TypeError(f"evidence must be a list of documents or texts, got {documents!r:.80}")
    items = [_item(document, "evidence") for document in documents or ()]
    return text, [ScoredNode(node, score or 0.0, evidence) for node, score, evidence in items]


def is_answer(result: ScoredNode) -> bool:
    """Return whether a result is the answer of a function or a query engine."""
    return bool(result.evidence) and result.evidence[0].similarity.startswith(ANSWER_OF)


def _answer(output: Any) -> tuple[str, Sequence[Any]] | None:
    """Return the text and the sources of an answer, or None if the output is not an answer."""
    if output is None or isinstance(output, str):
        return output or "", ()
    if isinstance(output, Mapping):
        sources = next((output[key] for key in SOURCE_KEYS if _is_list(output.get(key))), ())
        texts = (output[key] for key in ANSWER_KEYS if isinstance(output.get(key), str))
        text = next(texts, None)
        return None if text is None else (text, sources)
    # The output is an Answer of this package.
    if isinstance(getattr(output, "answered", None), bool):
        text = output.text if output.answered else ""
        return text, [source.result for source in output.sources]
    if hasattr(output, "source_nodes"):  # LlamaIndex
        return _llama_index_text(output), output.source_nodes or ()
    content = getattr(output, "content", None)
    if isinstance(content, str) and not isinstance(output, Node):  # the output is a message
        return content, ()
    return None


def _llama_index_text(response: Any) -> str:
    # The response would be printed as "None".
    if getattr(response, "response", response) in (None, ""):
        return ""
    text = str(response)
    if text.strip() == NOTHING and not response.source_nodes:
        return ""
    return text


def _item(item: Any, name: str) -> tuple[Node, float | None, tuple[Evidence, ...]]:
    """Convert a document to a node.

    Its score (or None) and its existing evidence are also returned.
    """
    if isinstance(item, ScoredNode):
        return item.node, item.score, item.evidence
    document: Any = item
    score: Any = None
    if isinstance(item, tuple) and len(item) == 2:
        document, score = item
    elif hasattr(item, "node") and not isinstance(item, Node):  # LlamaIndex's NodeWithScore
        document = item.node
        score = item.score
    elif isinstance(item, Mapping):
        score = item.get("score")
    node = _to_node(document)
    if node is None:
        raise TypeError(
            f"{name} returned a list with {item!r:.80}; each item must be a document of LangChain, "
            "a node of LlamaIndex, a text, or a pair of one of these and a score"
        )
    if score is None:
        score = node.metadata.get(SCORE_KEY)
    if isinstance(score, bool) or not hasattr(score, "__float__"):
        return node, None, ()
    return node, float(score), ()  # this also converts NumPy scalars


def _to_node(item: Any) -> Node | None:
    """Convert a document of any supported type to a node.

    A node is returned unchanged. If the type is not supported, None is returned. The id of the node
    is the id of the document. A missing id is derived from the text and the metadata, so that it is
    the same in all retrievals. A score in the metadata is ignored for this purpose, because it
    depends on the query.
    """
    if isinstance(item, Node):
        return item
    if isinstance(item, str):
        return _text_node(item, {})
    if isinstance(item, Mapping):
        texts = [str(item[key]) for key in TEXT_KEYS if key in item]
        if not texts:
            return None
        fields = {key: item[key] for key in ("id", "document_id", "start", "end") if key in item}
        return _text_node(texts[0], item.get("metadata") or {}, **fields)
    if not isinstance(getattr(item, "metadata", None), Mapping):
        return None
    metadata = dict(item.metadata)
    if isinstance(item, Document):
        fields = {"id": item.id, "group": ROOT, "document_id": item.id}
        return Node(item.text, metadata, start=0, end=len(item.text), **fields)
    if callable(getattr(item, "get_content", None)) and hasattr(item, "node_id"):  # LlamaIndex
        source = getattr(item, "ref_doc_id", None)
        return _text_node(
            item.get_content(),
            metadata,
            start=getattr(item, "start_char_idx", None),
            end=getattr(item, "end_char_idx", None),
            id=item.node_id,
            document_id=source if isinstance(source, str) else "",
            original=item,
        )
    text = getattr(item, "page_content", None)
    if not isinstance(text, str):
        return None
    return _text_node(text, metadata, id=getattr(item, "id", None), original=item)


def _text_node(text: str, metadata: Mapping[str, Any], **fields: Any) -> ForeignNode:
    """Create a node for a text. A missing id is derived from the text and the metadata."""
    fixed = {key: value for key, value in metadata.items() if key != SCORE_KEY}
    identity = fields.pop("id", None) or Document(text, fixed).id
    return ForeignNode(text, metadata, id=identity, **fields)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
