"""Ask the retriever that a model, or a function, chooses for a question."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..checks import check_retriever
from ..filters import Filters
from ..output import OutputFormat
from ..patterns.fuse import Mode, check_mode
from ..plan import Plan
from ..prompt import Prompt, Prompted
from ..protocols import Retrieves
from ..scored_node import QueryForm, ScoredNode
from ..trace import stage
from .function_router import Choose, FunctionRouter
from .planned_retriever import Found, PlannedRetriever, all_of, found_or_failed
from .query_router import QueryRouter
from .query_transform import Forms, told
from .transform_retriever import failure, formed, fused

logger = logging.getLogger(__name__)


class RouterRetriever(Prompted, PlannedRetriever):
    """Ask the retriever, or the few, that a model or a function chooses for a question.

    Routes are corpora, or ways to search one: sub-questions for comparisons, the plain retriever
    for the rest. The evidence's notes say which route was taken, and why where it was the default.

    Args:
        routes: By name, retrievers, or pairs of a description and a retriever; a model sees names
            and descriptions.
        llm: The model, in any form that ``LLM`` takes.
        choose: In place of a model: a function, also an async one, from the question to a name,
            or to several.
        default: The route where the choice can't be used, or all that were chosen fail (which is an
            error with ``on_error="raise"``); None for the first.
        multiple: Whether several may be chosen; what they find is fused.
        mode: How it is fused; see ``fuse``.
        top_k: How many results at most, also of each route; None for the retrievers' own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **settings: Those of ``QueryRouter`` and ``QueryTransform``: ``prompt``, ``on_error``.

    Raises:
        TypeError: If a route is no retriever, or there are a model and a function, or neither.
        ValueError: If there is no route, or a choice is unknown.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea is a drink.", "The Nile is a river."])
        >>> words, exact = Retriever(graph, "ROOT"), Retriever(graph, "ROOT", index="map")
        >>> routes = {"words": ("Questions", words), "exact": ("Quotations", exact)}
        >>> router = RouterRetriever(routes, lambda prompt: "I would choose: words")
        >>> print(router("What is tea?")[0].explain())  # doctest: +ELLIPSIS
        0...  ROOT  "Tea is a drink."
          0...  ROOT  bm25 for "What is tea?": itself
            route of "What is tea?" (to 'words')
    """

    name = "router"

    def __init__(
        self,
        routes: Mapping[str, Retrieves | tuple[str, Retrieves]],
        llm: object = None,
        *,
        choose: Choose | None = None,
        default: str | None = None,
        multiple: bool = False,
        mode: Mode = "rrf",
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: Any,
    ) -> None:
        super().__init__(top_k=top_k, output_format=output_format, join=join)
        pairs = {name: _pair(route) for name, route in routes.items()}
        self.routes = {name: retriever for name, (_, retriever) in pairs.items()}
        if (llm is None) == (choose is None):
            raise TypeError("a router takes a model (llm=) or a function (choose=), one of the two")
        described = {name: text for name, (text, _) in pairs.items()}
        kind = {"default": default, "multiple": multiple, **settings}
        self.query_router: QueryRouter = (
            QueryRouter(llm, described, **kind)
            if choose is None
            else FunctionRouter(choose, described, **kind)
        )
        self.mode: Mode = check_mode(mode)

    def __repr__(self) -> str:
        return f"RouterRetriever({self.routes!r})"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by their names."""
        return self.query_router.prompts

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        self.query_router = self.query_router.with_prompts(prompts)

    def transform(self, query: str) -> list[str]:
        """Return the names of the routes that are chosen for a query."""
        return self.query_router.transform(query)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return await self.query_router.atransform(query)

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Found]]:
        """Return the results of each query as a plan."""
        with stage(self.name, query=told(queries)) as done:
            chosen = yield from all_of([self.query_router.plan(query) for query in queries])
            found = yield from self._found(queries, [f.queries for f in chosen], limit, filters)
            # Where nothing that was chosen can be searched, the default is.
            others = [self._other(each) for each in found]
            more = yield from self._found(queries, others, limit, filters)
            for each, routes in zip(found, more, strict=True):
                each |= routes
            results = [
                self._fused(query, forms, each, limit)
                for query, forms, each in zip(queries, chosen, found, strict=True)
            ]
            done.facts["results"] = sum(map(len, results))
        return results

    def _found(
        self,
        queries: Sequence[str],
        routes: Sequence[Iterable[str]],
        limit: int | None,
        filters: Filters | None,
    ) -> Plan[list[dict[str, Found | Exception]]]:
        """Return what each query's routes find, or why they fail, by their names."""
        asked: dict[str, list[int]] = {}  # each route gets all its queries at once
        for at, names in enumerate(routes):
            for name in names:
                asked.setdefault(name, []).append(at)
        told = yield from all_of(
            [
                found_or_failed(self.routes[name], [queries[at] for at in places], limit, filters)
                for name, places in asked.items()
            ]
        )
        found: list[dict[str, Found | Exception]] = [
            {name: [] for name in names} for names in routes
        ]
        for (name, places), each in zip(asked.items(), told, strict=True):
            for at, one in zip(places, each, strict=True):
                found[at][name] = one
        return found

    def _other(self, found: Mapping[str, Found | Exception]) -> list[str]:
        """Return the route to take in place of those that all failed; none where one did not."""
        default = self.query_router.default
        failed = all(isinstance(each, Exception) for each in found.values())
        keeps = self.query_router.on_error == "keep"
        return [default] if failed and keeps and default not in found else []

    def _fused(
        self,
        query: str,
        forms: Forms,
        found: Mapping[str, Found | Exception],
        limit: int | None,
    ) -> list[ScoredNode]:
        errors = {name: each for name, each in found.items() if isinstance(each, Exception)}
        if errors and (len(errors) == len(found) or self.query_router.on_error == "raise"):
            raise next(iter(errors.values()))
        failed = [f"route {name!r} failed: {failure(error)}" for name, error in errors.items()]
        if failed:
            logger.warning("of the query %r: %s", query[:80], "; ".join(failed))
        rankings = []
        for name, each in found.items():
            if not isinstance(each, Exception):
                note = "; ".join(filter(None, [f"to {name!r}", forms.note, *failed]))
                rankings.append(formed(each, QueryForm(query, "route", note)))
        return fused(rankings, self.mode, limit)


def _pair(route: Retrieves | tuple[str, Retrieves]) -> tuple[str, Retrieves]:
    """Return a route's description, empty where it has none, and its retriever."""
    if not isinstance(route, tuple | list):
        return "", check_retriever(route)
    if len(route) != 2 or not isinstance(route[0], str):
        raise TypeError(
            f"a route is a retriever or a pair (description, retriever), not {route!r:.80}"
        )
    return route[0], check_retriever(route[1])
