"""A relay to a PostgreSQL server that counts the round trips of its clients."""

import selectors
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlencode, urlsplit

NAME = ".s.PGSQL.5432"


class Relay:
    """A relay between clients and a PostgreSQL server that counts round trips.

    A round trip starts when a client sends data after it has received an answer.

    Args:
        uri: The address of the server, including the folder of its socket.
        folder: The folder for the socket of the relay.
    """

    def __init__(self, uri: str, folder: str) -> None:
        parts = urlsplit(uri)
        parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._server = f"{parameters['host']}/.s.PGSQL.{parameters.get('port', 5432)}"
        relayed = {**parameters, "host": folder, "port": "5432"}
        self.address = parts._replace(query=urlencode(relayed)).geturl()
        self.trips = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/{NAME}")
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            last = server
            while True:
                for key, _ in selector.select():
                    source = client if key.data is server else server
                    try:
                        data = source.recv(1 << 16)
                        key.data.sendall(data)
                    except OSError:
                        return
                    if not data:
                        return
                    if source is client and last is server:
                        self.trips += 1
                    last = source


@contextmanager
def relay(uri: str) -> Iterator[Relay]:
    folder = tempfile.mkdtemp(prefix="relay")  # the path of a socket must be short
    result = Relay(uri, folder)
    try:
        yield result
    finally:
        result.close()
        shutil.rmtree(folder)
