"""Search with the retriever that a model, or a function, chooses for a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.queries import parse_routes
from ...nodegraph.models.templates import schema_of
from ..filters import Filters
from ..planned_retriever import join_notes
from ..plans.effects import call_function
from ..plans.prompting import Prompt
from ..ranking import Mode
from ..results import OutputOptions, QueryVariant
from .model_prompt import (
    QueryTransform,
    QueryVariants,
    StrategySettings,
    describe_error,
)
from .transform_retriever import Tools, TransformRetriever, VariantResults, Variants, named_tools

Choose = Callable[[str], "str | Iterable[str] | Awaitable[str | Iterable[str]]"]
"""Chooses a route's name, or several, for a query."""

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    """Let a model choose among routes by their descriptions. The variants are routes' names.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        routes: Descriptions of the routes, by their names.
        default: The route if the model's answer can't be used. None for the first.
        multiple: Whether several may be chosen.
        choose: A function, also an async one, from a query to a route's name, or to several. It is
            called instead of the model, which is None then.
        settings: How the model is asked. A prompt has ``{query}`` and ``{routes}``, and may have
            ``{how_many}``. For a function only ``on_error`` counts.

    Raises:
        TypeError: If there are a model and a function, or neither.
        ValueError: If there is no route, or no such default, or a setting that a function has no
            use for.

    Example:
        >>> routes = {"rivers": "All about rivers", "drinks": "Tea, coffee, milk"}
        >>> QueryRouter(lambda prompt: "**drinks**", routes)("Is tea fermented?")
        ['drinks']
        >>> QueryRouter(None, routes, choose=lambda query: "rivers")("Is tea fermented?")
        ['rivers']
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
        choose: Choose | None = None,
        settings: StrategySettings | None = None,
    ) -> None:
        if (llm is None) == (choose is None):
            raise TypeError("a router takes a model (llm=) or a function (choose=), one of the two")
        if choose is not None and not callable(choose):
            raise TypeError(f"choose is a function from a query to a name, not {choose!r:.80}")
        super().__init__(choose if llm is None else llm, settings)
        on_error = self.settings.on_error
        if choose is not None and self.settings != StrategySettings(on_error=on_error):
            raise ValueError("of the settings, a function that chooses has on_error alone")
        self.routes = dict(routes)
        self.default = check_default(default, self.routes)
        self.multiple = multiple
        self.choose = choose
        if choose is not None:
            self._prompts = {}  # a function gets the query only

    def describe(self, variants: QueryVariants) -> list[str]:
        """Return the names of the routes."""
        return list(variants.tools)

    def fallback(self, query: str) -> QueryVariants:
        """Return the query for the default route."""
        return QueryVariants((query,), tools=(self.default,))

    async def variants(self, query: str) -> QueryVariants:
        """Return the query for each of the chosen routes, as a plan."""
        chosen = await (self._ask(query) if self.choose is None else self._call(self.choose, query))
        return QueryVariants((query,) * len(chosen), tools=tuple(chosen))

    async def _call(self, choose: Choose, query: str) -> list[str]:
        """Return the names that a function chooses as a plan."""
        chosen = await call_function(choose, query)
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        for name in names:
            check_route(name, self.routes)
        if not names:
            raise ValueError("no route was chosen")
        return names if self.multiple else names[:1]

    async def _ask(self, query: str) -> list[str]:
        """Return the names that the model chooses as a plan."""
        names = list(self.routes)
        name: dict[str, Any] = {"type": "string", "enum": names}
        form = '{"names": ["..."]}' if self.multiple else '{"names": "..."}'
        chosen = {"type": "array", "items": name} if self.multiple else name
        lines = [
            f"{number}. {name}{': ' if text else ''}{text}"
            for number, (name, text) in enumerate(self.routes.items(), 1)
        ]
        return await self.ask(
            query,
            partial(parse_routes, names=names, multiple=self.multiple),
            form=form,
            schema={**schema_of(form), "properties": {"names": chosen}},
            routes="\n".join(lines),
            how_many=_HOW_MANY[self.prompt_language(query), self.multiple],
        )


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


class RouterRetriever(TransformRetriever):
    """Search with the retriever, or the few, that a model or a function chooses for a question.

    Routes are corpora, or ways to search one: sub-questions for comparisons, the plain retriever
    for the rest. The evidence's notes name the route, and why the default one was taken.

    Args:
        routes: Retrievers, functions and query engines by name, or pairs of a description and
            one. A model sees names and descriptions.
        llm: The model, in any form that ``LLM`` takes.
        choose: A function, also an async one, from the question to a name, or to several. It is
            called instead of a model.
        default: The route if the choice can't be used, or all chosen ones fail (which is an error
            with ``on_error="raise"``). None for the first.
        multiple: Whether several may be chosen. Their results are fused.
        mode: How they are fused. See ``fuse``.
        settings: How the model is asked. See ``StrategySettings``. For a function only
            ``on_error`` counts.
        top_k: How many results at most, also of each route. None for the retrievers' own.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

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
    variant_name = "route"

    def __init__(
        self,
        routes: Tools,
        llm: object = None,
        *,
        choose: Choose | None = None,
        default: str | None = None,
        multiple: bool = False,
        mode: Mode = "rrf",
        settings: StrategySettings | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        tools = named_tools(routes, "route")
        descriptions = {name: tool.description for name, tool in tools.items()}
        router = QueryRouter(
            llm,
            descriptions,
            default=default,
            multiple=multiple,
            choose=choose,
            settings=settings,
        )
        self.default = router.default
        super().__init__(tools, router, mode=mode, top_k=top_k, **output)

    async def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search the chosen routes. The default one too where all of them fail."""
        rankings = await self.search_variant_groups(variants, limit, filters)
        defaults = [
            (query, QueryVariants((query,), tools=(self.default,)) if use_default else _NOTHING)
            for (query, group), ranking in zip(variants, rankings, strict=True)
            for use_default in [self._uses_default(group, ranking)]
        ]
        more = await self.search_variant_groups(defaults, limit, filters)
        rankings = [[*ranking, *new] for ranking, new in zip(rankings, more, strict=True)]
        for (query, _), ranking in zip(variants, rankings, strict=True):
            self.check_failures(query, ranking)
        return rankings

    def _uses_default(self, group: QueryVariants, rankings: Sequence[VariantResults]) -> bool:
        keeps = self.query_transform.settings.on_error == "keep"
        failed = all(ranking.error is not None for ranking in rankings)
        return keeps and failed and self.default not in group.tools

    def evidence_variant(
        self, query: str, ranking: VariantResults, note: str | None
    ) -> QueryVariant:
        """Return what the evidence of a route's results says about the query."""
        return QueryVariant(query, self.variant_name, join_notes(f"to {ranking.tool!r}", note))

    def describe_failures(self, rankings: Sequence[VariantResults]) -> str:
        """Return which routes failed, and why. An empty text if none did."""
        return "; ".join(
            f"route {ranking.tool!r} failed: {describe_error(ranking.error)}"
            for ranking in rankings
            if ranking.error is not None
        )


_NOTHING = QueryVariants(())
