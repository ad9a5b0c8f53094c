"""Many threads at one graph in a file: every answer is that of one state, and of a recent one."""

import asyncio
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph
from nodekin.nodegraph.node import LinkedText
from nodekin.retrievers import Retriever, RetrieverSettings

STATES = 60
ANSWERS = 3
"""How many answers each state waits for before the next change."""
PATIENCE = 600.0
"""Seconds after which something that should happen is taken to hang."""
WORDS = ["tea", "green", "black", "leaf", "river", "cup", "milk", "sugar"]
QUERIES = ["tea", "green river", "milk sugar cup"]

Documents = dict[str, tuple[str, int]]
Answer = list[tuple[Any, ...]]


@dataclass
class State:
    """The documents as they were, and when they were being written and written over."""

    documents: Documents
    began: float
    ended: float = float("inf")


class Seen(NamedTuple):
    """An answer, when it was asked for, and when it was there."""

    question: tuple[str, str]
    asked: float
    answered: float
    answer: Answer


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Let threads take turns often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


def letters(texts: Sequence[str]) -> list[list[float]]:
    return [[text.count(c) + 0.25 for c in "aeiklmrtn0123"] for text in texts]


def everything(lines: list[Node]) -> list[LinkedText]:
    return [LinkedText(f"{len(lines)} lines, {lines[0].text}", to=lines)] if lines else []


def opened(store: Path | None) -> NodeGraph:
    graph = NodeGraph(store=store, embed=Embedder(letters, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line", num_workers=2)
    graph.create_node_group("all", everything, parent="line", scope="group")
    return graph


def questions(graph: NodeGraph) -> dict[str, Callable[[str], Answer]]:
    """Return the ways of asking; each looks at all that a mixture of states would show in."""

    def listed(_: str) -> Answer:
        return [(n.id, n.text, n.metadata["step"], n.parent_id) for n in graph.nodes("word")]

    def results(found: Any) -> Answer:
        return [(r.node.id, r.node.text, dict(r.node.metadata), r.score) for r in found]

    def held(query: str) -> Answer:
        with graph.reader.reading("word", "all"):
            whole = [(n.text, len(graph.linked(n))) for n in graph.nodes("all")]
            return [*whole, *listed(query), *graph.find("ROOT")(graph.nodes("word"))]

    bm25 = Retriever(graph, "line", "bm25", top_k=50)
    lifted = Retriever(
        graph, "word", "bm25", target="ROOT", settings=RetrieverSettings(lift="sum"), top_k=50
    )
    cosine = Retriever(graph, "line", "cosine", top_k=50)
    return {
        "nodes": listed,
        "held": held,
        "bm25": lambda query: results(bm25.retrieve(query)),
        "lifted": lambda query: results(lifted.retrieve(query)),
        "cosine": lambda query: results(cosine.retrieve(query)),
        "async": lambda query: results(asyncio.run(lifted.aretrieve(query))),
    }


class Stress:
    """A graph, the truth about it, and threads that change it and ask it."""

    def __init__(self, path: Path) -> None:
        self.graph = opened(path)
        self.ways = questions(self.graph)
        self.states = [State({}, 0.0)]
        self.seen: list[Seen] = []
        self.errors: list[BaseException] = []
        self.over = threading.Event()

    def write(self) -> None:
        """Change many documents at once, again and again; only this thread changes them."""
        choose = random.Random(1)
        for step in range(1, STATES + 1):
            seen = len(self.seen)
            while len(self.seen) < seen + ANSWERS and not self.over.is_set():
                time.sleep(0.001)
            now = dict(self.states[-1].documents)
            kind = choose.choice(["all", "all", "some", "remove"]) if now else "all"
            if kind == "remove":
                gone = choose.sample(list(now), min(len(now), 3))
                for i in gone:
                    del now[i]
                self.change(now, self.graph.remove, gone)
                continue
            few = choose.sample(list(now), len(now) // 2)
            ids = few if kind == "some" else [f"d{i}" for i in range(choose.randint(4, 12))]
            new = {i: (self.text(choose, step), step) for i in ids}
            now.update(new)
            documents = [Document(text, {"step": of}, id=i) for i, (text, of) in new.items()]
            self.change(now, self.graph.update if kind == "some" else self.graph.add, documents)
        while {seen.question[0] for seen in self.seen} < set(self.ways) and not self.over.is_set():
            time.sleep(0.01)
        self.over.set()

    def change(self, now: Documents, write: Callable[[Any], Any], given: Sequence[Any]) -> None:
        self.states.append(State(now, time.monotonic()))
        write(given)
        self.states[-2].ended = time.monotonic()

    @staticmethod
    def text(choose: random.Random, step: int) -> str:
        lines = (" ".join(choose.choices(WORDS, k=3)) for _ in range(choose.randint(1, 3)))
        return "\n".join([*lines, f"tea of {step}"])

    def disturb(self) -> None:
        """Do what changes no answer."""
        choose = random.Random(2)
        while not self.over.is_set():
            kind = choose.choice(["build", "link", "unlink", "compact", "groups"])
            source, target = choose.sample([f"d{i}" for i in range(12)], 2)
            if kind == "build":
                self.graph.build(choose.choice(["line", "word", "all"]))
            elif kind == "compact":
                self.graph.compact()
            elif kind == "groups":
                assert {"line", "word", "all"} < set(self.graph.groups)
            else:
                try:
                    getattr(self.graph, kind)(source, target)
                except LookupError:  # one of them has been removed
                    assert kind == "link"
            time.sleep(0.02)

    def ask(self, seed: int, ways: Sequence[str]) -> None:
        choose = random.Random(seed)
        while not self.over.is_set():
            question = choose.choice(ways), choose.choice(QUERIES)
            asked = time.monotonic()
            answer = self.ways[question[0]](question[1])
            self.seen.append(Seen(question, asked, time.monotonic(), answer))

    def ask_in_tasks(self) -> None:
        """Ask many things at a time in one thread's event loop."""
        retriever = Retriever(self.graph, "line", "bm25", top_k=50)

        async def one(query: str) -> None:
            asked = time.monotonic()
            found = await retriever.aretrieve(query)
            answer = [(r.node.id, r.node.text, dict(r.node.metadata), r.score) for r in found]
            self.seen.append(Seen(("bm25", query), asked, time.monotonic(), answer))

        async def all_of_them() -> None:
            while not self.over.is_set():
                await asyncio.gather(*(one(query) for query in QUERIES * 2))

        asyncio.run(all_of_them())

    def guarded(self, run: Callable[..., None], *given: Any) -> None:
        try:
            run(*given)
        except BaseException as error:
            self.errors.append(error)
            self.over.set()

    def run(self) -> None:
        plan: list[tuple[Any, ...]] = [(self.write,), (self.disturb,), (self.ask_in_tasks,)]
        plan += [(self.ask, 3, ["bm25", "lifted"]), (self.ask, 4, ["nodes", "held"])]
        plan += [(self.ask, 5, ["cosine", "async", "bm25"])]
        threads = [threading.Thread(target=self.guarded, args=each, daemon=True) for each in plan]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
        if self.errors:
            raise self.errors[0]


@pytest.mark.slow
def test_every_answer_under_load_is_that_of_one_state(tmp_path: Path) -> None:
    stress = Stress(tmp_path / "graph")
    stress.run()
    states = stress.states
    assert len(states) == STATES + 1
    assert {seen.question[0] for seen in stress.seen} == set(stress.ways)

    truths: dict[int, dict[str, Callable[[str], Answer]]] = {}
    expected: dict[tuple[int, tuple[str, str]], Answer] = {}

    def truth(at: int, question: tuple[str, str]) -> Answer:
        """Ask a graph that never was anything else."""
        if at not in truths:
            graph = opened(None)
            documents = states[at].documents.items()
            graph.add([Document(text, {"step": of}, id=i) for i, (text, of) in documents])
            truths[at] = questions(graph)
        if (at, question) not in expected:
            expected[at, question] = truths[at][question[0]](question[1])
        return expected[at, question]

    spans = []
    for seen in stress.seen:
        possible = [
            at
            for at, state in enumerate(states)
            if state.began <= seen.answered and state.ended >= seen.asked
        ]
        spans.append(len(possible))
        assert any(same(seen.answer, truth(at, seen.question)) for at in possible), seen
    assert median(spans) < 5  # most had few states to choose from
    stress.graph.close()


def same(answer: Answer, truth: Answer) -> bool:
    """Compare answers; the last bits of a score may depend on how many vectors lie together."""
    if len(answer) != len(truth):
        return False
    return all(
        one == other
        or (
            isinstance(one, tuple)
            and one[:-1] == other[:-1]
            and one[-1] == pytest.approx(other[-1])
        )
        for one, other in zip(answer, truth, strict=True)
    )
