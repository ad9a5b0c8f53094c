"""Built-in and registered similarities and indexes, which are selected by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ...nodegraph.errors import explain_names, nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..protocols import Index, Similarity
from ..validation import choice
from .bm25 import Bm25

if TYPE_CHECKING:
    from ..indexes.exact_index import Exact
    from ..indexes.filter_index import FilterIndex
    from ..indexes.scan_index import ScanIndex

Scores = list[float | None]

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cosine:
    """The cosine similarity between the embeddings of the query and of a node, from -1 to 1.

    It finds paraphrases, while ``Bm25`` finds exact words, names and numbers. ``FusionRetriever``
    combines both. The graph requires an embedding model: ``NodeGraph(..., embed=model)``.

    Since every node has a similarity, a search returns ``top_k`` nodes if enough nodes match the
    filters. Use ``min_score`` to drop dissimilar nodes. Nodes whose vector consists of zeros are
    never returned. Scores are rounded to six decimals.

    Args:
        name: The name in evidence.

    Example:
        >>> def letters(texts):
        ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph(embed=letters)
        >>> ids = graph.add(["banana", "lemon tree", "kiwi"])
        >>> [result.node.text for result in Retriever(graph, "ROOT", "cosine")("papaya")]
        ['banana', 'lemon tree', 'kiwi']
    """

    name: str = "cosine"
    mode: ClassVar[Literal["embedding"]] = "embedding"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Vector]:
        """Return the index of a group's embeddings, which all retrievers share.

        If the store itself can search vectors (for example, with pgvector), it provides the index.

        Raises:
            LookupError: If the graph has no embedding with this key.
        """
        from ..indexes.vector_index import VectorIndex

        key = "default" if key is None else key
        graph.embeddings.embedder(key)

        def make() -> Index[Vector]:
            in_store: Index[Vector] | None = graph.reader.vector_index(group, key)
            if in_store is not None:
                return in_store
            return VectorIndex(graph, group, key)

        return graph.reader.shared(("vector index", group, key), make)

    def prepare(self, query: Vector, indexes: Sequence[Index[Vector]]) -> Vector:
        """Return the vector of the query unchanged."""
        return query


def _exact() -> Exact:
    from ..indexes.exact_index import Exact

    return Exact()


SIMILARITIES: dict[str, Callable[[], Similarity]] = {
    "bm25": Bm25,
    # The same text analysis is used for all languages, so this name is an alias.
    "bm25_chinese": lambda: Bm25(name="bm25_chinese"),
    "cosine": Cosine,
    "exact": _exact,
}
"""The built-in similarities, by name."""

REGISTERED: dict[str, CustomSimilarity] = {}
"""The registered similarities, by name."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@overload
def register_similarity(function: FunctionT) -> FunctionT: ...


@overload
def register_similarity(
    *,
    mode: Literal["text", "embedding"] = "text",
    batch: bool = False,
    higher_is_better: bool = True,
    name: str | None = None,
) -> Callable[[FunctionT], FunctionT]: ...


@explain_names
def register_similarity(
    function: FunctionT | None = None,
    *,
    mode: Literal["text", "embedding"] = "text",
    batch: bool = False,
    higher_is_better: bool = True,
    name: str | None = None,
) -> FunctionT | Callable[[FunctionT], FunctionT]:
    """Register a function as a similarity. Retrievers then accept its name or the function itself.

    Like a built-in similarity, it can be used with targets, filters, fusion and minimum scores. The
    function is called while the graph is not locked. If a node that it found was changed during the
    search, the function is called again. After three such changes, the graph is locked during the
    last call.

    Args:
        function: A function whose first parameter is the query. The other arguments are passed by
            name: ``node`` (or, with ``batch``, a list ``nodes``), and for embeddings ``vector``
            with shape (dimension,) or ``vectors`` with shape (nodes, dimension). The function
            returns a number, or None if the node does not match. With ``batch``, it returns one
            number per node, or pairs of a node and a number.
        mode: Whether queries are texts or vectors.
        batch: Whether the function receives all nodes in a single call.
        higher_is_better: Whether a higher number is better. If False, the function returns
            distances, which are negated in results.
        name: The name of the similarity. Defaults to the name of the function.

    Raises:
        ValueError: If the name belongs to a built-in similarity.
        TypeError: If the parameters of the function are not supported.

    Example:
        >>> @register_similarity
        ... def same_length(query, node):
        ...     return -abs(len(query) - len(node.text))
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["tea", "coffee", "milk"])
        >>> [r.node.text for r in Retriever(graph, "ROOT", "same_length", top_k=2)("four")]
        ['milk', 'tea']
    """

    def register(decorated: FunctionT) -> FunctionT:
        own_name = name or decorated.__name__
        if own_name in SIMILARITIES:
            raise ValueError(f"the similarity {own_name!r} already exists; choose another name")
        REGISTERED[own_name] = CustomSimilarity(decorated, own_name, mode, batch, higher_is_better)
        return decorated

    return register if function is None else register(function)


def get_similarity(similarity: str | Similarity | None) -> Similarity:
    """Return the similarity with the given name. Objects are returned unchanged. None means BM25.

    Example:
        >>> get_similarity("bm25").name
        'bm25'

    Raises:
        ValueError: If the name is unknown.
        TypeError: If the object is not a similarity.
    """
    if similarity is None:
        similarity = "bm25"
    if inspect.isfunction(similarity):
        names = [name for name, custom in REGISTERED.items() if custom.function is similarity]
        similarity = names[-1] if names else similarity
    known = [*SIMILARITIES, *REGISTERED]
    if not isinstance(similarity, str):
        usable = all(hasattr(similarity, name) for name in ("open", "prepare", "mode", "name"))
        if not usable or isinstance(similarity, type):
            raise TypeError(
                f"similarity must be one of {nearest_names('', known)}, a function that was "
                "registered with register_similarity, or an object with open(), prepare(), mode "
                f"and name, got {similarity!r:.80}"
            )
        return similarity
    if similarity not in known:
        raise ValueError(
            f"unknown similarity {similarity!r}; known: {nearest_names(similarity, known)}, and "
            "'auto' for a Retriever"
        )
    if similarity in REGISTERED:
        return REGISTERED[similarity]
    return SIMILARITIES[similarity]()


MakeIndex = Callable[[NodeGraph, str, "str | None", Similarity], Index[Any]]
"""A function that creates an index, given a graph, a group, the key of an embedding or None, and a
similarity.

It is called once for each combination of graph, group, embedding and similarity. The index receives
the original query, which is a text or a vector, and can call ``similarity.prepare(query,
[index])``. If the index has a method ``close``, the method is called when the graph is closed.
``graph.reader.index_file(name)`` returns a path at which the index can be stored. The base class
``SyncedIndex`` implements this behavior.
"""

DEFAULT = "default"


def with_index(similarity: Similarity, index: str | MakeIndex) -> Similarity:
    """Return a similarity that uses the given index.

    Args:
        similarity: The similarity. It is ignored by the index ``"map"``, which looks up exact
            texts.
        index: ``"default"``, ``"map"``, or a function that creates an index.

    Raises:
        TypeError: If ``index`` has any other value.
    """
    if index == DEFAULT:
        return similarity
    if index == "map":
        if similarity.name == "exact":
            return similarity
        return _exact()
    if isinstance(index, str) or not callable(index):
        raise TypeError(
            "index must be 'default', 'map' or a callable (graph, group, key, similarity), got "
            f"{index!r:.80}"
        )
    return _Indexed(similarity, index, similarity.name, similarity.mode)


def has_other_index(similarity: Similarity) -> bool:
    """Return whether a similarity uses an index that was selected with ``with_index``."""
    return isinstance(similarity, _Indexed)


@dataclass(frozen=True, eq=False)
class _Indexed:
    """A similarity whose index is replaced by another index."""

    similarity: Similarity
    make: MakeIndex
    name: str
    mode: Literal["text", "embedding"]

    def prepare(self, query: Any, indexes: Sequence[Any]) -> Any:
        """Return the query unchanged."""
        return query

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Any]:
        """Return the index, which all retrievers with the same settings share."""
        similarity = self.similarity
        identity = similarity if isinstance(similarity, Hashable) else id(similarity)
        name = ("index", self.make, group, key, identity)
        return graph.reader.shared(name, lambda: self.make(graph, group, key, similarity))


class Unranked:
    """A similarity that returns all nodes in document order, with a score of 0.

    ``Retriever`` uses it for blank queries. It does not call a model.
    """

    name: ClassVar[str] = "filter"
    mode: ClassVar[Literal["text"]] = "text"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> FilterIndex:
        """Return the index of a group, which all retrievers share."""
        from ..indexes.filter_index import FilterIndex

        return graph.reader.shared(("filter index", group), lambda: FilterIndex(graph, group))

    def prepare(self, query: str, indexes: Sequence[FilterIndex]) -> None:
        """Return None, because the query is blank."""


@dataclass(frozen=True, eq=False)
class CustomSimilarity:
    """A similarity that calls a user-defined function, which scores one or all nodes per call.

    For each query, every node that matches the filters is scored. This is fast enough for thousands
    of nodes.

    Args:
        function: The function. See ``register_similarity``.
        name: The name in evidence.
        mode: Whether the query is a text, or a vector of an embedding of the graph.
        batch: Whether the function receives all nodes in a single call.
        higher_is_better: Whether a higher number is better. If False, the function returns
            distances, which are negated in results.

    Raises:
        TypeError: If the parameters of the function are not supported.
    """

    function: Callable[..., Any]
    name: str
    mode: Literal["text", "embedding"] = "text"
    batch: bool = False
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        choice(self.mode, "mode", ("text", "embedding"))
        if not self._input_names():
            raise TypeError(
                f"similarity {self.name!r} takes {[*inspect.signature(self.function).parameters]}; "
                "its first parameter is the query, others are called "
                f"{' or '.join(self._possible_inputs())}"
            )

    def _possible_inputs(self) -> list[str]:
        names = ["nodes", "vectors"] if self.batch else ["node", "vector"]
        return names if self.mode == "embedding" else names[:1]

    def _input_names(self) -> list[str]:
        """Return the names of the parameters for nodes and vectors.

        If the function has only one parameter after the query, it can have any name.
        """
        names = [*inspect.signature(self.function).parameters][1:]
        known = [name for name in names if name in self._possible_inputs()]
        return names if len(names) == 1 else known

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> ScanIndex:
        """Return the index of a group's nodes, which all user-defined similarities share."""
        from ..indexes.scan_index import ScanIndex

        return graph.reader.shared(("nodes", group, key), lambda: ScanIndex(graph, group, key))

    def prepare(
        self, query: Any, indexes: Sequence[ScanIndex]
    ) -> Callable[[Sequence[Node], Any], Scores]:
        """Return a function that scores nodes and their vectors for a query."""
        names = self._input_names()

        def scores(nodes: Sequence[Node], vectors: Any) -> Scores:
            inputs = [vectors if name in ("vector", "vectors") else [*nodes] for name in names]
            if self.batch:
                made = self.function(query, **dict(zip(names, inputs, strict=True)))
                made = _aligned(made, nodes, self.name)
            else:
                rows = zip(*inputs, strict=True)
                made = [self.function(query, **dict(zip(names, row, strict=True))) for row in rows]
            return [self._score(score, node) for score, node in zip(made, nodes, strict=True)]

        return scores

    def _score(self, score: Any, node: Node) -> float | None:
        """Convert the number that the function returned for a node to a score."""
        if score is None:
            return None
        if math.isnan(score):
            raise ValueError(
                f"similarity {self.name!r} returned NaN for {node!r}; return a number, or None "
                "for no match"
            )
        return float(score) if self.higher_is_better else -float(score)


def _aligned(scored: Any, nodes: Sequence[Node], name: str) -> list[Any]:
    """Convert scores or (node, score) pairs to a list with one score per node.

    The score of a node that does not match is None.
    """
    rows = [*scored]
    if not rows:
        return [None] * len(nodes)
    if all(isinstance(row, tuple) and len(row) == 2 for row in rows):
        scores = {node.id: score for node, score in rows}
        return [scores.get(node.id) for node in nodes]
    if len(rows) != len(nodes):
        raise ValueError(
            f"similarity {name!r} returned {len(rows)} scores for {len(nodes)} nodes; "
            "return one for each, or pairs of a node and its score"
        )
    return rows
