import asyncio

from blockbuster import blockbuster_ctx

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
