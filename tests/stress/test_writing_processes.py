"""Processes and threads change one graph file randomly. The result equals a rebuilt graph.

This file is also the program of the processes. Its commands are lines: ``work SEED`` lets each
thread perform operations on its documents; ``check`` compares the graph with a rebuilt graph. The
answer is a line: ``ok`` or an error.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.fresh_builds import GROUPS, Declaration, declare, whole
from support.stress import Tally, amount

from nodekin.nodegraph import Document, Embedder, EntityExtractor, NodeGraph
from nodekin.retrievers import AutoMergeRetriever, LinkRetriever, Retriever, WindowRetriever

TEXTS = [
    *("The tea of Anna is green.\nThe cup is hot.", "The tea of Anna is cold.", "Water is wet."),
    *("The water of Anna is wet.\nThe tea of Boris is black.", "tea cup\nriver", "", "cup"),
]
QUERIES = ("tea", "Whose tea is green?", "cup of water")
STEPS = 12


class Entities(EntityExtractor):
    __name__ = "entities"  # the version of the group


ALL_GROUPS: dict[str, Declaration] = {**GROUPS, "entity": (Entities(), {})}


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), *(text.count(letter) + 0.5 for letter in "aet")] for text in texts]


def opened(store: str | None) -> NodeGraph:
    model = Embedder(embed, "lengths")
    graph = NodeGraph(store=store, embed=model, on_error="skip", progress=False)
    declare(graph, ALL_GROUPS)
    return graph


def answers_of(graph: NodeGraph) -> list[list[tuple[str, float]]]:
    retrievers: list[Any] = [
        Retriever(graph, "line"),
        Retriever(graph, "word", "cosine"),
        Retriever(graph, "word", target="ROOT"),
        LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity"),
    ]
    return [
        [(result.node.id, round(result.score, 5)) for result in retriever(query)]
        for retriever in retrievers
        for query in QUERIES
    ]


class Work:
    """The threads of a process, each with documents of which it knows the texts."""

    def __init__(self, store: str, name: str, threads: int) -> None:
        self.store, self.name = store, name
        self.graph = opened(store)
        self.threads = [f"{name}{number}" for number in range(threads)]
        self.texts: dict[str, str] = {}
        words = Retriever(self.graph, "line")
        self.searches: list[Callable[[str], Any]] = [
            words,
            Retriever(self.graph, "word", "cosine"),
            Retriever(self.graph, "line", filters={"n": [1, 2]}),
            AutoMergeRetriever(Retriever(self.graph, "word")),
            WindowRetriever(words),
            LinkRetriever(Retriever(self.graph, "ROOT"), self.graph, via="entity"),
        ]

    def work(self, seed: str) -> None:
        def repeat(thread: str) -> None:
            rng = random.Random(f"{seed} {thread}")
            for _ in range(STEPS):
                self.step(thread, rng)

        with ThreadPoolExecutor(len(self.threads)) as pool:
            list(pool.map(repeat, self.threads))

    def step(self, thread: str, rng: random.Random) -> None:
        """Perform one operation."""
        ids = [f"{thread}-{number}" for number in range(4)]
        i, kind = rng.choice(ids), rng.random()
        if kind < 0.4:
            for each in rng.sample(ids, 2):
                self.put(each, rng.choice(TEXTS), rng)
        elif kind < 0.6 and i in self.texts:  # removed or edited, and restored
            text = self.texts[i]
            if kind < 0.5:
                self.graph.remove(i)
            else:
                self.put(i, rng.choice(TEXTS), rng)
                self.graph.build("entity")
            self.put(i, text, rng)
        elif kind < 0.75:
            self.graph.build(rng.choice(list(ALL_GROUPS)))
        elif kind < 0.95:
            rng.choice(self.searches)(rng.choice(QUERIES))
        elif kind < 0.98:
            self.graph.compact()
        else:
            self.graph.close()

    def put(self, i: str, text: str, rng: random.Random) -> None:
        self.graph.add(Document(text, {"n": rng.randrange(3)}, id=i))
        self.texts[i] = text

    def check(self) -> None:
        """Compare the open graph and a newly opened graph with a graph rebuilt in memory."""
        nodes = self.graph.nodes("ROOT")
        given = {n.id: n.text for n in nodes if n.id.startswith(self.name)}
        assert given == self.texts, "documents are lost or restored"
        rebuilt = opened(None)
        rebuilt.add([Document(node.text, node.own_metadata, id=node.id) for node in nodes])
        expected, answers = whole(rebuilt, ALL_GROUPS), answers_of(rebuilt)
        for graph in (self.graph, opened(self.store)):
            known = whole(graph, ALL_GROUPS)
            for part, value in expected.items():
                assert known[part] == value, f"{part}: {known[part]} instead of {value}"
            assert answers_of(graph) == answers, "search results differ from the rebuilt graph"


def main(store: str, name: str, threads: str) -> None:
    work = Work(store, name, int(threads))
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            getattr(work, command)(*arguments)
            answer = "ok"
        except BaseException as error:
            answer = repr(error).replace("\n", " ")
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def told(processes: list[subprocess.Popen[str]], line: str) -> None:
    """Send a command to all processes, and check all answers."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    answers = [process.stdout.readline().strip() for process in processes if process.stdout]
    assert answers == ["ok"] * len(processes)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "threads"), [(1, 4), (2, 2), (3, 1)])
def test_writing_processes_leave_graph_equal_to_rebuilt_graph(
    tmp_path: Path, count: int, threads: int
) -> None:
    start = int(os.environ.get("NODEKIN_SEED") or random.randrange(10**6))
    tally = Tally(f"rounds of {count} processes of {threads} threads, NODEKIN_SEED={start}")
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(tmp_path / "graph"), f"p{n}t", str(threads)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    try:
        for number in range(amount(3, 1_000)):
            with tally.trying(f"round {number}"):
                told(processes, f"work {start}-{number}")
                for process in processes:  # separately, so that no process writes during a check
                    told([process], "check")
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    tally.check()


if __name__ == "__main__":
    main(*sys.argv[1:])
