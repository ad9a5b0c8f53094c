"""``cite``: where the quotations of a draft stand in the corpus, or that they stand nowhere."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...nodegraph.node import Node
from ..answers.quote_matching import ELISION, QuoteIndex
from ..answers.quotes import draft_quotes
from .reading_tools import CorpusView
from .search_tools import SearchTools
from .tool_output import (
    Interval,
    OutputBuilder,
    ToolError,
    ToolOutput,
    heading_line,
    in_line,
    location_of,
    quoted,
)

_SENTENCES = (20, 200)  # that share most words with a quotation: first these, then more

_QUERY = 300  # characters of a long quotation, of its start and of its end, that are searched

_AROUND = 100  # characters around a sentence, besides as many as the quotation has

_WORD = 50  # characters within which a part begins and ends at a space, so that no word is cut

_ELIDED = 2_000  # as many more where the quotation leaves words out


class CiteTool:
    """Look up quotations in a corpus.

    Args:
        view: What may be seen.
        searching: Finds the sentences that share words with a quotation.
    """

    def __init__(self, view: CorpusView, searching: SearchTools) -> None:
        self.view = view
        self._searching = searching

    def cite(self, draft: str, document: str, skip: int, max_tokens: int) -> ToolOutput:
        """Return for each quotation of a draft where it stands, or the text most like it."""
        quotes = draft_quotes(draft)
        if not quotes:
            raise ToolError("the draft has no words; give a quotation, or a text with some")
        source = self.view.document(document) if document else None
        builder = OutputBuilder(max_tokens)
        rows = (partial(self._row, quote, source) for quote in quotes)
        index, omitted = builder.add_page(rows, skip)
        if not builder.size:
            raise ToolError(f"there are only {index} quotations; give a smaller skip")
        more = f"{omitted:,} more: cite with skip={skip + builder.size}." if omitted else ""
        return builder.output(omitted, more)

    def _row(self, quote: str, source: Node | None) -> tuple[str, dict[str, Any]]:
        for count in _SENTENCES:
            texts = self._texts(quote, count) if source is None else [(source, 0, source.text)]
            index = QuoteIndex([text for _, _, text in texts])
            match = index.find(quote)
            if match is not None or source is not None or len(texts) < count:
                break
        nearest = index.nearest(quote) if match is None else None
        at, spans = 0, tuple[Interval, ...]()
        if match is not None:
            at, spans = match.text, match.spans
        elif nearest is not None:
            at, spans = nearest[0], (nearest[1],)
        entries = []
        for start, stop in spans:
            node, offset, _ = texts[at]
            start, stop = offset + start, offset + stop
            entry = location_of(self.view.passage_at(node, start), start, stop)
            entries.append(entry | {"text": node.text[start:stop]})
        status = "nowhere" if match is None else match.status
        repairs = () if match is None else match.repairs
        key = "spans" if match else "nearest"
        record = {"quote": quote, "status": status, "repairs": list(repairs), key: entries}
        return _text(quote, status, repairs, entries), record

    def _texts(self, quote: str, count: int) -> list[tuple[Node, int, str]]:
        """Return parts of documents that share words with a quotation, and where they start."""
        query = quote if len(quote) <= 2 * _QUERY else f"{quote[:_QUERY]} {quote[-_QUERY:]}"
        around = len(quote) + _AROUND + (_ELIDED if ELISION.search(quote) else 0)
        texts: list[tuple[Node, int, str]] = []
        sentences = self._searching.sentences_with(query, count)
        if not sentences:  # words that no search looks for, or none of the corpus
            documents = self.view.documents()
            return [(n, 0, n.text) for n in documents if quote.casefold() in n.text.casefold()]
        for sentence in sentences:
            node = sentence.root
            if sentence.start is None or sentence.end is None or not self.view.allows(node):
                continue
            first, last = max(0, sentence.start - around), sentence.end + around
            start = node.text.find(" ", first, first + _WORD) + 1 if first else 0
            stop = node.text.rfind(" ", last - _WORD, last) if last < len(node.text) else last
            start, stop = start or first, last if stop < 0 else stop
            texts.append((node, start, node.text[start:stop]))
        return texts


def _text(quote: str, status: str, repairs: tuple[str, ...], entries: list[dict[str, Any]]) -> str:
    what = f"{status} ({', '.join(repairs)})" if repairs else status
    if status == "nowhere" and entries:
        what += ", the nearest text is"
    first = in_line(f"“{quote}”: {what}")
    if status == "exact":
        return f"{first}, {heading_line(entries[0])}"
    places = (f"{heading_line(entry)}\n{quoted(entry['text'])}" for entry in entries)
    return "\n".join([first, *places])
