import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import (
    AnswerSettings,
    Bm25,
    DefaultRetriever,
    FusionRetriever,
    QaRetriever,
    QueryEngine,
    Retriever,
)
from nodekin.retrievers.answers.staleness import compared, no_model
from nodekin.retrievers.corpus_tools.toolset import CorpusTools
from nodekin.retrievers.restricted_retriever import restrict
from nodekin.retrievers.results import Hits
from nodekin.retrievers.similarities.registry import CustomSimilarity

NILE = "The Nile is 6,650 km long."
QUESTION = "How long is the Nile?"


@pytest.fixture
def graph():
    graph = NodeGraph()
    graph.add(
        [
            Document(f"{NILE}\n\nIt flows north to the sea.", {"tenant": "a"}, id="nile"),
            Document("Tea is made of leaves.", {"tenant": "b"}, id="tea"),
        ]
    )
    graph.create_node_group("line", str.splitlines)
    return graph


class Model:
    """Answers, and counts how often it was called."""

    model = "scripted"

    def __init__(self, text="6,650 km [1]."):
        self.text = text
        self.calls = 0

    def __call__(self, prompt):
        self.calls += 1
        return self.text


def engine_of(graph, model=None, **options):
    return QueryEngine(Retriever(graph, "line", top_k=2), model or Model(), **options)


@pytest.fixture(params=["words", "default", "fused"])
def engine(request, graph):
    words = Retriever(graph, "line", top_k=2)
    retrievers = {"words": words, "default": graph, "fused": FusionRetriever([words, words])}
    return QueryEngine(retrievers[request.param], Model())


def test_a_stored_answer_is_returned_until_its_sources_change(graph, engine):
    first = engine.query(QUESTION, keep=True)
    again = engine.query(f" {QUESTION} ".replace(" is ", "  is "), keep=True)
    assert (first.text, first.cited[0].text) == (again.text, again.cited[0].text)
    assert again.notes[0].startswith("stored before")
    assert engine.llm.model.calls == 1
    assert graph.answers.stale() == []

    graph.add(Document("Another heading\n\n" * 200 + NILE, {"tenant": "a"}, id="other"))
    graph.remove("other")
    assert engine.stored_answer(QUESTION) is not None
    graph.add(Document("The Nile is 6,853 km long.", {"tenant": "a"}, id="nile"))
    (stale,) = graph.answers.stale()
    assert "a source was changed: nile" in stale.causes
    assert [node.text for node in stale.added] == ["The Nile is 6,853 km long."]
    assert engine.stored_answer(QUESTION) is None

    engine.llm.model.text = "6,853 km [1]."
    assert [item.answer.text for item in graph.answers.refresh()] == ["6,650 km [1]."]
    assert graph.answers.stale() == []
    assert engine.query(QUESTION, keep=True).text == "6,853 km [1]."
    assert engine.llm.model.calls == 2


def without_notes(answer):
    return replace(answer, notes=(), calls=0, quotes=tuple(q.to_dict() for q in answer.quotes))


def test_a_stored_answer_equals_the_new_one(graph, engine):
    graph.add([Document(f"{NILE}\n\n{NILE}", id=f"copy{number}") for number in range(3)])
    engine.check = "quotes"
    first = engine.query(QUESTION, keep=True)
    again = engine.query(QUESTION, keep=True)
    assert first.omitted or engine.retriever.name == "default"
    assert without_notes(again) == without_notes(first)
    assert again.notes == ("stored before, and its sources have not changed", *first.notes)
    (stored,) = graph.answers
    assert graph.answers.get(stored.key) == stored


def test_a_text_that_moves_is_the_same(graph):
    graph.add(Document(f"Rivers\n\n{'filler ' * 300}\n\n{NILE}", id="nile"))
    engine = QueryEngine(Retriever(graph, "line", top_k=1), Model())
    before = engine.query(QUESTION, keep=True).sources[0].result.node
    graph.add(Document(f"Rivers\n\n{'filler ' * 320}\n\n{NILE}", id="nile"))
    after = engine.query(QUESTION, keep=True).sources[0].result.node
    assert (after.text, graph.answers.stale()) == (NILE, [])
    assert after.start == before.start + 140


def test_the_causes(graph):
    engine = engine_of(graph, top_k=1)
    engine.query(QUESTION, keep=True)
    graph.add(Document("How long is the Nile? Long is the Nile.", id="new"))
    (stale,) = graph.answers.stale()
    assert stale.causes == ("a source is no longer among the results: nile", "a new result: new")
    assert [result.document_id for result in stale.removed] == ["nile"]
    graph.remove("nile")
    (stale,) = graph.answers.stale()
    assert stale.causes[0] == "the document of a source was removed: nile"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"llm": Model("other")}, None),
        ({"llm": no_model}, None),
        ({"llm": lambda prompt: "?"}, "another model"),
        ({"prompts": {"not_found": "Nothing."}}, "other prompts"),
        ({"settings": AnswerSettings(context_window=5000)}, "other prompts"),
        ({"mode": "refine"}, "other prompts"),
        ({"similarity": "bm25_chinese"}, "another retriever"),
    ],
)
def test_another_set_up_is_a_cause(graph, change, cause):
    QueryEngine(Retriever(graph, "line"), Model()).query(QUESTION, keep=True)
    options = {"llm": Model(), **change}
    similarity = options.pop("similarity", None)
    other = QueryEngine(Retriever(graph, "line", similarity), **options)
    causes = [cause for stale in graph.answers.stale(other) for cause in stale.causes]
    assert causes == ([] if cause is None else causes[:1])
    assert cause is None or cause in causes[0]


class Sorted(Retriever):
    """Sorts by a function of its user."""

    def __init__(self, graph, by):
        super().__init__(graph, "line")
        self.by = by

    def retrieve(self, query, **options):
        return sorted(super().retrieve(query, **options), key=self.by)


def test_another_function_is_a_cause(graph):
    def by_score(result):
        return -result.score

    def by_id(result):
        return result.node.id

    QueryEngine(Sorted(graph, by_score), Model()).query(QUESTION, keep=True)
    assert graph.answers.stale(QueryEngine(Sorted(graph, by_score), Model())) == []
    (stale,) = graph.answers.stale(QueryEngine(Sorted(graph, by_id), Model()))
    assert "another retriever" in stale.causes[0]


def test_a_preset_answer_that_changes(graph):
    def pairs(node):
        question, _, answer = node.text.partition(" -> ")
        return [Node(question, {"answer": answer})] if answer else []

    graph.create_node_group("pair", pairs, trans_node=True)
    engine = engine_of(graph, qa=QaRetriever(graph, "pair"))
    for text, cause in (("It is long.", "the preset answer"), ("It is blue.", "the preset answer")):
        engine.query(QUESTION, keep=True)
        assert graph.answers.stale() == []
        graph.add(Document(f"{QUESTION} -> {text}", id="pair"))
        (stale,) = graph.answers.stale()
        assert cause in stale.causes[0]
        graph.answers.refresh()
        assert [answer.text for answer in graph.answers] == [text]
    again = engine.query(QUESTION, keep=True)
    assert again.notes[0].startswith("stored before")
    assert without_notes(again) == without_notes(engine.query(QUESTION))
    assert again.preset.answer == "It is blue."


def test_answers_of_a_tenant_are_shown_to_nobody_else(graph):
    engine = engine_of(graph)
    a, b = (restrict(engine, {"tenant": tenant}) for tenant in "ab")
    a.query(QUESTION, keep=True)
    assert [e.stored_answer(QUESTION) is None for e in (engine, a, b)] == [True, False, True]
    (unchecked,) = graph.answers.stale(b)
    assert "not checked" in unchecked.causes[0]
    assert graph.answers.stale(b, a) == []
    tenant = {"name": "a"}
    shared = QueryEngine(restrict(engine.retriever, lambda: {"tenant": tenant["name"]}), Model())
    shared.query(QUESTION, keep=True)
    assert shared.stored_answer(QUESTION) is not None
    tenant["name"] = "b"
    assert shared.stored_answer(QUESTION) is None


def test_what_can_not_be_stored(graph):
    engine = engine_of(graph)
    with pytest.raises(ValueError, match="history"):
        engine.query("And then?", history=[("a", "b")], keep=True)
    other = NodeGraph()
    with pytest.raises(ValueError, match="searches 2 graphs"):
        QueryEngine(Retriever([graph, other], "ROOT"), Model()).query(QUESTION, keep=True)
    with pytest.raises(TypeError, match="QueryEngine"):
        graph.answers.stale(graph)

    def failing(prompt):
        raise ConnectionError("gone")

    extract = QueryEngine(
        Retriever(graph, "ROOT"), failing, settings=AnswerSettings(on_error="extract")
    )
    extract.query(QUESTION, keep=True)
    assert len(graph.answers) == 0


def test_without_an_engine(graph):
    engine_of(graph).query(QUESTION, keep=True)
    with pytest.raises(LookupError, match=r"graph\.answers\.stale\("):
        graph.answers.stale()


def test_each_engine_checks_its_own_answers(graph):
    first, second = engine_of(graph), engine_of(graph, Model("Long [1]."), mode="refine")
    first.query(QUESTION, keep=True)
    second.query("What flows north?", keep=True)
    assert graph.answers.stale() == graph.answers.stale(second, first) == []
    (stale,) = graph.answers.stale(first)
    assert stale.causes == ("it was made with other prompts or settings",)


async def test_async_and_streams_store_too(graph):
    engine = QueryEngine(Retriever(graph, "ROOT"), Model())
    await engine.aquery(QUESTION, keep=True)
    assert (await engine.aquery(QUESTION, keep=True)).notes
    stream = engine.stream("What flows north?", keep=True)
    assert len(graph.answers) == 1
    stream.finish()
    assert [answer.question for answer in graph.answers] == [QUESTION, "What flows north?"]


@pytest.mark.parametrize("store", ["file", pytest.param("PostgreSQL", marks=pytest.mark.slow)])
def test_answers_are_in_the_store(store, tmp_path, request):
    if store == "PostgreSQL":
        path = request.getfixturevalue("postgres_server").address()
    else:
        path = tmp_path / "graph.db"
    with NodeGraph(store=path) as graph, NodeGraph(store=path) as second:
        graph.add(Document(NILE, id="nile"))
        engine = QueryEngine(Retriever(graph, "ROOT"), Model())
        engine.query(QUESTION, keep=True)
        (stored,) = second.answers
        assert second.answers.get(stored.key) == stored
        second.answers.remove(stored)
        assert len(graph.answers) == 0
        engine.query(QUESTION, keep=True)
        assert graph.answers.stale() == []
        second.add(Document("How long is the Nile? Very.", id="new"))
        assert graph.answers.stale()[0].causes == ("a new result: new",)
        graph.answers.refresh()
        assert second.answers.stale(QueryEngine(Retriever(second, "ROOT"), no_model)) == []
        second.answers.remove(second.answers)
        engine.query(QUESTION, keep=True, filters={"year": {"gte": 2020}})
    with NodeGraph(store=path) as graph:
        assert [answer.filters for answer in graph.answers] == [{"year": {"gte": 2020}}]


@pytest.mark.parametrize("meanwhile", ["removed", "answered again"])
def test_what_another_process_did_while_the_model_answered_stands(tmp_path, meanwhile):
    path = tmp_path / "graph.db"
    with NodeGraph(store=path) as graph, NodeGraph(store=path) as other:
        graph.add(Document(NILE, id="nile"))

        def model(prompt):
            (stored,) = other.answers
            if meanwhile == "removed":
                other.answers.remove(stored)
            else:
                other.answers.put(replace(stored, text="theirs"))
            return "ours [1]."

        QueryEngine(Retriever(graph, "ROOT"), Model()).query(QUESTION, keep=True)
        assert len(graph.answers.refresh(QueryEngine(Retriever(graph, "ROOT"), model))) == 1
        texts = [answer.text for answer in graph.answers]
        assert texts == ([] if meanwhile == "removed" else ["theirs"])


def test_an_agent_stores_notes(graph):
    tools = CorpusTools(graph, filters={"tenant": "a"}, notes=True)
    assert "note" not in CorpusTools(graph).tools
    assert "no note" in tools.call("note", {"question": QUESTION}).text
    written = tools.call("note", {"question": QUESTION, "text": "“6,650 km”, or “9 km”."})
    assert written.entries[0]["remarks"] == ["“6,650 km”: exact", "“9 km”: nowhere"]
    assert json.loads(json.dumps(written.to_dict()))["entries"][0]["sources"]
    graph.add(Document("The Nile is 6,853 km long.", {"tenant": "a"}, id="nile"))
    read = tools.call("note", {"question": QUESTION})
    assert "| “6,650 km”, or “9 km”." in read.text
    assert "out of date: a source was changed: nile" in read.text
    assert "no note" in CorpusTools(graph, notes=True).call("note", {"question": QUESTION}).text
    engine = restrict(QueryEngine(graph, Model()), {"tenant": "a"})
    assert engine.stored_answer(QUESTION) is None  # a note never stands for an answer


WRITER = """
import sys
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import QueryEngine, Retriever

graph = NodeGraph(store=sys.argv[1], progress=False)
graph.add([Document(f"Tea number {n} is green.", id=f"d{n}") for n in range(20)])
engine = QueryEngine(Retriever(graph, "ROOT", top_k=2), lambda prompt: "It is tea [1].")
number = len(graph.answers)
while True:
    question = f"Which tea is number {number % 20}, asked for the time {number}?"
    engine.query(question, keep=True)
    print(question, flush=True)
    number += 1
    if number % 7 == 0:
        graph.update([Document(f"Tea {number} is black.", id=f"d{number % 20}")])
"""


@pytest.mark.slow
def test_a_process_that_is_killed_loses_no_stored_answer(tmp_path: Path) -> None:
    """Another process looks meanwhile at what is stale, and knows afterwards."""
    store = tmp_path / "graph"
    graph = NodeGraph(store=store, progress=False)
    engine = QueryEngine(Retriever(graph, "ROOT", top_k=2), lambda prompt: "It is tea [1].")
    asked: list[str] = []
    for kill in range(amount(4, 200)):
        command = [sys.executable, "-c", WRITER, str(store)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(5 + 9 * (kill % 4)):
                asked.append(writer.stdout.readline().strip())
                graph.answers.stale(engine)
            writer.kill()
            asked += [line.strip() for line in writer.stdout if line.endswith("?\n")]
        for opened in (graph, NodeGraph(store=store, progress=False)):
            answers = list(opened.answers)
            assert set(asked) <= {answer.question for answer in answers}
            again = QueryEngine(Retriever(opened, "ROOT", top_k=2), engine.llm)
            named = {item.answer.question for item in opened.answers.stale(again)}
            assert named == {
                a.question for a in answers if compared(a, again.retriever(a.question))
            }
    assert all(asked)


def test_nothing_is_retrieved_again_before_a_change(tmp_path, monkeypatch):
    retrieved = []
    compare = QueryEngine._retrieved_again

    def counted(engine, answer):
        retrieved.append(answer.question)
        return compare(engine, answer)

    monkeypatch.setattr(QueryEngine, "_retrieved_again", counted)

    def looked_up(graph, **options):
        before = len(retrieved)
        stale = graph.answers.stale(QueryEngine(graph, no_model, **options))
        return len(stale), len(retrieved) - before

    path = tmp_path / "graph.db"
    with NodeGraph(store=path) as graph:
        graph.add([Document(f"River {number} is long.", id=f"{number}") for number in range(20)])
        engine = QueryEngine(graph, Model("Long [1]."))
        for number in range(3):
            engine.query(f"How long is river {number}?", keep=True)
        assert [looked_up(graph), looked_up(graph)] == [(0, 3), (0, 0)]
        assert looked_up(graph, top_k=1) == looked_up(graph, top_k=1) == (3, 3)
    with NodeGraph(store=path) as graph:
        assert looked_up(graph) == (0, 0)
        engine = QueryEngine(graph, Model("Long [1]."))
        engine.query("How long is river 7?", keep=True)
        assert looked_up(graph) == (0, 1)
        graph.link("1", "2")
        assert [looked_up(graph), looked_up(graph)] == [(0, 4), (0, 0)]
        graph.answers.put(replace(next(iter(graph.answers)), results=()))
        assert [looked_up(graph), looked_up(graph)] == [(1, 1), (1, 1)]
        for file in tmp_path.rglob("answers-*.index"):
            file.write_bytes(b"damaged")
    with NodeGraph(store=path) as graph:
        assert looked_up(graph) == (1, 4)


class Questions:
    """Analyses questions by what no graph knows of, such as synonyms."""

    def __call__(self, text):
        return text.lower().split()

    def query(self, text):
        return ["tea"] if OUTSIDE else self(text)


def by_length(query, node):
    return -len(node.text) if OUTSIDE else len(node.text)


class Longest:
    """An index that finds the longest texts, or the shortest."""

    def __init__(self, graph, group, key, similarity):
        self.graph, self.group = graph, group

    def ready(self):
        pass

    def sync(self):
        pass

    def search(self, query, limit, filter):
        nodes = sorted(self.graph.nodes(self.group), key=lambda node: by_length(query, node))
        return Hits([node.id for node in nodes[: -limit - 1 : -1]], [1.0] * limit)


OUTSIDE = []  # what no graph knows of

WORDS = Bm25(analyzer=Questions())


@pytest.mark.parametrize(
    "retriever",
    [
        lambda graph: Sorted(graph, lambda result: -result.score),
        lambda graph: Retriever(graph, "line", CustomSimilarity(by_length, "length"), top_k=1),
        lambda graph: Retriever(graph, "line", index=Longest, top_k=1),
        lambda graph: Retriever(graph, "line", WORDS, top_k=1),
        lambda graph: FusionRetriever([Retriever(graph, "line", WORDS)]),
        lambda graph: DefaultRetriever(graph, words=WORDS),
    ],
    ids=["class", "similarity", "index", "analyzer", "analyzer within", "analyzer of the default"],
)
def test_what_more_than_the_graph_decides_on_is_always_retrieved_again(
    graph, retriever, monkeypatch
):
    engine = QueryEngine(retriever(graph), Model())
    engine.query("flows", keep=True)
    assert graph.answers.stale() == graph.answers.stale() == []
    monkeypatch.setattr(Sorted, "retrieve", lambda retriever, query, **options: [])
    monkeypatch.setattr(sys.modules[__name__], "OUTSIDE", [1])
    assert len(graph.answers.stale()) == 1
