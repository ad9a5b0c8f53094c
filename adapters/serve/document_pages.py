"""The views of documents: the list, and the text or the PDF page around a passage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.splitters.headings import markdown_headings
from ...retrievers.corpus_tools.reading_tools import CorpusView
from ...retrievers.filters import Filters
from .html_pages import Templates, joined, name_of, node_url
from .markdown import Html, marked_passage

_LISTED = 50  # documents per page of the list

_REACH = 3_000  # characters around a passage

_MAX_REACH = 500_000

_FAILURES = 20

_EXAMPLES, _SCANNED = 2, 20  # example questions, and documents that are read for them

_AUTOMATIC_ID = re.compile(r"[0-9a-f]{24}")

Span = tuple[int, int]


class DocumentPages:
    """A read-only view of a graph for the page. It never builds a group.

    Args:
        graph: The node graph.
        restriction: The required conditions of documents and nodes. Other documents and nodes are
            invisible on the page.
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
        """Return two headings of different documents if possible, for example questions."""
        ids = self.ids()
        nodes = self.graph.reader.nodes_by_id(ids[:: len(ids) // _SCANNED + 1])
        headings = [[heading for *_, heading in markdown_headings(n.text)][:3] for n in nodes]
        ranked = [
            *(own[0] for own in headings if own),
            *(heading for own in headings for heading in own[1:]),
            *(name for name in map(name_of, nodes) if not _AUTOMATIC_ID.fullmatch(name)),
        ]
        return list(dict.fromkeys(re.sub(r"^[\d.]+\s+", "", text) for text in ranked))[:_EXAMPLES]

    def list_html(self, page: Templates, skip: int, like: str) -> Html:
        """Return a part of the documents with ``like`` in their ids, and the skipped files."""
        ids = self.ids()
        if pattern := like.strip().casefold():
            ids = [i for i in ids if pattern in i.casefold()]
        last = min(skip + _LISTED, len(ids))
        items = joined(
            page.html(
                "document",
                document=node.id,
                name=name_of(node),
                url=node_url("document", node.id, {}),
                about=page.about(node, page.say("characters", count=len(node.text))),
            )
            for node in self.graph.reader.nodes_by_id(ids[skip:last])
        )
        head = page.say("documents_count", first=skip + 1, last=last, count=len(ids))

        def turn(key: str, skip: int) -> Html:
            return page.link(key, f"/documents?{urlencode({'skip': skip, 'like': like})}")

        return page.html(
            "documents",
            failures=self._failures(page),
            like=like,
            head=head if items else page.say("no_documents"),
            items=items,
            previous=turn("previous", max(0, skip - _LISTED)) if skip else "",
            next=turn("next", last) if last < len(ids) else "",
        )

    def _failures(self, page: Templates) -> Html:
        """Return the skipped files. Empty with a restriction: they have no metadata to check."""
        failures = [] if self._is_restricted else self.graph.failures
        if not failures:
            return Html()
        texts = [f"{item.document}: {item.error}" for item in failures[:_FAILURES]]
        items = joined(page.html("reason", text=text) for text in texts)
        return page.html("failures", head=page.say("failures", count=len(failures)), items=items)

    def node(self, node_id: str) -> Node:
        """Return a node if the node and its document are visible.

        Raises:
            LookupError: If the node is unknown or invisible.
        """
        node = self.graph.node(node_id)
        if not (self.view.allows(node) and self.view.allows(node.root)):
            raise LookupError(
                f"no node {node_id!r} in the graph; it may have been removed or changed"
            )
        return node

    def picture(self, node_id: str, number: int | None, span: Span | None) -> bytes:
        """Return a PDF page as a PNG, with the node or another span of its document marked."""
        from ..files.page_images import page_image

        return page_image(self.node(node_id), number, span)

    def passage_html(
        self, page: Templates, node_id: str, span: Span | None, reach: int, number: int | None
    ) -> Html:
        """Return a node in the surrounding text of its document, or a page of a PDF.

        Args:
            page: The templates.
            node_id: The id of a node or document.
            span: A span of the document to mark instead of the node.
            reach: The number of characters before and after the node. 0: the default.
            number: The page of a PDF. None: the text.

        Raises:
            LookupError: If the node is unknown or invisible.
        """
        node = self.node(node_id)
        root = node.root
        values = {} if span is None else {"start": span[0], "end": span[1]}
        if span is not None and node.start is not None:
            start, end = max(0, min(span)), min(max(span), len(root.text))
            node = replace(node, text=root.text[start:end], start=start, end=end)
        url = partial(node_url, "document", node_id, values)
        pages = _count_pages(root)
        about = [page.about(root, page.place(node)), page.say("characters", count=len(root.text))]
        if node.start is None:
            about.append(page.say("generated"))
        if number is None:
            first = node.pages[0] if node.pages else 1
            links = [page.link("show_page", url(page=first))] if pages else []
            content = _text_html(page, node, bool(span), reach or _REACH, url)
        else:
            links = [page.link("show_text", url())]
            for key, other in (("page_before", number - 1), ("page_after", number + 1)):
                if 1 <= other <= pages:
                    links.append(page.link(key, url(page=other)))
            content = page.html(
                "picture",
                url=node_url("picture", node_id, values, page=number),
                alternative=page.say("page_picture", page=number, pages=pages, title=name_of(root)),
            )
        return page.html(
            "passage",
            name=name_of(root),
            about=" · ".join(filter(None, about)),
            links=joined(links),
            content=content,
        )


def _text_html(
    page: Templates, node: Node, has_span: bool, reach: int, url: Callable[..., str]
) -> Html:
    reach, text = min(reach, _MAX_REACH), node.root.text
    before, hit, after, start, end = "", node.text, "", 0, len(text)
    if node.group == ROOT and not has_span:
        before, hit, end = text[: 2 * reach], "", min(2 * reach, len(text))
    elif node.start is not None and node.end is not None:
        start, end = max(0, node.start - reach), min(len(text), node.end + reach)
        before, after = text[start : node.start], text[node.end : end]
    shown = marked_passage(before, hit, after, name_of(node.root))
    shown = Html(shown.replace("<mark>", '<mark id="hit">', 1))
    more = page.link("show_more", url(reach=8 * reach))
    is_cut = start or end < len(text)
    return page.html("text", before="… " if start else "", text=shown, more=more if is_cut else "")


def _count_pages(document: Node) -> int:
    """Return the number of pages available as pictures. 0 unless the document is a PDF."""
    is_pdf = document.metadata.get("page_unit") == "page"
    return int(document.metadata.get("page_count", 1)) if is_pdf else 0
