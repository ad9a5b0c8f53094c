"""The tools ``search``, ``related`` and ``cite``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.node import Node
from ...nodegraph.readers.skipped_files import describe_skipped
from ...nodegraph.splitters.chunking import count_tokens, shorten
from ..answers.quote_matching import ELISION, QuoteIndex
from ..answers.quotes import draft_quotes
from ..composite.link_index import LinkIndex
from ..filters import parse_filters
from ..restricted_retriever import restrict
from ..results import COPY, ScoredNode
from ..retriever import Retriever
from ..token_budget import TokenBudget
from .tool_output import (
    GAP,
    Entry,
    Interval,
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

if TYPE_CHECKING:
    from .reading_tools import CorpusView
    from .toolset import CorpusTools

_MAX_PASSAGE_TOKENS = 400  # for the best passage; later passages get this number by their rank

_MIN_PASSAGE_TOKENS = 40  # for later passages

_WINDOWS_FROM = 200  # tokens: smaller budgets show parts of several passages instead of windows

_STEP = 50  # results are retrieved in multiples of this number, so that pages are consistent


def search(
    tools: CorpusTools,
    max_tokens: int,
    *,
    query: str,
    skip: int,
    filters: dict[str, Any] | None,
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
        results = tools.retriever.retrieve(query, top_k=depth, filters=filters)
    if len(results) <= skip:
        words = " with these filters" if filters else ""
        return ToolOutput(
            f"Nothing{' more' if skip else ''} was found{words}; try other words, or grep for "
            f"an exact text.{_skipped_files(tools.view)}"
        )
    has_windows = bool(budget) and getattr(tools.retriever, "has_windows", False)
    rows = (
        partial(
            _result_row,
            *(tools, result),
            most if has_windows else max(_MIN_PASSAGE_TOKENS, most // rank),
        )
        for rank, result in enumerate(results, 1)
    )
    return page_of(rows, max_tokens, skip, tool="search", items="passages")


def _skipped_files(view: CorpusView) -> str:
    """Return a sentence about skipped files. Empty: none, or the view is restricted."""
    if view.filters:  # skipped files have no metadata that a restriction could check
        return ""
    skipped = describe_skipped(view.graph.failures)
    return f" {skipped}." if skipped else ""


def _result_row(tools: CorpusTools, result: ScoredNode, size: int) -> tuple[str, Entry]:
    """Return a passage of at most ``size`` tokens, or the matching sentences of a longer one."""
    node = result.node
    span = span_of(node)
    if span is None:  # generated text, such as a summary
        title = in_line(f"{node.document_id} ({node.group}, no part of the text)")
        entry: Entry = {"document": node.document_id, "text": node.text}
        return f"{title}\n{quoted(node.text)}", entry
    parts, parent, names = [span], node.parent, _link_names(tools, result)
    if parent is not None and parent.group == tools.view.target:  # a window in a passage
        around = span_of(parent) or span
        span = min(span[0], around[0]), max(span[1], around[1])
    elif count_tokens(node.text) > size:
        parts = _excerpt(tools, result, span, max(_MIN_PASSAGE_TOKENS, size // 2))
    match = result.best_match
    place = location_of(match, *(span_of(match) or (0, 0)))  # the place of the best match
    place = {name: place[name] for name in ("line", "pages") if name in place}
    place["headings"] = tools.graph.reader.headings(match)
    found_by = [f"{m.similarity} of {m.group}" for m in result.evidence if m.similarity != COPY]
    entry = location_of(node, *span) | place
    entry |= {"score": round(float(result.score), 4), "why": ", ".join(dict.fromkeys(found_by))}
    if copies := [m.node.document_id for m in result.evidence if m.similarity == COPY]:
        entry["also_in"] = copies
    is_complete = parts == [span]
    text = node.root.text
    visible = " … ".join(text[a:b] for a, b in parts)
    if not is_complete:
        visible = f"{'… ' if parts[0][0] > span[0] else ''}{visible}"
        visible += " …" if parts[-1][1] < span[1] else ""
    entry |= {"whole": is_complete, "parts": [list(part) for part in parts], "text": visible}
    title = heading_line(entry)
    if names and not _direct_matches(result):
        entry["names"] = names
        title = in_line(f"{title} (also mentions {', '.join(names)})")
    elif copies:
        title = in_line(f"{title} (also in {', '.join(copies)})")
    return f"{title}\n{quoted(visible)}", entry


def _excerpt(tools: CorpusTools, result: ScoredNode, span: Interval, size: int) -> list[Interval]:
    """Return the spans of the best matching sentences, up to ``size`` tokens.

    Without a match in the passage, the sentences with a name that links to the passage.
    """
    spans = [inner for node in _direct_matches(result) if (inner := span_of(node))]
    inside = [i for i in spans if i != span and span[0] <= i[0] and i[1] <= span[1]]
    if not inside and (names := _link_names(tools, result)):
        sentences = tools.view.graph.reader.children_in(tools.default.sentences, result.node)
        mentions = [s for s in sentences if any(_spelling(name, s.text) for name in names)]
        inside = [inner for sentence in mentions if (inner := span_of(sentence))]
    selected: list[Interval] = []
    text, used = result.node.root.text, 0
    for start, end in dict.fromkeys(inside):
        used += count_tokens(text[start:end])
        if selected and used > size:
            break
        selected.append((start, end))
    if not selected:  # the whole passage matched: use its beginning
        selected = [(span[0], span[0] + len(shorten(text[span[0] : span[1]], size)))]
    return joined(selected, GAP)


def _link_names(tools: CorpusTools, result: ScoredNode) -> list[str]:
    """Return the names that link to a result's passage, in the spelling of the passage."""
    names = [m.node.text for m in result.evidence if m.group == tools.default.entities]
    return [n for name in names if (n := _spelling(name, result.node.text))]


def _direct_matches(result: ScoredNode) -> list[Node]:
    """Return the matching nodes of a result's document. Empty if only links lead to the result."""
    matches = [match.node for match in result.evidence]
    return [node for node in matches if node.document_id == result.node.document_id]


def related(
    tools: CorpusTools,
    max_tokens: int,
    *,
    document: str,
    start: int,
    end: int | None,
    skip: int,
) -> ToolOutput:
    """Return passages that share names with a part of a document."""
    node = tools.view.document(document)
    stop = len(node.text) if end is None else end
    if not 0 <= start < max(stop, 1):
        raise ToolError(f"start must be below end in {document!r}, got {start} and {stop}")
    passages = ((span_of(passage), passage) for passage in tools.view.passages(node))
    current = [p for span, p in passages if span and span[0] < stop and start < span[1]]
    ranked = _with_shared_names(tools, current)
    rows = (partial(_related_row, other, shared) for other, shared in ranked)
    empty = "No name in this part is mentioned elsewhere; use search."
    options = {"tool": "related", "items": "passages", "separator": "\n", "empty": empty}
    return page_of(rows, max_tokens, skip, **options)


def _with_shared_names(tools: CorpusTools, current: Sequence[Node]) -> list[tuple[Node, list[str]]]:
    """Return other passages with their shared names, rare names first."""
    view, group = tools.view, tools.default.entities
    view.graph.create_node_group(group, EntityExtractor(), parent=view.target)
    index = LinkIndex.open(view.graph, group)
    assert index is not None
    current_ids = {node.id for node in current}
    shared: dict[str, tuple[Node, list[str]]] = {}
    weights: dict[str, float] = {}
    with view.graph.reader.reading(view.target, group):
        index.sync()
        names = {
            name.key: name
            for passage in current
            for name in sorted(index.entities([passage.id]), key=lambda name: name.rank)
        }
        for name in names.values():
            connected = view.graph.reader.nodes_by_id(name.passages)
            mentions = [node for node in connected if view.allows(node)]
            spellings = (_spelling(name.name, node.searched_text) for node in mentions)
            spelling = next(filter(None, spellings), "")
            for passage in mentions:
                if passage.id not in current_ids and spelling:
                    shared.setdefault(passage.id, (passage, []))[1].append(spelling)
                    weights[passage.id] = weights.get(passage.id, 0.0) + 1 / len(mentions)
    return sorted(shared.values(), key=lambda pair: (-weights[pair[0].id], pair[0].order))


def _spelling(name: str, text: str) -> str:
    """Return the spelling of a name in a text. Empty if missing.

    The stored spelling may come from a document that is not visible.
    """
    match = re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", text, re.IGNORECASE)
    return match[0] if match else ""


def _related_row(other: Node, shared: list[str]) -> tuple[str, Entry]:
    span = span_of(other) or (0, 0)
    entry = location_of(other, *span) | {"names": shared}
    mentions = in_line(f"also mentions {', '.join(shared)}")
    return f"{heading_line(entry)}\n{mentions}", entry


_SENTENCES = (20, 200)  # numbers of the most similar sentences to check: first 20, then 200

_QUERY = 300  # characters at the start and the end of a long quotation that form the query

_AROUND = 100  # characters around a sentence, in addition to the length of the quotation

_WORD = 50  # maximum characters to the next space, to avoid cutting a word

_ELIDED = 2_000  # additional characters if the quotation omits words


def cite(
    tools: CorpusTools,
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
    source = tools.view.document(document) if document else None
    rows = (partial(_quote_row, tools, quote, source) for quote in quotes)
    return page_of(rows, max_tokens, skip, tool="cite", items="quotations")


def _quote_row(tools: CorpusTools, quote: str, source: Node | None) -> tuple[str, Entry]:
    for count in _SENTENCES:
        texts = _texts(tools, quote, count) if source is None else [(source, 0, source.text)]
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
        entry = location_of(tools.view.passage_at(node, start), start, stop)
        entries.append(entry | {"text": node.text[start:stop]})
    status = "not_found" if match is None else match.status
    key = "spans" if match else "nearest"
    row = {"quote": quote, "status": status, key: entries}
    is_near = ", the nearest text is" if nearest else ""
    first = in_line(f"“{quote}”: {status.replace('_', ' ')}{is_near}")
    if status == "exact":
        return f"{first}, {heading_line(entries[0])}", row
    places = (f"{heading_line(entry)}\n{quoted(entry['text'])}" for entry in entries)
    return "\n".join([first, *places]), row


def _texts(tools: CorpusTools, quote: str, count: int) -> list[tuple[Node, int, str]]:
    """Return parts of documents that share words with a quotation, and their offsets."""
    view = tools.view
    query = quote if len(quote) <= 2 * _QUERY else f"{quote[:_QUERY]} {quote[-_QUERY:]}"
    around = len(quote) + _AROUND + (_ELIDED if ELISION.search(quote) else 0)
    words = Retriever(view.graph, tools.default.sentences, "bm25", top_k=count)
    results = (restrict(words, view.filters) if view.filters else words).retrieve(query)
    if not results:  # no searchable words, or no match: look for the exact text
        documents = view.documents()
        return [(n, 0, n.text) for n in documents if quote.casefold() in n.text.casefold()]
    texts: list[tuple[Node, int, str]] = []
    for sentence in (result.node for result in results):
        node = sentence.root
        if sentence.start is None or sentence.end is None or not view.allows(node):
            continue
        first, last = max(0, sentence.start - around), sentence.end + around
        start = node.text.find(" ", first, first + _WORD) + 1 if first else 0
        stop = node.text.rfind(" ", last - _WORD, last) if last < len(node.text) else last
        start, stop = start or first, last if stop < 0 else stop
        texts.append((node, start, node.text[start:stop]))
    return texts
