"""Readers and writers in many threads."""

import random
import threading

from nodekin.nodegraph import Document, NodeGraph

PATIENCE = 300.0
"""Timeout of a thread in seconds."""


def test_readers_see_pairs_of_documents_complete() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line", num_workers=2)
    problems: list[object] = []
    seen: set[int] = set()
    finished = threading.Event()

    def change(seed: int) -> None:
        choose = random.Random(seed)
        existing: set[int] = set()
        for step in range(80):
            number = choose.randrange(4)
            pair = [f"{seed}-{number}-{side}" for side in ("left", "right")]
            if number in existing and choose.random() < 0.5:
                graph.remove(pair)
                existing.discard(number)
            else:  # both documents get an equal number of words
                text = "w w\n" * (1 + step % 3)
                graph.add([Document(text, id=i) for i in pair])
                existing.add(number)

    def read(group: str) -> None:
        while not finished.is_set():
            with graph.reader.reading(group):
                nodes = graph.nodes(group)
                size = graph.groups[group].size
                roots = [node.id for node in graph.nodes("ROOT")]
            counts = {i: sum(node.document_id == i for node in nodes) for i in roots}
            left = {i[:-4]: n for i, n in counts.items() if i.endswith("left")}
            right = {i[:-5]: n for i, n in counts.items() if i.endswith("right")}
            if left != right or not len(nodes) == size == sum(counts.values()):
                problems.append((left, right, size, roots))
            seen.add(len(roots))

    def start(work: object, argument: object) -> threading.Thread:
        def run() -> None:
            try:
                work(argument)  # type: ignore[operator]
            except Exception as error:
                problems.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    readers = [start(read, group) for group in ("line", "word", "word")]
    writers = [start(change, seed) for seed in range(3)]
    for writer in writers:
        writer.join(PATIENCE)
    finished.set()
    for reader in readers:
        reader.join(PATIENCE)
    assert not any(thread.is_alive() for thread in [*readers, *writers])
    assert problems == []
    assert len(seen) > 1  # the readers saw several states
