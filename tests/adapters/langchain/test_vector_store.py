import asyncio
import pickle
import warnings
from datetime import datetime, timedelta

import langchain_peers as peers
import pytest
from blockbuster import blockbuster_ctx
from langchain_classic.retrievers import TimeWeightedVectorStoreRetriever
from langchain_core.documents import Document
from langchain_core.example_selectors import (
    MaxMarginalRelevanceExampleSelector,
    SemanticSimilarityExampleSelector,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from langchain_peers import LOADED, QUESTIONS, Pairs, ids, texts
from langchain_runs import call
from letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from nodekin.adapters.langchain.documents import from_document
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
    store = NodeGraphVectorStore(graph, **settings)
    store.add_documents(DOCUMENTS)
    return store


@pytest.fixture
def store():
    return filled()


@pytest.fixture
def words():
    """A store without a model."""
    store = NodeGraphVectorStore(NodeGraph(progress=False))
    store.add_documents(DOCUMENTS)
    return store


@pytest.fixture
def theirs():
    store = InMemoryVectorStore(Letters())
    store.add_documents(DOCUMENTS)
    return store


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_as_langchains_own(store, theirs, query):
    ours = store.similarity_search_with_score(query, k=4)
    same = theirs.similarity_search_with_score(query, k=4)
    assert [(d, pytest.approx(s, abs=1e-6)) for d, s in ours] == same
    assert store.similarity_search(query, k=2) == theirs.similarity_search(query, k=2)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("lambda_mult", [0.1, 0.5, 0.9])
async def test_various_ones_are_the_same_as_langchains_own(store, theirs, query, lambda_mult):
    settings = {"k": 3, "fetch_k": 4, "lambda_mult": lambda_mult}
    expected = theirs.max_marginal_relevance_search(query, **settings)
    assert store.max_marginal_relevance_search(query, **settings) == expected
    assert await store.amax_marginal_relevance_search(query, **settings) == expected
    vector = Letters().vector(query)
    assert store.max_marginal_relevance_search_by_vector(vector, **settings) == expected
    assert await store.amax_marginal_relevance_search_by_vector(vector, **settings) == expected


async def test_a_vector_finds_what_its_text_finds(store):
    for query in QUERIES:
        vector = Letters().vector(query)
        expected = store.similarity_search_with_score(query, k=3)
        assert store.similarity_search_with_score_by_vector(vector, k=3) == expected
        documents = [document for document, _ in expected]
        assert store.similarity_search_by_vector(vector, k=3) == documents
        assert await store.asimilarity_search_by_vector(vector, k=3) == documents


def test_filters_are_checked_before_ranking(store):
    assert ids(store.similarity_search("tea", k=2, filter={"topic": "river"})) == ["river", "河"]
    found = store.similarity_search("tea", k=4, filter={"n": {"gte": 2}, "topic": ["river", "x"]})
    assert ids(found) == ["river", "河"]
    vector = Letters().vector("tea")
    assert ids(store.similarity_search_by_vector(vector, filter={"n": 3})) == ["茶"]
    assert ids(store.max_marginal_relevance_search("tea", k=1, filter={"n": 4})) == ["河"]


def test_a_filter_of_its_own_holds_for_all_searches():
    store = filled(filter={"topic": "tea"})
    assert set(ids(store.similarity_search("river sea"))) == {"tea", "茶"}
    assert ids(store.similarity_search("river", filter={"n": 1})) == ["tea"]
    assert ids(store.similarity_search("river", filter={"topic": "river", "n": 2})) == []
    vector = Letters().vector("river")
    assert set(ids(store.similarity_search_by_vector(vector))) == {"tea", "茶"}


def test_what_is_deleted_is_gone_everywhere():
    store = filled(group="sentence", target="ROOT")
    assert ids(store.similarity_search("steamed", k=1)) == ["tea"]
    store.delete(["tea", "none"])
    assert set(ids(store.similarity_search("steamed", k=4))) == {"river", "茶", "河"}
    assert store.get_by_ids(["tea", "河", "none"]) == [DOCUMENTS[3]]


def test_pieces_are_found_and_have_a_place():
    store = filled(group="sentence", details="nested")
    (found,) = store.similarity_search("红茶", k=1)
    assert found.page_content == "红茶是红的。"
    place = found.metadata["nodekin"]
    text = store.get_by_ids([place["document_id"]])[0].page_content
    assert text[place["start"] : place["end"]] == found.page_content
    assert found.metadata["topic"] == "tea"
    assert 0 < place["score"] <= 1
    flat = filled(group="sentence", details=True).similarity_search("红茶", k=1)[0].metadata
    assert (flat["start"], flat["score"]) == (place["start"], place["score"])
    assert from_document(found).group == "sentence"
    assert store.get_by_ids([found.id])[0].page_content == found.page_content


def test_without_a_model_words_are_compared(words):
    assert ids(words.similarity_search("steamed tea")) == ["tea"]
    assert ids(words.similarity_search("红茶", k=1)) == ["茶"]
    assert words.similarity_search("nothing like it") == []
    assert words.embeddings is None
    (best, *_) = words.similarity_search_with_relevance_scores("steamed tea")
    assert 0 < best[1] < 1


def test_without_a_model_there_are_no_vectors(words):
    for search in (
        lambda: words.similarity_search_by_vector([1.0]),
        lambda: words.max_marginal_relevance_search("tea"),
    ):
        with pytest.raises(ValueError, match=r"NodeGraph\(\.\.\., embed=\.\.\.\)"):
            search()


def test_words_can_be_compared_beside_a_model():
    store = filled(similarity="bm25")
    assert ids(store.similarity_search("steamed")) == ["tea"]
    assert ids(store.max_marginal_relevance_search("tea", k=2)) == ["tea"]
    with pytest.raises(ValueError, match=r'similarity="cosine"'):
        store.similarity_search_by_vector([1.0] * 14)


def test_relevance_is_between_0_and_1():
    def opposite(texts):
        return [[-1.0 if "not" in text else 1.0] for text in texts]

    store = NodeGraphVectorStore(NodeGraph(embed=opposite, progress=False))
    store.add_texts(["it is", "it is not"])
    assert [s for _, s in store.similarity_search_with_score("so")] == [1, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [s for _, s in store.similarity_search_with_relevance_scores("so")] == [1, 0]
    retriever = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.5}
    )
    assert [d.page_content for d in retriever.invoke("so")] == ["it is"]


def test_another_similarity_says_its_range():
    @register_similarity
    def by_length(query, node):
        return -abs(len(query) - len(node.text))

    graph = NodeGraph(progress=False)
    graph.add("tea")
    bare = NodeGraphVectorStore(graph, similarity="by_length")
    with pytest.raises(ValueError, match="relevance_score_fn"):
        bare.similarity_search_with_relevance_scores("tea")
    store = NodeGraphVectorStore(
        graph, similarity="by_length", relevance_score_fn=lambda score: 1 / (1 - score)
    )
    assert [s for _, s in store.similarity_search_with_relevance_scores("te")] == [0.5]


def test_nothing_is_embedded_twice_nor_early():
    model = Letters()
    store = NodeGraphVectorStore.from_documents(DOCUMENTS, model)
    assert model.passages == []
    store.similarity_search("tea")
    store.add_documents([*DOCUMENTS, Document("New.", id="new")])
    store.similarity_search("tea")
    assert sorted(model.passages) == sorted(
        [*(document.page_content for document in DOCUMENTS), "New."]
    )
    assert model.queries == ["tea"]
    assert store.embeddings is model


def test_several_embeddings():
    class Backwards(Letters):
        ALPHABET = "s"

    graph = NodeGraph(embed={"all": Letters(), "s": Backwards()}, progress=False)
    graph.add(["sss", "tttt"])
    with pytest.raises(LookupError, match="say which embedding"):
        NodeGraphVectorStore(graph).similarity_search_by_vector([1.0, 1.0])
    store = NodeGraphVectorStore(graph, embed_key="s")
    (best,) = store.similarity_search_by_vector([1.0, 0.0], k=1)
    assert best.page_content == "sss"
    assert type(store.embeddings) is Backwards


async def test_nothing_blocks_the_event_loop(tmp_path):
    graph = NodeGraph(embed=Letters(), store=tmp_path / "g.nodekin", progress=False)
    graph.create_node_group("sentence", split_sentences)
    store = NodeGraphVectorStore(graph, "sentence", target="ROOT")
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


async def test_queries_are_embedded_by_the_async_form():
    model = Letters()
    store = NodeGraphVectorStore(NodeGraph(embed=model, progress=False))
    store.add_documents(DOCUMENTS)
    await store.asimilarity_search("tea")
    await store.amax_marginal_relevance_search("river")
    assert model.async_queries == ["tea", "river"]
    assert model.queries == []


def test_what_is_elsewhere_says_what_to_write(store):
    """As from FAISS."""
    for call_ in (store.save_local, NodeGraphVectorStore.load_local):
        with pytest.raises(
            NotImplementedError, match=r'from_documents\(.*store="corpus.nodekin"\)'
        ):
            call_("folder")


@pytest.mark.parametrize("query", ["", " \n"])
async def test_a_blank_query_lists_all_as_in_langchains_stores(store, words, theirs, query, mode):
    """In the order of the documents; also where a filter or ``k`` leaves few."""
    everything = [document.id for document in DOCUMENTS]
    assert set(ids(theirs.similarity_search(query, k=9))) == {*everything}
    face = NodeGraphRetriever.from_documents(DOCUMENTS, k=9)
    for searched in (store.as_retriever(search_kwargs={"k": 9}), words.as_retriever(), face):
        assert ids(await call(searched, mode, query)) == everything
        assert ids(await call(searched, mode, query, filter={"topic": "tea"})) == ["tea", "茶"]
        assert ids(await call(searched, mode, query, k=2)) == everything[:2]
    assert ids(store.max_marginal_relevance_search(query)) == everything
    assert face.batch([query, "steamed"], k=1) == [[DOCUMENTS[0]], [DOCUMENTS[0]]]


def test_it_can_be_pickled(store):
    again = pickle.loads(pickle.dumps(store))
    assert again.similarity_search("红茶", k=2) == store.similarity_search("红茶", k=2)


def test_time_weighted_retrieval_holds_a_vector_store_of_nodes():
    now = datetime.now()

    def memories():
        return [
            Document(
                document.page_content,
                metadata={**document.metadata, "last_accessed_at": now - timedelta(days=days)},
                id=document.id,
            )
            for document, days in zip(peers.DOCUMENTS, (1000, 0, 2000, 0), strict=True)
        ]

    found = []

    class Scored(InMemoryVectorStore):
        def _select_relevance_score_fn(self):
            return lambda score: score

    for store in (Scored(Pairs()), NodeGraphVectorStore(NodeGraph(embed=Pairs()))):
        retriever = TimeWeightedVectorStoreRetriever(vectorstore=store, decay_rate=0.5, k=2)
        retriever.add_documents(memories(), current_time=now)
        found.append([texts(retriever.invoke(question)) for question in QUESTIONS])
    assert found[0] == found[1]


EXAMPLES = [
    {"question": "Which tea is green?", "answer": "The steamed one."},
    {"question": "Where do rivers run?", "answer": "To the sea."},
    {"question": "红茶怎么做？", "answer": "发酵。"},
]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.parametrize("question", QUESTIONS)
async def test_example_selectors_hold_a_vector_store_of_nodes(question):
    chosen = []
    for kind in (InMemoryVectorStore, NodeGraphVectorStore):
        nearest = SemanticSimilarityExampleSelector.from_examples(EXAMPLES, Pairs(), kind, k=1)
        nearest.add_example({"question": "What are beans for?", "answer": "Coffee."})
        diverse = MaxMarginalRelevanceExampleSelector.from_examples(
            EXAMPLES, Pairs(), kind, k=2, fetch_k=3
        )
        asked = {"question": question}
        chosen.append(
            [
                nearest.select_examples(asked),
                await nearest.aselect_examples(asked),
                diverse.select_examples(asked),
                await diverse.aselect_examples(asked),
            ]
        )
    theirs, ours = chosen
    assert ours == theirs


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
async def test_the_filter_of_a_call_is_added(search_type, mode):
    graph = NodeGraph(embed=lambda texts: [[len(text), 1.0] for text in texts], progress=False)
    fields = [{"tenant": tenant, "year": year} for tenant in "ab" for year in (1, 2)]
    graph.add([Document("Tea {tenant}{year}".format(**each), metadata=each) for each in fields])
    own = {"filter": {"tenant": "a"}, "k": 4}
    retriever = NodeGraphVectorStore(graph).as_retriever(
        search_type=search_type, search_kwargs=own, tags=["x"]
    )
    assert isinstance(retriever, VectorStoreRetriever)
    assert retriever.tags == ["x"]

    async def texts(**options):
        if mode == "sync":
            found = retriever.invoke("Tea", **options)
        else:
            found = await retriever.ainvoke("Tea", **options)
        return sorted(document.page_content for document in found)

    assert await texts() == ["Tea a1", "Tea a2"]
    assert await texts(filter=None) == ["Tea a1", "Tea a2"]
    assert await texts(filter={"year": 1}) == ["Tea a1"]
    assert await texts(filter={"year": {"$gte": 2}}) == ["Tea a2"]
    assert await texts(filter={"tenant": "b"}) == []
    assert await texts(k=1, filter={"tenant": ["a", "b"]}) == ["Tea a1"]


@pytest.mark.parametrize("embedding", [None, Pairs()])
def test_a_vector_store_with_and_without_an_embedding(embedding):
    store = NodeGraphVectorStore.from_documents(peers.DOCUMENTS, embedding)
    assert store.similarity_search("Black tea is fermented.", k=1) == [peers.DOCUMENTS[0]]
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("Coffee is roasted.") == [
        peers.DOCUMENTS[3]
    ]
    parents = NodeGraphVectorStore.from_documents(
        peers.DOCUMENTS, embedding, group="FineChunk", target="ROOT"
    )
    assert parents.similarity_search("The sea is salty.", k=1) == [peers.DOCUMENTS[1]]
    metadatas = [document.metadata for document in peers.DOCUMENTS]
    store = NodeGraphVectorStore.from_texts(
        texts(peers.DOCUMENTS), embedding, metadatas, ids=ids(peers.DOCUMENTS)
    )
    assert store.as_retriever().invoke("Coffee is roasted.")[0] == peers.DOCUMENTS[3]


def test_a_subclass_has_options_and_defaults_of_its_author():
    class OfTenant(NodeGraphVectorStore):
        def __init__(self, graph, *, tenant, **options):
            super().__init__(graph, filter={"tenant": tenant}, **options)

    class Renamed(NodeGraphVectorStore):
        pass

    documents = [Document("Tea.", metadata={"tenant": name}) for name in "ab"]
    metadatas = [document.metadata for document in documents]
    for store in (
        OfTenant.from_documents(documents, tenant="a", details=False),
        OfTenant.from_texts(texts(documents), metadatas=metadatas, tenant="a"),
    ):
        assert [d.metadata["tenant"] for d in store.similarity_search("tea")] == ["a"]
    for made, says in ((OfTenant, "'tenant'"), (Renamed, r"no argument 'tenants'; there is ids")):
        with pytest.raises(TypeError, match=says):
            made.from_documents(documents, tenants="a")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda made: made.from_documents(LOADED, None, collection_name="a"),
         r"^from_documents\(\) has no argument 'collection_name'; there is ids, store, group"),
        (lambda made: made.from_texts(["a"], None, persist_directory="./db"),
         r"^from_texts\(\) has no argument 'persist_directory'; there is ids, store, group"),
        (lambda made: made.from_documents(LOADED).as_retriever(k=1),
         r"^as_retriever\(\) has no argument 'k'; there is search_type, search_kwargs"),
        (lambda made: made.from_documents(LOADED).similarity_search("a", score_threshold=0.5),
         r"^similarity_search\(\) has no argument 'score_threshold'; there is k, filter"),
        (lambda made: made.from_documents(LOADED).delete([], all=True), "no argument 'all'"),
        (lambda made: made.from_documents(LOADED).add_documents([], size=3), "no argument 'size'"),
        (lambda made: made.from_documents(LOADED).max_marginal_relevance_search("tea", l=1),
         r"no argument 'l'; there is k, fetch_k, lambda_mult, filter"),
        (lambda made: made("tea"), r"^graph is a NodeGraph or an embedding model, not 'tea'"),
        (lambda made: made.from_documents(LOADED[0]), r"a list of LangChain documents, .*write \["),
        (lambda made: made.from_texts("tea"), r"^texts is a list of texts, not 'tea'"),
    ],
)  # fmt: skip
def test_first_lines_of_other_stores_are_errors_that_say_what_there_is(call, says):
    """LangChain's own stores pass over some of them, or take a text for its letters."""
    with pytest.raises(TypeError, match=says):
        call(NodeGraphVectorStore)


def test_an_empty_store_of_a_model():
    stores = [InMemoryVectorStore(Letters()), NodeGraphVectorStore(Letters())]
    for store in stores:
        store.add_documents(peers.DOCUMENTS)
    found = [ids(store.similarity_search("Coffee is roasted.", k=2)) for store in stores]
    assert found[0] == found[1]
