"""A process whose threads change a graph at random; started by a test, told what to do by lines.

``work SEED`` lets each thread make some operations on documents of its own. ``check``, while all
processes are at rest, compares the graph with one built anew. The answer is a line: ``ok``, or an
error.
"""

from __future__ import annotations

import random
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from nodekin.nodegraph import Document, Embedder, EntityExtractor, NodeGraph
from nodekin.retrievers import AutoMergeRetriever, LinkRetriever, Retriever, WindowRetriever
from support.built_anew import GROUPS, Declaration, declare, whole

TEXTS = [
    *("The tea of Anna is green.\nThe cup is hot.", "The tea of Anna is cold.", "Water is wet."),
    *("The water of Anna is wet.\nThe tea of Boris is black.", "tea cup\nriver", "", "cup"),
]


class Entities(EntityExtractor):
    """Entities, with a name by which they are declared like functions."""

    __name__ = "entities"


def groups() -> dict[str, Declaration]:
    return {**GROUPS, "entity": (Entities(), {})}


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), *(text.count(letter) + 0.5 for letter in "aet")] for text in texts]


def opened(store: str | None) -> NodeGraph:
    graph = NodeGraph(
        store=store, embed=Embedder(embed, "lengths"), on_error="skip", progress=False
    )
    declare(graph, groups())
    return graph


class Work:
    """What the threads of this process do, and what they know to be there."""

    def __init__(self, store: str, name: str, threads: int, steps: int) -> None:
        self.graph = opened(store)
        self.steps = steps
        self.names = [f"{name}{number}" for number in range(threads)]
        self.texts: dict[str, str] = {}  # by document, what its thread wrote last
        words = Retriever(self.graph, "line")
        self.searches: list[Callable[[str], Any]] = [
            words,
            Retriever(self.graph, "word", "cosine"),
            Retriever(self.graph, "word", target="ROOT"),
            Retriever(self.graph, "line", filters={"n": [1, 2]}),
            AutoMergeRetriever(Retriever(self.graph, "word")),
            WindowRetriever(words),
            LinkRetriever(Retriever(self.graph, "ROOT"), self.graph, via="entity"),
        ]

    def run(self, seed: str) -> None:
        """Let all threads work; raise the first error."""
        errors: list[BaseException] = []

        def repeat(thread: str) -> None:
            choose = random.Random(f"{seed} {thread}")
            try:
                for _ in range(self.steps):
                    self.step(thread, choose)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=repeat, args=[name]) for name in self.names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def step(self, thread: str, choose: random.Random) -> None:
        """Make one operation on the documents of a thread."""
        ids = [f"{thread}-{number}" for number in range(4)]
        i, kind = choose.choice(ids), choose.random()
        if kind < 0.4:
            self.put(*((i, choose.choice(TEXTS)) for i in choose.sample(ids, 2)), choose=choose)
        elif kind < 0.5 and i in self.texts:
            self.graph.remove(i)
            text = self.texts.pop(i)
            if choose.random() < 0.5:  # put back
                self.put((i, text), choose=choose)
        elif kind < 0.6 and i in self.texts:  # edited, and back
            text = self.texts[i]
            self.put((i, choose.choice(TEXTS)), choose=choose)
            self.graph.build("entity")
            self.put((i, text), choose=choose)
        elif kind < 0.75:
            self.graph.build(choose.choice(list(groups())))
        elif kind < 0.95:
            choose.choice(self.searches)(choose.choice(["tea", "Whose tea is green?", "cup"]))
        elif kind < 0.98:
            self.graph.compact()
        else:
            self.graph.close()

    def put(self, *texts: tuple[str, str], choose: random.Random) -> None:
        n = choose.randrange(3)
        self.graph.add([Document(text, {"n": n}, id=i) for i, text in texts])
        self.texts.update(texts)

    def check(self) -> None:
        """Compare the graph, and one opened now, with one that is built from its documents."""
        nodes = self.graph.nodes("ROOT")
        given = {n.id: n.text for n in nodes if n.id.split("-")[0] in self.names}
        assert given == self.texts, "documents are lost, or back"
        anew = opened(None)
        anew.add([Document(node.text, node.own_metadata, id=node.id) for node in nodes])
        expected, answers = whole(anew, groups()), answers_of(anew)
        assert self.graph._store.place, "a file"
        for graph in (self.graph, opened(self.graph._store.place)):
            known = whole(graph, groups())
            for part, value in expected.items():
                assert known[part] == value, f"{part}: {difference(known[part], value)}"
            assert answers_of(graph) == answers, "answers differ from those of a graph built anew"


def difference(given: Any, expected: Any) -> str:
    """Return the first entries that differ, of what a graph has and of one that is built anew."""
    given, expected = (list(x.items() if isinstance(x, dict) else x) for x in (given, expected))
    pairs = zip(given, expected, strict=False)
    unequal = [pair for pair in pairs if pair[0] != pair[1]]
    return f"{len(given)} beside {len(expected)}: {unequal[:1]}"


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
        for query in ("tea", "Whose tea is green?", "cup of water")
    ]


def main(store: str, name: str, threads: str, steps: str) -> None:
    work = Work(store, name, int(threads), int(steps))
    for line in sys.stdin:
        try:
            command, *arguments = line.split()
            work.check() if command == "check" else work.run(*arguments)
            answer = "ok"
        except BaseException as error:
            traceback.print_exc()
            answer = repr(error).replace("\n", " ")
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
