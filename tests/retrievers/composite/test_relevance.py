"""The scores of the default search: one meaning for all questions."""

import re
from zlib import crc32

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever, as_retriever

TEXTS = [
    "The ferry to the island leaves at nine.",
    "Green tea is steamed, black tea is fermented.",
    "The library lends books for four weeks.",
    "Chess is played on a board of sixty-four squares.",
    "Bread needs flour, water, salt and yeast.",
    "Glass is made of sand, soda and lime.",
]


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return graph


def first_score(graph: NodeGraph, question: str) -> float:
    results = as_retriever(graph).retrieve(question)
    return results[0].score if results else 0.0


def test_score_grows_with_covered_part_of_question(graph: NodeGraph) -> None:
    whole = first_score(graph, "For how many weeks does the library lend books?")
    part = first_score(graph, "For how many weeks does the garage lend bicycles?")
    word = first_score(graph, "For how many hours should the stew be cooked with lime?")
    assert 1 > whole > 0.5 > part > word > 0
    assert first_score(graph, "What do penguins eat?") == 0
    assert first_score(graph, "Green tea is steamed, black tea is fermented.") > 0.8


def test_scores_descend_between_one_and_zero(graph: NodeGraph) -> None:
    for question in ("tea made of sand", "library books", "salt on the board of the ferry"):
        scores = [result.score for result in as_retriever(graph).retrieve(question)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


def test_scores_do_not_depend_on_top_k() -> None:
    graph = NodeGraph(progress=False)
    graph.add([f"{text} It is said by {n}." for n in range(5) for text in TEXTS])
    retriever = as_retriever(graph)
    many = [result.score for result in retriever.retrieve("who said what of tea", top_k=25)]
    assert len(many) == 25
    for top_k in (1, 6, 11):
        few = retriever.retrieve("who said what of tea", top_k=top_k)
        assert [result.score for result in few] == many[:top_k]


def test_shares_sum_to_score(graph: NodeGraph) -> None:
    for links in (False, True):
        retriever = DefaultRetriever(graph, follow_links=links)
        for result in retriever.retrieve("black tea of the library"):
            shares = [match.share for match in result.evidence if match.share is not None]
            assert sum(shares) == pytest.approx(result.score)
            assert f"{result.score:.4f}" in result.explain().splitlines()[0]


def test_scores_with_links_are_comparable() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["Brand\nA play by Henrik Ibsen.", "Henrik Ibsen\nBorn in Skien.", *TEXTS])
    retriever = DefaultRetriever(graph, follow_links=True)
    results = retriever.retrieve("Where was the author of the play Brand born?")
    assert [result.text.split("\n")[0] for result in results[:2]] == ["Brand", "Henrik Ibsen"]
    assert all(0 < result.score <= 1 for result in results)
    assert results[0].score > 0.4 > retriever.retrieve("Where were my red shoes made?")[0].score


def embedded(texts: list[str]) -> list[list[float]]:
    """Return near vectors for texts with an equal number, and for texts about cars."""

    def of(key: str) -> np.ndarray:
        return np.random.default_rng(crc32(key.encode())).normal(size=64)

    def vector(text: str) -> np.ndarray:
        if "automobile" in text.lower() or "carriage" in text.lower():
            return of("car") + 0.1 * of(text)
        number = re.search(r"\d+", text)
        return of(number[0] if number else text) + 0.2 * of(text)

    return [vector(text).tolist() for text in texts]


def test_linking_hit_keeps_vector_score() -> None:
    graph = NodeGraph(embed=embedded, progress=False)
    people = [
        Document(
            f"Person{n} lives in Town{n}. He sells tea{n}. It is cheap{n}.", {"title": f"Person{n}"}
        )
        for n in range(60)
    ]
    works = "Automobile repair is done by Zebra Works. Zebra Works is old."
    graph.add(
        [
            *people,
            Document(works, {"title": "Motor"}),
            Document("Zebra Works was founded in 1900.", {"title": "Zebra Works"}),
        ]
    )
    scores = [
        DefaultRetriever(graph, follow_links=links).retrieve("horseless carriage")[0].score
        for links in (False, True)
    ]
    assert scores[0] > 0.2
    assert scores[1] == pytest.approx(scores[0])


def test_copies_become_one_result_with_places() -> None:
    graph = NodeGraph(progress=False)
    text = "The ferry to the island leaves at nine from the old harbour, and at noon from the new."
    graph.add([Document(text, id="a"), Document(f"  {text.upper()}", id="b")])
    graph.add([Document(f"Of {name}: the ferry is late.", id=name) for name in "ABCDEF"])
    for links in (False, True):
        results = DefaultRetriever(graph, follow_links=links).retrieve("When does the ferry leave")
        assert len(results) == 6
        first = results[0]
        assert first.node.document_id == "a"
        (also,) = [match for match in first.evidence if match.similarity == "also in"]
        assert (also.node.document_id, first.explain().splitlines()[-1]) == ("b", "  also in b")
        assert "b" not in {result.node.document_id for result in results}
        shares = [match.share for match in first.evidence if match.share is not None]
        assert sum(shares) == pytest.approx(first.score)


def test_many_copies_leave_room_for_other_results() -> None:
    graph = NodeGraph(progress=False)
    text = "Green tea is steamed soon after it was picked, and black tea is left to ferment."
    graph.add([Document(text, id=str(number)) for number in range(30)])
    graph.add([f"There is some tea in the {place}." for place in "cup pot bag box jar".split()])
    retriever, queries = as_retriever(graph), ["green tea", "some tea"]
    results = retriever.retrieve(queries[0])
    assert len(results) == 6
    assert [result.text for result in results].count(text) == 1
    # Each query of a batch notes as many copies as a single query.
    assert retriever.batch(queries) == [results, retriever.retrieve(queries[1])]


def test_blank_query_results_have_score_zero() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("Green tea. Black tea.", {"n": n % 2}) for n in range(4)])
    for tokens in (None, 50):
        listed = as_retriever(graph).retrieve(" ", filters={"n": 1}, max_tokens=tokens)
        assert listed
        assert {result.score for result in listed} == {0.0}


def test_ten_copies_are_listed_and_others_counted() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("Green tea is steamed.", id=str(number)) for number in range(300)])
    (result,) = as_retriever(graph).retrieve("green tea", top_k=2)
    copies = [match for match in result.evidence if match.similarity == "also in"]
    assert len(copies) == 10
    looked_at = 48  # 6, 12, 24, 48: the first depth above 16 times top_k
    assert result.explain().endswith(f"also in 10, and {looked_at - 11} more")


LETTER = "Dear customer, please pay the bill for the water that you {0} used in {1} soon. " * 3

TERMS = "乙方应当按照约定的时间和地点交付全部茶叶，甲方应当在三十日之内支付全部货款。" * 3


@pytest.mark.parametrize(
    ("text", "other", "query", "is_copy"),
    [
        (LETTER.format("have", 2001), LETTER.format("have", 2002), "bill for water", False),
        (LETTER.format("have", 2001), LETTER.format("have not", 2001), "bill for water", False),
        (LETTER.format("have", "C"), LETTER.format("have", "C#"), "bill for water", False),
        (LETTER.format("have", "5"), LETTER.format("have", "-5"), "bill for water", False),
        (LETTER.format("have", "1.5"), LETTER.format("have", "1 5"), "bill for water", False),
        (LETTER.format("have", "5 %"), LETTER.format("have", "5 €"), "bill for water", False),
        (LETTER.format("a == b", ""), LETTER.format("a != b", ""), "bill for water", False),
        (TERMS + "乙方的联系人是张三。", TERMS + "乙方的联系人是李四。", "乙方的联系人是谁", False),
        (TERMS, TERMS.replace("，", ", ").replace("十", "十 "), "交付茶叶", True),
        ("Pay 5 for the water.", "- PAY\n **5** for “the” ｗａｔｅｒ", "pay water", True),
    ],
)
def test_copies_require_equal_words_and_signs(
    text: str, other: str, query: str, is_copy: bool
) -> None:
    graph = NodeGraph(progress=False)
    graph.add([text, other])
    assert len(DefaultRetriever(graph, "ROOT").retrieve(query)) == 2 - is_copy


def test_found_word_excludes_matches_of_word_parts() -> None:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            "Die Donau ist ein langer Fluss, der durch viele Länder fließt.",
            "Das Wort Xyzzyplugh steht in einem alten Spiel und in keinem Buch.",
            "In der Höhle sagt man Xyzzyplugh, und die Tür zum Gang geht auf.",
            "Der Pflug und die Plughäfen sind nicht das, was hier gesucht wird.",
        ]
    )
    results = as_retriever(graph).retrieve("xyzzyplugh")
    assert ["Xyzzyplugh" in result.text for result in results] == [True, True]
    assert as_retriever(graph).retrieve("Plughafen")  # only parts of the word occur
