"""Self-querying: extract filters on metadata from a question, and search with them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeAlias

from ...nodegraph.models.templates import Language
from ..base_retriever import BaseRetriever, join_notes, with_all_inner
from ..filters import Filters, all_of
from ..foreign.foreign_retriever import as_retriever
from ..plans.plan import gather_each, work
from ..plans.prompting import PromptMixin, PromptReplacement
from ..protocols import RetrieverLike
from ..ranking import with_variant
from ..results import QueryVariant, Results
from ..tracing import start_span
from .filter_field import Fields, FilterField, checked_fields
from .filter_prompt import FilterPrompt
from .metadata_fields import has_graph, read_fields, sources_of
from .model_prompt import OnError, describe_error
from .question_filters import usable_filters
from .variant_results import results_or_errors

logger = logging.getLogger(__name__)

Now: TypeAlias = date | Callable[[], date]
"""A date, or a function that returns the current date for each call."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A search that is derived from a question.

    Attributes:
        question: The original question.
        query: The text to search for.
        filters: The conditions extracted from the question, or None if it contains no conditions.
        note: A description of dropped conditions or failures, or None if there are none to report.
    """

    question: str
    query: str
    filters: Filters | None = None
    note: str | None = None

    @property
    def plain(self) -> _Request:
        """The search for the original question without filters."""
        return _Request(self.question, self.question, None, self.note)

    def noted(self, note: str) -> _Request:
        """Return a copy of the request with an additional note."""
        return replace(self, note=join_notes(self.note, note))


class SelfQueryRetriever(PromptMixin, BaseRetriever):
    """A retriever that extracts filters on metadata from the question.

    For example, "Reports on tea since 2020" is searched as "reports on tea" with the filter
    ``{"year": {"gte": 2020}}``. A model receives the question and a list of metadata fields with
    their types, ranges and frequent values. These are read from the documents of the searched
    graphs, once per revision of a graph. Documents that the caller may not see are not read.

    The filters from the question are combined by "and" with the filters of the call and the active
    restriction. A condition is dropped if its field is unknown or its value is impossible. A filter
    that excludes all results is dropped as well. In both cases, the evidence contains a note. If
    the reply of the model is not usable, the question is searched without filters. If no fields are
    available, the model is not called.

    Args:
        inner: Any retriever that supports filters.
        llm: The language model, in any form that ``LLM`` accepts.
        fields: The fields by which questions may be filtered. A list of names selects fields that
            are read from the documents. A mapping from names to ``FilterField`` objects or
            descriptions is used as given. If None, all fields are read, except fields that are
            excluded from search texts or hidden from models (``excluded_llm_metadata_keys``).
        now: The current date, which resolves expressions such as "last year", or a function that
            returns the date. Defaults to today.
        top_k: The number of results. If None, the ``top_k`` of the inner retriever is used.
        prompt: A prompt that replaces the built-in one. It has the placeholders ``{query}`` and
            ``{fields}``, and optionally ``{today}``.
        language: The language of the prompt. See ``ModelPrompt``.
        retries: The number of times a call is repeated if the reply cannot be parsed.
        timeout: The timeout of each model call in seconds. If None, the timeout of the model's
            client applies.
        on_error: The reaction to a failure of the model. ``"keep"`` searches for the question
            without filters. ``"raise"`` raises the error.

    Raises:
        TypeError: If the model is missing, or an argument has the wrong type.
        ValueError: If an argument is invalid, ``inner`` does not support filters, or ``inner`` has
            no graph and no fields are given.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("A report on tea.", {"year": y}) for y in (2019, 2021)])
        >>> model = lambda prompt: '{"query": "report on tea", "filters": {"year": {"gte": 2020}}}'
        >>> retriever = SelfQueryRetriever(Retriever(graph, "ROOT"), model)
        >>> [result.node.metadata for result in retriever("Reports on tea since 2020")]
        [{'year': 2021}]
    """

    name = "self-query"
    prompt_owner = "reader"

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        fields: Mapping[str, FilterField | str] | Sequence[str] | None = None,
        *,
        now: Now | None = None,
        top_k: int | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(top_k=top_k)
        self.inner = as_retriever(inner)
        _check_applies_filters(self.inner)
        self.fields = checked_fields(fields)
        if not isinstance(self.fields, Mapping) and not has_graph(self.inner):
            raise ValueError(
                f"fields must be a mapping if the retriever has no graph, got {fields!r:.80} and "
                f"{self.inner!r:.80}; write fields={{'year': FilterField('number')}}"
            )
        if not (now is None or isinstance(now, date) or callable(now)):
            raise TypeError(f"now must be a date or a function that returns it, got {now!r:.80}")
        self.now = now
        self.reader = FilterPrompt(
            llm,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        self.has_windows = getattr(self.inner, "has_windows", False)

    def __repr__(self) -> str:
        return f"SelfQueryRetriever({self.inner!r}, {self.reader.llm.name!r})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        with start_span(self.name, queries=queries) as span:
            fields = await work(self._visible_fields, filters)
            requests = await gather_each(self._request, queries, fields)
            results = await self._search(requests, limit, filters)
            span.set_results(results)
        return results

    def _visible_fields(self, filters: Filters | None) -> Fields:
        """Return the fields of the documents that the caller may see."""
        if isinstance(self.fields, Mapping):
            return self.fields
        return read_fields(sources_of(self.inner, filters), self.fields)

    def _today(self) -> date:
        if self.now is None:
            return date.today()
        return self.now() if callable(self.now) else self.now

    async def _request(self, question: str, fields: Fields) -> _Request:
        """Extract the filters from a question.

        Without usable filters, search for the question itself.
        """
        request = _Request(question, question)
        if not fields or not question.strip():
            return request
        try:
            reply = await self.reader.read(question, fields, self._today())
            found = usable_filters(reply.conditions, fields)
        except Exception as error:
            if self.reader.on_error == "raise":
                raise
            return _warned(request.noted(f"{self.name} failed: {describe_error(error)}"))
        if found.dropped:
            request = _warned(request.noted(f"dropped conditions: {'; '.join(found.dropped)}"))
        if found.filters is None:
            return request
        # If a condition was dropped, its words must remain in the search text.
        query = reply.query
        if found.dropped or query is None:
            query = question
        return replace(request, query=query, filters=found.filters)

    async def _search(
        self, requests: Sequence[_Request], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Search with the extracted filters. If nothing is found, search again without them."""
        done: dict[int, Results] = {}
        pending = dict(enumerate(requests))
        while pending:
            found = await self._find(list(pending.values()), limit, filters)
            retried: dict[int, _Request] = {}
            for (number, request), results in zip(pending.items(), found, strict=True):
                following = self._following(request, results)
                if following is not None:
                    retried[number] = following
                elif isinstance(results, Exception):
                    raise results
                else:
                    done[number] = _with_evidence(request, results)
            pending = retried
        return [done[number] for number in range(len(requests))]

    def _following(self, request: _Request, results: Results | Exception) -> _Request | None:
        """Return the next search to try after a search without results, or None to stop."""
        if request.filters is None or (not isinstance(results, Exception) and results):
            return None
        if isinstance(results, Exception):
            if self.reader.on_error == "raise":
                return None
            failure = f"the search with {_as_text(request.filters)} failed"
            return _warned(request.plain.noted(f"{failure}: {describe_error(results)}"))
        if request.query != request.question:
            return replace(request, query=request.question)
        note = f"no result meets the filter {_as_text(request.filters)}, which was dropped"
        return _warned(request.plain.noted(note))

    async def _find(
        self, requests: Sequence[_Request], limit: int | None, filters: Filters | None
    ) -> list[Results | Exception]:
        """Return the results of each request. Requests with equal filters share one call."""
        groups: dict[str, list[_Request]] = {}
        for request in requests:
            groups.setdefault(_as_text(request.filters), []).append(request)
        of_groups = await gather_each(self._find_group, groups.values(), limit, filters)
        found = dict(zip(groups, of_groups, strict=True))
        return [found[_as_text(request.filters)][request.query] for request in requests]

    async def _find_group(
        self, requests: Sequence[_Request], limit: int | None, filters: Filters | None
    ) -> dict[str, Results | Exception]:
        """Return the results of requests with equal filters, by query."""
        queries = list(dict.fromkeys(request.query for request in requests))
        joined = all_of(filters, requests[0].filters)
        results = await results_or_errors(self.inner, queries, limit, joined)
        return dict(zip(queries, results, strict=True))


def _check_applies_filters(retriever: object) -> None:
    """Check that neither a retriever nor any of its nested retrievers ignores filters.

    Raises:
        ValueError: If ``takes_filters`` is False for one of the retrievers.
    """
    for item in with_all_inner(retriever):
        if getattr(item, "takes_filters", True) is False:
            raise ValueError(
                f"inner must apply the filters of a call, got {item!r:.120}, which does not; use a "
                "retriever or a function with a parameter filters"
            )


def _with_evidence(request: _Request, results: Results) -> Results:
    """Add the question, the filter and the note to the evidence of the results."""
    if request.filters is None and request.note is None:
        return results
    note = request.note
    if request.filters is not None:
        note = join_notes(f"filter {_as_text(request.filters)}", note)
    return with_variant(results, QueryVariant(request.question, SelfQueryRetriever.name, note))


def _as_text(filters: Filters | None) -> str:
    return json.dumps(filters, ensure_ascii=False, default=str)


def _warned(request: _Request) -> _Request:
    """Log the note of a request as a warning, and return the request."""
    logger.warning("query %r: %s", request.question[:80], request.note)
    return request
