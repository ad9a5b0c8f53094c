"""A query engine's answer: text, sources, omitted results, notes, and the JSON form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from ...nodegraph.errors import ModelError
from ...nodegraph.models.usage import Usage
from ...nodegraph.node import Node
from ...nodegraph.storage.columns import decode, encode
from ..filters import Filters
from ..results import ScoredNode
from .qa import PresetAnswer

OmissionReason = Literal["context_window", "contained", "duplicate", "empty"]
"""The reason why a result is not in the prompts.

The context window has no space, another result contains the text or has the same text, or there is
no text.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered passage in the prompts of an answer.

    Attributes:
        number: The number in citations such as ``[1]``. The best source has number 1.
        result: The search result, with evidence.
        text: The text in the prompt: the result's content, a part of the content, or the merged
            text of overlapping results.
        cited: Whether the answer cites the source.
        title: The line above the text in the prompt: the document's title and headings, or the file
            name.
        merged: Other results of the document that overlap with ``result``. ``text`` contains them.
        complete: Whether the prompts contain the whole text.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import QueryEngine
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("The Nile is 6,650 km long.", {"title": "Rivers"}))
        >>> (source,) = QueryEngine(graph, lambda prompt: "6,650 km [1].").query("How long?").cited
        >>> source.number, source.title, source.text
        (1, 'Rivers', 'The Nile is 6,650 km long.')
    """

    number: int
    result: ScoredNode
    text: str
    cited: bool = False
    title: str = ""
    merged: tuple[ScoredNode, ...] = ()
    complete: bool = True

    @property
    def results(self) -> tuple[ScoredNode, ...]:
        """The result and the merged results."""
        return (self.result, *self.merged)


@dataclass(frozen=True, slots=True)
class OmittedResult:
    """A search result that is not in the prompts.

    Attributes:
        result: The result.
        reason: ``"context_window"``, ``"contained"``, ``"duplicate"`` or ``"empty"``.
        of: The result that contains or equals the text, for ``"contained"`` and ``"duplicate"``.
    """

    result: ScoredNode
    reason: OmissionReason
    of: ScoredNode | None = None


QuoteStatus = Literal["exact", "same_letters", "shortened", "other_source", "not_found"]
"""The verdict on a quotation.

The text is found literally in the cited source; with different case, spaces or marks, or with whole
sentences omitted ("…"); with a part of a sentence omitted ("…"); in a different source; or in no
source.
"""


@dataclass(frozen=True, slots=True)
class CheckedQuote:
    """A quotation or a cited sentence of an answer, and its spans in the sources.

    Attributes:
        text: The quotation without quotation marks, or the sentence without citations.
        start: The start in the answer's text, in characters.
        end: The end in the answer's text.
        status: ``"exact"``, ``"same_letters"``, ``"shortened"``, ``"other_source"`` or
            ``"not_found"``. For a cited sentence without quotation marks, ``"not_found"`` only
            means that it paraphrases.
        quoted: Whether the text is in quotation marks or in a block quotation.
        cited: The numbers of the cited sources.
        source: The number of the source that contains the text, or None if no source does.
        spans: The quoted parts of the documents: nodes with ``text``, ``document_id``, ``start``,
            ``end``, ``place`` and ``pages``. A quotation with an ellipsis has several spans.
        nearest: The most similar sentence of the sources, if the quotation is not found.

    Example:
        >>> from nodekin.retrievers import check_quotes
        >>> (quote,) = check_quotes("It is “steamed” [1].", ["Green tea is steamed."]).quotes
        >>> quote.text, quote.status, quote.source, (quote.start, quote.end)
        ('steamed', 'exact', 1, (7, 14))
    """

    text: str
    start: int
    end: int
    status: QuoteStatus
    quoted: bool = True
    cited: tuple[int, ...] = ()
    source: int | None = None
    spans: tuple[Node, ...] = ()
    nearest: Node | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values. A span has a document_id, start, end, text, place and pages."""
        return {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, with its sources.

    Attributes:
        text: The answer. If there is none, a sentence for the user: "Nothing was found …".
        question: The user's question.
        sources: The passages in the prompts, ordered by number.
        answered: False if the search found nothing, or if the passages do not contain the answer.
        preset: The question-answer pair of a preset answer. If None, the model answered.
        omitted: The search results that are not in the prompts, with reasons.
        notes: Messages about failures, omitted or truncated passages, and missing or invalid
            citations.
        searched: The search query: the question, or the condensed question of a conversation.
        calls: The number of the engine's model calls. Calls by retrieval strategies do not count.
        usage: The number of model calls and their tokens, including those of the retriever's
            strategies.
        confidence: The model's confidence from 0 to 100 in the mode ``"map_rerank"``. It is None in
            other modes, or if the model gives no number.
        quotes: The quotations and cited sentences with their spans in the sources. Only
            ``check_quotes`` and ``QueryEngine(check="quotes")`` set them.
        top_k: The ``top_k`` of the search. ``QueryEngine.check_current`` searches with the same
            ``top_k``, ``filters`` and ``min_score``.
        filters: The filters of the search.
        min_score: The minimum score of the search.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryEngine
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> engine = QueryEngine(graph, lambda prompt: "It has 6,650 km [1].")
        >>> answer = engine.query("How long is the Nile?")
        >>> answer.text, answer.answered, [source.text for source in answer.cited]
        ('It has 6,650 km [1].', True, ['The Nile is 6,650 km long.'])
    """

    text: str
    question: str
    sources: tuple[Source, ...] = ()
    answered: bool = True
    preset: PresetAnswer | None = None
    omitted: tuple[OmittedResult, ...] = ()
    notes: tuple[str, ...] = ()
    searched: str = ""
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    confidence: float | None = None
    quotes: tuple[CheckedQuote, ...] = ()
    top_k: int | None = None
    filters: Filters | None = None
    min_score: float | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def cited(self) -> tuple[Source, ...]:
        """The sources that the answer cites."""
        return tuple(source for source in self.sources if source.cited)

    @property
    def results(self) -> tuple[ScoredNode, ...]:
        """All search results: the results of the sources, then the omitted results."""
        used = [result for source in self.sources for result in source.results]
        return (*used, *(omission.result for omission in self.omitted))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values. ``from_dict`` is the inverse.

        Results are stored without evidence and metadata.
        """
        values = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}
        filters = None if self.filters is None else json.loads(encode(dict(self.filters)))
        return {**values, "filters": filters}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Answer:
        """Return the answer from the output of ``to_dict``. Its nodes belong to no graph.

        Example:
            >>> from nodekin.retrievers import ScoredNode
            >>> result = ScoredNode(Node("Tea is old.", document_id="tea.md"), 1.0)
            >>> source = Source(1, result, "Tea")
            >>> Answer.from_dict(Answer("Old [1].", "?", (source,)).to_dict()).sources[0].text
            'Tea'
        """
        preset = values["preset"]
        filters = values["filters"]
        usage = values.get("usage")
        return cls(
            **{
                **values,
                "preset": preset and PresetAnswer(**_with_nodes(preset)),
                "filters": None if filters is None else decode(json.dumps(filters)),
                "sources": tuple(Source(**_with_nodes(source)) for source in values["sources"]),
                "omitted": tuple(OmittedResult(**_with_nodes(item)) for item in values["omitted"]),
                "quotes": tuple(CheckedQuote(**_with_nodes(quote)) for quote in values["quotes"]),
                "notes": tuple(values["notes"]),
                "usage": Usage() if usage is None else Usage(**usage),
            }
        )


_NODE_FIELDS = ("text", "document_id", "start", "end", "id", "group")


def _to_json(value: Any) -> Any:
    """Return a value as JSON values. Metadata and evidence are left out."""
    if isinstance(value, ScoredNode):
        node = {name: getattr(value.node, name) for name in _NODE_FIELDS}
        return {**node, "score": float(value.score), "place": value.place}
    if isinstance(value, Node):
        names = ("document_id", "start", "end", "text", "place", "pages")
        return {name: _to_json(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if is_dataclass(value):
        return {field.name: _to_json(getattr(value, field.name)) for field in fields(value)}
    return value


def _with_nodes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass from JSON values."""
    return {name: _read(value) for name, value in values.items()}


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read(item) for item in value)
    if not isinstance(value, dict):
        return value
    node = Node(**{name: value[name] for name in _NODE_FIELDS if name in value})
    if "score" not in value:
        return node
    return ScoredNode(node, value["score"])


class AnswerError(ModelError):
    """An error: the model failed before or during its answer, or the search took too long.

    Attributes:
        answer: The incomplete answer: sources, notes, and the text up to the failure.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryEngine
        >>> def broken(prompt):
        ...     raise ConnectionError("no server")
        >>> graph = NodeGraph()
        >>> ids = graph.add("The Nile is 6,650 km long.")
        >>> try:
        ...     QueryEngine(graph, broken).query("How long is the Nile?")
        ... except AnswerError as error:
        ...     print([source.text for source in error.answer.sources])
        ['The Nile is 6,650 km long.']
    """

    def __init__(self, reason: str, answer: Answer) -> None:
        super().__init__(reason)
        self.answer = answer

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, Answer]]:
        return type(self), (str(self), self.answer)
