"""Put what was found in a better order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ..output import OutputFormat, check_output, check_top_k, formatted
from ..scored_node import ScoredNode
from ..trace import stage
from .registry import get_reranker
from .reranks import RerankError, Reranks
from .score_cuts import above, check_cuts


class Reranker:
    """Rerank or filter results: ``reranker(results, query)``.

    Choose ``RerankRetriever`` to have a retriever that does so with everything it finds.

    Args:
        reranker: A name (``"ModuleReranker"`` scores by a cross-encoder, ``"KeywordFilter"``
            looks for keywords, or what ``@register_reranker`` made known), a function that was
            registered, or an object with ``rerank``.
        top_k: How many results at most; None for all that stay.
        cut_off: Keeps scores that are this or more.
        relative_cut: Keeps scores that are at least this share of the top score; see ``above``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        name: What stages, logs and errors call it; the reranker's own name if left out.
        **settings: Settings of a reranker that was named: ``model=...``, ``required=[...]``.

    Raises:
        TypeError: If it is no reranker, has no such setting or lacks one it needs.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea, tea, tea.", "Green tea is not fermented."])
        >>> found = Retriever(graph, "ROOT")("tea")
        >>> model = lambda query, texts: [float("green" in text.lower()) for text in texts]
        >>> reranker = Reranker("ModuleReranker", model=model, top_k=1, output_format="content")
        >>> reranker(found, "Which tea is green?")
        ['Green tea is not fermented.']
    """

    def __init__(
        self,
        reranker: str | Reranks | Callable[..., Any],
        *,
        top_k: int | None = None,
        cut_off: float | None = None,
        relative_cut: float | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        name: str | None = None,
        **settings: Any,
    ) -> None:
        self.reranker = get_reranker(reranker, settings)
        self.top_k = None if top_k is None else check_top_k(top_k)
        check_cuts(cut_off, relative_cut)
        self.cut_off = cut_off
        self.relative_cut = relative_cut
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join
        self.name = name or self.reranker.name

    def __repr__(self) -> str:
        return f"Reranker({self.name!r}, top_k={self.top_k})"

    def __call__(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: Any,
    ) -> Any:
        """Rerank, and return the results in the ``output_format``."""
        reranked = self.rerank(results, query, top_k=top_k, **settings)
        return formatted(reranked, self.output_format, self.join)

    def rerank(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: Any,
    ) -> list[ScoredNode]:
        """Return the results that stay, best first; equal scores keep their order.

        Args:
            results: What was found; nothing gives nothing, and asks no model.
            query: What it was found for.
            top_k: In place of the reranker's own.
            **settings: For this call, in place of the reranker's own: ``required=[...]``.

        Raises:
            TypeError: If the query is no text, or the reranker has no such setting for a call.
            RerankError: If the model or function fails, or its scores are no finite numbers.
        """
        limit = self._check(query, top_k)
        with stage("rerank", reranker=self.name, query=query, candidates=len(results)) as done:
            made = self.reranker.rerank(results, query, **settings) if results else []
            kept = self._kept(made, limit)
            done.facts["results"] = len(kept)
        return kept

    async def arerank(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: Any,
    ) -> list[ScoredNode]:
        """Do the same without blocking the event loop.

        By the reranker's own async form where it has one, else in a thread.
        """
        limit = self._check(query, top_k)
        with stage("rerank", reranker=self.name, query=query, candidates=len(results)) as done:
            own = getattr(self.reranker, "arerank", None)
            if not results:
                made: Sequence[ScoredNode] = []
            elif own is not None:
                made = await own(results, query, **settings)
            else:
                made = await asyncio.to_thread(self.reranker.rerank, results, query, **settings)
            kept = self._kept(made, limit)
            done.facts["results"] = len(kept)
        return kept

    def _check(self, query: str, top_k: int | None) -> int | None:
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        return self.top_k if top_k is None else check_top_k(top_k)

    def _kept(self, made: Any, limit: int | None) -> list[ScoredNode]:
        if not isinstance(made, Sequence) or not all(isinstance(r, ScoredNode) for r in made):
            raise RerankError(
                f"{self.name!r} returned {made!r:.80}; rerank() returns a list of ScoredNode"
            )
        return above(made, self.cut_off, self.relative_cut)[:limit]
