"""Search with the retriever that a model, or a function, chooses for a question."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.queries import parse_routes
from ..filters import Filters
from ..planned_retriever import PlannedRetriever, join_notes
from ..plans.effects import gather, results_or_errors
from ..plans.limits import Call
from ..plans.plan import Plan
from ..plans.prompting import Prompt, PromptMixin
from ..protocols import RetrieverProtocol
from ..ranking import Mode, check_mode, with_variant
from ..results import OutputFormat, QueryVariant, Results, ScoredNode
from ..tracing import start_span
from .model_prompt import object_schema
from .named_tools import Tools, named_tools
from .query_transform import (
    OnError,
    QueryTransform,
    QueryVariants,
    TransformOptions,
    describe_error,
)
from .transform_retriever import fused

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

Choose = Callable[[str], "str | Iterable[str] | Awaitable[str | Iterable[str]]"]
"""Chooses a route's name, or several, for a query."""

RouteResults = dict[str, Results | Exception]
"""The results of a query by the names of its routes, or why a route failed."""

PROMPT = Prompt(
    zh="""\
下面是可用的检索途径。请选出最适合回答问题的{how_many}，只输出名称，不要回答问题，不要解释。

途径：
{routes}

问题：{query}

名称：""",
    en="""\
Here are the sources that can be searched. Choose {how_many} that suits the question best. Write
only the name; do not answer the question, and do not explain.

Sources:
{routes}

Question: {query}

Name:""",
    required=("query", "routes"),
    optional=("how_many",),
)

_HOW_MANY = {
    ("zh", False): "一个途径",
    ("zh", True): "一个或几个途径（每行一个）",
    ("en", False): "the one",
    ("en", True): "the one (or the few, one a line)",
}


class QueryRouter(QueryTransform):
    """Let a model choose among routes by their descriptions; the variants are routes' names.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        routes: Descriptions of the routes, by their names.
        default: The route if the model's answer can't be used; None for the first.
        multiple: Whether several may be chosen.
        **options: ``prompt`` (with ``{query}`` and ``{routes}``), ``language``, ``on_error``,
            ``retries``, ``timeout``; see ``QueryTransform``.

    Raises:
        ValueError: If there is no route, or no such default.

    Example:
        >>> routes = {"rivers": "All about rivers", "drinks": "Tea, coffee, milk"}
        >>> QueryRouter(lambda prompt: "**drinks**", routes)("Is tea fermented?")
        ['drinks']
    """

    name = "route"
    PROMPT = PROMPT

    def __init__(
        self,
        llm: object,
        routes: Mapping[str, str],
        *,
        default: str | None = None,
        multiple: bool = False,
        **options: Unpack[TransformOptions],
    ) -> None:
        super().__init__(llm, **options)
        self.routes = dict(routes)
        self.default = check_default(default, self.routes)
        self.multiple = multiple

    def fallback(self, query: str) -> tuple[str, ...]:
        """Return the default route."""
        return (self.default,)

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the names of the chosen routes as a plan."""
        names = list(self.routes)
        name: dict[str, Any] = {"type": "string", "enum": names}
        schema = object_schema(
            *("route", "The names of the routes that suit the question"),
            names={"type": "array", "items": name} if self.multiple else name,
        )
        lines = [
            f"{number}. {name}{': ' if text else ''}{text}"
            for number, (name, text) in enumerate(self.routes.items(), 1)
        ]
        chosen = yield from self.ask(
            query,
            partial(parse_routes, names=names, multiple=self.multiple),
            schema=schema,
            example='{"names": ["..."]}' if self.multiple else '{"names": "..."}',
            routes="\n".join(lines),
            how_many=_HOW_MANY[self.prompt_language(query), self.multiple],
        )
        return QueryVariants(tuple(chosen))


def check_default(default: str | None, routes: Mapping[str, object]) -> str:
    """Return the route to take if none is chosen: the first by default.

    Raises:
        TypeError: If a name is no text.
        ValueError: If there is no route, or none of that name.
    """
    for name in routes:
        if not isinstance(name, str):
            raise TypeError(f"a route's name is a text, not {name!r:.80}")
        if not name.strip():
            raise ValueError(f"a route has the blank name {name!r}; give it one that can be chosen")
    if not routes:
        raise ValueError("routes={} leaves nothing to choose from; give one or more")
    return next(iter(routes)) if default is None else check_route(default, routes)


def check_route(name: str, routes: Mapping[str, object]) -> str:
    """Return the name of a route.

    Raises:
        ValueError: If there is none of that name.
    """
    if name not in routes:
        raise ValueError(f"no route {name!r}; there is {nearest_names(str(name), routes)}")
    return name


class FunctionRouter(QueryRouter):
    """Let a function choose among routes.

    Args:
        choose: A function, also an async one, from a query to a route's name, or to several.
        routes: Descriptions of the routes, by their names.
        default: The route if the function fails or names none; None for the first.
        multiple: Whether several may be chosen.
        on_error: What to do if the function fails: take the default, or ``"raise"``.

    Raises:
        TypeError: If there is no function.
        ValueError: If there is no route, or no such default.

    Example:
        >>> routes = {"short": "", "long": ""}
        >>> FunctionRouter(lambda query: "long" if len(query) > 20 else "short", routes)("Tea?")
        ['short']
    """

    def __init__(
        self,
        choose: Choose,
        routes: Mapping[str, str],
        *,
        default: str | None = None,
        multiple: bool = False,
        on_error: OnError = "keep",
    ) -> None:
        if not callable(choose):
            raise TypeError(f"choose is a function from a query to a name, not {choose!r:.80}")
        super().__init__(  # with a model that is never called
            *(lambda prompt: prompt, routes), default=default, multiple=multiple, on_error=on_error
        )
        self.choose = choose
        self._prompts = {}  # a function gets the query only

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the names that the function returns as a plan."""
        chosen = yield from Call(self.choose, (query,))
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        for name in names:
            check_route(name, self.routes)
        if not names:
            raise ValueError("no route was chosen")
        return QueryVariants(tuple(names if self.multiple else names[:1]))


class RouterRetriever(PromptMixin, PlannedRetriever):
    """Search with the retriever, or the few, that a model or a function chooses for a question.

    Routes are corpora, or ways to search one: sub-questions for comparisons, the plain retriever
    for the rest. The evidence's notes name the route, and why the default one was taken.

    Args:
        routes: By name, retrievers and query engines of any framework, or pairs of a description
            and one; or a list of tools of LangChain or LlamaIndex. A model sees names and
            descriptions.
        llm: The model, in any form that ``LLM`` takes.
        choose: In place of a model: a function, also an async one, from the question to a name,
            or to several.
        default: The route if the choice can't be used, or all chosen ones fail (which is an error
            with ``on_error="raise"``); None for the first.
        multiple: Whether several may be chosen; their results are fused.
        mode: How they are fused; see ``fuse``.
        top_k: How many results at most, also of each route; None for the retrievers' own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **options: Those of ``QueryTransform``: ``prompt``, ``on_error``; a function has
            ``on_error`` alone.

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
    prompt_owner = "query_router"

    def __init__(
        self,
        routes: Tools,
        llm: object = None,
        *,
        choose: Choose | None = None,
        default: str | None = None,
        multiple: bool = False,
        mode: Mode = "rrf",
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **options: Unpack[TransformOptions],
    ) -> None:
        super().__init__(top_k=top_k, output_format=output_format, join=join)
        tools = named_tools(routes, "route")
        self.routes = {name: tool.retriever for name, tool in tools.items()}
        if (llm is None) == (choose is None):
            raise TypeError("a router takes a model (llm=) or a function (choose=), one of the two")
        chooser: Callable[..., QueryRouter] = QueryRouter if choose is None else FunctionRouter
        self.query_router = chooser(
            llm if choose is None else choose,
            {name: tool.description for name, tool in tools.items()},
            default=default,
            multiple=multiple,
            **options,
        )
        self.mode: Mode = check_mode(mode)

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The routes."""
        return list(self.routes.items())

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        self.routes = {**self.routes, **retrievers}

    def __repr__(self) -> str:
        return f"RouterRetriever({self.routes!r})"

    def transform(self, query: str) -> list[str]:
        """Return the names of the routes that are chosen for a query."""
        return self.query_router.transform(query)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return await self.query_router.atransform(query)

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""

        def search(results: Sequence[RouteResults]) -> Plan[None]:
            """Search the routes that each query's results name; put in their results or errors."""
            # Each route gets all its queries at once.
            places = {
                name: [at for at, by_route in enumerate(results) if name in by_route]
                for name in dict.fromkeys(name for by_route in results for name in by_route)
            }
            plans = [
                results_or_errors(self.routes[name], [queries[at] for at in own], limit, filters)
                for name, own in places.items()
            ]
            rankings = yield from gather(plans)
            for (name, own), of_route in zip(places.items(), rankings, strict=True):
                for place, ranking in zip(own, of_route, strict=True):
                    results[place][name] = ranking

        with start_span(self.name, queries=queries) as span:
            chosen = yield from gather([self.query_router.plan(query) for query in queries])
            results: list[RouteResults] = [
                {name: [] for name in choice.queries} for choice in chosen
            ]
            yield from search(results)
            # If every chosen route fails, the default is searched.
            defaults = [self._default_after(by_route) for by_route in results]
            yield from search(defaults)
            rankings = [
                self._fuse_routes(query, choice, {**by_route, **by_default}, limit)
                for query, choice, by_route, by_default in zip(
                    queries, chosen, results, defaults, strict=True
                )
            ]
            span.set_results(rankings)
        return rankings

    def _default_after(self, results: RouteResults) -> RouteResults:
        """Return the default route if all others failed, else none; without results yet."""
        router = self.query_router
        failed = all(isinstance(ranking, Exception) for ranking in results.values())
        use_default = failed and router.on_error == "keep" and router.default not in results
        return {router.default: []} if use_default else {}

    def _fuse_routes(
        self, query: str, choice: QueryVariants, results: RouteResults, limit: int | None
    ) -> list[ScoredNode]:
        errors = {name: item for name, item in results.items() if isinstance(item, Exception)}
        if errors and (len(errors) == len(results) or self.query_router.on_error == "raise"):
            raise next(iter(errors.values()))
        failures = [
            f"route {name!r} failed: {describe_error(error)}" for name, error in errors.items()
        ]
        if failures:
            logger.warning("of the query %r: %s", query[:80], "; ".join(failures))
        rankings = []
        for name, ranking in results.items():
            if not isinstance(ranking, Exception):
                note = join_notes(f"to {name!r}", choice.note, *failures)
                rankings.append(with_variant(ranking, QueryVariant(query, "route", note)))
        return fused(rankings, self.mode, limit)
