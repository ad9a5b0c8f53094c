"""A hundred thousand tiny nodes, with ``make stress`` a million, and many threads at once."""

import random
import threading

import pytest
import stress

from nodekin.nodegraph import Document, NodeGraph

PATIENCE = 300.0
"""Seconds after which something that should happen is taken to hang."""


@pytest.mark.slow
def test_many_tiny_nodes() -> None:
    documents, lines = 4, 250_000 if stress.LONG else 25_000
    graph = NodeGraph(progress=False)
    text = "\n".join(map(str, range(lines)))
    graph.add([Document(text, id=str(i)) for i in range(documents)])
    graph.create_node_group("line", str.splitlines)
    graph.build("line")
    assert graph.groups["line"].size == documents * lines

    last = str(documents - 1)
    children = graph.node(last).children["line"]
    assert len(children) == lines
    node = children[-1]
    assert (node.text, node.root.id) == (str(lines - 1), last)
    assert text[node.start : node.end] == node.text
    assert graph.find("ROOT")([children[0], node]) == [graph.node(last)]

    revision = graph.reader.revision("line")
    graph.add(Document("one\nmore", id="more"))
    nodes = graph.nodes("line")
    assert len(nodes) == len({n.id for n in nodes}) == documents * lines + 2
    changes = graph.reader.changes("line", revision)
    assert [n.text for n in changes.added] == ["one", "more"]
    assert not changes.complete

    graph.remove(last)
    assert graph.groups["line"].size == (documents - 1) * lines + 2
    assert [n.text for n in graph.nodes("line")[-2:]] == ["one", "more"]


def test_pairs_come_and_go_whole_while_others_read() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line", num_workers=2)
    problems: list[object] = []
    seen: set[int] = set()
    finished = threading.Event()

    def change(seed: int) -> None:
        choose = random.Random(seed)
        there: set[int] = set()
        for step in range(80):
            number = choose.randrange(4)
            pair = [f"{seed}-{number}-{side}" for side in ("left", "right")]
            if number in there and choose.random() < 0.5:
                graph.remove(pair)
                there.discard(number)
            else:  # both sides get the same number of words, and another one than before
                text = "w w\n" * (1 + step % 3)
                graph.add([Document(text, id=i) for i in pair])
                there.add(number)

    def read(group: str) -> None:
        while not finished.is_set():
            with graph.reader.reading(group):
                nodes = graph.nodes(group)
                size = graph.groups[group].size
                roots = [node.id for node in graph.nodes("ROOT")]
                parents = [node.parent.document_id for node in nodes if node.parent]
            count: dict[str, int] = {}
            for document in parents:
                count[document] = count.get(document, 0) + 1
            left = {i[:-4]: n for i, n in count.items() if i.endswith("left")}
            right = {i[:-5]: n for i, n in count.items() if i.endswith("right")}
            if left != right or len(nodes) != size or set(count) != set(roots):
                problems.append((left, right, size, roots))
            seen.add(len(roots))

    def guarded(work: threading.Thread) -> threading.Thread:
        work.start()
        return work

    def run(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except Exception as error:
            problems.append(error)

    readers = [
        guarded(threading.Thread(target=run, args=(read, group), daemon=True))
        for group in ("line", "word", "word")
    ]
    writers = [
        guarded(threading.Thread(target=run, args=(change, seed), daemon=True)) for seed in range(3)
    ]
    for writer in writers:
        writer.join(PATIENCE)
    finished.set()
    for reader in readers:
        reader.join(PATIENCE)
    assert not any(thread.is_alive() for thread in [*readers, *writers]), "it hangs"
    assert problems == []
    assert len(seen) > 1  # the readers saw it change
    fresh = NodeGraph(progress=False)
    fresh.create_node_group("line", str.splitlines)
    fresh.create_node_group("word", str.split, parent="line")
    fresh.add([Document(node.text, id=node.id) for node in graph.nodes("ROOT")])
    assert [n.id for n in graph.nodes("word")] == [n.id for n in fresh.nodes("word")]
