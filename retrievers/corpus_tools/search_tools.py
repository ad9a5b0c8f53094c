"""The tools ``search``, ``related`` and ``cite``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import Any

from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import count_tokens, shorten
from ..answers.quote_matching import ELISION, QuoteIndex
from ..answers.quotes import draft_quotes
from ..composite.default_retriever import DefaultRetriever
from ..composite.link_index import LinkIndex
from ..filters import Filters, parse_filters
from ..protocols import RetrieverProtocol
from ..restricted_retriever import restrict
from ..results import COPY, ScoredNode
from ..retriever import Retriever
from ..token_budget import TokenBudget
from .reading_tools import CorpusView
from .tool_output import (
    GAP,
    Entry,
    Interval,
    OutputBuilder,
    ToolError,
    ToolOutput,
    ToolSession,
    heading_line,
    in_line,
    joined,
    location_of,
    page_of,
    quoted,
    reference_line,
    span_of,
)

_MAX_PASSAGE_TOKENS = 400  # for the best passage; later passages get this number by their rank

_MIN_PASSAGE_TOKENS = 40  # for later passages

_WINDOWS_FROM = 200  # tokens: smaller budgets show parts of several passages instead of windows

_STEP = 50  # results are retrieved in multiples of this number, so that pages are consistent


class SearchTools:
    """The tools that search a corpus for passages.

    Args:
        view: The visible part of the graph.
        default: Names the groups of sentences and entities below the target.
        retriever: Returns passages of the view's target.
        filters: Conditions for all results.
    """

    def __init__(
        self,
        view: CorpusView,
        default: DefaultRetriever,
        retriever: RetrieverProtocol,
        filters: Filters | None,
    ) -> None:
        self.view = view
        self._filters = filters
        self._default = default
        self.retriever = self._restricted(retriever)

    def _restricted(self, retriever: RetrieverProtocol) -> RetrieverProtocol:
        return restrict(retriever, self._filters) if self._filters else retriever

    def search(
        self,
        query: str,
        skip: int,
        filters: dict[str, Any] | None,
        max_tokens: int,
        session: ToolSession,
    ) -> ToolOutput:
        """Return the best windows, or passages with their matching sentences.

        A small budget returns passages, because the windows of one passage could fill it.
        """
        if not query.strip():
            raise ToolError("the query is empty; say what to look for, in words or as a question")
        try:
            parse_filters(filters)
        except (ValueError, TypeError) as error:
            raise ToolError(str(error)) from error
        depth = _STEP * ceil((skip + max(5, max_tokens // 25)) / _STEP)
        most = min(max_tokens, _MAX_PASSAGE_TOKENS)
        budget = TokenBudget(most if most >= _WINDOWS_FROM else None, pages=depth)
        with budget.holding():
            results = self.retriever.retrieve(query, top_k=depth, filters=filters)
        if len(results) <= skip:
            words = " with these filters" if filters else ""
            return ToolOutput(
                f"Nothing{' more' if skip else ''} was found{words}; try other words, or grep for "
                "an exact text."
            )
        builder = OutputBuilder(max_tokens)
        has_windows = bool(budget) and getattr(self.retriever, "has_windows", False)
        for rank, result in enumerate(results[skip:], skip + 1):
            size = most if has_windows else max(_MIN_PASSAGE_TOKENS, most // rank)
            if not self._add(result, size, builder, session):
                break
        position = skip + len(builder.entries)
        return builder.output(len(results) - position, f"More: skip={position}")

    def sentences_with(self, text: str, count: int) -> list[Node]:
        """Return the sentences that share the most words with a text."""
        words = Retriever(self.view.graph, self._default.sentences, "bm25", top_k=count)
        return [result.node for result in self._restricted(words).retrieve(text)]

    def _add(
        self, result: ScoredNode, size: int, builder: OutputBuilder, session: ToolSession
    ) -> bool:
        """Add a passage of at most ``size`` tokens, or the matching sentences of a longer one."""
        node = result.node
        span = span_of(node)
        if span is None:  # generated text, such as a summary
            title = in_line(f"{node.document_id} ({node.group}, no part of the text)")
            text = f"{title}\n{quoted(node.text)}"
            return builder.add(text, {"document": node.document_id, "text": node.text})
        parts = [span]
        parent = node.parent
        if parent is not None and parent.group == self.view.target:  # a window in a passage
            around = span_of(parent) or span
            span = min(span[0], around[0]), max(span[1], around[1])
        elif count_tokens(node.text) > size:
            parts = self._excerpt(result, span, max(_MIN_PASSAGE_TOKENS, size // 2))
        entry = location_of(node, *span) | _place_of_match(result)
        entry |= {"score": round(float(result.score), 4), "why": _why(result)}
        if copies := [m.node.document_id for m in result.evidence if m.similarity == COPY]:
            entry["also_in"] = copies
        is_complete = parts == [span]
        if all(session.covers(node.document_id, *part) for part in parts):
            entry |= {"shown_before": True, "text": None}
            remainder = "" if is_complete else "; read shows the rest"
            return builder.add(reference_line(entry, f"shown before{remainder}"), entry)
        text = node.root.text
        visible = " … ".join(text[a:b] for a, b in parts)
        if not is_complete:
            visible = f"{'… ' if parts[0][0] > span[0] else ''}{visible}"
            visible += " …" if parts[-1][1] < span[1] else ""
        entry |= {"whole": is_complete, "parts": [list(part) for part in parts], "text": visible}
        title = heading_line(entry)
        if not _direct_matches(result) and (names := self._link_names(result)):
            entry["names"] = names
            title = in_line(f"{title} (also mentions {', '.join(names)})")
        elif copies:
            title = in_line(f"{title} (also in {', '.join(copies)})")
        if not builder.add(f"{title}\n{quoted(visible)}", entry):
            return False
        for start_at, end in parts:
            session.show(node.document_id, start_at, end)
        return True

    def _excerpt(self, result: ScoredNode, span: Interval, size: int) -> list[Interval]:
        """Return the spans of the best matching sentences, up to ``size`` tokens."""
        matched = (span_of(node) for node in _direct_matches(result))
        spans = [inner for inner in matched if inner and inner != span]
        inside = [inner for inner in spans if span[0] <= inner[0] and inner[1] <= span[1]]
        selected: list[Interval] = []
        text, used = result.node.root.text, 0
        for start_at, end in dict.fromkeys(inside or self._mentions(result)):
            tokens = count_tokens(text[start_at:end])
            if selected and used + tokens > size:
                break
            selected.append((start_at, end))
            used += tokens
        if not selected:  # the whole passage matched: use its beginning
            selected = [(span[0], span[0] + len(shorten(text[span[0] : span[1]], size)))]
        return joined(selected, GAP)

    def _mentions(self, result: ScoredNode) -> list[Interval]:
        """Return the spans of sentences with a name that links to the passage."""
        names = self._link_names(result)
        if not names:
            return []
        sentences = self.view.graph.reader.children_in(self._default.sentences, result.node)
        mentions = [
            element for element in sentences if any(_spelling(n, element.text) for n in names)
        ]
        return [span for element in mentions if (span := span_of(element))]

    def _link_names(self, result: ScoredNode) -> list[str]:
        """Return the names that link to a result's passage, in the spelling of the passage."""
        names = [m.node.text for m in result.evidence if m.group == self._default.entities]
        return [n for name in names if (n := _spelling(name, result.node.text))]

    def related(
        self,
        document: str,
        start: int,
        end: int | None,
        skip: int,
        max_tokens: int,
        session: ToolSession,
    ) -> ToolOutput:
        """Return passages that share names with a part of a document."""
        node = self.view.document(document)
        stop = len(node.text) if end is None else end
        if not 0 <= start < max(stop, 1):
            raise ToolError(f"start and end are characters of {document!r}, start before end")
        current = [p for p in self.view.passages(node) if _overlaps(span_of(p), (start, stop))]
        ranked = self._ranked(current)
        rows = (partial(_related_row, other, shared, session) for other, shared in ranked)
        options = {"tool": "related", "items": "passages", "separator": "\n"}
        return page_of(rows, max_tokens, skip, **options) or ToolOutput(
            "No name in this part is mentioned elsewhere; use search."
        )

    def _ranked(self, current: Sequence[Node]) -> list[tuple[Node, list[str]]]:
        """Return other passages with their shared names, rare names first."""
        graph, group = self.view.graph, self._default.entities
        graph.create_node_group(group, EntityExtractor(), parent=self.view.target)
        current_ids = {node.id for node in current}
        index = LinkIndex.open(graph, group)
        assert index is not None
        shared: dict[str, tuple[Node, list[str]]] = {}
        weights: dict[str, float] = {}
        with graph.reader.reading(self.view.target, group):
            index.sync()
            names = {
                name.key: name
                for passage in current
                for name in sorted(index.entities([passage.id]), key=lambda name: name.rank)
            }
            for name in names.values():
                connected = graph.reader.nodes_by_id(name.passages)
                mentions = [node for node in connected if self.view.allows(node)]
                spellings = (_spelling(name.name, node.searched_text) for node in mentions)
                spelling = next(filter(None, spellings), "")
                for passage in mentions:
                    if passage.id in current_ids or not spelling:
                        continue
                    shared.setdefault(passage.id, (passage, []))[1].append(spelling)
                    weights[passage.id] = weights.get(passage.id, 0.0) + 1 / len(mentions)
        return sorted(shared.values(), key=lambda pair: (-weights[pair[0].id], pair[0].order))


def _spelling(name: str, text: str) -> str:
    """Return the spelling of a name in a text. Empty if missing.

    The stored spelling may come from a document that is not visible.
    """
    match = re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", text, re.IGNORECASE)
    return match[0] if match else ""


def _related_row(other: Node, shared: list[str], session: ToolSession) -> tuple[str, Entry]:
    span = span_of(other) or (0, 0)
    entry = location_of(other, *span) | {"names": shared}
    before = " (shown before)" if session.covers(other.document_id, *span) else ""
    mentions = in_line(f"also mentions {', '.join(shared)}")
    return f"{heading_line(entry)}{before}\n{mentions}", entry


def _overlaps(item: Interval | None, other: Interval) -> bool:
    return item is not None and item[0] < other[1] and other[0] < item[1]


def _place_of_match(result: ScoredNode) -> Entry:
    """Return the headings, the line and the pages of the best match."""
    match = result.best_match
    place = location_of(match, *(span_of(match) or (0, 0)))
    return {name: place[name] for name in ("headings", "line", "pages") if name in place}


def _why(result: ScoredNode) -> str:
    """Return the groups and similarities that found a result, as text."""
    matches = (match for match in result.evidence if match.similarity != COPY)
    return ", ".join(dict.fromkeys(f"{match.similarity} of {match.group}" for match in matches))


def _direct_matches(result: ScoredNode) -> list[Node]:
    """Return the matching nodes of a result's document. Empty if only links lead to the result."""
    matches = [match.node for match in result.evidence]
    return [node for node in matches if node.document_id == result.node.document_id]


_SENTENCES = (20, 200)  # numbers of the most similar sentences to check: first 20, then 200

_QUERY = 300  # characters at the start and the end of a long quotation that form the query

_AROUND = 100  # characters around a sentence, in addition to the length of the quotation

_WORD = 50  # maximum characters to the next space, to avoid cutting a word

_ELIDED = 2_000  # additional characters if the quotation omits words


class CiteTool:
    """The tool that finds quotations in a corpus.

    Args:
        view: The visible part of the graph.
        searching: Finds the sentences that share words with a quotation.
    """

    def __init__(self, view: CorpusView, searching: SearchTools) -> None:
        self.view = view
        self._searching = searching

    def cite(self, draft: str, document: str, skip: int, max_tokens: int) -> ToolOutput:
        """Return the location of each quotation in a draft, or the most similar text."""
        quotes = draft_quotes(draft)
        if not quotes:
            raise ToolError("the draft has no words; give a quotation, or a text with some")
        source = self.view.document(document) if document else None
        rows = (partial(self._row, quote, source) for quote in quotes)
        output = page_of(rows, max_tokens, skip, tool="cite", items="quotations")
        assert output is not None
        return output

    def _row(self, quote: str, source: Node | None) -> tuple[str, Entry]:
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
        status = "not_found" if match is None else "exact" if match.exact else "same_letters"
        key = "spans" if match else "nearest"
        return _text(quote, status, entries), {"quote": quote, "status": status, key: entries}

    def _texts(self, quote: str, count: int) -> list[tuple[Node, int, str]]:
        """Return parts of documents that share words with a quotation, and their offsets."""
        query = quote if len(quote) <= 2 * _QUERY else f"{quote[:_QUERY]} {quote[-_QUERY:]}"
        around = len(quote) + _AROUND + (_ELIDED if ELISION.search(quote) else 0)
        texts: list[tuple[Node, int, str]] = []
        sentences = self._searching.sentences_with(query, count)
        if not sentences:  # no searchable words, or no match: look for the exact text
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


def _text(quote: str, status: str, entries: list[Entry]) -> str:
    what = status.replace("_", " ")
    if status == "not_found" and entries:
        what += ", the nearest text is"
    first = in_line(f"“{quote}”: {what}")
    if status == "exact":
        return f"{first}, {heading_line(entries[0])}"
    places = (f"{heading_line(entry)}\n{quoted(entry['text'])}" for entry in entries)
    return "\n".join([first, *places])
