import asyncio
import inspect
import pickle
import re
import warnings

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever
from support import langchain_peers as peers
from support.langchain_peers import LOADED, Pairs, ids, texts
from support.langchain_runs import call
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphVectorStore
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import register_similarity

DOCUMENTS = [
    Document("Green tea is steamed. Tea is hot.", id="tea", metadata={"topic": "tea", "n": 1}),
    Document("Rivers run to the sea.", id="river", metadata={"topic": "river", "n": 2}),
    Document("绿茶是绿的。红茶是红的。", id="茶", metadata={"topic": "tea", "n": 3}),
    Document("河流入海。河很长。", id="河", metadata={"topic": "river", "n": 4}),
]
QUERIES = ["a sea of tea", "红茶", "河与 rivers", "steamed"]


def filled(**settings):
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.create_node_group("sentence", split_sentences)
    store = NodeGraphVectorStore.from_graph(graph, **settings)
    store.add_documents(DOCUMENTS)
    return store


@pytest.fixture
def store():
    return filled()


@pytest.fixture
def words():
    """A store without a model."""
    store = NodeGraphVectorStore()
    store.add_documents(DOCUMENTS)
    return store


@pytest.fixture
def theirs():
    store = InMemoryVectorStore(Letters())
    store.add_documents(DOCUMENTS)
    return store


def test_search_defaults_equal_those_of_langchain():
    for name in filter(re.compile("^a?(similarity|max_marginal).*search").match, dir(VectorStore)):
        ours, theirs = (
            inspect.signature(getattr(kind, name)).parameters
            for kind in (NodeGraphVectorStore, InMemoryVectorStore)
        )
        for option in {"k", "fetch_k", "lambda_mult"} & {*ours}:
            assert ours[option].default == theirs[option].default, (name, option)


@pytest.mark.parametrize("query", QUERIES)
def test_similarity_search_equals_in_memory_store(store, theirs, query):
    ours = store.similarity_search_with_score(query, k=4)
    same = theirs.similarity_search_with_score(query, k=4)
    assert [(d, pytest.approx(s, abs=1e-6)) for d, s in ours] == same
    assert store.similarity_search(query, k=2) == theirs.similarity_search(query, k=2)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("lambda_mult", [0.1, 0.5, 0.9])
async def test_mmr_equals_in_memory_store(store, theirs, query, lambda_mult):
    settings = {"k": 3, "fetch_k": 4, "lambda_mult": lambda_mult}
    expected = theirs.max_marginal_relevance_search(query, **settings)
    assert store.max_marginal_relevance_search(query, **settings) == expected
    assert await store.amax_marginal_relevance_search(query, **settings) == expected
    vector = Letters().vector(query)
    assert store.max_marginal_relevance_search_by_vector(vector, **settings) == expected
    assert await store.amax_marginal_relevance_search_by_vector(vector, **settings) == expected


async def test_search_by_vector_equals_search_by_text(store):
    for query in QUERIES:
        vector = Letters().vector(query)
        expected = store.similarity_search_with_score(query, k=3)
        documents = [document for document, _ in expected]
        assert store.similarity_search_by_vector(vector, k=3) == documents
        assert await store.asimilarity_search_by_vector(vector, k=3) == documents


def test_filter_is_checked_before_ranking(store):
    assert ids(store.similarity_search("tea", k=2, filter={"topic": "river"})) == ["river", "河"]
    found = store.similarity_search("tea", k=4, filter={"n": {"gte": 2}, "topic": ["river", "x"]})
    assert ids(found) == ["river", "河"]
    vector = Letters().vector("tea")
    assert ids(store.similarity_search_by_vector(vector, filter={"n": 3})) == ["茶"]
    assert ids(store.max_marginal_relevance_search("tea", k=1, filter={"n": 4})) == ["河"]


def test_own_filter_holds_for_all_searches():
    store = filled(filter={"topic": "tea"})
    assert set(ids(store.similarity_search("river sea"))) == {"tea", "茶"}
    assert ids(store.similarity_search("river", filter={"n": 1})) == ["tea"]
    assert ids(store.similarity_search("river", filter={"topic": "river", "n": 2})) == []
    vector = Letters().vector("river")
    assert set(ids(store.similarity_search_by_vector(vector))) == {"tea", "茶"}


def test_delete_removes_nodes_of_all_groups():
    store = filled(group="sentence", target="ROOT")
    assert ids(store.similarity_search("steamed", k=1)) == ["tea"]
    store.delete(["tea", "none"])
    assert set(ids(store.similarity_search("steamed", k=4))) == {"river", "茶", "河"}
    assert store.get_by_ids(["tea", "河", "none"]) == [DOCUMENTS[3]]


def test_store_without_model_searches_words(words):
    assert ids(words.similarity_search("steamed tea")) == ["tea"]
    assert ids(words.similarity_search("红茶", k=1)) == ["茶"]
    assert words.similarity_search("nothing like it") == []
    assert words.embeddings is None
    (best, *_) = words.similarity_search_with_relevance_scores("steamed tea")
    assert 0 < best[1] < 1


def test_vector_search_without_model_raises(words):
    for search in (
        lambda: words.similarity_search_by_vector([1.0]),
        lambda: words.max_marginal_relevance_search("tea"),
    ):
        with pytest.raises(ValueError, match="requires an embedding model"):
            search()


def test_bm25_store_with_model_searches_words():
    store = filled(similarity="bm25")
    assert ids(store.similarity_search("steamed")) == ["tea"]
    with pytest.raises(ValueError, match="similarity='cosine'"):
        store.similarity_search_by_vector([1.0] * 14)


def test_relevance_scores_are_between_0_and_1():
    def opposite(texts):
        return [[-1.0 if "not" in text else 1.0] for text in texts]

    store = NodeGraphVectorStore(opposite)
    store.add_texts(["it is", "it is not"])
    assert [s for _, s in store.similarity_search_with_score("so")] == [1, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [s for _, s in store.similarity_search_with_relevance_scores("so")] == [1, 0]
    retriever = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.5}
    )
    assert [d.page_content for d in retriever.invoke("so")] == ["it is"]


def test_custom_similarity_requires_relevance_score_fn():
    @register_similarity
    def by_length(query, node):
        return -abs(len(query) - len(node.text))

    graph = NodeGraph(progress=False)
    graph.add("tea")
    bare = NodeGraphVectorStore.from_graph(graph, similarity="by_length")
    with pytest.raises(ValueError, match="relevance_score_fn"):
        bare.similarity_search_with_relevance_scores("tea")
    store = NodeGraphVectorStore.from_graph(
        graph, similarity="by_length", relevance_score_fn=lambda score: 1 / (1 - score)
    )
    assert [s for _, s in store.similarity_search_with_relevance_scores("te")] == [0.5]


def test_texts_are_embedded_once_when_added():
    model = Letters()
    store = NodeGraphVectorStore.from_documents(DOCUMENTS, model)
    assert len(model.passages) == len(DOCUMENTS)
    store.similarity_search("tea")
    store.add_documents([*DOCUMENTS, Document("New.", id="new")])
    store.similarity_search("tea")
    assert sorted(model.passages) == sorted(
        [*(document.page_content for document in DOCUMENTS), "New."]
    )
    assert model.queries == ["tea"]
    assert store.embeddings is model


async def test_async_methods_do_not_block_loop(tmp_path):
    graph = NodeGraph(embed=Letters(), store=tmp_path / "g.nodekin", progress=False)
    graph.create_node_group("sentence", split_sentences)
    store = NodeGraphVectorStore.from_graph(graph, group="sentence", target="ROOT")
    vector = Letters().vector("tea")
    with blockbuster_ctx():
        await store.aadd_documents(DOCUMENTS)
        await store.aadd_texts(["more"], ids=["more"])
        assert ids(await store.asimilarity_search("河", k=1)) == ["河"]
        assert len(await store.asimilarity_search_with_relevance_scores("河", k=1)) == 1
        assert len(await store.asimilarity_search_by_vector(vector, k=2)) == 2
        assert len(await store.amax_marginal_relevance_search("tea", k=2)) == 2
        assert len(await store.amax_marginal_relevance_search_by_vector(vector, k=2)) == 2
        assert ids(await store.aget_by_ids(["tea"])) == ["tea"]
        assert await store.adelete(["tea"])
        made = await NodeGraphVectorStore.afrom_documents(
            DOCUMENTS, Letters(), store=tmp_path / "h.nodekin"
        )
    assert len(made.graph.nodes("ROOT")) == 4
    await asyncio.to_thread(made.graph.close)
    graph.close()


@pytest.mark.parametrize("query", ["", " \n"])
async def test_blank_query_lists_documents_in_order(store, words, theirs, query, mode):
    everything = [document.id for document in DOCUMENTS]
    assert set(ids(theirs.similarity_search(query, k=9))) == {*everything}
    for searched in (store.as_retriever(search_kwargs={"k": 9}), words.as_retriever()):
        assert ids(await call(searched, mode, query)) == everything
        assert ids(await call(searched, mode, query, filter={"topic": "tea"})) == ["tea", "茶"]
        assert ids(await call(searched, mode, query, k=2)) == everything[:2]
    assert ids(store.max_marginal_relevance_search(query)) == everything


def test_store_is_picklable(store):
    again = pickle.loads(pickle.dumps(store))
    assert again.similarity_search("红茶", k=2) == store.similarity_search("红茶", k=2)


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
async def test_as_retriever_adds_filter_of_call(search_type, mode):
    documents = [
        Document(f"Tea {tenant}{year}", metadata={"tenant": tenant, "year": year})
        for tenant in "ab"
        for year in (1, 2)
    ]
    own = {"filter": {"tenant": "a"}, "k": 4}
    retriever = NodeGraphVectorStore.from_documents(documents, Letters()).as_retriever(
        search_type=search_type, search_kwargs=own, tags=["x"]
    )
    assert isinstance(retriever, VectorStoreRetriever)
    assert retriever.tags == ["x"]
    for options, expected in (
        ({}, ["Tea a1", "Tea a2"]),
        ({"filter": None}, ["Tea a1", "Tea a2"]),
        ({"filter": {"year": {"$gte": 2}}}, ["Tea a2"]),
        ({"filter": {"tenant": "b"}}, []),
        ({"k": 1, "filter": {"tenant": ["a", "b"]}}, ["Tea a1"]),
    ):
        assert sorted(texts(await call(retriever, mode, "Tea", **options))) == expected


def test_constructor_takes_embedding_and_store(tmp_path):
    path = tmp_path / "tea.nodekin"
    store = NodeGraphVectorStore(Letters(), store=path)
    store.add_documents(DOCUMENTS)
    expected = store.similarity_search("steamed tea", k=2)
    store.graph.close()
    again = NodeGraphVectorStore(Letters(), store=path)
    assert again.similarity_search("steamed tea", k=2) == expected
    again.graph.close()
    with pytest.raises(TypeError, match=r"from_graph\(graph\)$"):
        NodeGraphVectorStore(NodeGraph(), store=path)


@pytest.mark.parametrize("embedding", [None, Pairs()])
def test_group_and_target_select_the_results(embedding):
    documents = peers.DOCUMENTS
    options = {"group": "FineChunk", "target": "ROOT"}
    parents = NodeGraphVectorStore.from_documents(documents, embedding, **options)
    assert parents.similarity_search("The sea is salty.", k=1) == [documents[1]]
    store = NodeGraphVectorStore.from_documents(
        documents, embedding, group="FineChunk", score_key="score"
    )
    (chunk,) = store.similarity_search("The sea is salty.", k=1)
    assert chunk.metadata["score"] > 0
    assert chunk.metadata["topic"] == documents[1].metadata["topic"]
    (stored,) = store.get_by_ids([chunk.id])
    assert (stored.page_content, "score" in stored.metadata) == (chunk.page_content, False)
    with pytest.raises(ValueError, match="derived from the document"):
        store.delete([chunk.id])


def test_saved_store_is_loaded_without_embedding(tmp_path):
    store = NodeGraphVectorStore.from_documents(DOCUMENTS, Letters())
    store.save_local(tmp_path / "saved")
    model = Letters()
    loaded = NodeGraphVectorStore.load_local(
        tmp_path / "saved", model, allow_dangerous_deserialization=True
    )
    assert loaded.similarity_search("红茶", k=2) == store.similarity_search("红茶", k=2)
    assert model.passages == []
    loaded.delete(["tea"])
    loaded.save_local(tmp_path / "saved")  # its own file
    store.add_documents([Document("More.", id="more")])
    store.save_local(tmp_path / "saved", "second")
    loaded.graph.close()
    again = NodeGraphVectorStore.load_local(tmp_path / "saved", model)
    second = NodeGraphVectorStore.load_local(tmp_path / "saved", model, "second")
    assert [ids(s.similarity_search("", k=9)) for s in (again, second)] == [
        ["river", "茶", "河"],
        ["tea", "river", "茶", "河", "more"],
    ]
    for each in (again, second):
        each.graph.close()
    with pytest.raises(FileNotFoundError, match="pass a folder that save_local wrote"):
        NodeGraphVectorStore.load_local(tmp_path, model)


def test_save_local_with_objects_in_metadata_raises(tmp_path):
    store = NodeGraphVectorStore()
    store.add_documents([Document("Tea.", metadata={"owner": object()})])
    with pytest.raises(TypeError, match="object"):
        store.save_local(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda store: NodeGraphVectorStore(collection_name="a"), "store= holds one collection"),
        (lambda store: NodeGraphVectorStore(persist_directory="./db"), "is called 'store' here"),
        (lambda store: NodeGraphVectorStore(simularity=3), "simularity"),
        (lambda store: store.as_retriever(k=1), r'as_retriever.*; write search_kwargs={"k": ...}'),
        (lambda store: store.as_retriever(top_k=1), r'; write search_kwargs={"k": ...}'),
        (lambda store: NodeGraphVectorStore(NodeGraph()), r"from_graph\(graph\)$"),
        (lambda store: NodeGraphVectorStore.from_graph([]), "graph must be a NodeGraph"),
        (lambda store: store.similarity_search("a", where={}), "'where' is called 'filter' here"),
        (lambda store: store.delete([], all=True), "delete has no argument 'all'"),
        (lambda store: store.add_documents([], size=3), "add_documents has no argument 'size'"),
        (lambda store: store.add_documents(LOADED[0]), "must be LangChain documents"),
        (lambda store: NodeGraphVectorStore.from_texts("tea"), "must be a list of texts"),
    ],
)
def test_wrong_arguments_raise(store, wrong, says):
    with pytest.raises(TypeError, match=says):
        wrong(store)


def test_delete_without_ids_raises(store):
    with pytest.raises(ValueError, match="requires the ids"):
        store.delete()


# Documents in parts

MODEL = DeterministicFakeEmbedding(size=16)
TOPICS = ("green", "black", "white", "yellow", "oolong", "herbal", "iced", "jasmine")


def parts(with_ids=True):
    """Return the chunks of one source document."""
    source = {"source": "tea.pdf"}
    return [
        Document(f"About {topic} tea.", metadata=source, id=f"{at}" if with_ids else None)
        for at, topic in enumerate(TOPICS)
    ]


def content(store):
    found = store.similarity_search("About tea.", k=20)
    return sorted((document.page_content, document.metadata) for document in found)


@pytest.mark.parametrize("size", [1, 2, -1])
@pytest.mark.parametrize("with_ids", [True, False])
def test_add_documents_in_batches_keeps_all(with_ids, size, tmp_path):
    theirs = InMemoryVectorStore(MODEL)
    ours = NodeGraphVectorStore.from_documents([], MODEL, store=tmp_path / "tea.nodekin")
    for at in range(0, 8, abs(size)):
        batch = parts(with_ids)[:: 1 if size > 0 else -1][at : at + abs(size)]
        theirs.add_documents(batch)
        ours.add_documents(batch)
    assert len(content(ours)) == 8
    assert content(ours) == content(theirs)
    ours.graph.close()
    reopened = NodeGraphVectorStore.from_documents([], MODEL, store=tmp_path / "tea.nodekin")
    assert content(reopened) == content(theirs)


@pytest.mark.parametrize("cleanup", [None, "incremental", "full", "scoped_full"])
def test_index_with_a_record_manager_keeps_all(cleanup):
    """The last run lacks two chunks of the source and has another chunk."""
    later = [*parts()[:6], Document("About coffee.", metadata={"source": "tea.pdf"}, id="new")]
    options = {"batch_size": 2, "source_id_key": "source", "key_encoder": "sha256"}
    outcomes = []
    for store in (InMemoryVectorStore(MODEL), NodeGraphVectorStore.from_documents([], MODEL)):
        records = InMemoryRecordManager(namespace="tea")
        records.create_schema()
        runs = [
            index(documents, records, store, cleanup=cleanup, **options)
            for documents in (parts(), parts(), later)
        ]
        outcomes.append((runs, content(store)))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[1][1]) == (9 if cleanup is None else 7)
