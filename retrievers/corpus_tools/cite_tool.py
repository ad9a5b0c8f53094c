"""The tool ``cite``, which checks the quotations in a draft against the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...nodegraph.node import Node
from ..answers.quote_matching import ELISION, QuoteIndex
from ..answers.quotes import draft_quotes
from ..retriever import Retriever
from .corpus_view import CorpusView
from .tool_output import (
    Entry,
    Interval,
    ToolError,
    ToolOutput,
    heading_line,
    in_line,
    location_of,
    page_of,
    quoted,
)

_SENTENCES = (20, 200)  # the number of most similar sentences to check: first 20, then 200

_QUERY = 300  # the number of characters at each end of a long quotation that form the query

# The number of characters around a sentence, in addition to the length of the quotation.
_AROUND = 100

_WORD = 50  # the maximum distance to the next space, so that no word is cut

_ELIDED = 2_000  # the number of additional characters if the quotation omits words


def cite(
    view: CorpusView,
    max_tokens: int,
    *,
    draft: str,
    document: str,
    skip: int,
) -> ToolOutput:
    """Return the location of each quotation in a draft, or the most similar text."""
    quotes = draft_quotes(draft)
    if not quotes:
        raise ToolError("the draft must contain words or a quotation")
    source = view.document(document) if document else None
    rows = (_QuoteRow(view, quote, source) for quote in quotes)
    return page_of(rows, max_tokens, skip, tool="cite", items="quotations")


class _Part(NamedTuple):
    """A part of a document's text.

    Attributes:
        node: The document.
        offset: The position in the document at which the part starts.
        text: The text of the part.
    """

    node: Node
    offset: int
    text: str


class _Place(NamedTuple):
    """The result of a search for a quotation.

    Attributes:
        status: The status of the quotation. It is ``"not_found"`` if nothing matches.
        entries: The places at which the quotation occurs, or the most similar text.
        is_near: Whether the entries contain similar text instead of exact places.
    """

    status: str
    entries: Sequence[Entry] = ()
    is_near: bool = False


class _QuoteRow(NamedTuple):
    """A quotation with its locations, or with the most similar text.

    Attributes:
        view: The visible documents.
        quote: The quotation.
        source: The document that is searched. If None, all documents are searched.
    """

    view: CorpusView
    quote: str
    source: Node | None

    def formatted(self) -> tuple[str, Entry]:
        """Search for the quotation, and return the row as text and as JSON values."""
        place = _place_of(self.view, self.quote, self.source)
        entry: Entry = {"quote": self.quote, "status": place.status}
        if place.status == "not_found":
            entry["nearest"] = [*place.entries]
        else:
            entry["spans"] = [*place.entries]
        first = f"“{self.quote}”: {place.status.replace('_', ' ')}"
        if place.is_near:
            first += ", the nearest text is"
        first = in_line(first)
        if place.status == "exact":
            return f"{first}, {heading_line(place.entries[0])}", entry
        lines = [f"{heading_line(near)}\n{quoted(near['text'])}" for near in place.entries]
        return "\n".join([first, *lines]), entry


def _place_of(view: CorpusView, quote: str, source: Node | None) -> _Place:
    """Search for a quotation in one document, or in the most promising parts of all documents."""
    parts: Sequence[_Part] = ()
    for count in _SENTENCES:
        parts = _parts(view, quote, count) if source is None else [_Part(source, 0, source.text)]
        index = QuoteIndex([part.text for part in parts])
        match = index.find(quote)
        if match is not None:
            entries = [_entry(view, parts[match.text], span) for span in match.spans]
            return _Place(match.status, entries)
        if source is not None or len(parts) < count:
            break
    nearest = index.nearest(quote)
    if nearest is None:
        return _Place("not_found")
    at, span = nearest
    return _Place("not_found", [_entry(view, parts[at], span)], True)


def _entry(view: CorpusView, part: _Part, span: Interval) -> Entry:
    """Convert a span within a part to a location in the document."""
    start = part.offset + span[0]
    stop = part.offset + span[1]
    entry = location_of(view.passage_at(part.node, start), start, stop)
    return entry | {"text": part.node.text[start:stop]}


def _parts(view: CorpusView, quote: str, count: int) -> list[_Part]:
    """Return the parts of documents that have words in common with a quotation."""
    query = quote
    if len(quote) > 2 * _QUERY:
        query = f"{quote[:_QUERY]} {quote[-_QUERY:]}"
    around = len(quote) + _AROUND
    if ELISION.search(quote):
        around += _ELIDED
    words = view.restricted(Retriever(view.graph, view.sentences, "bm25", top_k=count))
    results = words.retrieve(query)
    if not results:  # without searchable words or matches, look for the exact text
        folded = quote.casefold()
        documents = view.documents()
        return [_Part(node, 0, node.text) for node in documents if folded in node.text.casefold()]
    parts: list[_Part] = []
    for result in results:
        sentence = result.node
        node = sentence.root
        if sentence.start is None or sentence.end is None or not view.allows(node):
            continue
        start, stop = _widened(node.text, sentence.start - around, sentence.end + around)
        parts.append(_Part(node, start, node.text[start:stop]))
    return parts


def _widened(text: str, first: int, last: int) -> Interval:
    """Extend or shorten a span at both ends so that it does not cut a word.

    If no space is nearby, the end is left unchanged.
    """
    first = max(0, first)
    start = first
    if first:
        space = text.find(" ", first, first + _WORD)
        if space >= 0:
            start = space + 1
    if last >= len(text):
        return start, last
    space = text.rfind(" ", last - _WORD, last)
    if space < 0:
        return start, last
    return start, space
