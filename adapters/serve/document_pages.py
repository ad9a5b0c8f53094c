"""Views that list documents, and that display the text or PDF page around a passage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from ...nodegraph.errors import Failure
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.readers.skipped_files import describe_skipped
from ...nodegraph.readers.source_files import file_id_of
from ...nodegraph.splitters.headings import markdown_headings
from ...nodegraph.text_forms import composed
from ...retrievers.corpus_tools.corpus_view import CorpusView
from ...retrievers.filters import Filters
from ...retrievers.results import ScoredNode
from ..extras import extra
from .html_pages import Page, name_of, node_url, path_of
from .markdown import marked_passage

with extra("serve", "markupsafe"):
    from markupsafe import Markup

_LISTED = 200  # maximum number of listed documents

_REACH = 250_000  # number of characters that are displayed before and after a passage

_EXAMPLES = 2  # number of example questions

_SCANNED = 20  # maximum number of documents that are read to find examples

_AUTOMATIC_ID = re.compile(r"[0-9a-f]{24}")


class DocumentPages:
    """A read-only view of the documents in a graph, for the web page. It never builds a group.

    Args:
        graph: The node graph.
        restriction: A filter that documents and nodes must match to be visible on the page.
    """

    def __init__(self, graph: NodeGraph, restriction: Filters | None = None) -> None:
        self.graph = graph
        self.view = CorpusView(graph, ROOT, restriction)
        self._is_restricted = restriction is not None

    def ids(self) -> Sequence[str]:
        """Return the ids of all visible documents."""
        if self._is_restricted:
            return [node.id for node in self.view.documents()]
        return self.graph.reader.document_ids()

    def topics(self) -> list[str]:
        """Return topics for example questions: the first headings or file names of documents."""
        ids = self.ids()
        headings = []
        names = []
        for node in self.graph.reader.nodes_by_id(ids[:: len(ids) // _SCANNED + 1]):
            for *_, heading in islice(markdown_headings(node.text), 1):
                headings.append(heading)
            name = name_of(node)
            if not _AUTOMATIC_ID.fullmatch(name):
                names.append(name)
        topics = [re.sub(r"^[\d.]+\s+", "", text) for text in headings + names]
        return list(dict.fromkeys(topics))[:_EXAMPLES]

    def list_html(self, values: Mapping[str, str], page: Page) -> Markup:
        """Return the list of documents whose ids contain ``like``, and the skipped files.

        The records of a file are combined in one line, unless ``like`` contains a ``#``. Only the
        first documents are listed.
        """
        like = values.get("like", "")
        wanted = composed(like.strip().casefold())
        ids = [i for i in self.ids() if wanted in composed(i.casefold())]
        files = {i: [i] for i in ids} if "#" in like else self._by_file(ids)
        records = {ids[0]: (file, len(ids)) for file, ids in files.items()}
        nodes = self.graph.reader.nodes_by_id([*records][:_LISTED])
        failures = self._failures()
        count = sum(number for _, number in records.values())
        return page.html("documents", like, nodes, records, count, failures)

    def _failures(self) -> list[Failure]:
        # Skipped files have no metadata to which a restriction could be applied.
        return [] if self._is_restricted else self.graph.failures

    def skipped_files(self) -> str:
        """Describe how many visible files were skipped, why, and what to do about it.

        The result is empty if no files were skipped.
        """
        return describe_skipped(self._failures())

    def ranks_by_file(self, results: Sequence[ScoredNode]) -> list[list[int]]:
        """Group the positions of results by file, so that records of the same file are together."""
        ids = [path_of(result.node) for result in results]
        files = self._by_file(list(dict.fromkeys(ids)))
        records: dict[str, str] = {}
        for file, members in files.items():
            if len(members) > 1:
                records.update(dict.fromkeys(members, file))
        ranks: dict[str, list[int]] = {}
        for rank, document_id in enumerate(ids):
            key = records.get(document_id, f"{document_id} {rank}")
            ranks.setdefault(key, []).append(rank)
        return list(ranks.values())

    def _by_file(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Group the ids of documents by the id of the file that contains them."""
        groups = _grouped(ids, [document_id.partition("#")[0] for document_id in ids])
        marked = {members[0]: name for name, members in groups.items() if members[0] != name}
        # The names of files and folders may contain "#" as well.
        mistaken = [
            groups[marked[node.id]]
            for node in self.graph.reader.nodes_by_id([*marked])
            if _file_of(node) != marked[node.id]
        ]
        if not mistaken:
            return groups
        members = list(chain.from_iterable(mistaken))
        files = {node.id: _file_of(node) for node in self.graph.reader.nodes_by_id(members)}
        return _grouped(ids, [files.get(i, i.partition("#")[0]) for i in ids])

    def node(self, node_id: str) -> Node:
        """Return a node if both the node and its document are visible.

        Raises:
            LookupError: If the node is unknown or not visible.
        """
        node = self.graph.node(node_id)
        if not (self.view.allows(node) and self.view.allows(node.root)):
            raise LookupError(
                f"no node {node_id!r} in the graph; it may have been removed or changed"
            )
        return node

    def picture(self, values: Mapping[str, str], page: Page) -> bytes:
        """Return a PNG image of a PDF page in which the node or the given span is highlighted."""
        from ..files.page_images import page_image

        node = self.node(values.get("node", ""))
        return page_image(node, _number(values, "page"), _span(values))

    def passage_html(self, values: Mapping[str, str], page: Page) -> Markup:
        """Return the text of a document in which a node is highlighted, or a page of a PDF.

        Args:
            values: The query parameters. ``node`` is the id of a node or document. The optional
                ``start`` and ``end`` define a span of the document to highlight instead of the
                node, and ``page`` is the page number in a PDF.
            page: The page that contains the templates.

        Raises:
            LookupError: If the node is unknown or not visible.
            ValueError: If a number is invalid.
        """
        node_id = values.get("node", "")
        number = _number(values, "page")
        span = _span(values)
        node = self.node(node_id)
        root = node.root
        marked: dict[str, int] = {}
        if span is not None:
            marked = {"start": span[0], "end": span[1]}
            node = _with_span(node, span)
        pages = _page_count(root)
        links = []
        if number is None:
            if pages:
                first = node.pages[0] if node.pages else 1
                links.append(("show_page", node_url("document", node_id, marked, first)))
            content = _text_html(page, node, node.group == ROOT and span is None)
        else:
            links.append(("show_text", node_url("document", node_id, marked)))
            for word, other in (("page_before", number - 1), ("page_after", number + 1)):
                if 1 <= other <= pages:
                    links.append((word, node_url("document", node_id, marked, other)))
            url = node_url("picture", node_id, marked, number)
            content = page.html("picture", url, number, pages, name_of(root))
        return page.html("passage", node, links, content)


def _with_span(node: Node, span: tuple[int, int]) -> Node:
    """Return a copy of a node with the text and the position of a span.

    If the position of the node is unknown, the node itself is returned.
    """
    if node.start is None:
        return node
    text = node.root.text
    start = max(0, min(span))
    end = min(max(span), len(text))
    return replace(node, text=text[start:end], start=start, end=end)


def _page_count(root: Node) -> int:
    """Return the number of pages of a PDF, or 0 for other documents."""
    if root.metadata.get("page_unit") != "page":
        return 0
    return int(root.metadata.get("page_count", 1))


def _number(values: Mapping[str, str], name: str) -> int | None:
    """Return the numeric value of a query parameter, or None if it is missing."""
    value = values.get(name)
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise ValueError(f"{name} must be a number from 0, got {value!r:.80}")
    return int(value)


def _span(values: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the span of the document that was requested, or None to use the span of the node."""
    end = _number(values, "end")
    if end is None:
        return None
    return _number(values, "start") or 0, end


def _text_html(page: Page, node: Node, is_document: bool) -> Markup:
    """Return the text of a document in which a node is highlighted.

    If the text of the node does not occur in the document, it is returned alone.
    """
    text = node.root.text
    start = 0
    end = len(text)
    name = name_of(node.root)
    if is_document:
        end = min(2 * _REACH, len(text))
        marked = marked_passage(text[:end], "", "", name)
    elif node.start is not None and node.end is not None:
        start = max(0, node.start - _REACH)
        end = min(len(text), node.end + _REACH)
        marked = marked_passage(text[start : node.start], node.text, text[node.end : end], name)
    else:
        marked = marked_passage("", node.text, "", name)
    shown = str(marked).replace("<mark>", '<mark id="hit">', 1)
    return page.html("text", Markup(shown), start > 0, end < len(text))


def _file_of(document: Node) -> str:
    return file_id_of(document.id, str(document.metadata.get("file_path", "")))


def _grouped(ids: Sequence[str], files: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for document_id, file in zip(ids, files, strict=True):
        groups.setdefault(file, []).append(document_id)
    return groups
