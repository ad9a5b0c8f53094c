"""The answer of a query engine, with its text, sources, omitted results and notes."""

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
"""The reason why a result is not included in the prompts.

The text does not fit into the context window, it is contained in another result or equal to it, or
it is empty.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered passage that was included in the prompts of an answer.

    Attributes:
        number: The number that is used in citations such as ``[1]``. The best source has the number
            1.
        result: The search result, with its evidence.
        text: The text in the prompt. It is the content of the result, a part of it, or the merged
            text of overlapping results.
        cited: Whether the answer cites the source.
        title: The line above the text in the prompt. It contains the title and the headings of the
            document, or the file name.
        merged: Other results from the same document that overlap with ``result``. Their texts are
            included in ``text``.
        complete: Whether the whole text is included in the prompts.

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
        """The search result, followed by the results that were merged with it."""
        return (self.result, *self.merged)


@dataclass(frozen=True, slots=True)
class OmittedResult:
    """A search result that is not included in the prompts.

    Attributes:
        result: The search result.
        reason: The reason: ``"context_window"``, ``"contained"``, ``"duplicate"`` or ``"empty"``.
        of: The result that contains or equals the text, if the reason is ``"contained"`` or
            ``"duplicate"``.
    """

    result: ScoredNode
    reason: OmissionReason
    of: ScoredNode | None = None


QuoteStatus = Literal["exact", "same_letters", "shortened", "other_source", "not_found"]
"""The result of checking a quotation.

- ``"exact"``: The cited source contains the quotation literally.
- ``"same_letters"``: The source differs only in case, spaces or punctuation marks, or the quotation
  omits whole sentences and marks this with an ellipsis.
- ``"shortened"``: The quotation omits a part of a sentence and marks this with an ellipsis.
- ``"other_source"``: The text occurs in a source that is not cited.
- ``"not_found"``: The text does not occur in any source.
"""


@dataclass(frozen=True, slots=True)
class CheckedQuote:
    """A quotation or a cited sentence of an answer, with its spans in the sources.

    Attributes:
        text: The quotation without quotation marks, or the sentence without citations.
        start: The start in the text of the answer, in characters.
        end: The end in the text of the answer, in characters.
        status: The result of the check: ``"exact"``, ``"same_letters"``, ``"shortened"``,
            ``"other_source"`` or ``"not_found"``. For a cited sentence without quotation marks,
            ``"not_found"`` only means that the sentence paraphrases the source.
        quoted: Whether the text is in quotation marks or in a block quotation.
        cited: The numbers of the cited sources.
        source: The number of the source that contains the text, or None if no source contains it.
        spans: The matching parts of the documents, as nodes with ``text``, ``document_id``,
            ``start``, ``end``, ``place`` and ``pages``. A quotation with an ellipsis has several
            spans.
        nearest: The most similar sentence in the sources if the quotation is not found.

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
        """Convert the quotation to a dictionary of JSON values.

        Each span becomes a dictionary with ``document_id``, ``start``, ``end``, ``text``, ``place``
        and ``pages``.
        """
        return {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, with its sources.

    Attributes:
        text: The text of the answer. If the question was not answered, it is a message for the
            user: "Nothing was found …".
        question: The question of the user.
        sources: The passages in the prompts, ordered by number.
        answered: Whether the question was answered. It is False if the search found nothing or the
            passages do not contain the answer.
        preset: The question-answer pair that was used as a preset answer, or None if the model
            answered.
        omitted: The search results that are not included in the prompts, with reasons.
        notes: Messages about failures, omitted or truncated passages, and missing or invalid
            citations.
        searched: The search query. It is the question, or the standalone question derived from a
            conversation.
        calls: The number of model calls of the engine, without the calls of retrieval strategies.
        usage: The number of model calls and the tokens that they used, including retrieval
            strategies.
        confidence: The confidence of the model, from 0 to 100, in the mode ``"map_rerank"``. It is
            None in other modes, or if the model does not state a number.
        quotes: The quotations and cited sentences with their spans in the sources. They are set
            only by ``check_quotes`` and ``QueryEngine(check="quotes")``.
        top_k: The ``top_k`` of the search. ``QueryEngine.check_current`` repeats the search with
            the same ``top_k``, ``filters`` and ``min_score``.
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
        """All search results: first the results of the sources, then the omitted results."""
        used = [result for source in self.sources for result in source.results]
        return (*used, *(omission.result for omission in self.omitted))

    def to_dict(self) -> dict[str, Any]:
        """Convert the answer to a dictionary of JSON values, which ``from_dict`` can read.

        The evidence and the metadata of the results are not included.
        """
        values = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}
        filters = None if self.filters is None else json.loads(encode(dict(self.filters)))
        return {**values, "filters": filters}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Answer:
        """Create an answer from the output of ``to_dict``. Its nodes do not belong to a graph.

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
    """Convert a value to JSON values. Metadata and evidence are omitted."""
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
    """Convert JSON values to the field values of a dataclass."""
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
    """An error that is raised if the model fails to answer or the search takes too long.

    Attributes:
        answer: The incomplete answer, with its sources, its notes, and the text up to the failure.

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
