import asyncio

from blockbuster import blockbuster_ctx

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever


async def test_aretrieve_does_not_block_event_loop(library) -> None:
    retriever = Retriever(library, "sentence", "bm25_chinese", target="ROOT")
    with blockbuster_ctx():
        first = await retriever.aretrieve("river")  # builds the groups and the index
        again = await retriever.aretrieve("river", filters={"topic": "river"})
    assert [r.node.id for r in first] == ["tea", "river"]
    assert [r.node.id for r in again] == ["river"]


async def test_concurrent_aretrieve_equals_retrieve(library) -> None:
    retriever = Retriever(library, "sentence")
    words = ["tea", "river", "bank", "sea", "nothing"] * 40
    answers = await asyncio.gather(*(retriever.aretrieve(word, top_k=3) for word in words))
    assert answers == [retriever.retrieve(word, top_k=3) for word in words]


async def test_aretrieve_during_changes_reads_one_snapshot() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("tea", id="0"))
    retriever = Retriever(graph, "ROOT", top_k=99)

    async def add() -> None:
        for number in range(1, 30):
            await asyncio.to_thread(graph.add, Document("tea", id=str(number)))

    *answers, _ = await asyncio.gather(*(retriever.aretrieve("tea") for _ in range(60)), add())
    order = [str(number) for number in range(30)]
    for answer in answers:
        assert [r.node.id for r in answer] == order[: len(answer)]
        assert len({r.score for r in answer}) == 1
    assert len(await retriever.aretrieve("tea")) == 30
