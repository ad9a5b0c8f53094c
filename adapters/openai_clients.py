"""The clients of one OpenAI-compatible server: one to wait for, and one for each event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from .extras import extra

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
