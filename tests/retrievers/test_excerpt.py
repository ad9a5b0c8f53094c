"""What is printed for a result: the parts of a text that answer a query."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin import NodeGraph
from nodekin.nodegraph import Node
from nodekin.retrievers import Evidence, ResultList, ScoredNode

FILL = (
    "The coast has many bays and islands. Winds come mostly from the west. In winter some roads "
    "are closed for weeks. Ferries leave from the old harbour twice a day."
)

BESIDE = {
    "Who led the rebuilding of the Varn lighthouse?": (
        "Marta Holm",
        "The rebuilding of the Varn lighthouse began after the great storm. It took four years, "
        "and Marta Holm was its head.",
    ),
    "When did the paper mill at Orsk close its doors?": (
        "1987",
        "In the end the paper mill at Orsk closed its doors for good. That happened in the spring "
        "of 1987, after a strike.",
    ),
    "How high is the Sella viaduct?": (
        "41 metres",
        "Its builders measured twice and found 41 metres. So the Sella viaduct is as high as the "
        "tower of the church.",
    ),
    "Which material is the roof of the Brann hall made of?": (
        "slate",
        "Visitors often ask what the roof of the Brann hall is made of. The answer is slate from "
        "a quarry nearby.",
    ),
    "Wie viele Stufen hat der Turm von Holm?": (
        "312",
        "Der Turm von Holm ist für alle offen. Oben ist, wer 312 Stufen gestiegen ist.",
    ),
    "兰溪图书馆的馆长是谁？": (
        "周文清",
        "兰溪图书馆的馆长每年都会换人吗？并不会。现任馆长周文清已经任职十年。",
    ),
    "青石桥是哪一年重修的？": (
        "1962",
        "洪水之后，青石桥由村民重修。那是1962年的秋天，全村人都来帮忙。",
    ),
}
"""The answer of each question is in a neighbor of the sentence with the question's words."""

CITIES = "Athens 150, Berlin 170, Bern 205, Cork 165, Lisbon 140, Paris 210, Prague 130, Tokyo 230"

TABLE = (
    "# Travel policy\n\n## Hotels\n\nThe limit for a hotel night depends on the city. Breakfast is "
    "included in the limit. Ask the travel desk before you book a hotel above the limit.\n\n"
    "| City | Limit | Currency |\n| --- | --- | --- |\n"
    + "".join("| {} | {} | EUR |\n".format(*city.split()) for city in CITIES.split(", "))
)


@pytest.fixture(scope="module")
def library() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([f"{FILL} {passage} {FILL}" for _, passage in BESIDE.values()])
    return graph


@pytest.fixture
def policy(tmp_path: Path) -> NodeGraph:
    (tmp_path / "policy.md").write_text(TABLE)
    return NodeGraph(tmp_path / "policy.md", progress=False)


def found(text: str, query: str) -> ScoredNode:
    node = Node(text, id="1")
    return ScoredNode(node, 1.0, (Evidence(node, 1.0, "bm25", query),))


@pytest.mark.parametrize("question", BESIDE)
def test_result_prints_neighbor_with_answer(library: NodeGraph, question: str) -> None:
    printed = str(library.search(question, 1)[0])
    assert BESIDE[question][0] in printed
    assert len(printed) < 300


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("hotel limit in Paris", "| Paris | 210 | EUR |"),
        ("hotel limit in Tokyo", "| Tokyo | 230 | EUR |"),
        ("What is the limit for a hotel night in Prague?", "| Prague | 130 | EUR |"),
    ],
)
def test_table_row_with_answer_is_printed(policy: NodeGraph, question: str, row: str) -> None:
    result = policy.search(question, 1)[0]
    assert row in str(result)
    snippet = result.snippet()
    assert snippet.index("| City | Limit | Currency |") < snippet.index(row)
    assert not any("---" in line for line in snippet)


def test_gap_between_printed_parts_is_marked() -> None:
    text = f"Green tea is steamed. {FILL} {FILL} Oolong is rolled."
    assert found(text, "green oolong").snippet(columns=50, rows=1) == [
        "Green tea is steamed. … Oolong is rolled."
    ]


def test_long_sentence_is_cut_near_words() -> None:
    text = " ".join(["and so on"] * 60 + ["the heron waits"] + ["and so on"] * 60)
    (row,) = found(text, "heron").snippet(columns=60, rows=1)
    assert "heron" in row
    assert row.startswith("…")


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        (
            "Why was the old mill of Orsk closed?",
            "The river had changed its bed",
            f"{FILL} The river had changed its bed. So the old mill of Orsk was closed. "
            "A school was built in its garden. Children liked it.",
        ),
        (
            "How many people live there?",
            "Today it counts 4,120",
            "Wood and paper made the town rich. Its people live from both. Some of them were "
            "born elsewhere. Today it counts 4,120. Trains stop twice a day.",
        ),
        (
            "磨坊为什么关闭？",
            "河流改道了",
            "冬天有些道路要封闭几个星期，渡船每天开两班。河流改道了。于是磨坊关闭。"
            "后来人们在花园里建了一所学校，孩子们很喜欢。",
        ),
        (
            "东街有多少米？",
            "全长1122米",
            "全长1122米，两边都是商店。东街很热闹，每到周末，来东街的人络绎不绝。"
            "东街上的人都喜欢喝茶，也喜欢在东街散步。",
        ),
    ],
)
def test_snippet_fits_kind_of_question(question: str, answer: str, text: str) -> None:
    (row,) = found(text, question).snippet(columns=80 if question.isascii() else 50, rows=1)
    assert answer in row


def test_first_sentence_about_subject_is_printed() -> None:
    lead = "Orsk is a town in the north."
    text = f"{lead} {FILL} {FILL} The market of Orsk has many visitors from the coast."
    (row,) = found(text, "market of Orsk").snippet(columns=100, rows=1)
    assert row.startswith(lead)
    assert "The market of Orsk" in row


def test_mark_between_printed_parts_is_no_gap() -> None:
    text = "他说：“茶很好”。绿茶也很好。"
    assert found(text, "绿茶").snippet(columns=60, rows=1) == [text]


def test_blank_query_prints_first_sentences() -> None:
    assert found("Tea is old. Rivers run.", "").snippet(rows=1) == ["Tea is old. Rivers run."]


@given(st.text(alphabet="ab .\n|茶。é\u0301-", max_size=300), st.text("ab 茶", max_size=9))
def test_snippet_fits_rows_and_columns(text: str, query: str) -> None:
    rows = found(text, query).snippet(columns=30, rows=3)
    assert len(rows) <= 3
    for row in rows:
        for part in row.strip("…").split(" … "):
            assert part.strip() in " ".join(text.split())


def test_results_are_readable_at_the_prompt(library: NodeGraph) -> None:
    results = library.search("Who led the rebuilding of the Varn lighthouse?", 2)
    first, second = repr(results).split("\n")
    assert first.startswith("1. 0.")
    assert "Marta Holm" in first
    assert second.startswith("2. 0.")
    assert results._repr_html_().count("<li>") == 2
    assert repr(library.search("Who?", 2)[:0]) == "[]"


def test_results_remain_lists(library: NodeGraph) -> None:
    results = library.search("harbour", 3)
    assert isinstance(results[:2], ResultList)
    assert results[:1] + results[1:] == results == list(results)
    assert isinstance(results[:1] + results, ResultList)
    assert pickle.loads(pickle.dumps(results)) == results
    assert isinstance(pickle.loads(pickle.dumps(results)), ResultList)
    assert json.loads(json.dumps([result.to_dict() for result in results]))
    assert sorted(results, key=lambda result: result.score)[-1] == results[0]


def test_retrieve_and_batch_return_result_lists(library: NodeGraph) -> None:
    from nodekin import as_retriever

    retriever = as_retriever(library)
    assert isinstance(retriever.retrieve("harbour"), ResultList)
    assert all(isinstance(each, ResultList) for each in retriever.batch(["harbour", "roof"]))
