"""The HTML of answers and results, in English and Chinese. All values are escaped."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from ...nodegraph.node import Node
from ...nodegraph.search_text import file_name_of, source_title
from ...retrievers.answers.answer import Answer, CheckedQuote
from ...retrievers.results import Evidence, ScoredNode
from .markdown import Html, markdown, marked_passage

_TEXT = 2_400  # characters of a result

_CONTEXT = 200  # maximum number of characters before a match

_SOURCE = 1_200  # characters of a source

Turns = Sequence[tuple[str, str]]
"""Pairs of question and answer."""


def asset(name: str) -> bytes:
    """Return a file of the page."""
    return files(__package__).joinpath(name).read_bytes()


@cache
def _templates() -> Mapping[str, str]:
    return dict(
        re.findall(r'(?s)<template id="(\w+)">(.*?)</template>', asset("page.html").decode())
    )


@cache
def _all_words() -> Mapping[str, Mapping[str, str]]:
    words: dict[str, dict[str, str]] = json.loads(asset("words.json"))
    return words


class Templates:
    """The templates and words of the page in a language.

    Args:
        language: ``"en"`` or ``"zh"``.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._words = _all_words()[language]

    def say(self, key: str, **values: object) -> str:
        """Return a text with its values."""
        return self._words[key].format(**values)

    def html(self, template: str, **values: object) -> Html:
        """Return a template with its values. Values that are not HTML are escaped."""
        shown = {k: v if isinstance(v, Html) else escape(str(v)) for k, v in values.items()}
        return Html(_templates()[template].format(say=self._words, **shown))

    def link(self, key: str, url: str) -> Html:
        """Return a link with a word as its text."""
        return self.html("link", text=self.say(key), url=url)

    # Answers

    def ask_form(self, turns: Turns, model: str, min_score: float | None) -> Html:
        """Return the form for a question. It contains the conversation so far."""
        about = self.say("model", model=model) if model else self.say("no_model")
        if min_score is not None:
            about += " · " + self.say("min_score", score=f"{min_score:g}")
        new = self.html("new") if turns else ""
        return self.html("ask_form", history=json.dumps([*turns]), new=new, about=about)

    def turns(self, turns: Turns) -> Html:
        """Return earlier questions and answers."""
        return joined(self.html("turn", question=q, answer=markdown(a)) for q, a in turns)

    def end_of_turn(
        self, text: str, sources: Sequence[tuple[int, ScoredNode, str, bool]], notes: Html
    ) -> Html:
        """Return the end of an answer: the formatted text, notes and sources.

        Args:
            text: The text of the answer. Empty: only passages.
            sources: The number, result, text and citation of each source.
            notes: The notes.
        """
        any_cited = any(cited for *_, cited in sources)
        items = joined(self._source(*source, any_cited) for source in sources)
        head = f"{self.say('sources' if text else 'passages')} ({len(sources)})"
        listed = self.html("sources", head=head, items=items) if sources else ""
        answer = markdown(text, [number for number, *_ in sources])
        return self.html("end_of_turn", answer=answer, notes=notes, sources=listed)

    def _source(
        self, number: int, result: ScoredNode, text: str, cited: bool, any_cited: bool
    ) -> Html:
        shown = marked_passage("", "", text[:_SOURCE], name_of(result.node))
        chip = self.html("not_cited") if any_cited and not cited else ""
        cut = "…" if len(text) > _SOURCE else ""
        return self._node("source", result, number=number, cited=chip, text=shown, cut=cut)

    def _node(
        self, template: str, result: ScoredNode, place: str | None = None, **v: object
    ) -> Html:
        node = result.node
        url = node_url("document", node.id, _hit(result))
        v |= {"name": name_of(node), "about": self.about(node, place), "url": url}
        return self.html(template, document=node.document_id or node.id, **v)

    def notes(self, answer: Answer) -> Html:
        """Return the notes of an answer, and its quotations with their status."""
        notes = [*answer.notes]
        if not answer.sources and not answer.text:
            notes.append(self.say("not_found"))
        if answer.omitted:
            notes.append(self.say("omitted", count=len(answer.omitted)))
        nodes = {source.number: source.result.node for source in answer.sources}
        quotes = joined(self._quote(quote, nodes) for quote in answer.quotes if quote.quoted)
        listed = self.html("quotes", items=quotes) if quotes else Html()
        return joined([*(self.html("note", text=note) for note in notes), listed])

    def _quote(self, quote: CheckedQuote, nodes: Mapping[int, Node]) -> Html:
        link: object = ""
        if quote.source is not None and quote.source in nodes and quote.spans:
            span = {"start": quote.spans[0].start, "end": quote.spans[0].end}
            url = node_url("document", nodes[quote.source].id, span)
            link = self.html("link", text=f"[{quote.source}]", url=url)
        label = self.say(f"quote_{quote.status}")
        return self.html("quote", status=quote.status, label=label, text=quote.text, link=link)

    # Results

    def results(self, results: Sequence[ScoredNode]) -> Html:
        """Return the results of a search, with their evidence."""
        items = joined(self._result(rank, result) for rank, result in enumerate(results, 1))
        head = self.say("found", count=len(results)) if results else self.say("none_found")
        return self.html("results", head=head, items=items)

    def _result(self, rank: int, result: ScoredNode) -> Html:
        reasons = joined(self._reason(match, result.node) for match in result.evidence)
        return self._node(
            "result",
            result,
            self.place(result.best_match),
            rank=rank,
            score=result.score if math.isfinite(result.score) else "",
            text=marked_passage(*_parts(result), name_of(result.node)),
            cut="…" if len(result.node.text) > _TEXT else "",
            why=self.say("why", score=f"{result.score:.4g}"),
            reasons=reasons,
        )

    def _reason(self, match: Evidence, node: Node) -> Html:
        """Return one way in which a result was found."""
        group = self._words.get(f"group_{match.group}", match.group)
        parts = [f"{v.strategy}: {v.query} {v.note or ''}".strip() for v in match.variants]
        parts += [self.say("searched_for", query=match.query), self.say("matched", group=group)]
        parts += [f"{match.similarity} {match.score:.4g}", match.embed_key or ""]
        if match.searched_with:
            parts.append(self.say("searched_with", names=", ".join(match.searched_with)))
        if match.share is not None:
            parts.append(self.say("share", share=f"{match.share:.4g}"))
        if match.node.id != node.id:
            parts.append(f"“{match.node.text[:_CONTEXT]}”")
        return self.html("reason", text=" · ".join(filter(None, parts)))

    # Names

    def place(self, node: Node) -> str:
        """Return the place of a node in its document, without the name of the document."""
        name = " ".join((file_name_of(node.metadata) or title_of(node)).split())
        place = node.place.removeprefix(name).removeprefix(", ")
        unit = re.match(r"(page|slide|chapter|sheet|cell)s? ([\d-]+)", place)
        if unit is None:
            return place
        return self.say(f"unit_{unit[1]}", place=unit[0], numbers=unit[2]) + place[unit.end() :]

    def about(self, node: Node, place: str | None = None) -> str:
        """Return the title, the folder and the place of a node, unless its name contains them."""
        name, title, path = name_of(node), title_of(node), node.document_id or node.id
        folder = path.removesuffix(name).rstrip("/") if file_name_of(node.metadata) else ""
        parts = (
            "" if title == name else title,
            folder,
            self.place(node) if place is None else place,
        )
        return " · ".join(filter(None, parts))


def joined(parts: Iterable[Html]) -> Html:
    """Return the HTML of several elements."""
    return Html("".join(parts))


def node_url(view: str, node_id: str, span: Mapping[str, object], **values: object) -> str:
    """Return the address of a node, or of a span of its document."""
    anchor = "#hit" if view == "document" and "page" not in values else ""
    return f"/{view}?{urlencode({'node': node_id, **span, **values}, errors='replace')}{anchor}"


def name_of(node: Node) -> str:
    """Return the file name of a node. Defaults to the title or the id of its document."""
    return file_name_of(node.metadata) or title_of(node)


def title_of(node: Node) -> str:
    """Return the title of a document. Defaults to its id."""
    return source_title(node.metadata) or node.document_id or node.id


def _hit(result: ScoredNode) -> dict[str, Any]:
    """Return the span of the best match. Empty: the node of the result matched itself."""
    hit, node = result.best_match, result.node
    if hit.id == node.id or hit.document_id != node.document_id or hit.start is None:
        return {}
    return {"start": hit.start, "end": hit.end}


def _parts(result: ScoredNode) -> tuple[str, str, str]:
    """Return the text before the best match, the match, and the text after the match.

    The first two are empty if the node of the result matched itself.
    """
    node, text, span = result.node, result.node.text, _hit(result)
    if span and node.start is not None:
        start, end = span["start"] - node.start, span["end"] - node.start
        if 0 <= start < end <= len(text):
            first = _display_start(text, start)
            before = ("…\n\n" if first else "") + text[first:start]
            return before, text[start:end][:_TEXT], text[end : first + _TEXT]
    return "", "", text[:_TEXT]


def _display_start(text: str, hit: int) -> int:
    """Return the first displayed position of a text, so that the match is in the first lines."""
    if hit <= _CONTEXT:
        return 0
    start = text.rfind("\n", 0, hit) + 1
    while text.startswith("|", start) and hit - start < _TEXT:  # a row needs the table header
        above = text.rfind("\n", 0, start - 1) + 1
        if not text.startswith("|", above):
            return start
        start = above
    return max(start, hit - _CONTEXT)
