"""A real Milvus server, in a process of its own, that can be killed and started again.

It listens on all interfaces, so that it is started only where a test runs without a network:
``make test-milvus`` does so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_ADDRESS = "milvus://127.0.0.1:19530"

_PATIENCE = 300  # seconds, on a busy machine


class RunningMilvus:
    """A server, and what it has on its disk.

    Attributes:
        address: Its address.
    """

    address = _ADDRESS

    def __init__(self, command: str, folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._command, "--data", str(self._folder / "data")],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait()

    def _wait(self) -> None:
        from pymilvus import MilvusClient

        end = time.monotonic() + _PATIENCE
        while True:
            try:
                client = MilvusClient("http://127.0.0.1:19530", timeout=5)
                client.list_collections(timeout=5)
            except Exception:
                assert time.monotonic() < end, f"Milvus doesn't start: see {self._folder}"
                time.sleep(0.2)
            else:
                client.close()
                return

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)  # the server is a child of its launcher
        self._process.wait(_PATIENCE)


@contextmanager
def running_milvus(folder: Path) -> Iterator[RunningMilvus]:
    pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    command = os.environ.get("MILVUS_SERVER")
    if not command:
        pytest.skip("no Milvus server in MILVUS_SERVER; `make test-milvus` starts one, and tests")
    server = RunningMilvus(command, folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
