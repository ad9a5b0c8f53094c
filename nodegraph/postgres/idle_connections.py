"""Connections of this process that wait for their next use, by any graph of the same server."""

from __future__ import annotations

import os
import threading
from weakref import WeakValueDictionary

from .address import PostgresAddress
from .server_connection import ServerConnection

_IDLE = 8  # connections that wait, at most


class IdleConnections:
    """Hold connections that nobody uses, of all graphs with the same address but for the schema.

    Fifty graphs on one server need not have fifty connections. One that comes from another graph
    is as new: see ``ServerConnection.serve``.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._connections: list[ServerConnection] = []

    def __len__(self) -> int:
        return len(self._connections)

    def __del__(self) -> None:
        if self._pid == os.getpid():  # others belong to the process that opened them
            self.close()

    def take(self, schema: str) -> ServerConnection | None:
        """Return a connection, rather one that this schema has used; None where there is none."""
        with self._lock:
            connections = self._connections
            for at in range(len(connections) - 1, -1, -1):
                if connections[at].schema == schema:
                    return connections.pop(at)
            return connections.pop(0) if connections else None

    def put(self, connection: ServerConnection) -> None:
        """Let a connection wait; close the one that has waited longest where there are many."""
        with self._lock:
            self._connections.append(connection)
            surplus = self._connections[:-_IDLE]
            del self._connections[:-_IDLE]
        for other in surplus:
            other.close()

    def close(self, schema: str | None = None) -> None:
        """Close the connections that a schema has used, or all."""
        with self._lock:
            closing = [c for c in self._connections if schema in (None, c.schema)]
            self._connections = [c for c in self._connections if c not in closing]
        for connection in closing:
            connection.close()


_OF_SERVERS: WeakValueDictionary[tuple[int, str], IdleConnections] = WeakValueDictionary()


def idle_connections(address: PostgresAddress) -> IdleConnections:
    """Return the idle connections of this process to a server, by the same user."""
    key = os.getpid(), address.conninfo
    idle = _OF_SERVERS.get(key)
    return _OF_SERVERS.setdefault(key, IdleConnections()) if idle is None else idle
