"""``search`` and ``related``: passages by what they say, and by the names that they share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from ...nodegraph import EntityExtractor, Node, count_tokens
from ..composite import DefaultRetriever
from ..filters import Filters, parse_filters
from ..protocols import RetrieverProtocol
from ..restricted_retriever import restrict
from ..results import ScoredNode
from ..retriever import Retriever
from .corpus_view import CorpusView
from .tool_output import OutputBuilder, ToolError, ToolOutput, heading_line, place_of, shorten
from .tool_session import Interval, ToolSession, joined, span_of

Mode = Literal["all", "words", "meaning"]

_EXCERPT = 60  # tokens of a passage that search shows, if it is longer than twice that

_GAP = 3  # characters between two sentences that are shown as one


class SearchTools:
    """Search a corpus for passages.

    Args:
        view: What may be seen.
        default: Knows the groups of sentences and of names below the target.
        retriever: Answers with passages of the view's target.
        filters: What every result has to meet.
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
        self._retriever = self._restricted(retriever)

    def _restricted(self, retriever: RetrieverProtocol) -> RetrieverProtocol:
        return restrict(retriever, self._filters) if self._filters else retriever

    def search(
        self,
        query: str,
        mode: Mode,
        skip: int,
        filters: dict[str, Any] | None,
        max_tokens: int,
        session: ToolSession,
    ) -> ToolOutput:
        """Return the passages that answer best, each by its sentences that matched."""
        if not query.strip():
            raise ToolError("the query is empty; say what to look for, in words or as a question")
        builder = OutputBuilder(max_tokens)
        try:
            parse_filters(filters)
        except (ValueError, TypeError) as error:
            raise ToolError(str(error)) from error
        wanted = skip + max(5, max_tokens // 25)
        results = self._by(mode).retrieve(query, top_k=wanted, filters=filters)
        for result in results[skip:]:
            if not self._add(result, builder, session):
                break
        if not builder.size:
            words = " with these filters" if filters else ""
            remedy = "try other words, another mode, or grep for an exact text"
            return ToolOutput(f"Nothing{' more' if skip else ''} was found{words}; {remedy}.")
        shown = skip + builder.size
        left = len(results) - shown
        more = f"More: search with skip={shown}." if left else ""
        return builder.output(left, more)

    def _by(self, mode: Mode) -> RetrieverProtocol:
        if mode not in get_args(Mode):
            raise ToolError(f"mode is one of {', '.join(get_args(Mode))}, not {mode!r:.80}")
        if mode == "all":
            return self._retriever
        graph, sentences, target = self.view.graph, self._default.sentences, self.view.target
        if mode == "words":
            return self._restricted(Retriever(graph, sentences, "bm25", target=target))
        if not graph.embeddings.embedders:
            raise ToolError("this corpus has no embeddings; use mode=words or mode=all")
        return self._restricted(Retriever(graph, sentences, "cosine", target=target))

    def _add(self, result: ScoredNode, builder: OutputBuilder, session: ToolSession) -> bool:
        node = result.node
        span = span_of(node)
        if span is None:  # made, not cut out: a summary
            text = f"{node.document_id} ({node.group}, no part of the text)\n{node.text}"
            return builder.add(text, {"document": node.document_id, "text": node.text})
        entry = place_of(node, *span)
        entry |= {"score": round(float(result.score), 4), "why": _why(result)}
        parts = [span] if count_tokens(node.text) <= 2 * _EXCERPT else _excerpt(result, span)
        parts = [new for part in parts for new in session.unseen(node.root, *part)]
        if not parts:
            entry |= {"shown_before": True, "text": None}
            rest = "; read shows the rest" if session.unseen(node.root, *span) else ""
            return builder.add(f"{heading_line(entry)}\n(shown before{rest})", entry)
        is_whole = parts == [span]
        text = node.root.text
        shown = " … ".join(text[a:b] for a, b in parts)
        if not is_whole:
            shown = f"{'… ' if parts[0][0] > span[0] else ''}{shown}"
            shown += " …" if parts[-1][1] < span[1] else ""
        entry |= {"whole": is_whole, "parts": [list(part) for part in parts], "text": shown}
        if not builder.add(f"{heading_line(entry)}\n{shown}", entry):
            return False
        for begin, end in parts:
            session.show(node.document_id, begin, end)
        return True

    def related(
        self, document: str, start: int, end: int | None, max_tokens: int, session: ToolSession
    ) -> ToolOutput:
        """Return passages that mention the same names as a part of a document."""
        node = self.view.document(document)
        stop = len(node.text) if end is None else end
        if not 0 <= start < max(stop, 1):
            raise ToolError(f"start and end are characters of {document!r}, start before end")
        here = [p for p in self.view.passages(node) if _overlaps(span_of(p), (start, stop))]
        ranked = self._ranked(here, self._names(here))
        if not ranked:
            return ToolOutput("No name in this part is mentioned elsewhere; use search.")
        builder = OutputBuilder(max_tokens)
        left = 0
        for other, shared in ranked:
            if left:
                left += 1
                continue
            span = span_of(other) or (0, 0)
            entry = place_of(other, *span) | {"names": shared}
            title = heading_line(entry)
            if session.has_shown(other.document_id, *span):
                title += " (shown before)"
            if not builder.add(f"{title}\nalso mentions {', '.join(shared)}", entry):
                left += 1
        more = (
            f"{left} more; ask for a smaller part, or search for one of the names." if left else ""
        )
        return builder.output(left, more, separator="\n")

    def _names(self, passages: Iterable[Node]) -> list[Node]:
        graph, group = self.view.graph, self._default.entities
        graph.create_node_group(group, EntityExtractor(), parent=self.view.target, scope="group")
        graph.build(group)
        names = {
            name.id: name
            for passage in passages
            for name in graph.linked(passage, incoming=True)
            if name.group == group
        }
        return list(names.values())

    def _ranked(self, here: Sequence[Node], names: Sequence[Node]) -> list[tuple[Node, list[str]]]:
        """Return other passages with the names that they share, rare names first."""
        graph, own = self.view.graph, {node.id for node in here}
        shared: dict[str, tuple[Node, list[str]]] = {}
        weights: dict[str, float] = {}
        for name in names:
            linked = (n for n in graph.linked(name) if n.group == self.view.target)
            mentions = [n for n in linked if self.view.allows(n)]
            spelling = _spelling(name.text, mentions)
            for passage in mentions:
                if passage.id in own or not spelling:
                    continue
                shared.setdefault(passage.id, (passage, []))[1].append(spelling)
                weights[passage.id] = weights.get(passage.id, 0.0) + 1 / len(mentions)
        return sorted(shared.values(), key=lambda pair: (-weights[pair[0].id], pair[0].order))


def _spelling(name: str, passages: Sequence[Node]) -> str:
    """Return a name as one of the passages writes it, in its text or title; empty if none does.

    The name's own spelling may be that of a document that is not to be seen.
    """
    pattern = re.compile(re.escape(name), re.IGNORECASE)
    texts = (passage.searched_text for passage in passages)
    return next((match[0] for text in texts if (match := pattern.search(text))), "")


def _overlaps(one: Interval | None, other: Interval) -> bool:
    return one is not None and one[0] < other[1] and other[0] < one[1]


def _why(result: ScoredNode) -> str:
    """Return by what a result was found, for a reader: its groups and similarities."""
    ways = dict.fromkeys(f"{match.similarity} of {match.group}" for match in result.evidence)
    return ", ".join(ways)


def _excerpt(result: ScoredNode, span: Interval) -> list[Interval]:
    """Return the parts of a passage that matched, the best first until there are enough."""
    selected: list[Interval] = []
    text, used = result.node.root.text, 0
    for match in result.evidence:
        inner = span_of(match.node)
        is_part = inner is not None and span[0] <= inner[0] and inner[1] <= span[1]
        if inner is None or not is_part or inner == span or inner in selected:
            continue
        tokens = count_tokens(text[inner[0] : inner[1]])
        if selected and used + tokens > _EXCERPT:
            break
        selected.append(inner)
        used += tokens
    if not selected:  # found as a whole: its beginning
        selected = [(span[0], span[0] + len(shorten(text[span[0] : span[1]], _EXCERPT)))]
    return joined(selected, _GAP)
