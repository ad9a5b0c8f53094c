"""Rerank with any server that has a rerank endpoint in the manner of Jina and Cohere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..nodegraph.locking import mutex
from ..retrievers.protocols import RerankError
from .extras import extra
from .openai import Clients, check_at_least, check_model

with extra("openai", "openai"):
    from openai import AsyncOpenAI, OpenAI


class RerankEndpoint:
    """Score passages with a model behind ``/rerank``: Jina, Cohere, vLLM, llama.cpp, others.

    ``Reranker("ModuleReranker", model=RerankEndpoint("bge-reranker-v2-m3", base_url=...))``.
    OpenAI has no such endpoint of its own, but its client speaks the protocol around it, waits
    and tries again.

    Args:
        model: The model that scores.
        client: What calls the server. Left out, one is made of what follows.
        base_url: The server's address up to ``/rerank``: ``https://api.jina.ai/v1``,
            ``https://api.cohere.com/v2``, ``http://127.0.0.1:8000/v1``.
        api_key: The key for it. What ``OPENAI_API_KEY`` holds is not sent to it.
        async_client: What calls the server for ``aretrieve``, in one event loop. Left out, one is
            made for each event loop, unless you give a client: then that one is used in a thread.
        timeout: Seconds that the answer to a batch may take in all, whatever the server does:
            retries and waiting for them included. None leaves it to the client.
        max_retries: How often a request that failed is tried again.
        batch_size: How many passages are sent at once.
        **body: Further fields of the request, such as ``return_documents=False``.

    Attributes:
        usage: How many tokens the server has counted so far, if it counts.

    Raises:
        TypeError: If a client is not what it should be.
        ValueError: If the model has no name, a number is out of range, there is no server, or
            there is both a client and what to make one of.

    Example:
        >>> endpoint = RerankEndpoint("bge-reranker-v2-m3", base_url="http://127.0.0.1:8000/v1")
        >>> endpoint
        RerankEndpoint('bge-reranker-v2-m3', 'http://127.0.0.1:8000/v1/')
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        async_client: AsyncOpenAI | None = None,
        timeout: float | None = 60.0,
        max_retries: int | None = None,
        batch_size: int = 100,
        **body: Any,
    ) -> None:
        check_model(model)
        check_at_least(1, batch_size=batch_size)
        if client is None and not base_url:
            raise ValueError(
                "base_url says which server reranks, such as 'http://127.0.0.1:8000/v1'; OpenAI "
                "has no reranker"
            )
        check_at_least(0, max_retries=max_retries)
        self.model = model
        self.batch_size = batch_size
        self.body = {**body, "model": model}
        self._clients = Clients(
            client,
            async_client,
            {"api_key": "none", "max_retries": 2},
            timeout=timeout,
            base_url=base_url,
            api_key=api_key or None,
            max_retries=max_retries,
        )
        self._client = self._clients.client
        self._lock = mutex()
        self.usage = 0

    def __repr__(self) -> str:
        return f"RerankEndpoint({self.model!r}, {str(self._client.base_url)!r})"

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            RerankError: If its answer does not have a score for each passage.
        """
        scores: list[float] = []
        for batch in self._batches(texts):
            scores += self._read(self._clients.call(self._request(query, batch)), batch)
        return scores

    async def arerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Do the same without blocking the event loop."""
        scores: list[float] = []
        for batch in self._batches(texts):
            scores += self._read(await self._clients.acall(self._request(query, batch)), batch)
        return scores

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        for start in range(0, len(texts), self.batch_size):
            yield list(texts[start : start + self.batch_size])

    def _request(self, query: str, texts: Sequence[str]) -> Callable[[Any], Any]:
        body = {**self.body, "query": query, "documents": texts}
        return lambda client: client.post("/rerank", cast_to=object, body=body)

    def _read(self, answer: Any, texts: Sequence[str]) -> list[float]:
        """Return the scores in the order of the passages, which the answer need not have."""
        try:
            items = answer["results"] if "results" in answer else answer["data"]
            scores = {
                item["index"]: float(item.get("relevance_score", item.get("score")))
                for item in items
            }
            complete = len(items) == len(texts) and set(scores) == set(range(len(texts)))
        except (KeyError, TypeError, ValueError):
            complete = False
        if not complete:
            raise RerankError(
                f"the server answered {answer!r:.120} for {len(texts)} passages; model "
                f"{self.model!r} has to give results with an index and a relevance_score for each: "
                "look at base_url, or give CrossEncoderReranker a function of your own"
            )
        usage = answer.get("usage") or {}
        with self._lock:
            self.usage += usage.get("total_tokens") or usage.get("prompt_tokens") or 0
        return [scores[at] for at in range(len(texts))]
