"""The first searches of a graph, made concurrently or next to a writer."""

import asyncio
import hashlib
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.index_checks import check_vector_index

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import DefaultRetriever, as_retriever

SENTENCES = "Tea {0} is green. It is made of leaves {0}. People drink it at {0}. Nobody knows {0}."


def embed(texts: list[str]) -> list[list[float]]:
    digests = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
    return [[float(byte) for byte in digest] for digest in digests]


def new_graph(count: int, store: Path | None = None) -> NodeGraph:
    graph = NodeGraph(store=store, embed=Embedder(embed, "digests"), progress=False)
    graph.add([Document(SENTENCES.format(i), id=f"d{i}") for i in range(count)])
    graph.build(embed=True)
    return graph


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Shorten the interval between thread switches."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def search_in_threads(graph: NodeGraph) -> None:
    start = threading.Barrier(4)

    def search(number: int) -> None:
        start.wait(60)
        graph.search(f"tea {number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(search, range(4)))


def search_in_tasks(graph: NodeGraph) -> None:
    retriever = as_retriever(graph)

    async def search() -> None:
        await asyncio.gather(*(retriever.aretrieve(f"tea {i}") for i in range(6)))

    with ThreadPoolExecutor(1) as pool:  # this thread may run an event loop
        pool.submit(asyncio.run, search()).result()


def search_next_to_writer(graph: NodeGraph) -> None:
    is_over = threading.Event()

    def remove() -> None:
        for node in list(graph.nodes("ROOT"))[100:]:
            if is_over.is_set():
                return
            graph.remove(node.id)

    with ThreadPoolExecutor(1) as pool:
        removing = pool.submit(remove)
        try:
            graph.search("green tea")
        finally:
            is_over.set()
        removing.result()


@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize(
    "search",
    [search_in_threads, search_in_tasks, search_next_to_writer],
    ids=["threads", "tasks", "writer"],
)
def test_concurrent_first_searches_keep_vector_index_right(search, store, tmp_path):
    path = tmp_path / "graph" if store == "file" else None
    with new_graph(250, path) as graph:
        search(graph)
        graph.remove("d7")
        results = graph.search("It is made of leaves 7.", 10)
        assert len({result.node.id for result in results}) == len(results)
        check_vector_index(graph, "passage sentence")
        graph.add([Document(SENTENCES.format(i), id=f"d{i}") for i in range(250, 600)])
        graph.build(embed=True)  # the number of documents has doubled: measured again
        search(graph)
        check_vector_index(graph, "passage sentence")


def test_first_search_embeds_each_text_once() -> None:
    embedded: list[str] = []

    def embed_noted(texts: list[str]) -> list[list[float]]:
        graph.create_node_group("other", str.splitlines)  # raises while the graph is held
        embedded.extend(texts)
        return embed(texts)

    graph = NodeGraph(embed=Embedder(embed_noted, "noted"), progress=False)
    graph.add([Document(SENTENCES.format(i), id=f"d{i}") for i in range(20)])
    graph.search("tea 3")
    texts = [text for text in embedded if text != "tea 3"]
    nodes = [*graph.nodes("passage sentence"), *graph.nodes("passage")]
    assert sorted(texts) == sorted({node.text for node in nodes})


def test_build_measures_passages_of_several_sentences() -> None:
    with new_graph(40) as graph:
        retriever = DefaultRetriever(graph, vectors="passages")
        retriever.build()
        assert "Tea 7 is" in retriever.retrieve("tea 7")[0].node.text
