import itertools
import threading

import distances
import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.langchain.vector_store_backend import GraphEmbeddings, as_index
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, RecursiveRetriever, Retriever, register_index

TEXTS = [
    "Green tea is steamed. Black tea is not. Tea is hot.",
    "Rivers run to the sea. Some dry out. Tea grows along rivers.",
    "绿茶不发酵。红茶发酵。茶树喜欢温暖的山坡。",
    "河流入海。河水很红。The river 河 is green.",
]
QUERIES = ["Is tea hot?", "红茶", "河 river", "dry", "sea"]


class Store(InMemoryVectorStore):
    """Counts what is asked of it; refuses what stricter stores refuse."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.asked = []
        self.added = []
        self.deleted = []
        self.fail_after = None

    def add_documents(self, documents, ids=None, **kwargs):
        if any(i in self.store for i in ids):
            raise ValueError("an id is there already")
        for number, (document, i) in enumerate(zip(documents, ids, strict=True)):
            if self.fail_after == number:
                self.fail_after = None
                raise ConnectionError("gone")
            super().add_documents([document], ids=[i], **kwargs)
        self.added += ids
        return ids

    def delete(self, ids=None, **kwargs):
        if any(i not in self.store for i in ids):
            raise ValueError("no such id")
        self.deleted += ids
        return super().delete(ids)

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        self.asked.append(k)
        return super().similarity_search_by_vector(embedding, k, **kwargs)


def library(count=1, **settings):
    graph = NodeGraph(embed=Letters(), progress=False, **settings)
    graph.add(
        [
            Document(
                text if n < 4 else f"{text} {n}", metadata={"n": n, "even": n % 2 == 0}, id=f"d{n}"
            )
            for n, text in zip(range(4 * count), itertools.cycle(TEXTS), strict=False)
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


def rows(results):
    return [(each.node.id, each.score) for each in results]


@pytest.fixture
def stores():
    return {}


@pytest.fixture
def index(stores):
    def make(embeddings, group):
        stores[group] = Store(embeddings)
        return stores[group]

    return as_index(make)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("target", [None, "ROOT"])
@pytest.mark.parametrize("lift", ["max", "sum", "mean"])
def test_the_same_as_the_built_in_index(index, stores, query, target, lift):
    graph = library(8)
    for filters in (None, {"even": True}, {"n": {"lt": 3}}, {"n": 5}, {"n": -1}):
        for top_k in (1, 3, 100):
            settings = {"target": target, "lift": lift, "top_k": top_k, "filters": filters}
            ours = Retriever(graph, "sentence", "cosine", **settings)
            theirs = Retriever(graph, "sentence", "cosine", index=index, **settings)
            assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))
    if target is None:
        assert stores["sentence"].asked
    assert len(stores["sentence"].store) == len(graph.nodes("sentence"))


def test_ties_are_in_document_order(index, stores):
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add([Document("tea", metadata={"n": n}, id=str(n)) for n in range(40)])
    retriever = Retriever(graph, "ROOT", "cosine", index=index, top_k=3)
    for first in (0, 30):
        found = retriever.retrieve("tea", filters={"n": {"gte": first}})
        assert [each.node.id for each in found] == [str(first + n) for n in range(3)]
    assert stores["ROOT"].asked[:3] == [7, 28, 112]  # for more, as long as all tie


def test_a_filter_that_leaves_little_is_still_filled(index, stores):
    """Two nodes of 200 meet it, and they are far from the query."""
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(
        [Document("tea" * (1 + n % 3), metadata={"rare": False}, id=f"t{n}") for n in range(200)]
    )
    graph.add([Document("河", metadata={"rare": True}, id=i) for i in ("x", "y")])
    retriever = Retriever(graph, "ROOT", "cosine", index=index, top_k=1, filters={"rare": True})
    assert [each.node.id for each in retriever.retrieve("tea")] == ["x"]
    assert len(retriever.retrieve("tea", top_k=5)) == 2


def test_a_store_that_finds_too_few_loses_nothing():
    class Forgetful(Store):
        """As an approximate index that leads nowhere."""

        def similarity_search_by_vector(self, embedding, k=4, **kwargs):
            return super().similarity_search_by_vector(embedding, min(k, 2), **kwargs)

    graph = library(4)
    index = as_index(lambda embeddings, group: Forgetful(embeddings))
    ours = Retriever(graph, "sentence", "cosine", top_k=5)
    theirs = Retriever(graph, "sentence", "cosine", index=index, top_k=5)
    assert rows(theirs.retrieve("tea")) == rows(ours.retrieve("tea"))


def test_the_store_is_asked_for_little_at_first(index, stores):
    graph = library(40)
    Retriever(graph, "sentence", "cosine", index=index, top_k=3).retrieve("Is green tea hot? 39")
    assert stores["sentence"].asked[0] < 10


def test_it_is_kept_in_step(index, stores):
    graph = library()
    retriever = Retriever(graph, "sentence", "cosine", index=index, top_k=1)
    retriever.retrieve("tea")
    store = stores["sentence"]
    assert len(store.added) == 12
    graph.add(Document("Tea is cold. Tea is hot.", id="d0"))
    assert [each.node.text.strip() for each in retriever.retrieve("Tea is cold.")] == [
        "Tea is cold."
    ]
    assert len(store.added) == 13  # the sentence that stayed was not written again
    assert len(store.deleted) == 2
    graph.remove("d3")
    assert all("河" not in each.node.text for each in retriever.retrieve("河", top_k=20))
    assert len(store.store) == len(graph.nodes("sentence")) == 8


def test_changed_metadata_writes_nothing(index, stores):
    graph = library()
    retriever = Retriever(graph, "sentence", "cosine", index=index)
    retriever.retrieve("tea")
    written = list(stores["sentence"].added)
    graph.add(Document(TEXTS[0], metadata={"n": 100}, id="d0"))
    found = retriever.retrieve("tea", filters={"n": 100})
    assert {each.node.document_id for each in found} == {"d0"}
    assert stores["sentence"].added == written
    assert stores["sentence"].deleted == []


def test_a_document_that_changes_keeps_its_id(index, stores):
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add([Document("tea", id="a"), Document("河", id="b")])
    retriever = Retriever(graph, "ROOT", "cosine", index=index, top_k=1)
    assert rows(retriever.retrieve("tea"))[0][0] == "a"
    graph.add(Document("红红", id="a"))
    assert rows(retriever.retrieve("红"))[0][0] == "a"
    assert stores["ROOT"].store["a"]["text"] == "红红"


def test_no_text_is_embedded_twice(index):
    graph = library()
    model = graph.embeddings.embedder("default").embed.__self__
    Retriever(graph, "sentence", "cosine").retrieve("tea")
    Retriever(graph, "sentence", "cosine", index=index).retrieve("tea")
    assert len(model.passages) == len(set(model.passages)) == 12


def test_in_a_fusion_with_words(index):
    graph = library(3)
    words = Retriever(graph, "sentence", "bm25", target="ROOT")
    for mode in ("rrf", "relative"):
        ours, theirs = (
            FusionRetriever(
                [words, Retriever(graph, "sentence", "cosine", target="ROOT", index=each)],
                mode=mode,
            )
            for each in ("default", index)
        )
        for query in QUERIES:
            assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))


def test_in_recursive_retrieval(index, stores):
    graph = library(3)
    graph.create_node_group("half", lambda text: [text[:9], text[9:]])
    groups = ["sentence", "half", "ROOT"]
    ours = RecursiveRetriever(graph, groups, "ROOT", "cosine", top_k=3)
    theirs = RecursiveRetriever(graph, groups, "ROOT", index.cosine, top_k=3)
    for query in QUERIES:
        for filters in (None, {"even": True}):
            found = theirs.retrieve(query, filters=filters)
            assert rows(found) == rows(ours.retrieve(query, filters=filters))
    assert set(stores) == set(groups)


async def test_in_langchain_without_blocking(index):
    graph = library(3)
    native = Retriever(graph, "sentence", "cosine", target="ROOT", index=index, top_k=2)
    retriever = NodeGraphRetriever(retriever=native)
    with blockbuster_ctx():
        found = await retriever.ainvoke("河 river", filter={"even": False})
    assert [d.id for d in found] == [
        each.node.id for each in native.retrieve("河 river", filters={"even": False})
    ]
    assert len(found) == 2


def test_by_a_name(index):
    register_index("my_store")(index)
    graph = library()
    ours = Retriever(graph, "sentence", "cosine")
    theirs = Retriever(graph, "sentence", "cosine", index="my_store")
    assert rows(theirs.retrieve("tea")) == rows(ours.retrieve("tea"))


def test_several_graphs_and_embeddings():
    """A store each, since the model and the group say nothing of the graph."""
    made = []

    def make(embeddings, group):
        made.append((embeddings.graph, embeddings.key, group))
        return Store(embeddings)

    class Few(Letters):
        ALPHABET = "ts"

    graphs = [NodeGraph(embed={"a": Letters(), "b": Few()}, progress=False) for _ in range(2)]
    for number, graph in enumerate(graphs):
        graph.add([f"{text} {number}" for text in TEXTS])
    index = as_index(make)
    ours = Retriever(graphs, "ROOT", "cosine", top_k=3)
    theirs = Retriever(graphs, "ROOT", "cosine", index=index, top_k=3)
    for query in QUERIES:
        assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))
    assert len(made) == len(set(made)) == 4


def test_one_store_for_several_groups():
    graph = library(3)
    store = Store(GraphEmbeddings(graph))
    store.store["foreign"] = {
        "id": "foreign",
        "vector": Letters().vector("tea"),
        "text": "tea",
        "metadata": {},
    }
    index = as_index(store)
    for group in ("sentence", "ROOT"):
        ours = Retriever(graph, group, "cosine", top_k=3)
        theirs = Retriever(graph, group, "cosine", index=index, top_k=3)
        for query in ("tea", "河"):
            assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))
    graph.remove(["d0", "d1"])
    Retriever(graph, "ROOT", "cosine", index=index).retrieve("tea")
    assert "foreign" in store.store


def test_one_store_is_not_for_two_embeddings():
    class Few(Letters):
        ALPHABET = "ts"

    graph = NodeGraph(embed={"a": Letters(), "b": Few()}, progress=False)
    graph.add(TEXTS)
    index = as_index(Store(GraphEmbeddings(graph, "a")))
    assert Retriever(graph, "ROOT", "cosine", index=index, embed_keys=["a"]).retrieve("tea")
    with pytest.raises(ValueError, match=r"embedding 'a', and can't have those of 'b'"):
        Retriever(graph, "ROOT", "cosine", index=index).retrieve("tea")


def test_another_model_writes_anew(tmp_path):
    """The store kept vectors of the model that was there before."""

    class Few(Letters):
        ALPHABET = "ts"

    file, store = tmp_path / "g.nodekin", None
    for model in (Letters(), Few()):
        with NodeGraph(embed=model, store=file, progress=False) as graph:
            ids = graph.add(TEXTS)
            if store is None:
                store = Store(GraphEmbeddings(graph))
            store.embedding = GraphEmbeddings(graph)
            store.added.clear()
            retriever = Retriever(graph, "ROOT", "cosine", index=as_index(store), top_k=2)
            assert rows(retriever.retrieve("tea")) == rows(
                Retriever(graph, "ROOT", "cosine", top_k=2).retrieve("tea")
            )
            assert sorted(store.added) == sorted(ids)


def test_the_same_store_is_one_index():
    graph = library()
    store = Store(GraphEmbeddings(graph))
    for _ in range(2):
        Retriever(graph, "sentence", "cosine", index=as_index(store)).retrieve("tea")
    assert len(store.added) == 12
    assert as_index(store) == as_index(store) != as_index(Store(GraphEmbeddings(graph)))


def test_what_the_store_has_from_last_time_is_not_written_again(tmp_path):
    file = tmp_path / "g.nodekin"
    store = Store(Letters())
    with library(store=file) as graph:
        Retriever(graph, "sentence", "cosine", index=as_index(store)).retrieve("tea")
    store.added.clear()
    with NodeGraph(embed=Letters(), store=file, progress=False) as graph:
        graph.create_node_group("sentence", split_sentences)
        graph.add(Document("Tea is cold.", id="new"))
        retriever = Retriever(graph, "sentence", "cosine", index=as_index(store), top_k=1)
        assert retriever.retrieve("Tea is cold.")[0].node.document_id == "new"
        assert len(store.added) == 1


def test_after_a_failure_all_is_made_good(index, stores):
    graph = library()
    retriever = Retriever(graph, "sentence", "cosine", index=index, top_k=3)
    retriever.retrieve("tea")
    graph.add([Document("Tea is cold. Tea is red.", id="new"), Document("河", id="d0")])
    stores["sentence"].fail_after = 1
    with pytest.raises(ConnectionError):
        retriever.retrieve("tea")
    for lift in ("max", "sum"):
        settings = {"target": "ROOT", "lift": lift, "top_k": 5}
        theirs = Retriever(graph, "sentence", "cosine", index=index, **settings)
        ours = Retriever(graph, "sentence", "cosine", **settings)
        for query in QUERIES:
            assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))
    assert set(stores["sentence"].store) == {node.id for node in graph.nodes("sentence")}


def test_what_was_half_written_and_is_gone_since_does_not_stay(index, stores):
    graph = library()
    retriever = Retriever(graph, "sentence", "cosine", index=index, top_k=3)
    retriever.retrieve("tea")
    graph.add(Document("Tea is cold. Tea is red.", id="new"))
    stores["sentence"].fail_after = 1
    with pytest.raises(ConnectionError):
        retriever.retrieve("tea")
    assert len(stores["sentence"].store) == 13
    graph.remove("new")
    retriever.retrieve("tea")
    assert set(stores["sentence"].store) == {node.id for node in graph.nodes("sentence")}


def test_a_newer_state_is_not_undone_by_an_older_one(index, stores, monkeypatch):
    """One thread has read what changed, and writes it when another has written what came then."""
    graph = library()
    retriever = Retriever(graph, "sentence", "cosine", index=index)
    retriever.retrieve("tea")
    graph.add(Document("Tea is cold.", id="new"))
    shared = retriever.similarity.open(graph, "sentence", "default")
    embed = shared._vectors

    def meanwhile(nodes):
        monkeypatch.setattr(shared, "_vectors", embed)
        graph.remove("new")
        retriever.retrieve("tea")
        return embed(nodes)

    monkeypatch.setattr(shared, "_vectors", meanwhile)
    shared.ready()
    assert set(stores["sentence"].store) == {node.id for node in graph.nodes("sentence")}


def test_a_store_with_another_model_is_refused():
    class Other(Letters):
        def vector(self, text):
            return super().vector(text)[::-1]

    graph = library()
    with pytest.raises(ValueError, match=r"embeds by Other.*GraphEmbeddings\(graph\)"):
        Retriever(graph, "sentence", "cosine", index=as_index(Store(Other()))).retrieve("tea")
    retriever = Retriever(graph, "sentence", "cosine", index=as_index(Store(Letters())))
    assert rows(retriever.retrieve("tea")) == rows(
        Retriever(graph, "sentence", "cosine").retrieve("tea")
    )


def test_a_store_that_loses_ids_is_helped_by_metadata():
    class Nameless(Store):
        def similarity_search_by_vector(self, embedding, k=4, **kwargs):
            return [
                Document(each.page_content, metadata=each.metadata)
                for each in super().similarity_search_by_vector(embedding, k, **kwargs)
            ]

    graph = library(3)
    index = as_index(lambda embeddings, group: Nameless(embeddings))
    assert rows(Retriever(graph, "sentence", "cosine", index=index).retrieve("tea")) == rows(
        Retriever(graph, "sentence", "cosine").retrieve("tea")
    )


def test_a_store_that_can_not_get_by_id():
    class Blind(Store):
        def get_by_ids(self, ids, /):
            raise NotImplementedError

    graph = library()
    index = as_index(lambda embeddings, group: Blind(embeddings))
    retriever = Retriever(graph, "sentence", "cosine", index=index, top_k=2)
    assert len(retriever.retrieve("tea")) == 2
    graph.remove("d0")
    assert all(each.node.document_id != "d0" for each in retriever.retrieve("tea"))


def test_a_store_that_does_not_delete_is_told():
    class Stubborn(Store):
        def delete(self, ids=None, **kwargs):
            return False

    graph = library()
    index = as_index(lambda embeddings, group: Stubborn(embeddings))
    retriever = Retriever(graph, "sentence", "cosine", index=index)
    retriever.retrieve("tea")
    graph.remove("d0")
    with pytest.raises(ValueError, match="Stubborn did not delete 3 nodes"):
        retriever.retrieve("tea")


def test_what_is_no_store_is_refused():
    for wrong in ("chroma", InMemoryVectorStore):
        with pytest.raises(TypeError, match="as_index takes a LangChain vector store"):
            as_index(wrong)
    index = as_index(lambda embeddings, group: "chroma")
    with pytest.raises(TypeError, match="which is no LangChain vector store"):
        Retriever(library(), "sentence", "cosine", index=index).retrieve("tea")

    class Poor(Store):
        similarity_search_by_vector = InMemoryVectorStore.__mro__[1].similarity_search_by_vector

    with pytest.raises(TypeError, match=r"Poor has no similarity_search_by_vector\(\)"):
        as_index(Poor(Letters()))


def test_only_cosines_are_searched(index):
    with pytest.raises(TypeError, match="not for 'bm25'"):
        Retriever(library(), "sentence", "bm25", index=index).retrieve("tea")


def test_nothing_in_the_graph_nothing_found(index):
    graph = NodeGraph(embed=Letters(), progress=False)
    assert Retriever(graph, "ROOT", "cosine", index=index).retrieve("tea") == []


def test_threads_that_search_while_others_write(index, stores):
    graph = library(3)
    retriever = Retriever(graph, "sentence", "cosine", index=index, top_k=4)
    errors = []

    def search():
        try:
            for _ in range(15):
                found = retriever.retrieve("tea")
                assert len({each.node.id for each in found}) == 4
        except Exception as error:
            errors.append(error)

    def write(number):
        try:
            for turn in range(8):
                graph.add(Document(f"Tea {number} {turn}. 河 {turn}.", id=f"w{number}"))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    threads += [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    assert errors == []
    retriever.retrieve("tea")
    assert set(stores["sentence"].store) == {node.id for node in graph.nodes("sentence")}


class InStep(RuleBasedStateMachine):
    """Whatever happens to the graph, the store finds what the built-in index finds."""

    @initialize()
    def begin(self):
        self.graph = NodeGraph(embed=Letters(), progress=False)
        self.graph.create_node_group("sentence", split_sentences)
        self.made = []

        def make(embeddings, group):
            self.made.append(Store(embeddings))
            return self.made[-1]

        index = as_index(make)
        self.pairs = [
            (
                Retriever(self.graph, "sentence", "cosine", index=index, top_k=k),
                Retriever(self.graph, "sentence", "cosine", top_k=k),
            )
            for k in (1, 3)
        ]

    @rule(
        number=st.integers(0, 4),
        texts=st.lists(
            st.sampled_from(["Tea. ", "红茶。", "River runs. ", "河。", "Tea. "]), min_size=1
        ),
        field=st.booleans(),
    )
    def add(self, number, texts, field):
        self.graph.add(Document("".join(texts), metadata={"f": field}, id=str(number)))

    @rule(number=st.integers(0, 4))
    def remove(self, number):
        there = {node.id for node in self.graph.nodes("ROOT")}
        self.graph.remove({str(number)} & there)

    @rule(after=st.integers(0, 3))
    def fail(self, after):
        for store in self.made:
            store.fail_after = after

    @rule(query=st.sampled_from(["tea", "河", "red river"]), f=st.sampled_from([None, True, False]))
    def search(self, query, f):
        filters = None if f is None else {"f": f}
        for theirs, ours in self.pairs:
            try:
                found = theirs.retrieve(query, filters=filters)
            except ConnectionError:
                found = theirs.retrieve(query, filters=filters)
            assert rows(found) == rows(ours.retrieve(query, filters=filters))
            (store,) = self.made
            assert set(store.store) == {node.id for node in self.graph.nodes("sentence")}

    @invariant()
    def one_store(self):
        assert len(getattr(self, "made", [])) <= 1


TestInStep = InStep.TestCase
TestInStep.settings = settings(max_examples=30, stateful_step_count=15)


def numbers(texts):
    return [[len(text), text.count("茶") + 1] for text in texts]


def test_any_model_becomes_langchains():
    embeddings = GraphEmbeddings(NodeGraph(embed=numbers, progress=False))
    assert embeddings.embed_documents(["tea", "红茶"]) == [[3, 1], [2, 2]]
    assert embeddings.embed_query("茶") == [1, 2]
    assert embeddings.embed_documents([]) == []
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["tea", "红茶"])
    assert [d.page_content for d in store.similarity_search("茶", k=1)] == ["红茶"]


def test_what_was_embedded_is_not_embedded_again(tmp_path):
    model = Letters()
    with NodeGraph(embed=model, store=tmp_path / "g.nodekin", progress=False) as graph:
        graph.add(["tea", "河"])
        Retriever(graph, "ROOT", "cosine").retrieve("tea")
        assert GraphEmbeddings(graph).embed_documents(["tea", "河"]) == [
            pytest.approx(model.vector(text)) for text in ("tea", "河")
        ]
    assert model.passages == ["tea", "河"]


async def test_queries_are_embedded_without_blocking():
    model = Letters()
    embeddings = GraphEmbeddings(NodeGraph(embed=model, progress=False))
    with blockbuster_ctx():
        vector = await embeddings.aembed_query("tea")
        passages = await embeddings.aembed_documents(["tea"])
    assert vector == passages[0] == pytest.approx(model.vector("tea"))
    assert model.async_queries == ["tea"]


def test_which_embedding():
    graph = NodeGraph(embed={"a": numbers, "b": Letters()}, progress=False)
    assert GraphEmbeddings(graph, "a").key == "a"
    with pytest.raises(LookupError, match="say which embedding"):
        GraphEmbeddings(graph)
    with pytest.raises(LookupError, match="no embedding"):
        GraphEmbeddings(NodeGraph())
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        GraphEmbeddings("graph")


class EuclideanStore(VectorStore):
    """Measures L2, as LangChain's FAISS and Chroma do unless they are told otherwise."""

    def __init__(self, embedding):
        self._embedding = embedding
        self.vectors = {}
        self.documents = {}

    @property
    def embeddings(self):
        return self._embedding

    def add_texts(self, texts, metadatas=None, *, ids=None, **kwargs):
        texts = list(texts)
        for at, vector in enumerate(self._embedding.embed_documents(texts)):
            self.vectors[ids[at]] = vector
            self.documents[ids[at]] = Document(texts[at], metadata=metadatas[at], id=ids[at])
        return ids

    def get_by_ids(self, ids, /):
        return [self.documents[i] for i in ids if i in self.documents]

    def delete(self, ids=None, **kwargs):
        for i in ids:
            del self.vectors[i], self.documents[i]

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        return [self.documents[i] for i in distances.nearest(self.vectors, embedding, k)]

    def similarity_search(self, query, k=4, **kwargs):
        return self.similarity_search_by_vector(self._embedding.embed_query(query), k)

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError


@pytest.mark.parametrize("made", [True, False])
def test_a_store_that_measures_l2_answers_as_the_built_in_index(made):
    graph = NodeGraph(embed=distances.uneven, progress=False)
    graph.add([Document(text, id=str(n)) for n, text in enumerate(distances.TEXTS)])
    embeddings = GraphEmbeddings(graph)
    index = as_index(
        (lambda model, group: EuclideanStore(model)) if made else EuclideanStore(embeddings)
    )
    plain, foreign = (
        Retriever(graph, "ROOT", "cosine", top_k=5, **options) for options in ({}, {"index": index})
    )
    for query in distances.QUERIES:
        assert foreign.retrieve(query) == plain.retrieve(query)
    assert embeddings.embed_documents(distances.TEXTS[:1])[0] == pytest.approx(
        distances.uneven(distances.TEXTS[:1])[0].tolist(), rel=1e-5
    )


def test_a_store_with_a_model_of_its_own_is_told_of_its_length(caplog):
    graph = NodeGraph(embed=distances.uneven, progress=False)
    graph.add(distances.TEXTS)

    class Own(Embeddings):
        def embed_documents(self, texts):
            return distances.uneven(texts).tolist()

        def embed_query(self, text):
            return distances.uneven([text])[0].tolist()

    index = as_index(EuclideanStore(Own()))
    Retriever(graph, "ROOT", "cosine", index=index).retrieve("Which subject?")
    assert "not of unit length" in caplog.text
