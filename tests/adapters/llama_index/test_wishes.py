"""What LlamaIndex's users asked for, beside LlamaIndex's own component; which test shows what."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, ReActAgent
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.evaluation import EvaluationResult
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    NodeParser,
    SentenceSplitter,
    get_leaf_nodes,
)
from llama_index.core.objects import ObjectIndex
from llama_index.core.postprocessor import (
    LLMRerank,
    PrevNextNodePostprocessor,
    SentenceEmbeddingOptimizer,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CustomQueryEngine,
    FLAREInstructQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    ToolRetrieverRouterQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
)
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from named_tests import problem

from nodekin import retrievers
from nodekin.adapters.llama_index import (
    NodeGraphDocstore,
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphQuestionGenerator,
    NodeGraphReranker,
    NodeGraphRetriever,
    as_index,
    as_retriever,
    as_transform,
    dump_nodes,
    import_nodes,
    load_nodes,
)
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    RerankRetriever,
    Retriever,
    SubQuestionRetriever,
)

Scripted = Callable[[Any], Any]

TEXTS = {
    "tea": "Green tea is steamed. Its leaves stay green. Black tea is fermented, and keeps for "
    "years. Oolong is half fermented. Tea came to Europe by sea.",
    "rivers": "The Nile is 6,650 km long. It runs to the Mediterranean. The Amazon is 6,400 km "
    "long. It carries more water than any other river.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange. The Humber "
    "Bridge was the longest for sixteen years.",
}
QUESTIONS = ["Which tea is fermented?", "How long is the Nile?", "When was the bridge opened?"]


class Words(BaseEmbedding):
    """Counts words."""

    def _get_text_embedding(self, text: str) -> list[float]:
        counts = np.full(128, 0.01)
        for word in re.findall(r"[a-z0-9]+", text.lower()):
            counts[sum(ord(letter) * at for at, letter in enumerate(word, 1)) % 127] += 1
        return [float(value) for value in counts / np.linalg.norm(counts)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Listed(BaseRetriever):
    """Returns nodes with their scores, as a retriever of a user's own."""

    def __init__(self, *results: tuple[BaseNode, float]) -> None:
        super().__init__()
        self.results = results

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=score) for node, score in self.results]


class Fixed(CustomQueryEngine):
    """Answers every question alike, or fails; counts what it is asked."""

    answer: str = "Green tea."
    asked: list[str]

    def custom_query(self, query_str: str) -> str:
        self.asked.append(query_str)
        if self.answer == "fail":
            raise ValueError("no route")
        return self.answer

    async def acustom_query(self, query_str: str) -> str:
        return self.custom_query(query_str)


def documents() -> list[Document]:
    """Return documents as programs have them: with a title, which is embedded, and more."""
    return [
        Document(
            text=text,
            id_=name,
            metadata={"title": f"All on {name}", "url": f"https://example.com/{name}", "year": at},
            excluded_embed_metadata_keys=["url", "year"],
            excluded_llm_metadata_keys=["url", "year"],
        )
        for at, (name, text) in enumerate(TEXTS.items(), start=2000)
    ]


def splitter(size: int) -> SentenceSplitter:
    def sentences(text: str) -> list[str]:  # the default one may download
        return re.split(r"(?<=\.\s)", text)

    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=sentences)


def hierarchy(given: Sequence[Document], *sizes: int) -> list[BaseNode]:
    parsers: dict[str, NodeParser] = {str(size): splitter(size) for size in sizes}
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=[*parsers], node_parser_map=parsers
    )
    return parser.get_nodes_from_documents([*given])


def chunks() -> list[TextNode]:
    """Return one chunk for each sentence, with LlamaIndex's metadata and neighbours."""
    parser, numbers = splitter(20), iter(range(999, 0, -1))
    parser.id_func = lambda *_: f"{next(numbers)}"  # of equal scores it takes the greater id
    nodes: list[Any] = parser.get_nodes_from_documents(documents())
    assert len(nodes) > 8
    return nodes


def both_indexes(nodes: Sequence[BaseNode]) -> tuple[VectorStoreIndex, NodeGraphIndex]:
    """Return LlamaIndex's index and ours of the same nodes and vectors."""
    theirs = VectorStoreIndex([*nodes], embed_model=Words())
    ours = NodeGraphIndex.from_nodes(nodes, embed_model=Words(), similarity="cosine")
    return theirs, ours


def ids(results: Any) -> list[str]:
    return [result.node_id for result in results]


def scores(results: Any) -> dict[str, Any]:
    return {result.node_id: pytest.approx(result.score, abs=1e-5) for result in results}


# Parents and children


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_child_that_matched_is_told_and_all_that_did(question: str) -> None:
    """LlamaIndex's recursion returns the parent in the child's place, and says no more of it."""
    nodes = hierarchy(documents(), 64, 20)
    parents = [node for node in nodes if node.parent_node is None]
    children = [
        IndexNode.from_text_node(node, node.parent_node.node_id) for node in get_leaf_nodes(nodes)
    ]
    index = VectorStoreIndex(children, embed_model=Words())
    (best,) = index.as_retriever(similarity_top_k=1).retrieve(question)
    recursive = RecursiveRetriever(
        "root",
        retriever_dict={"root": index.as_retriever(similarity_top_k=1)},
        node_dict={node.node_id: node for node in parents},
    )
    (expected,) = recursive.retrieve(question)

    graph = NodeGraph(embed=Words(), progress=False)
    import_nodes(graph, nodes, documents=documents(), groups=["large", "small"])
    small = Retriever(graph, "small", "cosine", target="large", top_k=1)
    (result,) = NodeGraphRetriever(small).retrieve(question)
    assert result.node_id == expected.node_id
    assert result.evidence[0]["text"] == best.text
    assert result.evidence[0]["score"] == pytest.approx(best.score, abs=1e-5)
    children_of = {node.text for node in children if node.index_id == result.node_id}
    assert {match["text"] for match in result.evidence} <= children_of
    assert best.text in result.explain()


def test_a_parent_is_there_once_and_equal_texts_of_different_documents_stay() -> None:
    twins = [
        Document(text="Prices went up.", id_=name, metadata={"language": "en"}) for name in "ab"
    ]
    theirs, ours = both_indexes(twins)
    fusion: dict[str, Any] = {"num_queries": 1, "use_async": False, "llm": MockLLM()}
    merged = QueryFusionRetriever([theirs.as_retriever()] * 2, **fusion).retrieve("prices")
    assert len(merged) == 1  # equal hashes, so that one document is lost
    for other in (ours, theirs.as_retriever()):
        both = FusionRetriever([other, theirs.as_retriever()])
        assert sorted(ids(NodeGraphRetriever(both).retrieve("prices"))) == ["a", "b"]
    again = [VectorStoreIndex(splitter(99).get_nodes_from_documents(twins), embed_model=Words())]
    again += [VectorStoreIndex(splitter(99).get_nodes_from_documents(twins), embed_model=Words())]
    parts = FusionRetriever(again).retrieve("prices")  # chunks with random ids
    assert sorted(result.node.document_id for result in parts) == ["a", "b"]


def test_a_score_of_zero_stays_zero() -> None:
    first, second = (TextNode(text=t, metadata={"n": n}) for n, t in enumerate(("Tea", "Milk")))
    listed = Listed((first, 0.5), (second, 0.0))
    expected = {first.node_id: 0.5, second.node_id: 0.0}
    for source in (listed, FusionRetriever([listed], mode="concat")):
        results = NodeGraphRetriever(source).retrieve("tea")
        assert {result.node_id: result.score for result in results} == expected
        again = load_nodes(dump_nodes(results))
        assert {result.node_id: result.score for result in again} == expected
    zero = NodeGraphReranker("ModuleReranker", model=lambda query, texts: [0.0] * len(texts))
    reranked = zero.postprocess_nodes(listed.retrieve("tea"), query_str="tea")
    assert [result.score for result in reranked] == [0.0, 0.0]
    kept = SimilarityPostprocessor(similarity_cutoff=0.0).postprocess_nodes(reranked)
    assert ids(kept) == ids(reranked)


@pytest.mark.parametrize("entry", ["tea", "table"])
def test_entries_lead_to_other_retrievers_and_to_engines_over_tables(entry: str) -> None:
    """The entries are LlamaIndex's, with metadata, and so are the retriever and the engine."""
    entries = [
        IndexNode(text="All about tea.", index_id="tea", id_="1", metadata={"of": "teas"}),
        IndexNode(text="A table of the year.", index_id="table", id_="2", metadata={"of": "rows"}),
    ]
    index = VectorStoreIndex(entries, embed_model=Words())
    teas = VectorStoreIndex(chunks()[:4], embed_model=Words()).as_retriever(similarity_top_k=2)
    table = Fixed(answer="42 rows", asked=[])
    question = {"tea": "All about teas", "table": "A table of rows of the year"}[entry]
    theirs = RecursiveRetriever(
        "root",
        retriever_dict={"root": index.as_retriever(similarity_top_k=1), "tea": teas},
        query_engine_dict={"table": table},
        query_response_tmpl="{response}",
    ).retrieve(question)
    graph = NodeGraph(embed=Words(), progress=False)
    graph.add(entries)
    ours = retrievers.RecursiveRetriever(
        graph, ["ROOT"], "ROOT", "cosine", references={"1": teas, "2": table}
    )
    results = NodeGraphRetriever(ours).retrieve(question)
    assert results[0].text == theirs[0].text
    assert {result.text for result in theirs} <= {result.text for result in results}
    assert results[0].evidence[-1]["text"] == next(e.text for e in entries if e.index_id == entry)


def test_a_hierarchy_follows_its_documents() -> None:
    """After a change nothing of the old text is left in any level, as if it were parsed anew."""
    given = documents()
    graph = NodeGraph(embed=Words(), progress=False)
    graph.add(given)
    graph.create_node_group("large", as_transform(splitter(40)))
    graph.create_node_group("small", as_transform(splitter(20)), parent="large")
    search = NodeGraphRetriever(Retriever(graph, "small", "cosine", target="large", top_k=9))
    docstore = NodeGraphDocstore(graph, ["small"])
    assert any("Golden Gate" in result.text for result in search.retrieve("Golden Gate Bridge"))

    given[2] = given[2].model_copy()
    given[2].set_content("Bridges of stone were built by the Romans. They stand.")
    graph.add(given[2])
    graph.remove("rivers")
    del given[1]
    anew = hierarchy(given, 40, 20)
    assert sorted(node.text for node in docstore.docs.values()) == sorted(n.text for n in anew)
    assert not any("Golden" in result.text for result in search.retrieve("Golden Gate Bridge"))
    leaves = VectorStoreIndex(get_leaf_nodes(anew), embed_model=Words())
    (best,) = leaves.as_retriever(similarity_top_k=1).retrieve("stone of the Romans")
    assert search.retrieve("stone of the Romans")[0].evidence[0]["text"] == best.text


@pytest.mark.parametrize("question", QUESTIONS)
def test_auto_merging_over_a_vector_store_that_holds_two_groups(question: str) -> None:
    nodes = hierarchy(documents(), 40, 20)
    storage = StorageContext.from_defaults(docstore=SimpleDocumentStore())
    storage.docstore.add_documents(nodes)  # the second store
    leaves = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=storage, embed_model=Words())
    theirs = AutoMergingRetriever(
        leaves.as_retriever(similarity_top_k=4), storage, simple_ratio_thresh=0.5
    ).retrieve(question)

    graph = NodeGraph(embed=Words(), progress=False)
    import_nodes(graph, nodes, documents=documents(), groups=["large", "small"])
    held = SimpleVectorStore()
    index = as_index(held)
    small = Retriever(graph, "small", "cosine", top_k=4, index=index)
    merged = NodeGraphRetriever(AutoMergeRetriever(small, ratio=0.5)).retrieve(question)
    assert set(ids(merged)) == set(ids(theirs))
    large = Retriever(graph, "large", "cosine", top_k=1, index=index)
    roots = VectorStoreIndex(
        [node for node in nodes if node.parent_node is None], embed_model=Words()
    )
    (best,) = roots.as_retriever(similarity_top_k=1).retrieve(question)
    assert ids(NodeGraphRetriever(large).retrieve(question)) == [best.node_id]
    assert len(held.data.embedding_dict) == len(nodes)  # both levels


def test_relations_are_followed_from_a_hit_as_in_llama_indexs_docstore() -> None:
    """Up to the largest chunk, down again to all small ones, and to the neighbours of each."""
    nodes = hierarchy(documents(), 64, 40, 20)
    old = SimpleDocumentStore()
    old.add_documents(nodes)
    graph = NodeGraph(embed=Words(), progress=False)
    made = import_nodes(graph, nodes, documents=documents())
    docstore = NodeGraphDocstore(graph, [*made.groups])
    (hit,) = NodeGraphRetriever(Retriever(graph, made.groups[-1], top_k=1)).retrieve("oolong")

    def walk(start: BaseNode, store: Any) -> list[BaseNode]:
        way = [start]
        while way[-1].parent_node is not None:
            way.append(store.get_node(way[-1].parent_node.node_id))
        below = [way[-1]]
        for node in below:
            below += [store.get_node(info.node_id) for info in node.child_nodes or []]
        return [*way, *below]

    walked, expected = walk(hit.node, docstore), walk(old.get_node(hit.node_id), old)
    assert ids(walked) == ids(expected)
    assert len({*ids(walked)}) > 5
    for ours, theirs in zip(walked, expected, strict=True):
        if theirs.next_node is not None:  # theirs ends with each parent
            assert ours.next_node.node_id == theirs.next_node.node_id
            assert docstore.get_node(ours.next_node.node_id).prev_node.node_id == ours.node_id


@pytest.mark.parametrize("mode", ["both", "next", "previous"])
def test_neighbours_of_hits_are_those_of_llama_indexs_index_and_docstore(mode: Any) -> None:
    nodes = chunks()
    old = SimpleDocumentStore()
    old.add_documents(nodes)
    index, ours = both_indexes(nodes)
    docstore = ours.storage_context.docstore
    found = []
    for retriever, store in ((index.as_retriever, old), (ours.as_retriever, docstore)):
        hits = retriever(similarity_top_k=1).retrieve("Oolong is half fermented")
        widen = PrevNextNodePostprocessor(docstore=store, num_nodes=2, mode=mode)
        found.append(ids(widen.postprocess_nodes(hits)))
    assert found[0] == found[1]
    assert len(found[0]) > 2 or mode == "next"


# Words, vectors and both


def test_words_of_no_document_of_few_and_of_those_that_come_and_go() -> None:
    """BM25Retriever fails on an empty corpus and for k > n, and is made anew for a change."""
    index = NodeGraphIndex.from_documents([], similarity="bm25")
    retriever = index.as_retriever(similarity_top_k=100)
    assert retriever.retrieve("tea") == []
    given = documents()
    for document in given:
        index.insert(document)
    index.delete_ref_doc("rivers", delete_from_docstore=True)
    assert {result.node.ref_doc_id for result in retriever.retrieve("All on long years")} == {
        "tea",
        "bridges",
    }
    anew = NodeGraphIndex.from_documents([given[0], given[2]], similarity="bm25")
    for question in (*QUESTIONS, "All on tea"):
        expected = anew.as_retriever(similarity_top_k=100).retrieve(question)
        assert scores(expected) == scores(retriever.retrieve(question))
        assert len(expected) <= 2


def test_words_beside_an_index_of_llama_index_are_summed() -> None:
    nodes = chunks()
    vectors = VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=5)
    words = NodeGraphRetriever.from_defaults(nodes=nodes, similarity="bm25", similarity_top_k=5)
    question = "Which tea is fermented, and which is half fermented?"
    lists = [ids(vectors.retrieve(question)), ids(words.retrieve(question))]
    both = QueryFusionRetriever(
        [vectors, words],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        num_queries=1,
        similarity_top_k=10,
        use_async=False,
    ).retrieve(question)
    expected = {
        name: sum(1 / (60 + one.index(name)) for one in lists if name in one)
        for name in {*lists[0], *lists[1]}
    }
    assert {result.node_id: result.score for result in both} == pytest.approx(expected)
    assert set(lists[0]) & set(lists[1])  # some are summed


def test_reciprocal_ranks_have_weights() -> None:
    """LlamaIndex's fusion has weights in other modes only; without them both are the same."""
    nodes = chunks()
    vectors = VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=5)
    words = NodeGraphRetriever.from_defaults(nodes=nodes, similarity="bm25", similarity_top_k=5)
    fusion: dict[str, Any] = {"num_queries": 1, "use_async": False, "similarity_top_k": 9}
    for question in QUESTIONS:
        theirs = QueryFusionRetriever(
            [vectors, words], llm=MockLLM(), mode="reciprocal_rerank", **fusion
        ).retrieve(question)
        plain = FusionRetriever([vectors, words], rank_constant=59, top_k=9)
        assert scores(NodeGraphRetriever(plain).retrieve(question)) == scores(theirs)
        weighted = FusionRetriever([vectors, words], rank_constant=59, top_k=9, weights=[3, 1])
        lists = [ids(vectors.retrieve(question)), ids(words.retrieve(question))]
        expected = {
            name: sum(
                weight / (60 + one.index(name))
                for weight, one in zip((3, 1), lists, strict=True)
                if name in one
            )
            for name in {*lists[0], *lists[1]}
        }
        results = NodeGraphRetriever(weighted).retrieve(question)
        assert {result.node_id: result.score for result in results} == pytest.approx(expected)


def test_two_indexes_are_merged_by_a_field_and_near_duplicates_collapsed() -> None:
    one, two = chunks()[:4], chunks()[2:6]  # the same documents with other ids and fields
    for node in two:
        node.id_ = f"other {node.node_id}"
        node.metadata["edition"] = 2
    for node in (*one, *two):
        node.metadata["place"] = f"{node.ref_doc_id} {node.start_char_idx}"
    indexes = [VectorStoreIndex(nodes, embed_model=Words()) for nodes in (one, two)]
    merged = FusionRetriever(indexes, merge_by="place", top_k=9)
    places = [r.node.metadata["place"] for r in merged.retrieve("tea", top_k=9)]
    assert len(places) == len(set(places)) == len({n.metadata["place"] for n in (*one, *two)})
    plain = FusionRetriever(indexes, top_k=9)
    assert len(plain.retrieve("tea", top_k=9)) > len(places)
    collapsed = RerankRetriever(plain, "NearDuplicateFilter")
    texts = [result.text for result in NodeGraphRetriever(collapsed).retrieve("tea")]
    assert len(texts) == len(set(texts)) > 2


class AsyncOnly(Words):
    """A model whose client has async methods only."""

    def _get_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError("use the async method")

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [Words._get_text_embedding(self, text) for text in texts]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return Words._get_text_embedding(self, query)


async def test_passages_are_embedded_by_async_models_in_async_code() -> None:
    nodes = chunks()
    theirs = VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=3)
    graph = NodeGraph(embed=AsyncOnly(), progress=False)
    (group,) = import_nodes(graph, nodes, documents=documents()).groups
    ours = NodeGraphRetriever(Retriever(graph, group, "cosine", top_k=3))
    for question in QUESTIONS:
        results = await ours.aretrieve(question)
        assert scores(await theirs.aretrieve(question)) == scores(results)


# Conditions at the time of the query


async def test_one_engine_serves_users_with_conditions_of_their_own(scripted: Scripted) -> None:
    """LlamaIndex's engine is made anew for each; ours is shared, also at the same time."""
    given = documents()
    theirs = VectorStoreIndex.from_documents(given, embed_model=Words())
    ours = NodeGraphIndex.from_documents(given, embed_model=Words())
    engine = ours.as_query_engine(llm=scripted("It is."), filters={"year": {"lt": 2002}})
    retriever = ours.as_retriever(similarity_top_k=3, filters={"year": {"lt": 2002}})

    def of(year: int) -> MetadataFilters:
        return MetadataFilters(filters=[MetadataFilter(key="year", value=year)])

    years = [2000, 2001, 2002] * 3
    responses = await asyncio.gather(*(engine.aquery("It is", filters=of(y)) for y in years))
    results = await asyncio.gather(*(retriever.aretrieve("It is", filters=of(y)) for y in years))
    for year, response, found in zip(years, responses, results, strict=True):
        expected = theirs.as_query_engine(llm=scripted("It is."), filters=of(year)).query("It is")
        want = {r.node.ref_doc_id for r in expected.source_nodes}
        want = want if year < 2002 else set()  # the owner's condition holds, too
        assert {r.node.ref_doc_id for r in response.source_nodes} == want
        assert {r.node.ref_doc_id for r in found} == want
        assert [*response.source_nodes] == [] or str(response) == "It is."
    blocking = engine.query("It is", filters={"title": "All on rivers"}).source_nodes
    assert {r.node.ref_doc_id for r in blocking} == {"rivers"}
    assert ids(retriever.retrieve("It is", of(2000))) == ids(results[0])
    assert len({r.node.ref_doc_id for r in retriever.retrieve("It is")}) == 2
    assert (engine.retriever.filters, retriever.filters) == ({"year": {"lt": 2002}},) * 2
    held = as_retriever(engine)  # an engine as a tool, with the conditions of a call
    (answer,) = await held.aretrieve("It is", filters={"year": 2001})
    assert {match.node.document_id for match in answer.evidence if match.node.document_id} == {
        "rivers"
    }
    with pytest.raises(ValueError, match="operators"):
        engine.query("It is", filters={"year": {"over": 5}})


# Sub-questions


PLAN = "tea: Which tea is fermented?\nrivers: How long is the Nile?"


def tools(**engines: Any) -> list[QueryEngineTool]:
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"All on {name}")
        for name, engine in engines.items()
    ]


def index_tools(scripted: Scripted) -> list[QueryEngineTool]:
    """Return tools over LlamaIndex's indexes of documents with metadata."""
    engines = {
        document.node_id: VectorStoreIndex.from_documents(
            [document], embed_model=Words()
        ).as_query_engine(llm=scripted(f"It is {document.node_id}."))
        for document in documents()[:2]
    }
    return tools(**engines)


def test_no_more_sub_questions_than_the_limit(scripted: Scripted) -> None:
    many = "\n".join(f"tea: Is tea number {n} green?" for n in range(12))
    theirs, ours = Fixed(asked=[]), Fixed(asked=[])
    SubQuestionQueryEngine.from_defaults(
        tools(tea=theirs),
        llm=scripted("Yes."),
        question_gen=NodeGraphQuestionGenerator(lambda prompt: many, limit=50),
        use_async=False,
        verbose=False,
    ).query("Are the teas green?")
    llm = scripted(lambda prompt: many if "Tools:" in prompt else "Yes.")
    given = tools(tea=ours, rivers=Fixed(asked=[]))
    NodeGraphQueryEngine.from_defaults(given, llm, limit=3).query("Are the teas green?")
    assert len(theirs.asked) == 12
    assert len(ours.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [
        '{"items": [{"sub_question": "Which tea is fermented?", "tool_name": "tea"},]}',  # comma
        "[{sub_question: 'Which tea is fermented?', tool_name: 'tea'}]",  # bare keys
        '<think>{"x"</think>```json\n[{"question": "Which tea is fermented?", "tool": "tea"}]\n```',
        "- tea: Which tea is fermented?",
        '[{"sub_question": "Which tea is fermented?", "tool_name": "Tea"}]',  # another case
    ],
)
def test_sub_questions_of_any_model_are_read(answer: str, scripted: Scripted) -> None:
    """LlamaIndex's generator fails on most of these, or makes a question to no tool."""
    given = tools(tea=Fixed(asked=[]), rivers=Fixed(answer="Long.", asked=[]))
    metadata = [tool.metadata for tool in given]
    ours = NodeGraphQuestionGenerator(scripted(answer)).generate(
        metadata, QueryBundle("Which tea is fermented?")
    )
    assert [(q.tool_name, q.sub_question) for q in ours] == [("tea", "Which tea is fermented?")]
    generator = LLMQuestionGenerator.from_defaults(llm=scripted(answer))
    try:
        theirs = generator.generate(metadata, QueryBundle("Which tea is fermented?"))
    except Exception:
        return
    names = {tool.metadata.name for tool in given}
    assert theirs == ours or not {question.tool_name for question in theirs} <= names


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_sub_question_that_fails_is_told(scripted: Scripted, asynchronous: bool) -> None:
    """LlamaIndex's engine answers as if nothing had been asked; the log alone has it."""
    parts = f"{PLAN}\nseas: How deep is the sea?"

    def given() -> list[QueryEngineTool]:
        return tools(tea=Fixed(asked=[]), rivers=Fixed(answer="fail", asked=[]))

    theirs = SubQuestionQueryEngine.from_defaults(
        given(),
        llm=scripted("Tea."),
        question_gen=NodeGraphQuestionGenerator(lambda prompt: PLAN),
        use_async=asynchronous,
        verbose=False,
    ).query("What?")
    assert "no route" not in f"{theirs.metadata} {[n.text for n in theirs.source_nodes]}"
    llm = scripted(lambda prompt: parts if "Tools:" in prompt else "Tea.")
    engine = NodeGraphQueryEngine.from_defaults(given(), llm)
    response = asyncio.run(engine.aquery("What?")) if asynchronous else engine.query("What?")
    assert [error["question"] for error in response.metadata["errors"]] == [
        "How long is the Nile?",
        "How deep is the sea?",
    ]
    assert "no route" in response.metadata["errors"][0]["error"]
    assert "no tool 'seas'" in response.metadata["errors"][1]["error"]


def test_sub_questions_without_answers(scripted: Scripted) -> None:
    """LlamaIndex's engine has no ``retrieve``; ours returns what an answer would be made from."""
    index = NodeGraphIndex.from_documents(documents(), similarity="bm25")
    parts = "Which tea is fermented?\nHow long is the Nile?"
    llm = scripted(lambda prompt: parts if "simpler questions" in prompt else "An answer.")
    engine = index.as_query_engine(llm=llm, strategy="sub_question")
    question = "Which tea is fermented, and how long is the Nile?"
    found = engine.retrieve(question)
    assert len(llm.prompts) == 1  # to take it apart, no more
    assert ids(found) == ids(engine.query(question).source_nodes)
    assert {result.node.ref_doc_id for result in found} >= {"tea", "rivers"}
    assert {match["query"] for result in found for match in result.evidence} >= {
        *parts.splitlines()
    }
    theirs = SubQuestionQueryEngine.from_defaults(
        index_tools(scripted), llm=scripted("?"), question_gen=NodeGraphQuestionGenerator(llm)
    )
    with pytest.raises(NotImplementedError):
        theirs.retrieve(QueryBundle(question))


class Order(LlamaDebugHandler):
    """Notes which events begin and end, and what is said of sub-questions."""

    def __init__(self) -> None:
        super().__init__(print_trace_on_end=False)
        self.order: list[str] = []
        self.pairs: list[tuple[str, str]] = []

    def on_event_start(self, event_type: Any, *args: Any, **kwargs: Any) -> str:
        if event_type in (CBEventType.SUB_QUESTION, CBEventType.SYNTHESIZE):
            self.order.append(f"{event_type.value} begins")
        return str(super().on_event_start(event_type, *args, **kwargs))

    def on_event_end(self, event_type: Any, payload: Any = None, **kwargs: Any) -> None:
        if event_type == CBEventType.SUB_QUESTION:
            (pair,) = payload.values()
            self.order.append("sub_question ends")
            self.pairs.append((pair.sub_q.sub_question, str(pair.answer)))
        super().on_event_end(event_type, payload=payload, **kwargs)


@pytest.mark.parametrize("streaming", [False, True])
def test_sub_questions_are_seen_as_they_happen(scripted: Scripted, streaming: bool) -> None:
    handlers = [Order(), Order()]
    question = "Which tea is fermented, and how long is the Nile?"
    theirs = SubQuestionQueryEngine.from_defaults(
        index_tools(scripted),
        llm=scripted("Both."),
        question_gen=NodeGraphQuestionGenerator(lambda prompt: PLAN),
        use_async=False,
        verbose=False,
    )
    theirs.callback_manager = CallbackManager([handlers[0]])
    theirs.query(question)
    llm = scripted(lambda prompt: PLAN if "Tools:" in prompt else "Both.")
    engine = NodeGraphQueryEngine.from_defaults(
        index_tools(scripted),
        llm,
        streaming=streaming,
        callback_manager=CallbackManager([handlers[1]]),
    )
    response = engine.query(question)
    assert sorted(handlers[0].pairs) == sorted(handlers[1].pairs)  # before anything is read
    assert len(handlers[1].pairs) == 2
    own = handlers[1].order
    last = max(at for at, event in enumerate(own) if event == "sub_question ends")
    assert last < own.index("synthesize begins")
    if streaming:
        assert "".join(response.response_gen) == "Both."


def test_a_conversation_around_sub_questions(scripted: Scripted) -> None:
    said = []
    for kind in ("LlamaIndex", "nodekin"):
        question_gen = NodeGraphQuestionGenerator(lambda prompt: PLAN)
        llm = scripted(lambda prompt: PLAN if "Tools:" in prompt else "Black tea; 6,650 km.")
        engine: Any = (
            SubQuestionQueryEngine.from_defaults(
                index_tools(scripted), llm=llm, question_gen=question_gen, use_async=False
            )
            if kind == "LlamaIndex"
            else NodeGraphQueryEngine.from_defaults(index_tools(scripted), llm)
        )
        condense = scripted("Which tea is fermented, and how long is the Nile?")
        chat = CondenseQuestionChatEngine.from_defaults(
            engine, llm=condense, memory=ChatMemoryBuffer.from_defaults(token_limit=3000)
        )
        answers = [str(chat.chat("Which tea is it?")), str(chat.chat("And the Nile?"))]
        said.append((answers, [message.content for message in chat.chat_history]))
        assert "Which tea is it?" in condense.prompts[-1]
    assert said[0] == said[1]


def test_a_router_within_sub_questions_hides_no_failure(scripted: Scripted) -> None:
    vectors = VectorStoreIndex.from_documents(documents(), embed_model=Words()).as_retriever()

    class Down(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise ConnectionError("no route")

    router = retrievers.RouterRetriever(
        {"tea": ("All about tea", vectors), "rivers": ("All about rivers", Down())},
        lambda prompt: "rivers" if "Nile" in prompt else "tea",
    )
    parts = SubQuestionRetriever(
        router, lambda prompt: "Which tea is fermented?\nHow long is the Nile?"
    )
    response = NodeGraphQueryEngine(parts, scripted("Black tea.")).query("Both?")
    told = " ".join(error["error"] for error in response.metadata["errors"])
    assert "no route" in told


# LlamaIndex's own components around a retriever of ours


def _postprocessed(processor: Any) -> Callable[[Any, Scripted], Any]:
    def run(index: Any, scripted: Scripted) -> Any:
        engine = RetrieverQueryEngine.from_args(
            index.as_retriever(similarity_top_k=4),
            llm=scripted("It is."),
            node_postprocessors=[processor(scripted)],
        )
        return engine.query(QUESTIONS[0])

    return run


def _choose(answer: str) -> Callable[[str], str]:
    def says(prompt: str) -> str:
        return answer if "choices" in prompt.lower() else "It is."

    return says


def _routed(selector: Any, answer: str) -> Callable[[Any, Scripted], Any]:
    def run(index: Any, scripted: Scripted) -> Any:
        llm = scripted(_choose(answer))
        engine = index.as_query_engine(llm=llm, similarity_top_k=2)
        other = index.as_query_engine(llm=llm, similarity_top_k=1)
        router = RouterQueryEngine(
            selector.from_defaults(llm=llm),
            [*tools(one=engine), *tools(two=other)],
            llm=llm,
        )
        return router.query(QUESTIONS[0])

    return run


def _tools_by_search(index: Any, scripted: Scripted) -> Any:
    given = tools(tea=index.as_query_engine(llm=scripted("It is."), similarity_top_k=2))
    found = ObjectIndex.from_objects(given, index_cls=VectorStoreIndex, embed_model=Words())
    return ToolRetrieverRouterQueryEngine(found.as_retriever(similarity_top_k=1)).query(
        QUESTIONS[0]
    )


class FailsOnce:
    """An evaluator that fails the first answer."""

    def __init__(self) -> None:
        self.answers = 0

    def evaluate_response(self, query: str, response: Any) -> Any:
        self.answers += 1
        return EvaluationResult(
            query=query, response=str(response), passing=self.answers > 1, feedback="Think again."
        )


def _retried(index: Any, scripted: Scripted) -> Any:
    engine = index.as_query_engine(llm=scripted("It is."), similarity_top_k=2)
    evaluator: Any = FailsOnce()
    return RetryQueryEngine(engine, evaluator).query(QUESTIONS[0])


def _flare(index: Any, scripted: Scripted) -> Any:
    engine = index.as_query_engine(llm=scripted("6,650 km"), similarity_top_k=2)
    replies = iter(["It is [Search(How long is the Nile?)].", "It is 6,650 km long.", "done"])
    llm = scripted(lambda prompt: next(replies))
    return FLAREInstructQueryEngine(engine, llm=llm).query("How long is the Nile?")


AROUND: dict[str, Callable[[Any, Scripted], Any]] = {
    "RouterQueryEngine": _routed(LLMSingleSelector, '[{"choice": 2, "reason": "so"}]'),
    "RouterQueryEngine, several": _routed(
        LLMMultiSelector, '[{"choice": 1, "reason": "a"}, {"choice": 2, "reason": "b"}]'
    ),
    "ToolRetrieverRouterQueryEngine": _tools_by_search,
    "RetryQueryEngine": _retried,
    "FLAREInstructQueryEngine": _flare,
    "LLMRerank": _postprocessed(
        lambda scripted: LLMRerank(llm=scripted("Doc: 2, Relevance: 7\nDoc: 1, Relevance: 3"))
    ),
    "SentenceEmbeddingOptimizer": _postprocessed(
        lambda scripted: SentenceEmbeddingOptimizer(
            embed_model=Words(), percentile_cutoff=0.5, tokenizer_fn=split_sentences
        )
    ),
    "SimilarityPostprocessor": _postprocessed(
        lambda scripted: SimilarityPostprocessor(similarity_cutoff=0.2)
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_llama_indexs_components_do_the_same_around_it(
    name: str, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", scripted("It is."))  # which some of them read
    theirs, ours = (AROUND[name](index, scripted) for index in both_indexes(chunks()))
    assert str(ours) == str(theirs) != "Empty Response"
    assert [result.text for result in ours.source_nodes] == [r.text for r in theirs.source_nodes]
    assert ids(ours.source_nodes) == ids(theirs.source_nodes)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own workflows
async def test_a_workflow_of_agents_uses_the_tool(scripted: Scripted) -> None:
    index = NodeGraphIndex.from_documents(documents(), similarity="bm25")
    tool = RetrieverTool.from_defaults(
        index.as_retriever(similarity_top_k=1), name="search", description="All there is"
    )
    replies = iter(
        [
            'Thought: I look.\nAction: search\nAction Input: {"input": "fermented tea"}',
            "Thought: I can answer without using any more tools.\nAnswer: Black tea.",
        ]
    )
    llm = scripted(lambda prompt: next(replies))
    agent = ReActAgent(tools=[tool], llm=llm, streaming=False, name="a", description="a")
    assert str(await AgentWorkflow(agents=[agent]).run("Which is fermented?")) == "Black tea."
    assert "Black tea is fermented" in llm.prompts[1]


async def test_sync_calls_inside_a_running_loop(scripted: Scripted) -> None:
    """As in a notebook."""
    theirs, ours = both_indexes(chunks())
    expected = theirs.as_retriever(similarity_top_k=2).retrieve(QUESTIONS[0])
    assert ids(ours.as_retriever(similarity_top_k=2).retrieve(QUESTIONS[0])) == ids(expected)
    llm = scripted(lambda prompt: QUESTIONS[1] if "simpler questions" in prompt else "It is.")
    engine = ours.as_query_engine(llm=llm, strategy="sub_question")
    assert str(engine.query(QUESTIONS[0])) == "It is."


# The guide of recursive retrieval


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_nodes_of_the_guide_are_imported_as_they_are(question: str) -> None:
    """Small chunks that lead to their base chunk, and the base chunks that lead to themselves."""
    base: list[Any] = splitter(40).get_nodes_from_documents(documents())
    for at, node in enumerate(base):
        node.id_ = f"node-{at}"
    everything: list[Any] = []
    for node in base:
        for size in (20, 30):
            parts = splitter(size).get_nodes_from_documents([node])
            everything += [IndexNode.from_text_node(part, node.node_id) for part in parts]
        everything.append(IndexNode.from_text_node(node, node.node_id))
    recursive = RecursiveRetriever(
        "vector",
        retriever_dict={
            "vector": VectorStoreIndex(everything, embed_model=Words()).as_retriever(
                similarity_top_k=len(everything)
            )
        },
        node_dict={node.node_id: node for node in everything},
    )
    expected = [*dict.fromkeys(ids(recursive.retrieve(question)))]
    graph = NodeGraph(embed=Words(), progress=False)
    import_nodes(
        graph,
        everything,
        documents=documents(),
        groups=lambda node: "base" if node.index_id == node.node_id else "small",
    )
    search = retrievers.RecursiveRetriever(graph, ["small", "base"], "base", "cosine", top_k=2)
    assert ids(NodeGraphRetriever(search).retrieve(question)) == expected[:2]


# Which test shows what

SHOWN: list[tuple[str, str, list[str]]] = [
    # The findings: programs that had LlamaIndex's own documents, nodes and components
    ("F1", "metadata is searched and embedded as LlamaIndex embeds it, by words and by vectors",
     ["searched_metadata.py::test_metadata_is_searched_as_vector_store_index_does",
      "searched_metadata.py::test_metadata_is_searched_as_bm25_retriever_does",
      "migration.py::test_bm25_of_what_llama_index_embeds",
      "searched_metadata.py::test_the_whole_ranking_and_its_scores_are_those_of_vector_store_index"]),
    ("F1", "excluded keys, templates and separators are honoured, in every kind of node",
     ["searched_metadata.py::test_excluded_keys_templates_and_separators_are_honoured",
      "searched_metadata.py::test_any_metadata",
      "searched_metadata.py::test_chunks_of_a_parser_are_searched_as_its_own",
      "searched_metadata.py::test_imported_nodes_are_searched_as_they_were_embedded",
      "searched_metadata.py::test_windows_are_not_embedded_when_imported",
      "searched_metadata.py::test_rerankers_read_what_llama_index_embeds"]),
    ("F1", "models read what LlamaIndex lets them read",
     ["searched_metadata.py::test_what_models_are_not_to_read_is_not_shown_to_them"]),
    ("F1", "file_path of SimpleDirectoryReader and headings of Markdown are searched",
     ["searched_metadata.py::test_files_of_simple_directory_reader_are_searched_with_their_path",
      "searched_metadata.py::test_headings_of_a_markdown_document_are_searched"]),
    ("F1", "titles in metadata are worth those in the text: .61 of HotpotQA, .18 of MuSiQue",
     ["searched_metadata.py::test_titles_in_metadata_are_worth_those_in_the_text"]),
    ("F1", "the order of recursion is LlamaIndex's, for documents with metadata, too",
     ["searched_metadata.py::test_recursion_has_the_same_order_with_metadata",
      "migration.py::test_recursive_retriever_over_chunks"]),
    ("F1, #11619", "it can be switched off",
     ["searched_metadata.py::test_it_can_be_switched_off"]),
    ("F2, #8514", "an index of LlamaIndex and words over the same nodes are summed",
     ["wishes.py::test_words_beside_an_index_of_llama_index_are_summed",
      "beside_llama_index.py::test_fusion_beside_an_existing_index_sums_the_scores",
      "beside_llama_index.py::test_imported_nodes_have_their_metadata_hash_and_relationships",
      "beside_llama_index.py::test_metadata_in_another_order_than_the_documents_keeps_its_hash"]),
    ("F3", "LlamaIndex's retrievers go wherever one is expected",
     ["foreign_retrievers.py::test_a_retriever_of_llama_index_goes_wherever_one_is_expected",
      "foreign_retrievers.py::test_a_query_engine_answers_from_it_and_cites_its_nodes",
      "foreign_retrievers.py::test_results_and_scores_are_those_of_the_retriever",
      "foreign_retrievers.py::test_a_fusion_scores_as_llama_indexes",
      "foreign_retrievers.py::test_a_node_comes_back_as_it_was",
      "foreign_retrievers.py::test_the_faces_hold_it_too"]),
    ("F3", "what can't be held says so early",
     ["foreign_retrievers.py::test_what_needs_kin_says_early_that_nodes_have_none",
      "foreign_retrievers.py::test_conditions_leave_no_place_empty"]),
    ("F4, #13499", "neighbours after retrieval, from a hit",
     ["wishes.py::test_neighbours_of_hits_are_those_of_llama_indexs_index_and_docstore",
      "beside_llama_index.py::test_prev_next_postprocessor_works_from_hits"]),
    ("F4", "auto-merging fills the gap between hits",
     ["beside_llama_index.py::test_auto_merging_fills_the_gap_between_hits"]),
    ("F4", "relationships are looked up when they are read, and not before",
     ["graph_text_node.py::test_an_assignment_leaves_the_relationships_for_later",
      "relationships.py::test_reading_relationships_builds_nothing"]),
    ("F5", "fourteen operators, and, or, not, nested, find what LlamaIndex's store finds",
     ["metadata_filters.py::test_operators_find_what_llama_indexes_store_finds",
      "metadata_filters.py::test_inverse_operators_find_what_llama_indexes_store_finds",
      "metadata_filters.py::test_joined_operators_find_what_llama_indexes_store_finds",
      "metadata_filters.py::test_nested_filters"]),
    ("F5", "filters that are set later are checked then",
     ["metadata_filters.py::test_filters_that_are_set_later"]),
    ("F6", "documents are never hits by climbing",
     ["beside_llama_index.py::test_auto_merging_stops_at_the_largest_chunk",
      "migration.py::test_auto_merging_retriever",
      "beside_llama_index.py::test_whole_documents_are_not_among_the_docstores_nodes",
      "beside_llama_index.py::test_roots_and_leaves_of_exported_nodes_are_those_of_the_parser"]),
    ("F7", "StorageContext.persist keeps the nodes, or says that there are none",
     ["beside_llama_index.py::test_a_persisted_storage_context_keeps_the_docstore",
      "document_graph.py::test_a_storage_context_is_used_as_in_llama_index",
      "docstore.py::test_persisting_before_anything_is_built_says_so"]),
    ("F7", "as the docstore of an index or a pipeline it says what to do",
     ["beside_llama_index.py::test_an_index_or_pipeline_over_the_docstore_says_what_to_do"]),
    ("F8a", "a reranker has its span, in async code, too",
     ["instrumentation.py::test_rerank_events_belong_to_the_span_of_the_reranker"]),
    ("F8b", "stages are not exported as retrievers",
     ["instrumentation.py::test_no_stage_is_exported_as_another_retriever"]),
    ("F8c, #7188, #7978, #16312", "sub-questions are seen as they happen; answers are streamed",
     ["wishes.py::test_sub_questions_are_seen_as_they_happen",
      "query_engine.py::test_sub_question_events_come_before_the_answer_is_written",
      "synthesizers.py::test_streaming"]),
    ("F9", "sub_qa, errors and ended are there from any depth",
     ["retrieval_record.py::test_sub_questions_are_told_from_any_depth",
      "retrieval_record.py::test_steps_are_told_from_any_depth",
      "wishes.py::test_a_router_within_sub_questions_hides_no_failure"]),
    ("F9", "prompts at any depth are read and replaced",
     ["prompt_templates.py::test_prompts_at_any_depth_are_read_and_replaced"]),
    ("F10", "graphs with LlamaIndex's splitters are copied and pickled",
     ["beside_llama_index.py::test_a_graph_with_a_splitter_of_llama_index_is_copied_and_pickled"]),
    ("F11, #16346, #9390", "an import survives a restart without the old nodes",
     ["beside_llama_index.py::test_an_import_survives_a_restart_without_the_old_nodes",
      "article_example.py::test_it_finds_by_all_ways_and_makes_nothing_twice"]),
    ("F12", "verbose shows the walk, and a result explains itself",
     ["query_engine.py::test_verbose_shows_the_walk",
      "auto_retriever.py::test_verbose_shows_what_the_model_wrote",
      "wishes.py::test_the_child_that_matched_is_told_and_all_that_did"]),
    ("F13", "vectors that are paid for are taken over",
     ["beside_llama_index.py::test_vectors_that_nodes_have_are_taken_over_when_the_model_is_named"]),
    # Smaller ones
    ("small", "a docstore finds a node by its id, and by the id that it had",
     ["node_lookup.py::test_nodes_by_either_id",
      "docstore.py::test_the_nodes_of_an_exported_docstore"]),
    ("small", "errors say what can be done: hierarchies, models",
     ["ingestion.py::test_several_levels_at_once",
      "query_engine.py::test_without_a_model_it_is_said_how_to_give_one"]),
    ("small", "the passages behind sub-answers are sources, also for top_k=1",
     ["query_engine.py::test_the_passages_behind_sub_answers_are_sources"]),
    ("tools", "an engine over named tools tells what fails, and raises where all do",
     ["foreign_retrievers.py::"
      "test_sub_questions_over_tools_are_answered_as_by_the_engine_of_llama_index",
      "foreign_retrievers.py::test_a_tool_that_fails_or_does_not_exist_is_told"]),
    # Ported programs
    ("programs", "ten programs return the same in both forms",
     ["migration_programs.py::test_both_forms_have_the_same_results",
      "migration_programs.py::test_there_are_ten_programs",
      "migration_programs.py::test_recursive_retrieval_returns_as_many_parents_as_it_is_asked_for",
      "migration_programs.py::test_evaluation_gives_the_figures_of_each_retriever"]),
    ("programs", "the nodes of the recursive guide, with those that lead to themselves",
     ["wishes.py::test_the_nodes_of_the_guide_are_imported_as_they_are"]),
    ("programs", "what is typed first is one line",
     ["document_graph.py::test_every_first_line_of_llama_index_has_its_own_here",
      "graph_index.py::test_the_first_line_is_that_of_llama_index",
      "document_graph.py::test_from_defaults_takes_nodes_an_index_or_a_docstore",
      "graph_index.py::test_query_engines_take_the_settings_of_llama_index",
      "graph_index.py::test_results_are_chunks_of_the_settings_parser_and_sentences_are_embedded"]),
    ("programs", "a pipeline knows documents that it had",
     ["graph_transform.py::test_documents_that_are_known_are_left_out"]),
    ("programs", "agents, chat, storage, evaluation, question generation are on a page that runs",
     ["tests/test_docs.py::test_code_blocks_run_and_print_what_follows"]),
    ("programs", "metadata of results is the user's and nothing else",
     ["beside_llama_index.py::test_metadata_of_results_is_the_users"]),
    ("programs", "a folder that is read twice is there once",
     ["beside_llama_index.py::test_a_folder_that_simple_directory_reader_reads_twice_is_there_once",
      "in_the_core.py::test_what_readers_load",
      "tests/nodegraph/test_random_ids.py::test_a_changed_file_is_told_and_nothing_is_lost"]),
    ("around", "LlamaIndex's own components work around it",
     ["wishes.py::test_llama_indexs_components_do_the_same_around_it",
      "graph_index.py::test_chat_engines_are_llama_indexes",
      "in_llama_index.py::test_router", "in_llama_index.py::test_postprocessors",
      "in_llama_index.py::test_citations", "in_llama_index.py::test_query_transforms",
      "migration.py::test_hyde"]),
    ("around", "agents use its tools",
     ["in_llama_index.py::test_an_agent_uses_the_tool",
      "wishes.py::test_a_workflow_of_agents_uses_the_tool"]),
    ("around", "sync calls work inside a running loop",
     ["wishes.py::test_sync_calls_inside_a_running_loop"]),
    ("around", "limits of workers hold within one retrieval; async models embed in async code",
     ["retriever.py::test_num_workers_limits_the_branches_of_a_retrieval",
      "retriever.py::test_num_workers_of_a_query_engine",
      "wishes.py::test_passages_are_embedded_by_async_models_in_async_code"]),
    # Wishes of LlamaIndex's users
    ("#15487, #11429", "top_k counts parents",
     ["migration.py::test_recursive_retriever_over_chunks",
      "migration_programs.py::"
      "test_recursive_retrieval_returns_as_many_parents_as_it_is_asked_for"]),
    ("#10086", "which child matched; the children with their parent",
     ["wishes.py::test_the_child_that_matched_is_told_and_all_that_did"]),
    ("#10582, #21033", "one merged result; the same text of different documents is kept",
     ["wishes.py::test_a_parent_is_there_once_and_equal_texts_of_different_documents_stay",
      "wishes.py::test_two_indexes_are_merged_by_a_field_and_near_duplicates_collapsed"]),
    ("PR #22904", "a score of 0 stays 0", ["wishes.py::test_a_score_of_zero_stays_zero"]),
    ("#12504, #16945, #14346", "recursion into query engines, tables and other retrievers",
     ["wishes.py::test_entries_lead_to_other_retrievers_and_to_engines_over_tables",
      "foreign_retrievers.py::test_recursion_into_a_query_engine_answers_as_llama_indexes",
      "foreign_retrievers.py::test_a_node_that_stands_for_a_query_engine_is_followed"]),
    ("#12893, #10454, #22133", "a hierarchy follows its documents; deletions cascade",
     ["wishes.py::test_a_hierarchy_follows_its_documents",
      "graph_index.py::test_documents_come_change_and_go"]),
    ("#7435, #12115, #14239, #13488", "auto-merging over any vector store, without a second store",
     ["wishes.py::test_auto_merging_over_a_vector_store_that_holds_two_groups"]),
    ("#16945", "several groups in one vector store",
     ["wishes.py::test_auto_merging_over_a_vector_store_that_holds_two_groups",
      "vector_store_backend.py::test_several_groups_in_one_store_or_each_in_its_own"]),
    ("#14096", "relationships are followed from a hit, up and down",
     ["wishes.py::test_relations_are_followed_from_a_hit_as_in_llama_indexs_docstore"]),
    ("#13866, #17461", "words of Chinese",
     ["migration.py::test_bm25_of_what_llama_index_embeds", "migration.py::test_bm25_retriever",
      "retriever.py::test_same_nodes_as_standalone"]),
    ("#12732, #10344, #19568", "words: inserts, deletions, no document, k > n",
     ["wishes.py::test_words_of_no_document_of_few_and_of_those_that_come_and_go"]),
    ("#14959, PR #22897", "words with filters",
     ["metadata_filters.py::test_operators_find_what_llama_indexes_store_finds",
      "graph_index.py::test_filters_and_top_k_of_a_retriever"]),
    ("#13361", "words of what LlamaIndex embeds",
     ["migration.py::test_bm25_of_what_llama_index_embeds",
      "searched_metadata.py::test_metadata_is_searched_as_vector_store_index_does"]),
    ("#17106, #14802, #14075", "filters at the time of the query, in a shared engine",
     ["wishes.py::test_one_engine_serves_users_with_conditions_of_their_own"]),
    ("#18159, #8543", "a model writes the filters",
     ["auto_retriever.py::test_what_a_model_writes_finds_what_llama_indexes_own_finds",
      "auto_retriever.py::test_conditions_of_all_owners_hold",
      "auto_retriever.py::test_conditions_that_can_not_be_read_are_never_left_out"]),
    ("#21444", "reciprocal ranks have weights", ["wishes.py::test_reciprocal_ranks_have_weights"]),
    ("#9652", "no more sub-questions than the limit",
     ["wishes.py::test_no_more_sub_questions_than_the_limit",
      "question_generator.py::test_no_more_than_the_limit"]),
    ("#19917, #15136, #15080, #3894",
     "sub-questions of any model, with broken JSON or wrong names of tools",
     ["wishes.py::test_sub_questions_of_any_model_are_read",
      "question_generator.py::test_a_tool_that_there_is_not_is_told_to_the_model",
      "question_generator.py::test_in_their_sub_question_engine"]),
    ("#20904", "a sub-question that fails is told",
     ["wishes.py::test_a_sub_question_that_fails_is_told",
      "retrieval_record.py::test_a_sub_question_that_fails_is_told"]),
    ("#10468", "decomposition without answers",
     ["wishes.py::test_sub_questions_without_answers",
      "retrieval_record.py::test_retrieving_only_answers_no_sub_question_at_any_depth"]),
    ("#7436", "a conversation around sub-questions",
     ["wishes.py::test_a_conversation_around_sub_questions"]),
    ("#22635, #17876", 'steps: async, none is repeated, "nonetheless" ends nothing',
     ["migration.py::test_multi_step_query_engine", "query_engine.py::test_async_is_the_same",
      "retrieval_record.py::test_steps_end"]),
    ("#14045", "exact offsets, to highlight",
     ["migration.py::test_sentence_windows", "import_export.py::test_sentence_windows"]),
    ("#10967", "windows are not stored in every node", ["migration.py::test_sentence_windows"]),
    # The code
    ("code", "names are those of the field",
     ["tests/test_architecture.py::test_names_are_the_fields"]),
]  # fmt: skip


def node_id(name: str) -> str:
    """Return the whole node id of a test that the table names."""
    return name if "/" in name else f"tests/adapters/llama_index/test_{name}"


@pytest.mark.parametrize("name", sorted({name for *_, names in SHOWN for name in names}))
def test_what_shows_a_wish_exists_and_runs(name: str) -> None:
    assert problem(node_id(name)) is None


def test_every_finding_is_shown() -> None:
    where = {one.strip() for place, *_ in SHOWN for one in place.split(",")}
    findings = {f"F{number}" for number in range(1, 14)} - {"F8"} | {"F8a", "F8b", "F8c"}
    assert findings <= where
    assert all(names for *_, names in SHOWN)
    named = {name for *_, names in SHOWN for name in names}
    for file in ("beside_llama_index.py", "wishes.py"):
        source = Path(__file__).with_name(f"test_{file}").read_text("utf-8")
        tests = re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)
        about = ("test_what_shows_a_wish_exists_and_runs", "test_every_finding_is_shown")
        assert [t for t in tests if t not in about and f"{file}::{t}" not in named] == []
