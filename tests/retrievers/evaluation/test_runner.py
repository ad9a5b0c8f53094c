"""Evaluations of retrievers of all frameworks."""

from types import SimpleNamespace

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode

from nodekin.adapters.llama_index import NodeGraphRetriever
from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import QueryEngine, QueryRewriteRetriever, Retriever
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Matching,
    Question,
    evaluate,
)
from nodekin.retrievers.evaluation.report import Figure

TEXTS = {
    "green": "Green tea is not fermented. It is from Anhui.",
    "black": "Black tea is fermented. It is from Fujian.",
    "nile": "The Nile is a river. It runs north.",
}


@pytest.fixture
def graph():
    with NodeGraph(progress=False) as graph:
        graph.add([Document(text, {"source": id}, id=id) for id, text in TEXTS.items()])
        graph.create_node_group("sentence", split_sentences)
        yield graph


@pytest.fixture
def words(graph):
    return Retriever(graph, "sentence", target="ROOT", top_k=1)


@pytest.fixture
def questions():
    return Dataset(
        [
            Question("1", "Which tea is green?", (GoldDocument("green"),), ("not fermented",)),
            Question("2", "Where does the Nile run?", (GoldDocument("nile"),), ("north",)),
            Question("3", "Is black tea fermented?", (GoldDocument("black"),), ("is fermented",)),
        ]
    )


class Failing:
    """Raise for one question."""

    def __init__(self, inner, part):
        self.inner, self.part = inner, part

    def retrieve(self, query, *, top_k=None, filters=None):
        if self.part in query:
            raise ValueError("the server is down")
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


def values(evaluation, setup, metric):
    return [judgment.value for judgment in evaluation.judgments[metric][setup].values()]


def test_evaluate_accepts_retrievers_of_all_frameworks(graph, words, questions):
    documents = [LangChainDocument(text, metadata={"source": id}) for id, text in TEXTS.items()]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents)
    nodes = [TextNode(text=t, id_=id, metadata={"source": id}) for id, t in TEXTS.items()]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    evaluation = evaluate(
        {
            "words": words,
            "engine": QueryEngine(words, lambda prompt: "So it is [1]."),
            "store": store.similarity_search_with_score,
            "langchain": store.as_retriever(search_kwargs={"k": 3}),
            "function": lambda query: documents,
            "llama": index.as_retriever(similarity_top_k=3),
            "llama engine": RetrieverQueryEngine.from_args(
                NodeGraphRetriever(words), llm=MockLLM(max_tokens=5)
            ).query,
        },
        questions,
        ["recall@3", "recall@1", "answer_in_context@3"],
        matching=Matching(document_key="source"),
    )
    assert not [note for note in evaluation.notes() if "failed" in note], evaluation.notes()
    for setup in ("words", "store", "langchain", "function", "llama"):
        assert values(evaluation, setup, "recall@3") == [1, 1, 1], setup
    for setup in ("engine", "llama engine"):  # the sources, not the answer, nor the sentences
        assert values(evaluation, setup, "answer_in_context@3") == [1, 1, 1], setup
        assert evaluation.records[setup]["1"].items[0].text == TEXTS["green"]
        assert evaluation.records[setup]["1"].answer
    assert evaluation.records["words"]["2"].answer is None
    assert 'bm25 for "Where does the Nile run?"' in (
        evaluation.records["words"]["2"].items[0].explanation
    )


def test_evaluate_requests_results_for_metrics(words, questions):
    evaluation = evaluate({"words": words}, questions, ["recall@1", "precision@2"])
    assert len(evaluation.records["words"]["1"].items) == 2  # top_k of the retriever is 1
    with pytest.raises(ValueError, match="top_k must be at least 2"):
        evaluate({"words": words}, questions, ["recall@2"], top_k=1)


def test_failing_retriever_is_reported_and_not_judged(words, questions):
    evaluation = evaluate({"words": words, "f": Failing(words, "Nile")}, questions, ["recall@1"])
    figure = evaluation.figure("f", "recall@1")
    assert (figure.value, figure.judged, figure.not_judged) == (1.0, 2, 1)
    assert evaluation.notes() == [
        "f failed on 1 of 3 questions; question '2': ValueError: the server is down"
    ]
    assert evaluation.difference("recall@1", "words", "f").questions == 2
    assert "failed on 1 of 3" in str(evaluation)


def test_spans_match_results_of_langchain(graph):
    span = GoldSpan("green", 28, 45, "It is from Anhui.")
    data = Dataset([Question("1", "Which is from Anhui?", (span,))])
    chunk = LangChainDocument("It is from Anhui.", metadata={"source": "green", "start_index": 28})
    evaluation = evaluate(
        {
            "ours": Retriever(graph, "sentence", top_k=1),
            "langchain": lambda query: [chunk],
            "placeless": lambda query: [LangChainDocument("It", metadata={})],
        },
        data,
        ["recall@1"],
        matching=Matching(document_key="source"),
    )
    for setup in ("ours", "langchain"):
        assert values(evaluation, setup, "recall@1") == [1]
    assert evaluation.figure("placeless", "recall@1").judged == 0
    assert "set document_key" in evaluation.notes()[0]


def test_evaluate_with_invalid_arguments_raises(words, questions):
    with pytest.raises(TypeError, match="'a' must be an object with retrieve"):
        evaluate({"a": SimpleNamespace()}, questions)
    with pytest.raises(ValueError, match="retrievers must be a mapping"):
        evaluate([words], questions)
    with pytest.raises(ValueError, match="retrievers must be a mapping"):
        evaluate({}, questions)
    with pytest.raises(ValueError, match="metrics must be different, at least one"):
        evaluate({"a": words}, questions, [])
    with pytest.raises(ValueError, match="metrics must be different"):
        evaluate({"a": words}, questions, ["mrr", "mrr"])
    evaluation = evaluate({"words": words}, questions)
    with pytest.raises(ValueError, match="a set-up must be 'words', got 'word'"):
        evaluation.figure("word", "mrr@5")
    with pytest.raises(ValueError, match="a metric must be 'mrr@5'"):
        evaluation.figure("words", "mrr@6")


def test_document_key_resolves_gold(capsys):
    graph = NodeGraph(progress=False)
    graph.add([Document("Green tea.", {"file_name": "tea.md"}, id="docs/tea.md")])
    gold = (GoldDocument("tea.md"),)
    data = Dataset([Question("1", "tea", gold), Question("2", "tea", (GoldDocument("te.md"),))])
    matching = Matching(document_key="file_name")
    words = {"words": Retriever(graph, "ROOT")}
    options = {"matching": matching, "documents": graph, "num_workers": 2, "progress": True}
    result = evaluate(words, data, ["recall@1"], **options)
    assert "evaluate: 100%" in capsys.readouterr().err
    assert [str(m) for m in result.missing_gold] == [
        "2: 'te.md' is in no document; nearest: 'tea.md'"
    ]
    assert result.judgments["recall@1"]["words"]["1"].value == 1.0


def test_costs_count_model_calls(words, questions):
    rewriting = QueryRewriteRetriever(words, lambda prompt: "green tea")
    evaluation = evaluate({"words": words, "rewrite": rewriting}, questions, ["recall@1"])
    assert evaluation.costs("words")["model_calls"] == 0
    assert evaluation.costs("rewrite")["model_calls"] == 3


def test_answer_without_sources_is_not_judged(words, questions):
    metrics = ["recall@1", "recall@9tokens", "answer_in_context@1", "context_recall", "tokens"]
    setups = {"text": lambda query: "It is north.", "engine": None}
    setups["engine"] = QueryEngine(words, lambda prompt: "So it is [1].")
    north = [LangChainDocument("It runs north.")]
    setups["both"] = lambda query: {"answer": "North.", "context": north * ("Nile" in query)}
    answered = [Question("u", "Which tea is from Mars?", answerable=False)]
    data = Dataset([*questions.questions, *answered])
    evaluation = evaluate(setups, data, [*metrics, "abstention"], progress=False)
    for name in metrics[:3] + metrics[4:]:
        judged = evaluation.judgments[name]["text"]["2"]
        assert (judged.value, "without sources" in judged.reason) == (None, True), name
    assert values(evaluation, "text", "abstention")[-1] == 0
    assert values(evaluation, "both", "answer_in_context@1")[:3] == [0, 1, 0]
    assert values(evaluation, "engine", "recall@1")[:3] == [1, 1, 1]
    assert values(evaluation, "engine", "recall@9tokens")[:3] == [0, 0, 0]  # none is so short


# Ids of results that no gold and no document has

STORED = "Green tea is not fermented."


def of_llama_index(query):
    return [TextNode(text=STORED, id_="4f2a", metadata={"file_name": "green"})]


UNKNOWN_IDS = {
    "langchain, uuid": lambda query: [LangChainDocument(STORED, id="0b1c-42")],
    "langchain, no id": lambda query: [LangChainDocument(STORED, metadata={"source": "green"})],
    "llama_index": of_llama_index,
    "mappings": lambda query: [{"text": STORED, "document_id": "7"}],
    "texts": lambda query: ["green"],
    "chain": lambda query: {"answer": "Green.", "context": [LangChainDocument(STORED, id="x")]},
}


@pytest.mark.parametrize("kind", UNKNOWN_IDS)
def test_unknown_ids_of_results_are_not_judged(questions, kind, tmp_path):
    evaluation = evaluate({"mine": UNKNOWN_IDS[kind]}, questions, ["recall@1", "ndcg@1"])
    for metric in evaluation.metrics:
        assert evaluation.figure("mine", metric) == Figure(None, None, None, 0, 3)
    (note,) = evaluation.notes()
    assert note.startswith("mine is not judged: no result has the id of any gold or document: ")
    assert "give the documents (documents=, --docs), or Matching(document_key='source')" in note
    with pytest.raises(ValueError, match="a baseline must have judged systems: mine: no result"):
        evaluation.save(tmp_path / "baseline.jsonl")
    assert not (tmp_path / "baseline.jsonl").exists()


def test_document_key_or_documents_make_ids_known(graph, questions):
    stored = {"mine": lambda query: [LangChainDocument(STORED, metadata={"source": "green"})]}
    by_key = evaluate(stored, questions, ["recall@1"], matching=Matching(document_key="source"))
    by_text = evaluate(stored, questions, ["recall@1"], documents=graph)
    for evaluation in (by_key, by_text):
        assert values(evaluation, "mine", "recall@1") == [1, 0, 0]
        assert evaluation.notes() == []


def test_one_known_id_makes_misses_count(questions):
    def once(query):
        return [{"text": STORED, "document_id": "green" if "Nile" in query else "7"}]

    evaluation = evaluate({"mine": once}, questions, ["recall@1"])
    assert values(evaluation, "mine", "recall@1") == [0, 0, 0]


def test_misses_in_a_searched_graph_count(graph, questions):
    nile = Retriever(graph, "ROOT", "bm25", top_k=1, filters={"source": "nile"})
    only = Dataset([questions.questions[0]])
    evaluation = evaluate({"nile": lambda query: nile("Nile"), "own": nile}, only, ["recall@1"])
    assert evaluation.figure("nile", "recall@1").judged == 0
    other = Dataset([Question("1", "Nile tea?", (GoldDocument("green"),))])
    assert evaluate({"own": nile}, other, ["recall@1"]).figure("own", "recall@1").value == 0
    hashed = Dataset([Question("1", "Nile tea?", (GoldDocument("docs/green.md"),))])
    assert evaluate({"own": nile}, hashed, ["recall@1"]).figure("own", "recall@1").judged == 0


def test_unknown_ids_leave_passages_and_answers_judged(questions):
    passage = Question("4", "Which tea?", (GoldPassage(STORED),), ("fermented",))
    data = Dataset([*questions.questions, passage])
    stored = UNKNOWN_IDS["langchain, uuid"]
    evaluation = evaluate({"mine": stored}, data, ["recall@1", "answer_in_context@1"])
    assert values(evaluation, "mine", "recall@1") == [None, None, None, 1]
    assert evaluation.figure("mine", "answer_in_context@1").judged == 4


def test_results_without_any_hit_are_misses(questions):
    evaluation = evaluate({"mine": lambda query: []}, questions, ["recall@1"])
    assert values(evaluation, "mine", "recall@1") == [0, 0, 0]
