"""A filtered view of a graph, which contains the documents and passages that an agent may see."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.readers.source_files import file_id_of
from ...nodegraph.text_forms import composed, in_stored_form
from ..composite.default_retriever import DefaultRetriever
from ..composite.default_settings import sentence_group
from ..filters import Filters, parse_filters
from ..protocols import RetrieverProtocol
from ..restricted_retriever import restrict
from .tool_output import ToolError, span_of


def file_of(document: Node) -> str:
    """Return the id of the file that contains a document.

    If the document is not a part of a file, its own id is returned.
    """
    return file_id_of(document.id, str(document.metadata.get("file_path", "")))


_AT_ONCE = 200  # the maximum number of documents that are loaded at the same time


class CorpusView:
    """A view of a graph that contains only the documents and passages that match filters.

    Args:
        graph: The graph.
        target: The name of the group that contains the passages.
        filters: Conditions on the metadata of documents. All other documents are invisible to the
            tools.
        retriever: The retriever that searches for passages. It must return visible passages only.
            If None, the default search for the target group is used.
    """

    def __init__(
        self,
        graph: NodeGraph,
        target: str,
        filters: Filters | None = None,
        retriever: RetrieverProtocol | None = None,
    ) -> None:
        self.graph = graph
        self.target = target
        self.filters = filters
        self._retriever = retriever
        self._allowed = parse_filters(filters)

    @property
    def retriever(self) -> RetrieverProtocol:
        """The retriever that searches for passages."""
        if self._retriever is None:
            self._retriever = self.restricted(DefaultRetriever(self.graph, self.target))
        return self._retriever

    @cached_property
    def sentences(self) -> str:
        """The name of the group that contains the sentences of passages.

        A missing group is created.
        """
        return sentence_group(self.graph, self.target)

    @property
    def entities(self) -> str:
        """The name of the group that contains the names mentioned in passages.

        It may not exist yet.
        """
        return f"{self.target} entity"

    def restricted(self, retriever: RetrieverProtocol) -> RetrieverProtocol:
        """Wrap a retriever so that it returns only visible passages."""
        return retriever if self.filters is None else restrict(retriever, self.filters)

    def documents(self, folder: str = "") -> Iterator[Node]:
        """Yield the visible documents, which are loaded in batches.

        Args:
            folder: A folder, or the id of a single document. If it is empty, all documents are
                yielded.
        """
        folder = composed(folder.strip().rstrip("/"))
        ids = iter(self.graph.reader.document_ids())
        if folder:
            ids = (name for name in ids if f"{composed(name)}/".startswith(f"{folder}/"))
        while subset := list(islice(ids, _AT_ONCE)):
            yield from (node for node in self.graph.reader.nodes_by_id(subset) if self.allows(node))

    def records(self, file: str) -> list[Node]:
        """Return the documents of a file with several records, such as a JSON Lines file."""
        file = composed(file)
        ids = self.graph.reader.document_ids()
        names = [name for name in ids if composed(name).startswith(f"{file}#")]
        nodes = self.graph.reader.nodes_by_id(names)
        of_file = [node for node in nodes if composed(file_of(node)) == file]
        return [node for node in of_file if self.allows(node)]

    def document(self, name: str) -> Node:
        """Return the document with an id, or the only document whose id ends with a path.

        Raises:
            ToolError: If no document matches, or if several documents match. The message lists
                similar names.
        """
        names = self.graph.reader.document_ids()
        form = in_stored_form(name, set(names))
        if form is not None:
            names = [form]
        else:
            end = f"/{composed(name)}"
            names = [document_id for document_id in names if composed(document_id).endswith(end)]
        nodes = (self.graph.node(document_id) for document_id in names)
        matching = list(islice((node for node in nodes if self.allows(node)), 9))
        if len(matching) == 1:
            return matching[0]
        if matching:
            listed = ", ".join(repr(node.id) for node in matching[:8])
            raise ToolError(f"{name!r:.200} is several documents; give one of these: {listed}")
        if records := self.records(name):
            listed = ", ".join(repr(node.id) for node in records[:8])
            raise ToolError(f"{name!r:.200} has {len(records):,} records; give one: {listed}")
        existing = [node.id for node in islice(self.documents(), 2_000)]
        raise ToolError(
            f"unknown document {name!r:.200}; known: {nearest_names(name, existing)}. "
            "outline lists all"
        )

    def passages(self, document: Node) -> Sequence[Node]:
        """Return the passages of a document in order."""
        results: Sequence[Node] = self.graph.find(self.target)(document)
        return results

    def passage_at(self, document: Node, at: int) -> Node:
        """Return the passage that contains a position.

        If none contains it, return the passage before it.
        """
        starts: list[int] = []
        passages: list[Node] = []
        for node in self.passages(document):
            span = span_of(node)
            if span is not None:
                starts.append(span[0])
                passages.append(node)
        if not passages:
            return document
        return passages[max(0, bisect_right(starts, at) - 1)]

    def allows(self, node: Node) -> bool:
        """Return whether a node matches the filters."""
        return self._allowed.matches(node)
