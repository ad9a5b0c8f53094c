"""Parse the outputs of foreign retrievers, query engines and chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ...nodegraph.document import Document
from ...nodegraph.node import ROOT, Node
from ..results import Evidence, ScoredNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForeignNode(Node):
    """A document of another framework as a node outside of any graph.

    It has text, metadata and id for rerankers, fusions, strategies and citations. It has no parent,
    no children and no neighbors.

    Attributes:
        original: The document or node of the framework, which the adapters return. None: a text.
        sources: The sources of an answer.
    """

    original: Any = field(default=None, repr=False)
    sources: tuple[ScoredNode, ...] = field(default=(), repr=False)

    def __reduce__(self) -> tuple[Callable[..., Node], tuple[Any, ...]]:
        names = ("text", "start", "end", "id", "document_id", "original", "sources")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        return partial(ForeignNode, own_metadata=dict(self.own_metadata), **fields), ()


def is_document(item: object) -> bool:
    """Return whether an item is a node, or a document or node of another framework."""
    return isinstance(item, Node) or (
        isinstance(getattr(item, "metadata", None), Mapping)
        and (isinstance(getattr(item, "page_content", None), str) or _is_llama_index(item))
    )


def to_node(item: Any, score_key: str | None = None) -> Node:
    """Convert a LangChain document or a LlamaIndex node to a node. A node is returned unchanged.

    The id is the document's id. A missing id is derived from text and metadata, so that it is
    stable across retrievals.

    Args:
        item: An item for which ``is_document`` is True.
        score_key: A metadata field that depends on the query. Derived ids ignore it.

    Example:
        >>> from types import SimpleNamespace
        >>> document = SimpleNamespace(page_content="Tea", metadata={"page": 3}, id="d1")
        >>> to_node(document)
        Node('Tea', group='', id='d1')
    """
    if isinstance(item, Node):
        return item
    metadata = dict(item.metadata)
    if not _is_llama_index(item):
        text, identity = item.page_content, getattr(item, "id", None)
        return ForeignNode(
            text, metadata, id=identity or _made_id(text, metadata, score_key), original=item
        )
    text, source = item.get_content(), getattr(item, "ref_doc_id", None)
    return ForeignNode(
        text,
        metadata,
        start=getattr(item, "start_char_idx", None),
        end=getattr(item, "end_char_idx", None),
        id=item.node_id or _made_id(text, metadata, score_key),
        document_id=source if isinstance(source, str) else "",
        original=item,
    )


def text_node(text: str, title: str = "", metadata: Mapping[str, Any] | None = None) -> ForeignNode:
    """Return a text without a document, such as an answer, as a node with a derived id."""
    fields = {**({"title": title} if title else {}), **(metadata or {})}
    return ForeignNode(text, fields, id=_made_id(text, fields, None))


def _document_node(document: Document) -> Node:
    """Return a document as a root node."""
    return Node(
        document.text,
        dict(document.metadata),
        start=0,
        end=len(document.text),
        id=document.id,
        group=ROOT,
        document_id=document.id,
    )


TEXT_KEYS = ("text", "page_content", "content")
"""Keys of the text in a mapping from a function."""


def read_plain(output: Any) -> Any:
    """Convert the texts and mappings in a function's output to nodes.

    A mapping contains a text and optionally ``id``, ``document_id``, ``start``, ``end``,
    ``metadata`` and ``score``.

    Example:
        >>> _, (milk, score) = read_plain(["Tea", {"text": "Milk", "id": "m", "score": 0.5}])
        >>> milk, score
        (Node('Milk', group='', id='m'), 0.5)
    """
    if not _is_list(output):
        return output
    return [_plain_item(item) for item in output]


def _plain_item(item: Any) -> Any:
    if isinstance(item, str):
        return text_node(item)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return text_node(item[0]), item[1]
    name = next((name for name in TEXT_KEYS if isinstance(item, Mapping) and name in item), None)
    if name is None:
        return item
    node = text_node(str(item[name]), metadata=item.get("metadata"))
    fields = {key: item[key] for key in ("id", "document_id", "start", "end") if key in item}
    node = replace(node, **fields)
    return (node, item["score"]) if "score" in item else node


def _is_llama_index(item: object) -> bool:
    return callable(getattr(item, "get_content", None)) and hasattr(item, "node_id")


def _made_id(text: str, metadata: Mapping[str, Any], score_key: str | None) -> str:
    return Document(text, {k: v for k, v in metadata.items() if k != score_key}).id


ANSWER_KEYS = ("answer", "result", "output", "response")
"""Keys of the answer in a mapping from a chain."""

SOURCE_KEYS = ("context", "source_documents", "documents")
"""Keys of the documents in a mapping from a chain."""

NOTHING = "Empty Response"
"""LlamaIndex's answer if nothing was retrieved."""

ANSWER_OF = "answer of "
"""Prefix of the ``similarity`` of an answer's evidence."""

BY_RANK = ", by rank"
"""Suffix of the ``similarity`` of evidence with reciprocal ranks as scores: 1, 1/2, 1/3."""


class Item(NamedTuple):
    """A returned document, its optional score, and earlier evidence."""

    node: Node
    score: float | None
    evidence: tuple[Evidence, ...] = ()


def read_output(
    output: Any, name: str, query: str, *, score_key: str | None = "relevance_score"
) -> list[ScoredNode]:
    """Convert the output of a foreign retriever or query engine to results.

    Documents keep their order. Duplicates are dropped. Scores are used if all documents have a
    score and the scores are descending. Ascending numbers in (document, score) pairs are distances,
    and the scores are the negative distances. If all numbers of pairs are equal, they could be
    scores or distances and are ignored. Without usable scores, the score is the reciprocal rank (1,
    1/2, 1/3), and the evidence's ``similarity`` ends with ``", by rank"``. An answer is one result,
    with its sources as further evidence. An empty answer is no result.

    Args:
        output: Documents of LangChain or nodes of LlamaIndex, with or without scores, or an answer:
            a text, a response, a message, or a mapping with an answer.
        name: The retriever's name in evidence.
        query: The query.
        score_key: The metadata field with a score. None: no field.

    Raises:
        TypeError: If the output has another type.

    Example:
        >>> from types import SimpleNamespace
        >>> tea = SimpleNamespace(page_content="Tea", metadata={}, id="t")
        >>> milk = SimpleNamespace(page_content="Milk", metadata={}, id="m")
        >>> [result, _] = read_output([(tea, 0.8), (milk, 0.3)], "store", "tea?")
        >>> result.score, result.evidence[0].similarity
        (0.8, 'store')
        >>> [result] = read_output([(tea, 0.8)], "store", "tea?")  # a distance, perhaps
        >>> result.score, result.evidence[0].similarity
        (1.0, 'store, by rank')
        >>> read_output("Tea is a drink.", "chain", "tea?")[0].node.text
        'Tea is a drink.'
    """
    if (answer := _answer(output)) is not None:
        text, sources = answer
        return _answer_result(text, read_output(list(sources), name, query), name, query)
    documents = _documents(output, name)
    items = [_item(document, name, score_key) for document in documents]
    in_pairs = all(isinstance(document, tuple) for document in documents)
    scores = _scores([item.score for item in items], distances=in_pairs)
    label = name if scores is not None else name + BY_RANK
    ranks = [1 / rank for rank in range(1, len(items) + 1)]
    results: dict[tuple[str, str], ScoredNode] = {}
    for (node, _, earlier), score in zip(items, scores or ranks, strict=True):
        evidence = earlier or (Evidence(node, score, label, query),)
        results.setdefault((node.id, node.text), ScoredNode(node, score, evidence))
    return sorted(results.values(), key=lambda result: -result.score)


def read_sources(
    output: Any, name: str, query: str, *, score_key: str | None = "relevance_score"
) -> tuple[str | None, list[ScoredNode]]:
    """Return the answer of a query engine and its sources as results.

    For a retriever, the answer is None. See ``read_output`` for the results and arguments.
    """
    answer = _answer(output)
    if answer is None:
        return None, read_output(output, name, query, score_key=score_key)
    text, sources = answer
    return text, read_output(list(sources), name, query, score_key=score_key)


def read_answer(
    output: Any, documents: Iterable[Any] | None = None
) -> tuple[str, list[ScoredNode]]:
    """Return an answer's text and its documents, in order and with duplicates.

    Args:
        output: An answer: a text, a response, a message, or a mapping with an answer.
        documents: Replaces the documents of the output: nodes, results, texts or documents,
            including documents of LangChain or LlamaIndex.

    Raises:
        TypeError: If the output is not an answer, or a document has another type.
    """
    answer = _answer(output)
    if answer is None:
        raise TypeError(
            f"an answer is a text, a message, a response, or a mapping with one of "
            f"{', '.join(map(repr, ANSWER_KEYS))}, not {output!r:.80}"
        )
    text, sources = answer
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable | None):
        raise TypeError(f"evidence is a list of documents, nodes or texts, not {documents!r:.80}")
    results = []
    for document in sources if documents is None else documents:
        if isinstance(document, str):
            document = text_node(document)
        elif isinstance(document, Document):
            document = _document_node(document)
        node, score, evidence = _item(document, "evidence", "relevance_score")
        results.append(ScoredNode(node, 0.0 if score is None else score, evidence))
    return text, results


def _answer(output: Any) -> tuple[str, Sequence[Any]] | None:
    """Return an answer's text and sources. None: the output is not an answer."""
    if output is None or isinstance(output, str):
        return output or "", ()
    if isinstance(output, Mapping):
        sources = next((output[key] for key in SOURCE_KEYS if _is_list(output.get(key))), ())
        texts = (output[key] for key in ANSWER_KEYS if isinstance(output.get(key), str))
        text = next(texts, None)
        return None if text is None else (text, sources)
    if isinstance(getattr(output, "answered", None), bool):  # an Answer of this package
        return (output.text if output.answered else ""), [s.result for s in output.sources]
    if hasattr(output, "source_nodes"):  # LlamaIndex
        if hasattr(output, "async_response_gen"):
            raise TypeError(f"{output!r:.80} is streamed; give a query engine without streaming")
        text = str(output)
        sources = output.source_nodes or ()
        return ("" if text.strip() == NOTHING and not sources else text), sources
    content = getattr(output, "content", None)
    if isinstance(content, str) and not is_document(output):  # a message
        return content, ()
    return None


def _answer_result(
    text: str, sources: Sequence[ScoredNode], name: str, query: str
) -> list[ScoredNode]:
    if not text.strip():
        return []
    node = replace(text_node(text.strip(), f"{name}: {query}"), sources=tuple(sources))
    evidence = [match for source in sources for match in source.evidence]
    match = Evidence(node, 1.0, ANSWER_OF + name, query)
    return [ScoredNode(node, 1.0, (match, *evidence))]


def is_answer(result: ScoredNode) -> bool:
    """Return whether a result is the answer of a query engine."""
    return bool(result.evidence) and result.evidence[0].similarity.startswith(ANSWER_OF)


def _documents(output: Any, name: str) -> Sequence[Any]:
    """Return the documents of an output that is not an answer.

    Raises:
        TypeError: If the output contains no documents.
    """
    if isinstance(output, Mapping):
        output = next((output[key] for key in SOURCE_KEYS if _is_list(output.get(key))), output)
    if is_document(output) or is_document(getattr(output, "node", None)):
        return [output]
    if not _is_list(output):
        raise TypeError(
            f"{name} returned {output!r:.80}; a retriever returns documents or nodes, with scores "
            f"or without, and a query engine an answer: a text, or a mapping with one of "
            f"{', '.join(map(repr, ANSWER_KEYS))}"
        )
    return list(output)


def _item(item: Any, name: str, score_key: str | None) -> Item:
    if isinstance(item, ScoredNode):
        return Item(item.node, item.score, item.evidence)
    document, score = item, cast("Any", None)
    if isinstance(item, tuple) and len(item) == 2:
        document, score = item
    elif is_document(getattr(item, "node", None)):  # LlamaIndex's NodeWithScore
        document, score = item.node, item.score
    if not is_document(document):
        raise TypeError(
            f"{name} returned a list with {item!r:.80}, which is no document of LangChain, no node "
            "of LlamaIndex, and no pair of one and its score"
        )
    node = to_node(document, score_key)
    if score is None and score_key is not None:
        score = node.metadata.get(score_key)
    if isinstance(score, bool) or not hasattr(score, "__float__"):
        return Item(node, None)
    return Item(node, float(score))  # converts numpy scalars


def _scores(scores: Sequence[float | None], *, distances: bool) -> list[float] | None:
    """Return the scores, higher is better, if they agree with the ranking. None: use ranks.

    Args:
        scores: Scores of the documents, best first.
        distances: Whether ascending numbers are distances, as in pairs of vector stores.
    """
    numbers = [score for score in scores if score is not None]
    if not numbers or len(numbers) < len(scores) or any(n != n for n in numbers):
        return None
    if distances and len(set(numbers)) == 1:
        return None
    if all(single >= other for single, other in pairwise(numbers)):
        return numbers
    if distances and all(single <= other for single, other in pairwise(numbers)):
        return [-number for number in numbers]
    return None


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
