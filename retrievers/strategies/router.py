"""Routing: search with the retriever that a language model chooses for each question."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.routes import parse_route
from ...nodegraph.models.templates import Language, schema_of
from ..filters import Filters
from ..plans.prompting import PromptReplacement
from ..prompts.choice_prompts import ROUTE
from .model_prompt import OnError, QueryTransform, QueryVariants
from .named_tools import Tools, named_tools
from .transform_retriever import StrategyMode, TransformRetriever, Variants
from .variant_results import VariantResults


class QueryRouter(QueryTransform):
    """A query transform that chooses one of several routes, based on their descriptions.

    The prompt has the placeholders ``{query}`` and ``{routes}``.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        routes: The descriptions of the routes, by name.
        default: The route that is used if the answer of the model is not usable. If None, the first
            route is used.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        ValueError: If ``routes`` is empty, or the default route is unknown.

    Example:
        >>> routes = {"rivers": "All about rivers", "drinks": "Tea, coffee, milk"}
        >>> QueryRouter(lambda prompt: "**drinks**", routes)("Is tea fermented?")
        ['drinks']
    """

    name = "route"
    PROMPT = ROUTE
    FORM: ClassVar[str] = '{"name": "..."}'

    def __init__(
        self,
        llm: object,
        routes: Mapping[str, str],
        *,
        default: str | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(
            llm,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        if not routes:
            raise ValueError("routes must not be empty, got {}")
        if default is not None and default not in routes:
            names = nearest_names(str(default), routes)
            raise ValueError(f"default must be a route, got {default!r}; known: {names}")
        self.routes = dict(routes)
        self.default = next(iter(routes)) if default is None else default

    def describe(self, variants: QueryVariants) -> list[str]:
        """Return the name of the chosen route, as the only item of a list."""
        return list(variants.tools)

    def fallback(self, query: str) -> QueryVariants:
        """Return the query, assigned to the default route."""
        return QueryVariants((query,), tools=(self.default,))

    async def variants(self, query: str) -> QueryVariants:
        """Return the query, assigned to the route that the model chooses."""
        names = list(self.routes)
        lines = [
            f"{number}. {name}{': ' if text else ''}{text}"
            for number, (name, text) in enumerate(self.routes.items(), 1)
        ]
        name: dict[str, Any] = {"type": "string", "enum": names}
        chosen = await self.ask(
            query,
            partial(parse_route, names=names),
            schema={**schema_of(self.FORM), "properties": {"name": name}},
            routes="\n".join(lines),
        )
        return QueryVariants((query,), tools=(chosen,))


class RouterRetriever(TransformRetriever):
    """A retriever that searches one of several routes, which a model chooses for each question.

    A route is a corpus, or a way to search a corpus. For example, one route can split comparisons
    into sub-questions, while another searches all other questions directly. The evidence contains
    the name of the route, and the reason if the default route was used.

    Args:
        routes: Retrievers, functions and query engines by name, or pairs of a description and one
            of these. The model reads the names and descriptions.
        llm: The language model, in any form that ``LLM`` accepts.
        default: The route that is used if the model's choice is not usable or the chosen route
            fails. With ``on_error="raise"``, an error is raised instead. If None, the first route
            is the default.
        mode: See ``TransformRetriever``.
        top_k: See ``TransformRetriever``.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If a route is not a retriever, or the model is missing.
        ValueError: If ``routes`` is empty, or the default route is unknown.

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
            route for 'words' of "What is tea?"
    """

    name = "router"
    variant_name = "route"
    transform_type = QueryRouter

    def __init__(
        self,
        routes: Tools,
        llm: object,
        *,
        default: str | None = None,
        mode: StrategyMode | None = None,
        top_k: int | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        tools = named_tools(routes, "route")
        descriptions = {name: text for name, (text, _) in tools.items()}
        transform = self.transform_of(
            llm,
            routes=descriptions,
            default=default,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        super().__init__(
            tools,
            transform,
            mode=mode,
            top_k=top_k,
        )
        self.default = next(iter(tools)) if default is None else default

    async def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search the chosen route of each query. If it fails, search the default route."""
        rankings = await self.search_groups(variants, limit, filters)
        retried = []
        for (query, group), ranking in zip(variants, rankings, strict=True):
            more_routes = QueryVariants(())
            failed = all(result.error is not None for result in ranking)
            keeps = self.query_transform.on_error == "keep"
            if keeps and failed and self.default not in group.tools:
                more_routes = QueryVariants((query,), tools=(self.default,))
            retried.append((query, more_routes))
        more = await self.search_groups(retried, limit, filters)
        rankings = [[*ranking, *new] for ranking, new in zip(rankings, more, strict=True)]
        for (query, _), ranking in zip(variants, rankings, strict=True):
            self.check_failures(query, ranking)
        return rankings
