"""Stored answers against an oracle that retrieves all of them again, after random edits."""

import random

import numpy as np
import pytest
from stress import amount

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever, QueryEngine, Retriever
from nodekin.retrievers import retriever as retriever_module
from nodekin.retrievers.answers import result_bounds
from nodekin.retrievers.answers.result_bounds import BoundedCheck
from nodekin.retrievers.answers.staleness import no_model, stored_result
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = [
    "tea green steamed leaf river long flows north sea ship harbour freight".split(),
    "der grüne Tee wird gedämpft und die Flüsse fließen nach Norden zum Meer".split(),
    [*"绿茶是蒸的", *"河流向北流到海里", "船在港口装货"],
]

WEIGHTS = [1 / rank for rank in range(1, 30)]


def text_of(rng, languages):
    words = WORDS[number := rng.randrange(languages)]
    return ("" if number == 2 else " ").join(
        rng.choices(words, WEIGHTS[: len(words)], k=rng.randint(2, 14))
    )


def document(rng, name, languages):
    lines = [text_of(rng, languages) for _ in range(rng.randint(1, 4))]
    return Document("\n".join(lines), {"year": rng.randint(2020, 2023)}, id=name)


def edit(rng, graph, number, languages):
    kinds = ["add", "change", "change", "remove", "move", "metadata", "rename", "weights"]
    kind = rng.choice(kinds)
    ids = graph.reader.document_ids()
    old = graph.node(rng.choice(ids))
    lines = old.text.split("\n")
    if kind == "add" or len(ids) < 3:
        graph.add(document(rng, f"new {number}", languages))
    elif kind == "remove":
        graph.remove(old.id)
    elif kind == "change":
        lines[rng.randrange(len(lines))] = text_of(rng, languages)
        graph.add(Document("\n".join(lines), old.metadata, id=old.id))
    elif kind == "move":
        graph.add(Document("\n".join([text_of(rng, languages), *lines]), old.metadata, id=old.id))
    elif kind == "rename":
        graph.remove(old.id)
        graph.add(Document(old.text, old.metadata, id=f"renamed {number} {rng.random()}"))
    elif kind == "weights":
        graph.link(old.id, rng.choice(ids), weight=rng.random())
    else:
        graph.add(Document(old.text, {"year": rng.randint(2020, 2023)}, id=old.id))


def letters(texts):
    vectors = [[ord(c) % 17 for c in f"{text:<12}"[:12]] for text in texts]
    return np.array(vectors, np.float32) + 0.1


def bags_of_words(texts):
    def vector(word):
        return np.random.default_rng(sum(map(ord, word))).normal(size=16)

    return np.array([sum(map(vector, text.split())) for text in texts], np.float32)


def fuse_few(monkeypatch):
    """Fuse lists that are short enough for a graph of few nodes."""
    for module in (retriever_module, result_bounds):
        monkeypatch.setattr(module, "FUSED", 5)
    monkeypatch.setattr(result_bounds, "_SPARE", 2)


@pytest.mark.parametrize(
    ("similarity", "languages"),
    [("bm25", 1), ("bm25", 3), (Bm25(analyzer=str.split, b=0.4), 3), ("cosine", 1), ("auto", 1)],
    ids=["words", "three languages", "own analyzer", "vectors", "words and vectors"],
)
@pytest.mark.parametrize("seed", range(2))
def test_those_are_named_whose_retrieval_differs(similarity, languages, seed, monkeypatch):
    monkeypatch.setattr(result_bounds, "_REMOVED", 0)
    fuse_few(monkeypatch)
    rng = random.Random(seed)
    graph = NodeGraph(embed=None if languages == 3 or similarity == "bm25" else letters)
    graph.create_node_group("line", str.splitlines)
    graph.add([document(rng, f"d{number}", languages) for number in range(rng.choice([2, 30]))])
    retriever = Retriever(graph, "line", similarity, top_k=rng.choice([1, 3]))
    engine = QueryEngine(retriever, lambda prompt: "An answer [1].")
    for number in range(12):
        filters = {"year": {"gte": 2022}} if number % 3 == 0 else None
        top_k = 2 if number % 4 == 0 else None
        engine.query(text_of(rng, languages), keep=True, filters=filters, top_k=top_k)
    for number in range(15):
        for _ in range(rng.randint(0, 3)):
            edit(rng, graph, number, languages)
        expected = set()
        for answer in graph.answers:
            options = {"top_k": answer.top_k, "filters": answer.filters}
            results = retriever.retrieve(answer.question, **options)
            keys = sorted(stored_result(result).key for result in results)
            if keys != sorted(result.key for result in answer.results):
                expected.add(answer.key)
        assert {stale.answer.key for stale in graph.answers.stale()} == expected
        if rng.random() < 0.2:
            graph.answers.refresh()
        elif rng.random() < 0.3:
            graph.answers.remove(rng.choice(list(graph.answers)))
            engine.query(text_of(rng, languages), keep=True)


NAMES = ["Amber Bay", "Cedar Hill", "Dover Rock", "Elm Grove", "Fern Dale", "Gold Creek"]


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("seed", range(amount(1, 50)))
def test_those_are_named_whose_default_search_differs(links, seed):
    rng = random.Random(seed)
    graph = NodeGraph()
    for number in range(24):
        name = NAMES[number] if number < len(NAMES) else f"Name{number}"
        text = f"{text_of(rng, 1)} {rng.choice(NAMES)} {text_of(rng, 1)}"
        graph.add(Document(f"# {name}\n\n{text}", {"year": 2020 + number % 4}, id=f"d{number}"))
    retriever = DefaultRetriever(graph, follow_links=links, top_k=2)
    engine = QueryEngine(retriever, lambda prompt: "An answer [1].")
    ways = set()
    for number in range(8):
        filters = {"year": {"gte": 2022}} if number % 3 == 0 else None
        question = f"{text_of(rng, 1)} {rng.choice(NAMES)}"
        answer = engine.query(question, keep=True, filters=filters)
        ways.update(e.similarity for source in answer.sources for e in source.result.evidence)
    assert any(way.startswith("link") for way in ways) == links
    for number in range(6):
        for _ in range(rng.randint(0, 3)):
            edit(rng, graph, number, 1)
        expected = set()
        for answer in graph.answers:
            fresh = engine.query(answer.question, filters=answer.filters)
            results = [r for source in fresh.sources for r in (source.result, *source.merged)]
            results += [omission.result for omission in fresh.omitted]
            keys = sorted(stored_result(result).key for result in results)
            if keys != sorted(result.key for result in answer.results):
                expected.add(answer.key)
        assert {stale.answer.key for stale in graph.answers.stale()} == expected


def test_what_is_far_from_a_question_costs_no_retrieval():
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.add("\n".join([f"tea number {number} is steamed" for number in range(40)]))
    retriever = Retriever(graph, "line", top_k=1)
    engine = QueryEngine(retriever, lambda prompt: "An answer [1].")
    for number in range(20):
        engine.query(f"number {number}", keep=True)
    check = BoundedCheck.of(retriever, None, "")
    answers = list(graph.answers)
    assert check(answers) == [None] * 20
    assert check.retrievals == 20
    graph.add("Rivers flow to the sea")
    assert check(answers) == [None] * 20
    assert check.retrievals == 20
    graph.add("number 7 number 7")
    assert [stale.answer.question for stale in check(answers) if stale] == ["number 7"]
    assert check.retrievals < 25


def test_what_is_far_from_a_fused_question_costs_no_retrieval(monkeypatch):
    fuse_few(monkeypatch)
    graph = NodeGraph(embed=bags_of_words)
    graph.create_node_group("line", str.splitlines)
    rng = random.Random(1)
    graph.add([document(rng, f"d{number}", 1) for number in range(200)])
    engine = QueryEngine(Retriever(graph, "line", top_k=1), lambda prompt: "An answer [1].")
    for number in range(40):
        engine.query(f"{text_of(rng, 1)} {number}", keep=True)
    check, answers = engine._bounded_check(), list(graph.answers)
    assert check(answers) == [None] * 40
    assert check.retrievals == 40
    graph.add("zzz www")
    check(answers)
    assert check.retrievals < 70
    graph.add(answers[7].question)
    assert answers[7] in [stale.answer for stale in check(answers) if stale]


def test_of_removed_answers_nothing_is_held():
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.add("\n".join([f"tea number {number} is steamed" for number in range(50)]))
    retriever = Retriever(graph, "line", top_k=1)
    engine = QueryEngine(retriever, lambda prompt: "An answer [1].")
    for number in range(50):
        engine.query(f"number {number}", keep=True)
    check = BoundedCheck.of(retriever, None, "")
    answers = list(graph.answers)
    assert check(answers) == [None] * 50
    graph.add("Rivers flow to the sea")
    graph.answers.remove(answers[:40])
    assert check(answers[40:]) == [None] * 10
    assert set(check._bounds._numbers) == {a.key for a in answers[40:]}
    assert (len(check._bounds._scorers[0]._terms), check.retrievals) == (11, 50)
    graph.add(answers[45].question)
    assert [stale.answer for stale in check(answers[40:]) if stale] == [answers[45]]


def test_a_check_goes_on_where_the_indexes_were_closed(tmp_path):
    with NodeGraph(store=tmp_path / "graph.db") as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add("\n".join([f"tea number {number} is steamed" for number in range(20)]))
        engine = QueryEngine(Retriever(graph, "line", top_k=1), lambda prompt: "Yes [1].")
        for number in range(5):
            engine.query(f"number {number}", keep=True)
        check, answers = engine._bounded_check(), list(graph.answers)
        assert check(answers) == [None] * 5
        graph.reader.close()
        graph.add("number 3 number 3 of all teas")
        graph.reader.close()
        graph.add("number 4 number 4 of all teas")
        stale = [item.answer.question for item in check(answers) if item]
        assert stale == ["number 3", "number 4"]


@pytest.mark.parametrize("similarity", ["bm25", "cosine", "auto"])
@pytest.mark.parametrize("way", ["kept", "damaged", "another model"])
def test_a_new_process_goes_on_where_another_one_stopped(similarity, way, tmp_path, monkeypatch):
    """What is out of date is retrieved again there, since nothing else says by what."""
    fuse_few(monkeypatch)
    rng = random.Random(similarity)

    def engine_of(graph):
        graph.create_node_group("line", str.splitlines)
        return QueryEngine(Retriever(graph, "line", similarity, top_k=2), lambda prompt: "Yes [1].")

    def checked(graph, engine):
        check = engine._bounded_check()
        before = check.retrievals
        named = graph.answers.stale(engine)  # another model is a cause, too
        stale = {item.answer.key for item in named if item.removed or item.added}
        for answer in graph.answers:
            results = engine.retriever.retrieve(answer.question, filters=answer.filters)
            keys = sorted(stored_result(result).key for result in results)
            assert (keys != sorted(r.key for r in answer.results)) == (answer.key in stale)
        return len(stale), check.retrievals - before

    def words(texts):
        return letters(texts)

    embed = None if similarity == "bm25" else letters
    with NodeGraph(store=tmp_path / "graph.db", embed=embed) as graph:
        engine = engine_of(graph)
        graph.add([document(rng, f"d{number}", 1) for number in range(60)])
        for number in range(30):
            filters = {"year": {"gte": 2022}} if number % 3 == 0 else None
            engine.query(f"{text_of(rng, 1)} {number}", keep=True, filters=filters)
        assert checked(graph, engine) == (0, 30)
        edit(rng, graph, 1, 1)
        number_stale, retrieved = checked(graph, engine)
        assert retrieved < 30
    if way == "damaged":
        for file in tmp_path.rglob("bounds-*.index"):
            file.write_bytes(file.read_bytes()[:-100])
    if way == "another model":
        embed = words if embed else None
    with NodeGraph(store=tmp_path / "graph.db", embed=embed) as graph:
        engine = engine_of(graph)
        graph.add(Document("Rivers of ice", {"year": 2020}, id="new"))
        stale, retrieved = checked(graph, engine)
        assert stale >= number_stale
        is_kept = way == "kept" or (way, similarity) == ("another model", "bm25")
        assert retrieved < 30 if is_kept else retrieved == 30


@pytest.mark.parametrize(
    "retriever",
    [
        lambda graph: Retriever(graph, "line", target="ROOT"),
        lambda graph: Retriever([graph, NodeGraph()], "ROOT"),
        lambda graph: QueryEngine(graph, no_model).retriever,
    ],
)
def test_retrievers_without_bounds(retriever):
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    assert BoundedCheck.of(retriever(graph), None, "") is None


def test_an_engine_that_now_asks_for_fewer_results():
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.add("green tea\nblack tea\nwhite tea")
    engine = QueryEngine(Retriever(graph, "line"), lambda prompt: "An answer [1].", top_k=3)
    engine.query("tea", keep=True)
    assert graph.answers.stale(engine) == []
    engine.top_k = 1
    assert len(graph.answers.stale(engine)[0].removed) == 2


def test_an_answer_of_more_results_than_the_others_have():
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.add("green tea\nblack tea\nwhite tea\nred tea\nold tea")
    engine = QueryEngine(Retriever(graph, "line"), lambda prompt: "An answer [1].", top_k=1)
    engine.query("tea", keep=True, top_k=4)
    check = engine._bounded_check()
    assert graph.answers.stale(engine) == graph.answers.stale(engine) == []
    assert check.retrievals == 1
    graph.add("tea")
    assert len(graph.answers.stale(engine)) == 1
    graph.add("rivers")
    assert len(graph.answers.stale(engine)) == 1
    assert check.retrievals == 3
