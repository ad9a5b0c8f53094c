"""Embed with any server that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from ..nodegraph import EmbeddingError
from .extras import extra

with extra("openai", "openai"):
    from openai import AsyncOpenAI, OpenAI


class OpenAIEmbedder:
    """Embed with a model behind OpenAI's ``/v1/embeddings``: OpenAI itself, vLLM, Ollama, others.

    ``NodeGraph(embed=OpenAIEmbedder("text-embedding-3-small"))``. Waiting and trying again are
    the client's (``OpenAI(timeout=..., max_retries=...)``).

    Args:
        model: The model that embeds passages.
        client: What calls the server, also an ``AzureOpenAI``. Left out, one is made, which reads
            ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` where the next two do not say it.
        base_url: The server's address, with ``/v1``.
        api_key: The key for it.
        async_client: What calls the server for ``aretrieve``, in one event loop. Left out, one is
            made for each event loop, unless you give a client: then that one is used in a thread.
        query_model: The model that embeds queries, where the server has another name for it.
        dimensions: Shortens the vectors; for models that can.
        batch_size: How many texts are sent at once.
        name: What the vectors are kept under; ``"openai"``, the model and the dimensions if left
            out. The server's address is no part of it: name it where two servers run different
            models under one name.

    Attributes:
        usage: How many tokens the server has counted so far.

    Raises:
        TypeError: If a client is not what it should be.
        ValueError: If a model has no name, a number is below 1, or there is both a client and
            what to make one of.
        openai.OpenAIError: If there is no key.

    Example:
        >>> embedder = OpenAIEmbedder("bge-m3", base_url="http://127.0.0.1:8000/v1", api_key="-")
        >>> embedder.name, embedder.usage
        ('openai bge-m3', 0)
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        async_client: AsyncOpenAI | None = None,
        query_model: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 64,
        name: str | None = None,
    ) -> None:
        query_model = model if query_model is None else query_model
        for field, value in (("model", model), ("query_model", query_model)):
            if not isinstance(value, str) or not value:
                raise ValueError(f"{field} is the name of a model, not {value!r:.80}")
        for field, number in (("dimensions", dimensions), ("batch_size", batch_size)):
            if number is not None and number < 1:
                raise ValueError(f"{field}={number!r} has to be 1 or more")
        if client is not None and (base_url is not None or api_key is not None):
            raise ValueError("base_url and api_key are the client's; give them, or a client")
        self.model = model
        self.query_model = query_model
        self.dimensions = dimensions
        self.batch_size = batch_size
        self.name = name or " ".join(["openai", model, *([str(dimensions)] if dimensions else [])])
        self._clients = Clients(client, async_client, base_url=base_url, api_key=api_key)
        self._client = self._clients.client
        self._lock = threading.Lock()
        self._usage = 0

    @property
    def usage(self) -> int:
        """How many tokens the server has counted so far."""
        return self._usage

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed passages.

        Raises:
            openai.OpenAIError: If the server can't be reached or refuses.
            EmbeddingError: If its answer does not say which vector is whose.
        """
        return self._read(self._client.embeddings.create(**self._asked(self.model, texts)))

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed queries; raises what ``embed`` does."""
        return self._read(self._client.embeddings.create(**self._asked(self.query_model, texts)))

    async def aembed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed queries without blocking the event loop."""
        client = self._clients.of_loop()
        if client is None:
            return await asyncio.to_thread(self.embed_queries, texts)
        return self._read(await client.embeddings.create(**self._asked(self.query_model, texts)))

    def _asked(self, model: str, texts: Sequence[str]) -> dict[str, Any]:
        asked = {"model": model, "input": list(texts), "encoding_format": "float"}
        return asked if self.dimensions is None else {**asked, "dimensions": self.dimensions}

    def _read(self, answer: Any) -> list[list[float]]:
        """Return the vectors in the order of the texts, which the answer need not have."""
        tokens = getattr(answer.usage, "prompt_tokens", None) or 0
        with self._lock:
            self._usage += tokens
        places = [item.index for item in answer.data]
        if sorted(places) != list(range(len(places))):
            raise EmbeddingError(
                f"the server's vectors of model {self.model!r} are numbered {places!r:.80}, which "
                f"has to be 0 to {len(places) - 1}, each once; this server does not speak OpenAI's "
                "protocol: give a function of your own to Embedder"
            )
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]


with extra("openai", "openai"):
    from openai import AsyncOpenAI, OpenAI


class Clients:
    """Hold the clients that were given, or make them.

    Beside a client that was given no async one is made: what it asks with is not known.

    Args:
        client: The client, None to make one.
        async_client: The async client; None for one a loop, where ``client`` is None too.
        **settings: What clients are made of: ``base_url``, ``api_key``.

    Raises:
        TypeError: If an async client is given for the other one, or the other way round.
        openai.OpenAIError: If there is no key.
    """

    def __init__(
        self, client: OpenAI | None, async_client: AsyncOpenAI | None, **settings: Any
    ) -> None:
        check_clients(client, async_client)
        self.client = client or OpenAI(**settings)
        self._given = async_client
        self._settings = None if client else settings
        self._of_loops: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._lock = threading.Lock()

    def of_loop(self) -> AsyncOpenAI | None:
        """Return the async client for the running loop, as connections serve no other one.

        None where there is none to be had, and the work is for a thread.
        """
        if self._given is not None or self._settings is None:
            return self._given
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._of_loops:
                alive = {k: v for k, v in self._of_loops.items() if not k.is_closed()}
                self._of_loops = {**alive, loop: AsyncOpenAI(**self._settings)}
            return self._of_loops[loop]


def check_clients(client: object, async_client: object) -> None:
    """Check that each client is what it is given for.

    Raises:
        TypeError: If one is given for the other.
    """
    if isinstance(client, AsyncOpenAI):
        raise TypeError("client is an async one; give it as async_client, beside an OpenAI()")
    if isinstance(async_client, OpenAI):
        raise TypeError("async_client is not async; give it as client")
