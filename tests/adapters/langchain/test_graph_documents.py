"""The first lines: a retriever of documents in one, as people type them for LangChain's own."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_peers import DOCUMENTS, Pairs, ids, splitter, texts
from letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import EmbeddingError, NodeGraph, UnknownGroupError, split_sentences
from nodekin.retrievers import DefaultRetriever, FusionRetriever, Retriever


@pytest.mark.parametrize("embedding", [None, Pairs()])
def test_documents_come_back_as_they_were_given(embedding):
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS, embedding)
    documents = retriever.invoke("Black tea is fermented.")
    assert documents[0] == DOCUMENTS[0]
    given = {document.id: document for document in DOCUMENTS}
    assert all(document == given[document.id] for document in documents)


def test_as_many_documents_as_langchain_returns_by_default():
    many = [Document(f"Tea number {n}.", id=str(n)) for n in range(9)]
    assert len(NodeGraphRetriever.from_documents(many).invoke("tea")) == 4
    assert len(NodeGraphRetriever.from_documents(many, k=2).invoke("tea")) == 2
    assert len(NodeGraphRetriever.from_documents(many, k=2).invoke("tea", k=7)) == 7


def test_bm25_retriever_from_documents():
    pytest.importorskip("rank_bm25", reason="BM25Retriever needs rank-bm25")
    community = pytest.importorskip(
        "langchain_community.retrievers",
        reason="BM25Retriever is in langchain-community",
        exc_type=ImportError,
    )
    theirs = community.BM25Retriever.from_documents(
        DOCUMENTS, k=2, preprocess_func=lambda text: text.lower().replace(".", "").split()
    )
    ours = NodeGraphRetriever.from_documents(DOCUMENTS, k=2)
    for question in ("fermented tea", "rivers run", "roasted beans"):
        assert ours.invoke(question)[0] == theirs.invoke(question)[0]
    assert ids(ours.invoke("红茶发酵吗？"))[:1] == ["茶"] != ids(theirs.invoke("红茶发酵吗？"))[:1]


def test_the_best_sentence_is_the_evidence():
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS, details=True)
    metadata = retriever.invoke("Is black tea fermented?", k=1)[0].metadata
    assert metadata["evidence"] == "Black tea is fermented."
    assert (
        DOCUMENTS[0].page_content[metadata["start"] : metadata["end"]] == "Black tea is fermented."
    )


def test_from_texts():
    retriever = NodeGraphRetriever.from_texts(
        texts(DOCUMENTS), metadatas=[d.metadata for d in DOCUMENTS], ids=ids(DOCUMENTS)
    )
    assert retriever.invoke("roasted coffee", k=1) == [DOCUMENTS[3]]
    assert ids(NodeGraphRetriever.from_texts(["Tea."]).invoke("tea")) != [None]
    with pytest.raises(ValueError, match="1 texts and 2 metadatas"):
        NodeGraphRetriever.from_texts(["Tea."], metadatas=[{}, {}])
    with pytest.raises(TypeError, match="metadatas="):  # where BM25Retriever has them
        NodeGraphRetriever.from_texts(["Tea."], [{"source": "tea.md"}])


async def test_documents_are_added_updated_and_removed():
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS[:2])
    assert retriever.add_documents(DOCUMENTS[2:3]) == ["茶"]
    assert await retriever.aadd_documents([Document("Cocoa is ground.")], ids=["cocoa"]) == [
        "cocoa"
    ]
    assert ids(await retriever.ainvoke("ground cocoa")) == ["cocoa"]
    retriever.add_documents([Document("Tea is a plant.", id="tea")])
    assert ids(retriever.invoke("fermented")) == []
    assert ids(retriever.invoke("plant")) == ["tea"]
    retriever.graph.remove(["tea"])
    assert ids(retriever.invoke("plant")) == []


def test_a_threshold_means_the_same_for_all_questions():
    asked, other = "Which tea is fermented, black or green?", "Where is the tea museum of Oslo?"
    for embedding in (None, Pairs()):
        retriever = NodeGraphRetriever.from_documents(DOCUMENTS, embedding, score_threshold=0.5)
        assert retriever.invoke(asked)
        assert retriever.invoke(other) == []
        assert retriever.invoke(other, score_threshold=0.1)
        with pytest.raises(ValueError, match="score_threshold is a number from 0 to 1"):
            retriever.invoke(other, score_threshold=80)
    with pytest.raises(ValueError, match="score_threshold is a number from 0 to 1"):
        NodeGraphRetriever.from_documents(DOCUMENTS, score_threshold=-0.5)
    by_words = NodeGraphRetriever.from_documents(DOCUMENTS, similarity="bm25", score_threshold=2)
    assert by_words.invoke(asked)


def test_all_options_of_the_search_are_reached():
    retriever = NodeGraphRetriever.from_documents(
        DOCUMENTS,
        Pairs(),
        group="FineChunk",
        target="CoarseChunk",
        similarity="cosine",
        similarity_cut_off=0.1,
        lift="sum",
        index="default",
        filter={"year": {"gte": 2000}},
        child_k=3,
        score_threshold=0.2,
        details=True,
        k=2,
        tags=["notes"],
    )
    search = retriever.retriever
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target, search.settings.lift) == (
        "FineChunk",
        "CoarseChunk",
        "sum",
    )
    assert search.similarity_cut_off == 0.1
    assert (retriever.child_k, retriever.k, retriever.tags) == (3, 2, ["notes"])
    years = [document.metadata["year"] for document in retriever.invoke("Tea comes from leaves.")]
    assert years
    assert min(years) >= 2000


@pytest.mark.parametrize("name", ["top_k", "filters", "search_kwargs", "kk"])
def test_an_unknown_option_is_told_what_there_is(name):
    with pytest.raises(TypeError, match=f"no argument '{name}'; there is .*k, child_k"):
        NodeGraphRetriever.from_documents(DOCUMENTS, **{name: 3})


def test_a_splitter_and_a_group_exclude_each_other():
    with pytest.raises(ValueError, match="child_splitter makes the group"):
        NodeGraphRetriever.from_documents(DOCUMENTS, child_splitter=splitter(9), group="ROOT")
    with pytest.raises(ValueError, match="parent_splitter makes the group"):
        NodeGraphRetriever.from_documents(DOCUMENTS, parent_splitter=splitter(9), target="ROOT")
    with pytest.raises(UnknownGroupError):
        NodeGraphRetriever.from_documents(DOCUMENTS, group="chunk")
    with pytest.raises(TypeError, match="for texts there are"):
        NodeGraphRetriever.from_documents(["Tea."])


def test_from_graph():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    graph.create_node_group("line", split_sentences)
    retriever = NodeGraphRetriever.from_graph(graph, group="line", k=1)
    assert retriever.graph is graph
    assert retriever.invoke("salty sea") == [DOCUMENTS[1]]
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        NodeGraphRetriever.from_graph(DOCUMENTS)
    with pytest.raises(ValueError, match="has no graph"):
        NodeGraphRetriever(Retriever(graph, "ROOT")).add_documents(DOCUMENTS)


@pytest.fixture(params=["memory", "file"])
def graph(request, tmp_path):
    file = tmp_path / "graph.nodekin" if request.param == "file" else None
    with NodeGraph(store=file, embed=Letters(), progress=False) as graph:
        graph.create_node_group("sentence", split_sentences)
        yield graph


@pytest.fixture
def documents(graph):
    words = Retriever(graph, "sentence", "bm25", target="ROOT")
    meaning = Retriever(graph, "sentence", "cosine", target="ROOT")
    return NodeGraphRetriever(graph=graph, retriever=FusionRetriever([words, meaning]), k=1)


@pytest.fixture
def records():
    records = InMemoryRecordManager(namespace="test")
    records.create_schema()
    return records


def pages(**texts):
    return [Document(text, metadata={"source": name}) for name, text in texts.items()]


def group_texts(graph, group="ROOT"):
    return sorted(node.text.strip() for node in graph.nodes(group))


SETTINGS = {"source_id_key": "source", "key_encoder": "sha256"}


async def run(mode, *args, **settings):
    if mode == "sync":
        return index(*args, **settings, **SETTINGS)
    return await aindex(*args, **settings, **SETTINGS)


async def test_only_what_changed_is_replaced_and_embedded(documents, graph, records, mode):
    """A page that changed loses its old parents and children; others stay."""
    model = graph.embeddings.embedder("default").embed.__self__
    sentences = ["Tea is green.", "Tea is hot.", "河很长。", "河流入海。"]
    first = pages(tea="Tea is green. Tea is hot.", 河="河流入海。河很长。")
    done = await run(mode, first, records, documents, cleanup="incremental")
    assert (done["num_added"], done["num_deleted"]) == (2, 0)
    assert documents.invoke("hot tea")[0].metadata["source"] == "tea"
    assert group_texts(graph, "sentence") == sentences
    assert len(model.passages) == 4
    changed = pages(tea="Tea is green. Tea is cold.")
    done = await run(mode, changed, records, documents, cleanup="incremental")
    assert (done["num_added"], done["num_deleted"]) == (1, 1)
    assert group_texts(graph, "sentence") == ["Tea is cold.", *sentences[:1], *sentences[2:]]
    assert documents.invoke("hot or cold?")[0].page_content == "Tea is green. Tea is cold."
    assert [text.strip() for text in model.passages[4:]] == ["Tea is cold."]


def test_the_default_searches_documents():
    graph = NodeGraph(progress=False)
    documents = NodeGraphRetriever(graph=graph, k=1)
    documents.upsert([Document("红茶是红的。", id="茶"), Document("Tea is hot.", id="tea")])
    assert [d.id for d in documents.invoke("红茶")] == ["茶"]
    with_model = NodeGraphRetriever(graph=NodeGraph(embed=Letters(), progress=False))
    assert isinstance(with_model.retriever, DefaultRetriever)
    assert [name for name, _ in with_model.retriever.inner_retrievers][2:] == ["default"]


@pytest.mark.parametrize(
    "call",
    [
        lambda it: it.upsert([], ids=["1"]),
        lambda it: it.delete([], everything=True),
        lambda it: it.get([], group="x"),
    ],
)
def test_unknown_arguments_are_refused(documents, call):
    with pytest.raises(TypeError, match="has no argument"):
        call(documents)


def test_words_answer_if_the_embedder_is_down(caplog):
    class Down(DeterministicFakeEmbedding):
        def embed_query(self, text):
            raise ConnectionError("no server")

    documents = [Document("Green tea is steamed.", id="tea"), Document("Rivers run.", id="rivers")]
    retriever = NodeGraphRetriever.from_documents(documents, Down(size=8), details="nested")
    (found,) = retriever.invoke("Which is steamed?")
    assert found.id == "tea"
    assert "no server" in found.metadata["nodekin"]["evidence"][0]["variants"][0]["note"]
    assert "words alone answer" in caplog.text
    strict = NodeGraphRetriever.from_documents(documents, Down(size=8), embed_keys=["default"])
    with pytest.raises(EmbeddingError, match="no server"):
        strict.invoke("Which is steamed?")
