"""Create the HTML of the web page in English and Chinese from templates that escape all values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

from ...nodegraph.node import Node
from ...nodegraph.source_names import file_name_of, source_title
from ...nodegraph.splitters.sentences import sentence_spans
from ...retrievers.answers.answer import Answer, CheckedQuote
from ...retrievers.results import Evidence, ScoredNode
from ..chinese_messages import in_chinese
from ..extras import extra
from .markdown import markdown, marked_passage

with extra("serve", "jinja2", "markupsafe"):
    from jinja2 import Environment, StrictUndefined, Template
    from markupsafe import Markup

_TEXT = 2_400  # maximum number of displayed characters in a result

_CONTEXT = 200  # maximum number of characters before a match

_REASONS = 3  # maximum number of reasons that are displayed for "Why?"


def asset(name: str) -> bytes:
    """Return the contents of a static file of the page."""
    return files(__package__).joinpath(name).read_bytes()


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    functions = (
        hit_url,
        main_evidence,
        marked_passage,
        markdown,
        name_of,
        node_url,
        path_of,
        quote_url,
        result_text,
    )
    environment.globals.update({function.__name__: function for function in functions})
    return environment.from_string(asset("page.html").decode())


class Page:
    """The templates and texts of the web page in one language.

    Args:
        language: The language, either ``"en"`` or ``"zh"``.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._words: Mapping[str, str] = json.loads(asset("words.json"))[language]
        self._macros = _template().make_module({"page": self, "say": self.say})

    def say(self, key: str, **values: object) -> str:
        """Return the text with the given key, in which placeholders are replaced by values."""
        return self._words[key].format(**values)

    def told(self, message: object, kind: str = "message") -> str:
        """Translate a message to the language of the page. See ``in_chinese``."""
        text = str(message)
        if self.language == "zh":
            return in_chinese(text, kind)
        return text

    def html(self, macro: str, *values: object) -> Markup:
        """Render a template macro, which is a part of the page, as HTML."""
        return Markup(getattr(self._macros, macro)(*values))

    def reason(self, match: Evidence, node: Node) -> str:
        """Explain why a node of a result matches the query."""
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
        return _with_dots(parts)

    def place(self, node: Node) -> str:
        """Return the position of a node in its document, without the name of the document."""
        name = " ".join(name_of(node).split())
        place = node.place.removeprefix(name).removeprefix(", ")
        unit = re.match(r"(line|page|slide|chapter|sheet|cell)s? ([\d-]+)", place)
        if unit is None:
            return place
        return self.say(f"unit_{unit[1]}", place=unit[0], numbers=unit[2]) + place[unit.end() :]

    def about(self, node: Node, place: str | None = None) -> str:
        """Describe a node by the title and folder of its document and its position.

        Parts that the name of the node already contains are omitted.
        """
        name = name_of(node)
        title = title_of(node)
        parts = []
        if title != name:
            parts.append(title)
        if file_name_of(node.metadata):
            parts.append(path_of(node).removesuffix(name).rstrip("/"))
        parts.append(self.place(node) if place is None else place)
        return _with_dots(parts)


def _with_dots(parts: Iterable[str]) -> str:
    """Join the parts that are not empty with dots."""
    return " · ".join(part for part in parts if part)


def node_url(view: str, node_id: str, span: Mapping[str, int] | None = None, page: int = 0) -> str:
    """Return the URL of a node, of a span of its document, or of a page in a PDF."""
    values: dict[str, object] = {"node": node_id, **(span or {})}
    if page:
        values["page"] = page
    url = f"/{view}?{urlencode(values, errors='replace')}"
    if view == "document" and not page:
        return f"{url}#hit"
    return url


def hit_url(result: ScoredNode) -> str:
    """Return the URL of the best match of a result."""
    return node_url("document", result.node.id, _hit(result))


def quote_url(answer: Answer, quote: CheckedQuote) -> str:
    """Return the URL of a quotation, or an empty string if it does not occur in any source."""
    nodes = {source.number: source.result.node for source in answer.sources}
    if quote.source is None:
        return ""
    span = {"start": quote.spans[0].start or 0, "end": quote.spans[0].end or 0}
    return node_url("document", nodes[quote.source].id, span)


def main_evidence(result: ScoredNode) -> list[Evidence]:
    """Return the evidence that contributes most to a score: the best match of each kind."""
    best: dict[tuple[str, str, str | None], Evidence] = {}
    for match in result.evidence:
        kind = (match.group, match.similarity, match.embed_key)
        if kind not in best or match.score > best[kind].score:
            best[kind] = match
    matches = sorted(best.values(), key=lambda match: -(match.share or 0))
    return matches[:_REASONS]


def path_of(node: Node) -> str:
    """Return the id of a node's document."""
    return node.document_id or node.id


def title_of(node: Node) -> str:
    """Return the title of a document, or its id if it has no title."""
    return source_title(node.metadata) or path_of(node)


def name_of(node: Node) -> str:
    """Return the file name of a node.

    If its document was not read from a file, return the title or the id of the document.
    """
    return file_name_of(node.metadata) or title_of(node)


def _hit(result: ScoredNode) -> dict[str, int]:
    """Return the span of the best match.

    The result is empty if the node of the result is itself the match.
    """
    hit = result.best_match
    node = result.node
    if hit.id == node.id or hit.document_id != node.document_id:
        return {}
    if hit.start is None or hit.end is None:
        return {}
    return {"start": hit.start, "end": hit.end}


def result_text(result: ScoredNode) -> Markup:
    """Return the text of a result as HTML, limited to the area around the best match.

    The best match is highlighted.
    """
    node = result.node
    text = node.text
    first = 0
    start = 0
    end = 0
    span = _hit(result)
    if span and node.start is not None:
        hit_start = span["start"] - node.start
        hit_end = span["end"] - node.start
        if 0 <= hit_start < hit_end <= len(text):
            start = hit_start
            end = hit_end
            first = _display_start(text, start)
    last = _display_end(text, first, end)
    before = text[first:start]
    hit = text[start : min(end, last)]
    after = text[end:last]
    is_cut = len(before) + len(hit) + len(after) < len(text)
    if first:
        before = f"…\n\n{before}"
    shown = marked_passage(before, hit, after, name_of(node))
    if is_cut:
        return shown + "…"
    return shown


def _display_start(text: str, hit: int) -> int:
    """Return the position at which the displayed text starts, so that the match is near the top."""
    if hit <= _CONTEXT:
        return 0
    start = text.rfind("\n", 0, hit) + 1
    # a table row must be displayed with the header of the table
    while text.startswith("|", start) and hit - start < _TEXT:
        above = text.rfind("\n", 0, start - 1) + 1
        if not text.startswith("|", above):
            return start
        start = above
    if hit - start <= _CONTEXT or text.startswith("|", start):
        return start
    starts = [start + at for at, _ in sentence_spans(text[start : hit + _CONTEXT])]
    near = [at for at in starts if hit - _CONTEXT <= at <= hit]
    if near:
        return near[0]
    return text.find(" ", hit - _CONTEXT, hit) + 1 or hit - _CONTEXT


def _display_end(text: str, first: int, hit_end: int) -> int:
    """Return the position at which the displayed text ends.

    This position is the end of a line or sentence. If possible, it is after the match.

    Args:
        text: The text.
        first: The position at which the displayed text starts.
        hit_end: The end of the match.
    """
    limit = first + _TEXT
    if limit >= len(text):
        return len(text)
    least = hit_end if hit_end < limit else first
    line_end = text.rfind("\n", least, limit)
    if line_end > (least + limit) // 2:
        return line_end
    ends = [first + end for _, end in sentence_spans(text[first:limit])]
    # the last sentence may be cut off by the limit
    whole = [end for end in ends[:-1] if end >= least]
    whole.append(line_end)
    if least == hit_end:
        whole.append(hit_end)
    last = max(whole)
    return last if last > 0 else limit
