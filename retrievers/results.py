"""Search results: nodes with their scores and the evidence of how they were found."""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, TypeVar, overload

from ..nodegraph.foreign_names import missing_attribute
from ..nodegraph.node import Node
from .conditions import SEVERAL, plain
from .filters import Filters

KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class QueryVariant:
    """An earlier form of a query, before a strategy changed it.

    Attributes:
        query: The query that the strategy received.
        strategy: The name of the strategy, such as ``"rewrite"``, ``"hyde"`` or ``"multi-step"``.
        note: A problem, such as a failed model call, or other information. It can be None.
    """

    query: str
    strategy: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One match through which a result was found.

    Attributes:
        node: The matching node. It is the result itself, or a related node in a smaller group.
        score: The score of the match.
        similarity: The name of the similarity or of the reranker.
        query: The query in the form in which it was searched.
        embed_key: The key of the embedding that was compared, or None if words were compared.
        share: The part of the result's score that comes from this retriever if results were fused.
        variants: The earlier forms of the query that strategies changed, beginning with the user's
            query.
        by_search_text: Whether the compared text was ``node.searched_text``, which includes the
            texts of ``searched_with``.
        filters: The filters of the retriever and of the call, or None.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add("Green tea is steamed. Rivers run.")
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> (result,) = Retriever(graph, "sentence", target="ROOT").retrieve("tea")
        >>> match = result.evidence[0]
        >>> match.node.text, match.group, match.similarity
        ('Green tea is steamed', 'sentence', 'bm25')
    """

    node: Node
    score: float
    similarity: str
    query: str
    embed_key: str | None = None
    share: float | None = None
    variants: tuple[QueryVariant, ...] = ()
    by_search_text: bool = False
    filters: Filters | None = field(default=None, compare=False, repr=False)

    @property
    def searched_with(self) -> tuple[str, ...]:
        """The metadata fields and groups whose texts are compared together with the node's text."""
        return self.node.searched_sources if self.by_search_text else ()

    @property
    def group(self) -> str:
        """The group in which the match was found."""
        return self.node.group


COPY = "also in"
"""The ``similarity`` in the evidence of a node that was omitted because it has the same text."""


def _known_evidence(evidence: tuple[Evidence, ...], score: float) -> tuple[Evidence, ...]:
    return evidence


class _PendingEvidence:
    """A result whose evidence is created when it is first accessed."""

    __slots__ = ("_pending",)

    _pending: tuple[Callable[[Any, float], tuple[Evidence, ...]], Any]


@dataclass(frozen=True, slots=True)
class ScoredNode(_PendingEvidence):
    """A node with its score and its evidence.

    ``print(result)`` displays the location, the score and a snippet.

    Attributes:
        node: The node.
        score: The score. A higher score is better, and the range depends on the retriever.
        evidence: The matches through which the node was found, best first. They are not included in
            ``repr(result)``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import as_retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("Green tea."), Document("green tea", {"file_name": "b.md"})])
        >>> print(as_retriever(graph)("green tea")[0])
        0.439  Green tea.
          also in b.md
    """

    node: Node
    score: float
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)

    if not TYPE_CHECKING:  # type checkers already report missing attributes

        def __getattr__(self, name):
            if name == "evidence":
                create, key = self._pending
                evidence = create(key, self.score)
                object.__setattr__(self, "evidence", evidence)
                # The matches of the other results are no longer needed. The value is replaced and
                # not deleted, because another thread may be about to read it.
                object.__setattr__(self, "_pending", (_known_evidence, evidence))
                return evidence
            raise missing_attribute(self, name, "node")

    @classmethod
    def with_pending_evidence(
        cls,
        node: Node,
        score: float,
        create: Callable[[KeyT, float], tuple[Evidence, ...]],
        key: KeyT,
    ) -> ScoredNode:
        """Create a result whose evidence is computed when it is first accessed.

        Args:
            node: The node.
            score: The score.
            create: A function that computes the evidence from the key and the score. Several
                threads may call it. The graph can change before the call, so the function must not
                depend on mutable values.
            key: The key that is passed to the function.
        """
        result = cls.__new__(cls)
        object.__setattr__(result, "node", node)
        object.__setattr__(result, "score", score)
        object.__setattr__(result, "_pending", (create, key))
        return result

    @property
    def text(self) -> str:
        """The text of the node."""
        return self.node.text

    @property
    def best_match(self) -> Node:
        """The best matching node within the result, or the node of the result itself."""
        node = self.node
        for match in self.evidence:
            inner = match.node
            is_part = inner.id != node.id and inner.document_id == node.document_id
            if is_part and inner.start is not None and node.start is not None:
                return inner if inner.start >= node.start else node
        return node

    @property
    def place(self) -> str:
        """The location of the best match, such as ``report.pdf, page 12, 3.2 Results``.

        See ``Node.place``.
        """
        return self.best_match.place

    def __str__(self) -> str:
        place = f"{self.place}  " if self.place else ""
        head = f"{place}{self.score:.3f}  "
        first, *others = self.snippet(columns=78, rows=3, after=head) or [""]
        rows = [head + first, *(f"  {row}" for row in others)]
        return "\n".join([*rows, *other_places(self)])

    def _repr_html_(self) -> str:
        """Return the result as HTML, which notebooks display."""
        head = html.escape(f"{self.place}  {self.score:.3f}".strip())
        rows = "<br>".join(html.escape(row) for row in self.snippet())
        also = [html.escape(place.strip()) for place in other_places(self)]
        notes = "".join(f"<br><i>{place}</i>" for place in also)
        return f"<b>{head}</b><br>{rows}{notes}"

    def snippet(
        self, query: str | None = None, *, columns: int = 80, rows: int = 5, after: str = ""
    ) -> list[str]:
        """Return the sentences and table rows that probably answer the query, as rows of text.

        Omitted text is represented by ``…``. A table row is preceded by the header of its table.

        Args:
            query: The query. If None, the query of the best match is used.
            columns: The number of columns of a row. Chinese characters occupy two columns.
            rows: The maximum number of rows after long rows are wrapped.
            after: The text that is displayed on the same line before the first row.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> graph = NodeGraph()
            >>> ids = graph.add("Tea is old. Green tea is steamed, not fermented. Rivers run.")
            >>> graph.search("green tea")[0].snippet(columns=40, rows=1)
            ['Green tea is steamed, not fermented.']
        """
        from .excerpt import columns_of, excerpt, row_text  # text analysis is slow to import

        text = self.node.text
        if query is None:
            query = self.evidence[0].query if self.evidence else ""
        parts = excerpt(
            text,
            self.span_of_match,
            query,
            columns=columns,
            rows=rows,
            first=columns_of(after),
        )
        return [" ".join(row_text(text, row).split()) for row in parts]

    @property
    def span_of_match(self) -> tuple[int, int] | None:
        """The start and the end of the best match in the text of the node.

        It is None if the node as a whole is the best match.
        """
        match = self.best_match
        if match is self.node or match.start is None or match.end is None:
            return None
        origin = self.node.start or 0
        return match.start - origin, match.end - origin

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the node, including the metadata of its document."""
        return self.node.metadata

    def to_dict(self) -> dict[str, Any]:
        """Convert the result to a dictionary of plain values, which ``json.dumps`` accepts.

        Its keys are ``id``, ``group``, ``text``, ``content``, ``score``, ``document_id``,
        ``start``, ``end``, ``metadata``, ``place`` and ``evidence``. The evidence is a list of
        dictionaries with the keys ``node_id``, ``group``, ``text``, ``score``, ``similarity`` and
        ``query``. Values that JSON does not support, such as dates, are converted to strings.
        """
        evidence = [
            {
                "node_id": match.node.id,
                "group": match.group,
                "text": match.node.text,
                "score": match.score,
                "similarity": match.similarity,
                "query": match.query,
            }
            for match in self.evidence
        ]
        node = self.node
        values: dict[str, Any] = _json_value(
            {
                "id": node.id,
                "group": node.group,
                "text": node.text,
                "content": node.content,
                "score": self.score,
                "document_id": node.document_id,
                "start": node.start,
                "end": node.end,
                "metadata": node.metadata,
                "place": self.place,
                "evidence": evidence,
            }
        )
        return values

    def explain(self) -> str:
        """Explain how the node was found, in one line for the result and one line for each match.

        If several matches come from the same retriever, its part of the score is displayed only in
        the first of their lines.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers import Retriever
            >>> graph = NodeGraph()
            >>> ids = graph.add("Green tea. Black tea.")
            >>> graph.create_node_group("sentence", lambda text: text.split(". "))
            >>> (result,) = Retriever(graph, "sentence", "bm25", target="ROOT")("green")
            >>> print(result.explain())
            0.6931  ROOT  "Green tea. Black tea."
              0.6931  sentence  bm25 for "green": "Green tea"
        """
        lines = [f"{self.score:.4f}  {self.node.group}  {_quoted(self.node.text)}"]
        shared = set()
        for match in self.evidence:
            if match.similarity == COPY:
                lines.append(_also(match))
                continue
            key = "" if match.embed_key is None else f" ({match.embed_key})"
            source = (match.group, match.similarity, key, match.query, match.share)
            share = ""
            if match.share is not None and source not in shared:
                share = f", which gave {match.share:.4f}"
            shared.add(source)
            matches = "itself" if match.node == self.node else _quoted(match.node.text)
            searched = ", ".join(match.searched_with)
            searched = f", searched with {searched}" if searched else ""
            lines.append(
                f"  {match.score:.4f}  {match.group}  {match.similarity}{key} for "
                f"{_quoted(match.query)}: {matches}{searched}{share}"
            )
            for variant in reversed(match.variants):
                note = "" if variant.note is None else f" ({variant.note})"
                lines.append(f"    {variant.strategy} of {_quoted(variant.query)}{note}")
        return "\n".join(lines)


def other_places(result: ScoredNode) -> list[str]:
    """Return a line such as "also in b.md" for each other place that contains the same text."""
    return [_also(match) for match in result.evidence if match.similarity == COPY]


def _also(copy: Evidence) -> str:
    """Return a line that refers to another node with the same text."""
    more = "".join(f", {variant.note}" for variant in copy.variants)
    return f"  also in {copy.node.place or copy.node.document_id}{more}"


def _line(text: str, size: int = 160) -> str:
    line = " ".join(text.split(None, size)[:size])
    return line if len(line) <= size else f"{line[: size - 3]}..."


@functools.lru_cache(maxsize=1_000)  # called with the same query for each result
def _quoted(text: str) -> str:
    return f'"{_line(text, 60)}"'


def _json_value(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, SEVERAL):
        return [_json_value(item) for item in value]
    is_json = value is None or isinstance(value, (str, int))
    return value if is_json or (isinstance(value, float) and math.isfinite(value)) else str(value)


class ResultList(list[ScoredNode]):
    """A list of the results of a query, best first, with a readable representation.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is steamed.", "Black tea is fermented."])
        >>> graph.search("tea")
        1. 0.323  Green tea is steamed.
        2. 0.323  Black tea is fermented.
    """

    def __repr__(self) -> str:
        return "\n".join(f"{rank}. {result}" for rank, result in enumerate(self, 1)) or "[]"

    def _repr_html_(self) -> str:
        """Return the results as HTML, which notebooks display."""
        items = "".join(f"<li>{result._repr_html_()}</li>" for result in self)
        return f"<ol>{items}</ol>"

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> ScoredNode: ...
    @overload
    def __getitem__(self, at: slice, /) -> ResultList: ...
    def __getitem__(self, at: SupportsIndex | slice, /) -> ScoredNode | ResultList:
        if isinstance(at, slice):
            return ResultList(super().__getitem__(at))
        return super().__getitem__(at)

    def __add__(self, other: list[ScoredNode], /) -> ResultList:  # type: ignore[override]
        return ResultList([*self, *other])

    def copy(self) -> ResultList:
        """Return a list with the same results."""
        return ResultList(self)


Results = list[ScoredNode]
"""A list of scored nodes, best first, as returned by a query."""


def without_removed(results: Results) -> Results:
    """Remove results whose documents were removed after the search."""
    nodes = [n for r in results if (n := r.node).graph is not None and n.document_id]
    removed: set[tuple[Any, str]] = set()
    for graph in {node.graph for node in nodes if node.graph is not None}:
        ids = {node.document_id for node in nodes if node.graph is graph}
        removed |= {(graph, i) for i in ids.difference(graph.reader.existing_documents(ids))}
    return [r for r in results if (r.node.graph, r.node.document_id) not in removed]


class Hits(NamedTuple):
    """The ids and scores of the nodes that an index found, best first.

    Nodes with equal scores are in document order.

    Attributes:
        ids: The ids of the nodes.
        scores: The score of each node. A higher score is better.

    Example:
        >>> hits = Hits(["node-7", "node-2"], [0.9, 0.4])
        >>> hits.ids[0], hits.scores[0]
        ('node-7', 0.9)
    """

    ids: list[str]
    scores: list[float]


OutputFormat = Literal["content", "dict"]


def formatted(
    results: Sequence[ScoredNode], output_format: OutputFormat | None, join: bool | str
) -> Any:
    """Convert results to an output format: scored nodes, their contents, or dictionaries.

    ``join=True`` joins the contents with line breaks.
    """
    if output_format == "content":
        contents = [result.node.content for result in results]
        if join is False:
            return contents
        return ("\n" if join is True else join).join(str(content) for content in contents)
    if output_format == "dict":
        return [result.to_dict() for result in results]
    return results
