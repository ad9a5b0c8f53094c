"""The base classes of engines: they have tables, connect at first use, and can be pickled."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar, cast

from ...nodegraph.store import NodeStore
from .engine_table import delete_unused, drop_outdated
from .engine_vectors import EngineVectors
from .engine_words import EngineWords
from .index_engine import IndexEngine, WordEngine


class BaseEngine:
    """Give tables to an engine that has the methods of ``IndexEngine``, or of ``WordEngine``."""

    searches_words: Any = False
    """Whether it has words, too; else each process searches them."""

    def vector_table(self: IndexEngine, store: NodeStore, group: str, *names: str) -> EngineVectors:
        """Return the table of the vectors of a group; see ``SearchEngine``."""
        return EngineVectors(store, self, group, *names)

    def word_table(self, store: NodeStore, group: str, *names: str) -> EngineWords | None:
        """Return the table of the words of a group; None where each process searches them."""
        if not self.searches_words:
            return None
        return EngineWords(store, cast("WordEngine", self), group, *names)

    def compact(self: IndexEngine, store: NodeStore) -> None:
        """Drop what is outdated in the engine, and what the store has of collections that are gone.

        An engine that can't be reached keeps it until the next time.
        """
        drop_outdated(store, self)
        delete_unused(store)


class Address(Protocol):
    """Where an engine is."""

    @property
    def label(self) -> str:
        """The address without a password."""
        ...


AddressT = TypeVar("AddressT", bound=Address)

ClientT = TypeVar("ClientT")


class ConnectedEngine(BaseEngine, ABC, Generic[AddressT, ClientT]):
    """Connect to an address when it is first used, and again after ``close`` or unpickling.

    Args:
        address: The address, as users write it.
        parsed: The same, read.
    """

    def __init__(self, address: str, parsed: AddressT) -> None:
        self.address = address
        self._address = parsed
        self._set_up()

    def _set_up(self) -> None:
        """Set what is not pickled."""
        self._connecting = threading.Lock()
        self._client: ClientT | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "_address": self._address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label!r})"

    @property
    def label(self) -> str:
        """What messages call it."""
        return self._address.label

    @abstractmethod
    def _connect(self) -> ClientT:
        """Return a new client.

        Raises:
            ImportError: If the client is not installed.
            StoreError: If the server is too old, or of another kind.
        """

    @abstractmethod
    def _disconnect(self, client: ClientT) -> None:
        """Close a client."""

    def _connected(self) -> ClientT:
        with self._connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def close(self) -> None:
        """Close connections; the next use opens them again."""
        with self._connecting:
            client, self._client = self._client, None
        if client is not None:
            self._disconnect(client)
