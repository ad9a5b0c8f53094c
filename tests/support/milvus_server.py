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


# What its launcher does before it starts the server. The launcher itself would take other ports
# where connections of a killed server linger; and by default collections are loaded only when
# the sessions of that server have ended, after 30 seconds.
_PREPARE = """
import sys
import milvus
config = milvus.MilvusServerConfig(data_dir=sys.argv[1])
config.set("common.session.ttl", "5")
config.set("log.stdout", "false")
config.resolve()
milvus._initialize_data_files(sys.argv[1])
"""


class RunningMilvus:
    """A server, and what it has on its disk.

    Attributes:
        address: Its address.
    """

    address = _ADDRESS

    def __init__(self, launcher: Path, folder: Path) -> None:
        self._folder = folder / "milvus"
        python = launcher.absolute().with_name("python")
        subprocess.run([python, "-c", _PREPARE, self._folder], check=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        programs = self._folder / "bin"
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [programs / "milvus", "run", "standalone"],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={
                    **os.environ,
                    "DEPLOY_MODE": "STANDALONE",
                    "LD_LIBRARY_PATH": str(programs),
                },
                start_new_session=True,
            )
        self._wait()

    def _wait(self) -> None:
        from nodekin.adapters.engines.index_engine import EngineUnavailableError
        from nodekin.adapters.engines.milvus import MilvusEngine

        end = time.monotonic() + _PATIENCE
        while True:
            engine = MilvusEngine(f"{self.address}?timeout=5")
            try:
                engine.version_token("nodekin_none")
            except EngineUnavailableError:
                assert self._process is not None
                assert self._process.poll() is None, f"Milvus has ended: see {self._folder}"
                assert time.monotonic() < end, f"Milvus doesn't start: see {self._folder}"
                time.sleep(0.2)
            else:
                return
            finally:
                engine.close()

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_PATIENCE)


@contextmanager
def running_milvus(folder: Path) -> Iterator[RunningMilvus]:
    pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    launcher = os.environ.get("MILVUS_SERVER")
    if not launcher:
        pytest.skip("no Milvus server in MILVUS_SERVER; `make test-milvus` starts one, and tests")
    server = RunningMilvus(Path(launcher), folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
