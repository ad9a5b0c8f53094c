"""Ask the retriever that a model, or a function, chooses for a question."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ...nodegraph import nearest_names
from ...nodegraph.models.output import read_routes
from ..filters import Filters
from ..planned_retriever import Found, PlannedRetriever, all_of, found_or_failed
from ..plans import Call, Plan, Prompt, Prompted
from ..protocols import RetrieverProtocol
from ..ranking import Mode, check_mode
from ..results import OutputFormat, QueryVariant, ScoredNode
from ..tracing import start_span
from ..validation import check_retriever
from .query_transform import QueryTransform, QueryVariants, told
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
        routes: Mapping[str, RetrieverProtocol | tuple[str, RetrieverProtocol]],
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
        with start_span(self.name, query=told(queries)) as done:
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
        forms: QueryVariants,
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
                rankings.append(formed(each, QueryVariant(query, "route", note)))
        return fused(rankings, self.mode, limit)


def _pair(
    route: RetrieverProtocol | tuple[str, RetrieverProtocol],
) -> tuple[str, RetrieverProtocol]:
    """Return a route's description, empty where it has none, and its retriever."""
    if not isinstance(route, tuple | list):
        return "", check_retriever(route)
    if len(route) != 2 or not isinstance(route[0], str):
        raise TypeError(
            f"a route is a retriever or a pair (description, retriever), not {route!r:.80}"
        )
    return route[0], check_retriever(route[1])


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
    """Let a model choose among routes by their descriptions; what it returns are their names.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        routes: What each route is good for, by its name.
        default: The route where the model's answer can't be used; None for the first.
        multiple: Whether several may be chosen.
        **settings: ``prompt`` (with ``{query}`` and ``{routes}``), ``language``, ``on_error``,
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
        **settings: Any,
    ) -> None:
        super().__init__(llm, **settings)
        self.routes = dict(routes)
        self.default = check_default(default, self.routes)
        self.multiple = multiple

    def _kept(self, query: str) -> tuple[str, ...]:
        return (self.default,)

    def _forms(self, query: str) -> Plan[QueryVariants]:
        names = list(self.routes)
        one: dict[str, Any] = {"type": "string", "enum": names}
        choice = {"type": "array", "items": one} if self.multiple else one
        lines = [
            f"{number}. {name}{': ' if text else ''}{text}"
            for number, (name, text) in enumerate(self.routes.items(), 1)
        ]
        schema = {
            "title": "route",
            "description": "The names of the routes that suit the question",
            "type": "object",
            "properties": {"names": choice},
            "required": ["names"],
            "additionalProperties": False,
        }
        chosen = yield from self._asked(
            query,
            partial(read_routes, names=names, multiple=self.multiple),
            schema,
            '{"names": ["..."]}' if self.multiple else '{"names": "..."}',
            routes="\n".join(lines),
            how_many=_HOW_MANY[self._language(query), self.multiple],
        )
        return QueryVariants(tuple(chosen))


def check_default(default: str | None, routes: Mapping[str, object]) -> str:
    """Return the route to take where none is chosen: the first unless another is named.

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
    if default is None:
        return next(iter(routes))
    if default not in routes:
        raise ValueError(f"no route {default!r}; there is {nearest_names(str(default), routes)}")
    return default


Choose = Callable[[str], "str | Iterable[str] | Awaitable[str | Iterable[str]]"]


class FunctionRouter(QueryRouter):
    """Let a function choose among routes.

    Args:
        choose: A function, also an async one, from a query to a route's name, or to several.
        routes: What each route is good for, by its name.
        default: The route where the function fails or names none; None for the first.
        multiple: Whether several may be chosen.
        **settings: ``on_error``.

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
        **settings: Any,
    ) -> None:
        if not callable(choose):
            raise TypeError(f"choose is a function from a query to a name, not {choose!r:.80}")
        super().__init__(lambda prompt: prompt, routes, **settings)  # a model that is not asked
        self.choose = choose

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """None: a function is asked nothing but the query."""
        return {}

    def _forms(self, query: str) -> Plan[QueryVariants]:
        chosen = yield Call(self.choose, (query,))
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        for name in names:
            if name not in self.routes:
                raise ValueError(
                    f"no route {name!r}; there is {nearest_names(str(name), self.routes)}"
                )
        if not names:
            raise ValueError("no route was chosen")
        return QueryVariants(tuple(names if self.multiple else names[:1]))
