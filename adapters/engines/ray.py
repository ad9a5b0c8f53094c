"""Run transforms and embedding models on the machines of a Ray cluster."""

from __future__ import annotations

import queue
import threading
from typing import Any

from ...nodegraph.workers.process_workers import RemoteWorkers, WorkerEndedError
from ...nodegraph.workers.remote_calls import CallServer, converse
from ..extras import extra


class RayWorkers(RemoteWorkers):
    """Call transforms and embedding models in actors of a Ray cluster.

    Choose it over ``workers=8`` where one machine is not enough, or where the accelerators are on
    others. The graph, its store and what is written stay where ``build`` is called. An actor gets
    nodes and returns what is made of them, and keeps what it has loaded, a model say, until
    ``close``, for later builds, too. nodekin and what a transform imports are installed on all
    machines, or come by Ray's ``runtime_env``. A call whose machine is lost is made once more on
    another one.

    Args:
        count: How many actors. None for one on each CPU of the cluster as it is now. All of them
            have to find room: actors that ask for more than there is are waited for.
        **options: Those of an actor in Ray: ``num_cpus``, ``num_gpus``, ``resources``,
            ``runtime_env``. They are spread over the machines unless ``scheduling_strategy`` says
            otherwise.

    Raises:
        ImportError: If Ray is not installed.
        ConnectionError: If there is no cluster at the address that ``ray.init`` takes, from the
            environment, where the program has not called it.
    """

    def __init__(self, count: int | None = None, **options: Any) -> None:
        with extra("ray", "ray"):
            import ray

        if not ray.is_initialized():
            ray.init()
        if count is None:
            resources: dict[str, float] = ray.cluster_resources()
            count = max(1, int(resources.get("CPU", 1)))
        super().__init__(count, attempts=2)
        self._actors = ray.remote(_Actor).options(**{"scheduling_strategy": "SPREAD", **options})
        self._ray = ray
        self._functions: dict[str, Any] = {}  # by key, as objects of Ray: once on each machine

    def start(self) -> _RayWorker:
        """Start an actor."""
        return _RayWorker(self._ray, self._actors.remote())

    def send(self, worker: Any, key: str, function: bytes) -> None:
        """Let an actor load a function from the machine that it is on."""
        if key not in self._functions:
            self._functions[key] = self._ray.put(function)
        converse(lambda _: worker.load(key, self._functions[key]), ("load", key, b""))

    def close(self) -> None:
        """End the actors, also in the middle of calls."""
        super().close()
        self._functions.clear()


class _Actor:
    """Serve calls in a thread, so that a method may return while a call waits for its caller."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        server = CallServer(self._messages.get, self._replies.put)
        threading.Thread(target=server.serve, daemon=True).start()

    def exchange(self, message: bytes) -> bytes:
        self._messages.put(message)
        return self._replies.get()

    def load(self, key: str, function: bytes) -> bytes:
        from ...nodegraph.workers.remote_calls import to_bytes

        return self.exchange(to_bytes(("load", key, function)))


class _RayWorker:
    """An actor, as a worker."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    def exchange(self, message: bytes) -> bytes:
        return self._get(self._actor.exchange.remote(message))

    def load(self, key: str, function: Any) -> bytes:
        return self._get(self._actor.load.remote(key, function))

    def _get(self, reply: Any) -> bytes:
        try:
            received: bytes = self._ray.get(reply)
        except self._ray.exceptions.RayTaskError:  # of this file
            raise
        except self._ray.exceptions.RayActorError as error:
            reason = str(error).strip().splitlines()[0]
            raise WorkerEndedError(f"the Ray actor that worked on it ended: {reason}") from error
        return received

    def close(self) -> None:
        self._ray.kill(self._actor)
