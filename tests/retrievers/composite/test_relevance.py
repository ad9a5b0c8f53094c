"""The scores of the default search: one meaning for all questions. Copies are one result."""

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


def graph_of(*documents: Document | str, embed: object = None) -> NodeGraph:
    graph = NodeGraph(embed=embed, progress=False)  # type: ignore[arg-type]
    graph.add([*documents])
    return graph


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    return graph_of(*TEXTS)


def first_score(graph: NodeGraph, question: str) -> float:
    results = as_retriever(graph).retrieve(question)
    return results[0].score if results else 0.0


def test_score_grows_with_covered_part_of_question(graph: NodeGraph) -> None:
    whole = first_score(graph, "For how many weeks does the library lend books?")
    part = first_score(graph, "For how many weeks does the garage lend bicycles?")
    word = first_score(graph, "For how many hours should the stew be cooked with lime?")
    assert 1 > whole > 0.5 > part > word > 0
    assert first_score(graph, "What do penguins eat?") == 0
    assert first_score(graph, TEXTS[1]) > 0.8


def test_scores_descend_for_any_top_k() -> None:
    graph = graph_of(*(f"{text} It is said by {n}." for n in range(5) for text in TEXTS))
    retriever, question = as_retriever(graph), "who said what of tea"
    many = [result.score for result in retriever.retrieve(question, top_k=25)]
    assert len(many) == 25
    assert many == sorted(many, reverse=True)
    assert all(0 < score <= 1 for score in many)
    for top_k in (1, 6, 11):
        assert [r.score for r in retriever.retrieve(question, top_k=top_k)] == many[:top_k]


@pytest.mark.parametrize("links", [False, True])
def test_shares_sum_to_score(graph: NodeGraph, links: bool) -> None:
    retriever = DefaultRetriever(graph, follow_links=links)
    for result in retriever.retrieve("black tea of the library"):
        shares = [match.share for match in result.evidence if match.share is not None]
        assert sum(shares) == pytest.approx(result.score)
        assert f"{result.score:.4f}" in result.explain().splitlines()[0]


def test_scores_with_links_are_comparable() -> None:
    linked = "Brand\nA play by Henrik Ibsen.", "Henrik Ibsen\nBorn in Skien."
    retriever = DefaultRetriever(graph_of(*linked, *TEXTS), follow_links=True)
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
    people = [
        Document(
            f"Person{n} lives in Town{n}. He sells tea{n}. It is cheap{n}.", {"title": f"Person{n}"}
        )
        for n in range(60)
    ]
    works = "Automobile repair is done by Zebra Works. Zebra Works is old."
    linked = Document("Zebra Works was founded in 1900.", {"title": "Zebra Works"})
    graph = graph_of(*people, Document(works, {"title": "Motor"}), linked, embed=embedded)
    plain, following = (
        DefaultRetriever(graph, follow_links=links).retrieve("horseless carriage")[0].score
        for links in (False, True)
    )
    assert plain > 0.2
    assert following == pytest.approx(plain, abs=0.01)  # with links, vectors are those of sentences


FERRY = "The ferry to the island leaves at nine from the old harbour, and at noon from the new."


@pytest.mark.parametrize("links", [False, True])
def test_copies_become_one_result_with_places(links: bool) -> None:
    graph = graph_of(
        Document(FERRY, id="a"),
        Document(f"  {FERRY.upper()}", id="b"),
        *(Document(f"Of {name}: the ferry is late.", id=name) for name in "ABCDEF"),
    )
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
    text = "Green tea is steamed soon after it was picked, and black tea is left to ferment."
    copies = [Document(text, id=str(number)) for number in range(30)]
    others = [f"There is some tea in the {place}." for place in "cup pot bag box jar".split()]
    retriever, queries = as_retriever(graph_of(*copies, *others)), ["green tea", "some tea"]
    results = retriever.retrieve(queries[0])
    assert len(results) == 6
    assert [result.text for result in results].count(text) == 1
    # Each query of a batch notes as many copies as a single query.
    assert retriever.batch(queries) == [results, retriever.retrieve(queries[1])]


def test_ten_copies_are_listed_and_others_counted() -> None:
    graph = graph_of(*(Document("Green tea is steamed.", id=str(n)) for n in range(300)))
    (result,) = as_retriever(graph).retrieve("green tea", top_k=2)
    assert len([match for match in result.evidence if match.similarity == "also in"]) == 10
    looked_at = 48  # 6, 12, 24, 48: the first depth above 16 times top_k
    assert result.explain().endswith(f"also in 10, and {looked_at - 11} more")


@pytest.mark.parametrize("tokens", [None, 50])
def test_blank_query_results_have_score_zero(tokens: int | None) -> None:
    graph = graph_of(*(Document("Green tea. Black tea.", {"n": n % 2}) for n in range(4)))
    listed = as_retriever(graph).retrieve(" ", filters={"n": 1}, max_tokens=tokens)
    assert {result.score for result in listed} == {0.0}


LETTER = "Dear customer, please pay the bill for the water that you {} used in {} soon. " * 3
TERMS = "乙方应当按照约定的时间和地点交付全部茶叶，甲方应当在三十日之内支付全部货款。" * 3


def letter(*words: object) -> str:
    return LETTER.format(*words * 3)


@pytest.mark.parametrize(
    ("text", "other", "query", "is_copy"),
    [
        (letter("have", 2001), letter("have", 2002), "bill for water", False),
        (letter("have", 2001), letter("have not", 2001), "bill for water", False),
        (letter("have", "C"), letter("have", "C#"), "bill for water", False),
        (letter("have", "5"), letter("have", "-5"), "bill for water", False),
        (letter("have", "1.5"), letter("have", "1 5"), "bill for water", False),
        (letter("have", "5 %"), letter("have", "5 €"), "bill for water", False),
        (letter("a == b", ""), letter("a != b", ""), "bill for water", False),
        (TERMS + "乙方的联系人是张三。", TERMS + "乙方的联系人是李四。", "乙方的联系人是谁", False),
        (TERMS, TERMS.replace("，", ", ").replace("十", "十 "), "交付茶叶", True),
        ("Pay 5 for the water.", "- PAY\n **5** for “the” ｗａｔｅｒ", "pay water", True),
    ],
)
def test_copies_require_equal_words_and_signs(
    text: str, other: str, query: str, is_copy: bool
) -> None:
    results = DefaultRetriever(graph_of(text, other), "ROOT").retrieve(query)
    assert len(results) == 2 - is_copy


def test_found_word_excludes_matches_of_word_parts() -> None:
    graph = graph_of(
        "Die Donau ist ein langer Fluss, der durch viele Länder fließt.",
        "Das Wort Xyzzyplugh steht in einem alten Spiel und in keinem Buch.",
        "In der Höhle sagt man Xyzzyplugh, und die Tür zum Gang geht auf.",
        "Der Pflug und die Plughäfen sind nicht das, was hier gesucht wird.",
    )
    results = as_retriever(graph).retrieve("xyzzyplugh")
    assert ["Xyzzyplugh" in result.text for result in results] == [True, True]
    assert as_retriever(graph).retrieve("Plughafen")  # only parts of the word occur


SENTENCE = "Green tea is steamed soon after the harvest. "


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize(
    ("documents", "others"),
    [
        ({"b": "intro\n\n" + "tea " * 5000}, []),
        ({"b": SENTENCE * 600}, []),
        ({"b": "\n".join(["12:00 tea: nothing to report"] * 900)}, []),
        ({"b": SENTENCE * 300, "c": SENTENCE * 300}, ["c"]),
        ({"a": SENTENCE, "b": SENTENCE, "c": SENTENCE}, ["b", "c"]),
        ({"a": SENTENCE, "b": SENTENCE * 300, "c": "Milk."}, []),
    ],
)
def test_copies_name_each_other_document_once(
    documents: dict[str, str], others: list[str], links: bool
) -> None:
    graph = graph_of(*(Document(text, id=name) for name, text in documents.items()))
    retriever = DefaultRetriever(graph, follow_links=links)
    for first in (retriever("green tea")[0], retriever.batch(["green tea", "tea"])[1][0]):
        listed = [m.node.document_id for m in first.evidence if m.similarity == "also in"]
        names = [*documents]
        expected = others if first.node.document_id == names[0] else listed
        assert listed == expected
        assert len({first.node.document_id, *listed}) == 1 + len(listed)
        assert str(first).count("also in") == len(listed)
