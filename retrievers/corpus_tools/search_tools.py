"""The tools ``search`` and ``related``, which find passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.node import Node
from ...nodegraph.readers.skipped_files import describe_skipped
from ...nodegraph.splitters.chunking import count_tokens, shorten
from ...nodegraph.text_forms import composed, composed_matches
from ..call import limit_tokens
from ..composite.link_index import LinkIndex
from ..filters import parse_filters
from ..results import COPY, ScoredNode
from ..token_budget import TokenBudget
from .corpus_view import CorpusView
from .tool_output import (
    GAP,
    Entry,
    Interval,
    Row,
    ToolError,
    ToolOutput,
    heading_line,
    in_line,
    joined,
    location_of,
    page_of,
    quoted,
    span_of,
)

# The limit for the best passage; for other passages, it is divided by their rank.
_MAX_PASSAGE_TOKENS = 400

_MIN_PASSAGE_TOKENS = 40  # the lowest limit for other passages

# The number of tokens from which windows are returned; below, parts of several passages are
# returned.
_WINDOWS_FROM = 200

_STEP = 50  # results are retrieved in multiples of this number to keep pages consistent


def search(
    view: CorpusView,
    max_tokens: int,
    *,
    query: str,
    skip: int,
    filters: dict[str, Any] | None,
) -> ToolOutput:
    """Return the best windows of text, or the best passages with their matching sentences.

    If the token budget is small, passages are returned, because the windows of a single passage
    could use up the budget.
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
    with limit_tokens(budget):
        results = view.retriever.retrieve(query, top_k=depth, filters=filters)
    if len(results) <= skip:
        nothing = "Nothing more was found" if skip else "Nothing was found"
        if filters:
            nothing += " with these filters"
        return ToolOutput(
            f"{nothing}; try other words, or grep for an exact text.{_skipped_files(view)}"
        )
    has_windows = bool(budget) and getattr(view.retriever, "has_windows", False)
    rows: list[Row] = []
    for rank, result in enumerate(results, 1):
        size = most if has_windows else max(_MIN_PASSAGE_TOKENS, most // rank)
        rows.append(_ResultRow(view, result, size))
    return page_of(rows, max_tokens, skip, tool="search", items="passages")


def _skipped_files(view: CorpusView) -> str:
    """Return a sentence about files that were skipped when the corpus was read.

    The sentence is empty if no file was skipped, or if the view is filtered.
    """
    if view.filters:  # skipped files have no metadata, so filters cannot be applied to them
        return ""
    skipped = describe_skipped(view.graph.failures)
    if not skipped:
        return ""
    return f" {skipped}."


class _PassageExcerpt(NamedTuple):
    """An excerpt of a passage.

    Attributes:
        span: The span of the passage in its document.
        parts: The spans that belong to the excerpt.
    """

    span: Interval
    parts: Sequence[Interval]

    @property
    def is_complete(self) -> bool:
        """Whether the excerpt contains the complete passage."""
        return [*self.parts] == [self.span]

    def text(self, document: str) -> str:
        """Return the text of the excerpt, in which ellipses replace omitted text.

        Args:
            document: The text of the document.
        """
        text = " … ".join([document[start:end] for start, end in self.parts])
        if self.is_complete:
            return text
        if self.parts[0][0] > self.span[0]:
            text = f"… {text}"
        if self.parts[-1][1] < self.span[1]:
            text += " …"
        return text


class _ResultRow(NamedTuple):
    """A result as a passage, or as its matching sentences if the passage is too long.

    Attributes:
        view: The visible documents.
        result: The result.
        size: The maximum number of tokens of a complete passage.
    """

    view: CorpusView
    result: ScoredNode
    size: int

    def formatted(self) -> tuple[str, Entry]:
        """Return the row as text and as JSON values."""
        node = self.result.node
        span = span_of(node)
        if span is None:  # the node is generated text, such as a summary
            title = in_line(f"{node.document_id} ({node.group}, no part of the text)")
            generated = {"document": node.document_id, "text": node.text}
            return f"{title}\n{quoted(node.text)}", generated
        shown = _excerpt_of(self.view, self.result, span, self.size)
        text = shown.text(node.root.text)
        evidence = self.result.evidence
        copies = [match.node.document_id for match in evidence if match.similarity == COPY]
        entry = location_of(node, *shown.span)
        entry |= _place_of_match(self.view, self.result.best_match)
        entry |= {"score": round(float(self.result.score), 4), "why": _found_by(self.result)}
        if copies:
            entry["also_in"] = copies
        parts = [list(part) for part in shown.parts]
        entry |= {"whole": shown.is_complete, "parts": parts, "text": text}
        title = heading_line(entry)
        names = _link_names(self.view, self.result)
        if names and not _direct_matches(self.result):
            entry["names"] = names
            title = in_line(f"{title} (also mentions {', '.join(names)})")
        elif copies:
            title = in_line(f"{title} (also in {', '.join(copies)})")
        return f"{title}\n{quoted(text)}", entry


def _excerpt_of(view: CorpusView, result: ScoredNode, span: Interval, size: int) -> _PassageExcerpt:
    """Return the excerpt for a result: a window, a passage, or sentences of a passage."""
    node = result.node
    parent = node.parent
    if parent is not None and parent.group == view.target:  # the result is a window in a passage
        around = span_of(parent) or span
        whole = min(span[0], around[0]), max(span[1], around[1])
        return _PassageExcerpt(whole, [span])
    if count_tokens(node.text) <= size:
        return _PassageExcerpt(span, [span])
    return _PassageExcerpt(span, _excerpt(view, result, span, max(_MIN_PASSAGE_TOKENS, size // 2)))


def _place_of_match(view: CorpusView, match: Node) -> Entry:
    """Return the line, the pages and the headings at which the best match is located."""
    location = location_of(match, *(span_of(match) or (0, 0)))
    place = {name: location[name] for name in ("line", "pages") if name in location}
    return place | {"headings": view.graph.reader.headings(match)}


def _found_by(result: ScoredNode) -> str:
    """Return a description of the similarities and groups by which a result was found."""
    ways = [
        f"{match.similarity} of {match.group}"
        for match in result.evidence
        if match.similarity != COPY
    ]
    return ", ".join(dict.fromkeys(ways))


def _excerpt(view: CorpusView, result: ScoredNode, span: Interval, size: int) -> list[Interval]:
    """Return the spans of the best matching sentences, up to a number of tokens.

    If no sentence of the passage matches, the passage was found through a name that it shares with
    another passage. The sentences that mention the name are then selected.
    """
    spans = [inner for node in _direct_matches(result) if (inner := span_of(node))]
    inside = [i for i in spans if i != span and span[0] <= i[0] and i[1] <= span[1]]
    if not inside and (names := _link_names(view, result)):
        sentences = view.graph.reader.children_in(view.sentences, result.node)
        mentions = [s for s in sentences if any(_spelling(name, s.text) for name in names)]
        inside = [inner for sentence in mentions if (inner := span_of(sentence))]
    selected: list[Interval] = []
    text = result.node.root.text
    used = 0
    for start, end in dict.fromkeys(inside):
        used += count_tokens(text[start:end])
        if selected and used > size:
            break
        selected.append((start, end))
    if not selected:  # if the passage matched as a whole, its beginning is used
        selected = [(span[0], span[0] + len(shorten(text[span[0] : span[1]], size)))]
    return joined(selected, GAP)


def _link_names(view: CorpusView, result: ScoredNode) -> list[str]:
    """Return the names through which a passage was found, as they are spelled in the passage."""
    names = [m.node.text for m in result.evidence if m.group == view.entities]
    return [n for name in names if (n := _spelling(name, result.node.text))]


def _direct_matches(result: ScoredNode) -> list[Node]:
    """Return the matching nodes that belong to the document of the result.

    The list is empty if the result was found only through links.
    """
    matches = [match.node for match in result.evidence]
    return [node for node in matches if node.document_id == result.node.document_id]


def related(
    view: CorpusView,
    max_tokens: int,
    *,
    document: str,
    start: int,
    end: int | None,
    skip: int,
) -> ToolOutput:
    """Return passages that mention the same names as a part of a document."""
    node = view.document(document)
    stop = len(node.text) if end is None else end
    if not 0 <= start < max(stop, 1):
        raise ToolError(f"start must be below end in {document!r}, got {start} and {stop}")
    passages = ((span_of(passage), passage) for passage in view.passages(node))
    current = [p for span, p in passages if span and span[0] < stop and start < span[1]]
    ranked = _with_shared_names(view, current)
    rows = (_RelatedRow(other, shared) for other, shared in ranked)
    empty = "No name in this part is mentioned elsewhere; use search."
    options = {"tool": "related", "items": "passages", "separator": "\n", "empty": empty}
    return page_of(rows, max_tokens, skip, **options)


def _with_shared_names(view: CorpusView, current: Sequence[Node]) -> list[tuple[Node, list[str]]]:
    """Return other passages with the names that they share, beginning with the rarest names."""
    group = view.entities
    view.graph.create_node_group(group, EntityExtractor(), parent=view.target)
    index = LinkIndex.open(view.graph, group)
    assert index is not None
    current_ids = {node.id for node in current}
    shared: dict[str, tuple[Node, list[str]]] = {}
    weights: dict[str, float] = {}
    with index.current():
        names = {}
        for passage in current:
            of_passage = sorted(index.entities([passage.id]), key=lambda name: name.rank)
            names.update({name.key: name for name in of_passage})
        for name in names.values():
            connected = view.graph.reader.nodes_by_id(name.passages)
            mentions = [node for node in connected if view.allows(node)]
            spellings = (_spelling(name.name, node.searched_text) for node in mentions)
            spelling = next((text for text in spellings if text), "")
            for passage in mentions:
                if passage.id not in current_ids and spelling:
                    shared.setdefault(passage.id, (passage, []))[1].append(spelling)
                    weights[passage.id] = weights.get(passage.id, 0.0) + 1 / len(mentions)
    return sorted(shared.values(), key=lambda pair: (-weights[pair[0].id], pair[0].order))


def _spelling(name: str, text: str) -> str:
    """Return a name as it is spelled in a text, or an empty string if the text does not contain it.

    The spelling in the index is not used, since it may come from a document that is not visible.
    """
    pattern = re.compile(rf"(?<![a-z]){re.escape(composed(name))}(?![a-z])", re.IGNORECASE)
    match = next(composed_matches(pattern, text), None)
    return text[slice(*match)] if match else ""


class _RelatedRow(NamedTuple):
    """A passage with the names that it shares with the part of a document."""

    passage: Node
    names: list[str]

    def formatted(self) -> tuple[str, Entry]:
        """Return the row as text and as JSON values."""
        span = span_of(self.passage) or (0, 0)
        entry = location_of(self.passage, *span) | {"names": self.names}
        mentions = in_line(f"also mentions {', '.join(self.names)}")
        return f"{heading_line(entry)}\n{mentions}", entry
