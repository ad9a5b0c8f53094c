"""Quotations of answers, looked up in their sources."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fixed_retriever import FixedRetriever, scored
from hypothesis import given
from hypothesis import strategies as st
from planted_quotes import VOCABULARIES, Planter, made_sources, real_sources
from stress import LONG, amount

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import Answer, QueryEngine, Retriever, check_quotes

GREEN = "Green tea is steamed. It grows in Japan, at 400 m and above."
BLACK = "Black tea is fermented,\nthen dried. It is drunk with milk."
SOURCES = [GREEN, BLACK]

LEAST = {"exact": 1.0, "nowhere": 1.0, "stitched": 0.99, "elsewhere": 0.99, "repaired": 0.98}
"""The share of planted quotations that are classed right."""


def check_planted(
    language: str, sources_of: Callable[[random.Random], list[str]], count: int
) -> None:
    rng = random.Random(language)
    right, tried = Counter[str](), Counter[str]()
    wrong: list[Any] = []
    while tried.total() < count:
        sources = sources_of(rng)
        planter = Planter(rng, sources, language)
        planted = [planter.next() for _ in range(20)]
        for answer in planted:
            tried[answer.status] += 1
            quotes = check_quotes(answer.text, sources).quotes
            if [(quote.status, quote.source) for quote in quotes] == [
                (answer.status, answer.source)
            ]:
                right[answer.status] += 1
            else:
                wrong.append((answer, quotes))
    shares = {status: right[status] / tried[status] for status in tried}
    assert all(shares[status] >= LEAST[status] for status in tried), (shares, wrong[:3])


@pytest.mark.parametrize("language", VOCABULARIES)
def test_planted_quotations(language: str) -> None:
    check_planted(language, lambda rng: made_sources(rng, language, 6), amount(60, 2_000))


@pytest.mark.skipif(not LONG, reason="takes minutes: NODEKIN_STRESS=1")
@pytest.mark.parametrize("language", VOCABULARIES)
def test_quotations_planted_in_real_texts(language: str, data: Path) -> None:
    texts = real_sources(data, language)
    check_planted(language, lambda rng: rng.sample(texts, 10), amount(1, 2_000))


CASES = [
    ('It is "steamed" [1].', ["exact 1"], []),
    ("It is «STEAMED» [1].", ["repaired 1 case"], []),
    ("It “grows in … 400 m” [1].", ["repaired 1 elision"], []),
    ("It “grows in … above ... Green tea” [1].", ["nowhere"], ["stands in no source"]),
    ("“Black tea is fermented, then dried” [2].", ["repaired 2 spaces"], []),
    ("“Black tea is fermented” [1].", ["elsewhere 2"], ["stands in [2], not in [1]"]),
    ("“It grows in Japan. Green tea is steamed.” [1]", ["stitched 1"], ["2 parts of [1]"]),
    ("Tea grows “at 500 m and above” [1].", ["nowhere"], ["nearest text is “It grows in"]),
    ("Tea grows “at 40” m high [1].", ["nowhere"], ["“at 40” stands in no source"]),
    ("Tea is “team” [1].", ["nowhere"], []),
    ("> Green tea is steamed.\n>\n> — The tea book [1]", ["exact 1"], []),
    ("「Green tea is steamed」【1】。", ["exact 1"], []),
    ("Green tea is steamed [1].", ["exact 1"], []),
    ("Green tea is steamed. [1] It is dear.", ["exact 1"], ["1 sentence cites no source: “It is"]),
    ("- **Green tea** is steamed [1].", ["exact 1"], []),
    ("- It is a leaf.", [], ["1 sentence cites no source: “It is a leaf.”"]),
    ("Steam makes it green [1].", ["nowhere"], []),
    ("One “steamed” [1], one “dried” [2].", ["exact 1", "exact 2"], []),
    ("Both “steamed” and “Japan” occur [1].", ["exact 1", "exact 1"], []),
    ("It is steamed at 90 °C [1].", ["nowhere"], ["no source has the number 90"]),
    ("It came to Uji [1].", ["nowhere"], ["no source has the name Uji"]),
    ("It is green [3].", ["nowhere"], ["cites [3], which is the number of no source"]),
    ('Use `"x"` [1].', ["nowhere"], []),
    ("Call `steam()` once a day.", [], ["cites no source: “Call `steam()` once a day.”"]),
    ("绿茶是蒸青的，产于400米[1]。它是“steamed”[1]。", ["exact 1"], ["回答与来源的语言不同"]),
    ("“Green tea [1] is steamed” [1].", ["exact 1"], []),
    ("It isn’t ‘dried’ [2], it’s “…” [2].", ["exact 2"], []),
]


@pytest.mark.parametrize(("text", "expected", "notes"), CASES)
def test_how_quotations_are_classed(text: str, expected: list[str], notes: list[str]) -> None:
    answer = check_quotes(text, SOURCES)
    classed = [
        " ".join([q.status, *([str(q.source)] if q.source else []), *q.repairs])
        for q in answer.quotes
    ]
    assert classed == expected
    assert len(answer.notes) >= len(notes)
    for note in notes:
        assert any(note in written for written in answer.notes), answer.notes


ASPIRIN = "Aspirin relieves most pain. A snake kills mice. It is fun, and many children like it."


@pytest.mark.parametrize(
    ("quote", "source", "status"),
    [
        ("Aspirin … kills … children", ASPIRIN, "stitched"),
        ("Aspirin … pain", ASPIRIN, "repaired"),
        ("Aspirin relieves most pain ... fun, and many children like it", ASPIRIN, "repaired"),
        ("The drug is … safe", "The drug is not safe.", "stitched"),
        ("The drug is … safe", "The drug is not safe. The drug is otherwise safe.", "repaired"),
        ("The drug … safe", "The drug isn’t safe.", "stitched"),
        ("该药……安全", "该药并不安全。", "stitched"),
        ("该药……安全", "该药十分安全。", "repaired"),
    ],
)
def test_an_elision_leaves_out_no_sentence_and_no_negation(
    quote: str, source: str, status: str
) -> None:
    answer = check_quotes(f"“{quote}” [1].", [source])
    assert [q.status for q in answer.quotes] == [status]
    notes = " ".join(answer.notes)
    assert ("is put together from" in notes or "拼接而成" in notes) == (status == "stitched")


@pytest.mark.parametrize(
    ("quote", "source", "status"),
    [
        ("5 °C", "It fell to −5 °C.", "nowhere"),
        ("5 °C", "It fell to －5 °C.", "nowhere"),
        ("5 °C", "It is ±5 °C.", "nowhere"),
        ("5 °C", "气温降至-5 °C。", "nowhere"),
        ("−5 °C", "It fell to 5 °C.", "nowhere"),
        ("-5 °C", "It fell to −5 °C.", "repaired"),
        ("5 °C", "From 3–5 °C.", "exact"),
        ("2 cups", "Take 1/2 cups.", "nowhere"),
        ("Take 1", "Take 1⁄2 cups.", "nowhere"),
        ("5 cups", "Take .5 cups.", "nowhere"),
        ("...5 cups of tea", "Take 5 cups of tea.", "repaired"),
        ("- 5 cups of tea", "Take 5 cups of tea.", "repaired"),
        ("000 people died", "And 10 000 people died.", "nowhere"),
        ("000 people died", "And 10\u202f000 people died.", "nowhere"),
        ("And 10", "And 10 000 people died.", "nowhere"),
        ("500 people died", "In 2019 500 people died.", "exact"),
        ("grew 5", "It grew 5% in May.", "nowhere"),
        ("fell by 5", "It fell by 5 %.", "nowhere"),
        ("十五万元", "共二十五万元。", "nowhere"),
        ("三百元", "共五千三百元。", "nowhere"),
        ("共五千", "共五千三百元。", "nowhere"),
        ("三十", "增长百分之三十。", "nowhere"),
        ("共5", "共5万元。", "nowhere"),
        ("五万元", "共三点五万元。", "nowhere"),
        ("5千元", "共8万5千元。", "nowhere"),
        ("他们是一个很大的家族，- 3万年前很有名", "他们是一个很大的家族，很有名。", "nowhere"),
        (
            "他们都说这就是一2008年他被选入队",
            "2008年他被选入队。他们都说这就是一个队。",
            "stitched",
        ),
        ("三百元", "共三百元。", "exact"),
        ("106 cells", "It has 10⁶ cells.", "nowhere"),
        ("10⁶ cells", "It has 106 cells.", "nowhere"),
        ("10 cells", "It has 10⁶ cells.", "nowhere"),
        ("10⁶ Cells", "It has 10⁶ cells.", "repaired"),
        ("C6H12O6 and m2", "It is C₆H₁₂O₆ and m².", "repaired"),
        ("5 m2 of tea", "It has 5 m² of tea.", "repaired"),
        ("C6H1", "It is C₆H₁₂O₆.", "nowhere"),
        (
            "都在于金华改为县城，他们共三百六十五",
            "他们共三百六十五个人。都在于金华改为县城。",
            "stitched",
        ),
        ("tea has 70% water, it has 30% of", "It has 30% of all. Tea has 70% water.", "stitched"),
    ],
)
def test_a_part_of_a_number_is_another_number(quote: str, source: str, status: str) -> None:
    assert [q.status for q in check_quotes(f"“{quote}” [1].", [source]).quotes] == [status]


def test_an_answer_without_faults_has_no_notes() -> None:
    text = "Green tea “is steamed” [1]. It grows in Japan, at 400 m and above [1]."
    assert check_quotes(text, SOURCES).notes == ()


REPAIRS = [
    ("It is “STEAMED” [1].", "It is “steamed” [1]."),
    ("It is “steamed”.", "It is “steamed”."),
    ("It is “boiled” [1].", "It is boiled [1]."),
    ("It is “is fermented, then dried” [1].", "It is “is fermented, then dried” [2]."),
    (
        "“It grows in Japan. Green tea is steamed” [1].",
        "“It grows in Japan” … “Green tea is steamed” [1].",
    ),
    ("“steamed” and “dried” [1].", "“steamed” [1] and “dried” [2]."),
    ("> Green  tea is STEAMED. [2]", "> Green tea is steamed. [1]"),
    ("> Never smoked. [2]", "Never smoked. [2]"),
    ("“Green tea is steamed,” they say [1].", "“Green tea is steamed”, they say [1]."),
    ("Green tea is steamed [2].", "Green tea is steamed [1]."),
]


def test_marks_within_a_quotation() -> None:
    """A corrected copy breaks none, and a quotation in a quotation does not hide the outer one."""
    sources = ['He said "no" to tea.', "He said “no” to milk.", "The moon is bright."]
    for text, status, repaired in (
        ("\"He said 'no' to tea\" [1].", "repaired", "\"He said 'no' to tea\" [1]."),
        ("\"He said 'no' to tea\" [2].", "elsewhere", "\"He said 'no' to tea\" [1]."),
        ("“He said 'no' to milk” [2].", "repaired", "“He said “no” to milk” [2]."),
        ("“He said “no” to milk” [2].", "exact", "“He said “no” to milk” [2]."),
        ("“The moon is “bright” and blue” [3].", "nowhere", "The moon is “bright” and blue [3]."),
        ("«The moon is «bright» and blue» [3].", "nowhere", "The moon is «bright» and blue [3]."),
    ):
        answer = check_quotes(text, sources, repair=True)
        assert answer.text == repaired
        (quote,) = check_quotes(text, sources).quotes
        assert quote.status == status


@pytest.mark.parametrize(("text", "repaired"), REPAIRS)
def test_a_corrected_copy(text: str, repaired: str) -> None:
    answer = check_quotes(text, SOURCES, repair=True)
    assert answer.text == repaired
    again = check_quotes(answer.text, SOURCES)
    assert {q.status for q in again.quotes if q.quoted} <= {"exact", "repaired"}
    assert set(again.notes) <= set(answer.notes)


def test_spans_say_where_in_the_document() -> None:
    graph = NodeGraph()
    text = f"# Tea\n\n{GREEN}\n\n{BLACK}"
    graph.add(Document(text, {"source": "docs/tea.md"}, id="tea.md"))
    graph.create_node_group("line", lambda text: [part for part in text.split("\n\n") if part])
    results = Retriever(graph, "line", top_k=5).retrieve("green black tea steamed milk")
    numbers = {result.node.text: n for n, result in enumerate(results, 1)}
    answer = check_quotes(f"“Then Dried” [{numbers[BLACK]}].", results)
    (span,) = answer.quotes[0].spans
    assert (span.text, text[span.start : span.end]) == ("then dried", "then dried")
    assert (span.document_id, span.place) == ("tea.md", "tea.md, Tea")


def test_a_quotation_may_go_on_in_the_next_passage() -> None:
    graph = NodeGraph()
    graph.add(
        Document("Green tea is steamed\n\fin autumn. It is dear.", {"page_unit": "page"}, id="t")
    )
    graph.create_node_group("page", lambda text: text.split("\n\f"))
    results = sorted(
        Retriever(graph, "page").retrieve("steamed autumn"), key=lambda r: r.node.order
    )
    (quote,) = check_quotes("“tea is steamed in autumn” [2].", results).quotes
    assert (quote.status, quote.source, quote.repairs) == ("repaired", 2, ("spaces",))
    (span,) = quote.spans
    assert graph.node("t").text[span.start : span.end] == "tea is steamed\n\fin autumn"
    assert span.pages == (1, 2)


def test_a_quotation_may_go_on_without_a_space() -> None:
    graph = NodeGraph()
    graph.add(Document("绿茶要蒸。红茶要发酵。", id="t"))
    graph.create_node_group("sentence", lambda text: ["绿茶要蒸。", "红茶要发酵。"])
    results = sorted(Retriever(graph, "sentence").retrieve("绿茶 红茶"), key=lambda r: r.node.order)
    (quote,) = check_quotes("书上说“要蒸。红茶要”[1]。", results).quotes
    assert (quote.status, quote.source) == ("exact", 1)


@pytest.mark.parametrize("run", ["query", "stream"])
def test_an_engine_checks_its_answers(run: str) -> None:
    retriever = FixedRetriever(scored([Node(GREEN, id="a"), Node(BLACK, id="b")]))
    engine = QueryEngine(retriever, lambda prompt: "It is “roasted” [1].", check="quotes")
    answer = engine.query("How?") if run == "query" else engine.stream("How?").finish()
    assert [quote.status for quote in answer.quotes] == ["nowhere"]
    assert answer.notes[0].startswith("the quotation “roasted” stands in no source")
    unchecked = QueryEngine(retriever, lambda prompt: "It is “roasted” [1].").query("How?")
    assert (unchecked.quotes, unchecked.notes) == ((), ())
    assert check_quotes(unchecked).quotes == answer.quotes


def test_chains_and_responses_are_read() -> None:
    documents = [SimpleNamespace(page_content=text, metadata={}, id=None) for text in SOURCES]
    twice = [documents[0], documents[0], documents[1]]  # which keep their numbers
    answer = check_quotes({"answer": "It is “dried” [3].", "context": twice})
    assert [(quote.status, quote.source) for quote in answer.quotes] == [("exact", 3)]
    assert check_quotes("“dried” [2]", documents).quotes[0].source == 2


def test_what_is_no_answer_or_evidence() -> None:
    with pytest.raises(TypeError, match="an answer is a text, a message"):
        check_quotes(3, SOURCES)
    with pytest.raises(TypeError, match="evidence is a list of documents"):
        check_quotes("“tea”", GREEN)
    with pytest.raises(TypeError, match="no document of LangChain"):
        check_quotes("“tea”", [3])
    with pytest.raises(ValueError, match="check is None or 'quotes', not 'facts'"):
        QueryEngine(FixedRetriever([]), str, check="facts")  # type: ignore[arg-type]


def test_an_answer_without_sources_stays_as_it_is() -> None:
    answer = Answer("Nothing was found.", "What?", answered=False)
    assert check_quotes(answer) is answer
    assert check_quotes(replace(answer, answered=True)).quotes == ()


def test_long_texts_take_time_in_proportion() -> None:
    """No quotation or mark makes the work grow with the square: it would take minutes."""
    for text in (
        f"“a{' ' * 40_000}b” [1]",
        f"[{' ' * 40_000}1",
        f"“a{' .' * 20_000}b” [1]",
        "“" * 20_000,
        f"“{'“a” ' * 10_000}",
        "“a “b” " * 5_000,
        '"a' * 20_000,
        "> a\n" * 5_000,
        "[1] " * 20_000,
        "“a … b” " * 2_000,
        f"“{'steamed tea ' * 5_000}” [1]",
        "（" * 20_000,
        "\n" * 50_000 + '"',
    ):
        check_quotes(text, SOURCES)


MARKS = ["“", "”", '"', "「", "」", "‘", "’", "«", "»", "> ", "\n", "\n\n", "`", "**", "- ", "。"]

WORDS = ["Green tea", " is ", "STEAMED", "steamed. ", "Black tea,\n", "re-\n", "茶", "12", ".5"]

PIECES = st.sampled_from([*MARKS, *WORDS, " [1]", "[2]", "【9】", " … ", " "])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_checked_and_corrected(text: str) -> None:
    answer = check_quotes(text, SOURCES)
    for quote in answer.quotes:
        assert 0 <= quote.start < quote.end <= len(text)
        assert (quote.source is None) == (quote.status == "nowhere") == (not quote.spans)
        for span in quote.spans:
            assert quote.source is not None
            assert span.text in SOURCES[quote.source - 1]
    again = check_quotes(text, SOURCES, repair=True)
    assert not [quote for quote in again.quotes if quote.quoted and quote.status == "nowhere"]


def test_notes_on_a_chinese_answer_are_in_chinese() -> None:
    sources = ["绿茶是蒸青的。它长在四百米以上。", "红茶是发酵的，然后烘干。"]
    answer = check_quotes(
        "绿茶是“蒸青的” [2]，它“长在五百米以上” [1]。鲁迅1881年喝过很多的茶。", sources
    )
    assert answer.notes == (
        "引文“蒸青的”出自 [1]，不在 [2] 中",
        "引文“长在五百米以上”不在任何来源中；最接近的原文是“它长在四百米以上。”",
        "1 句没有标来源：“鲁迅1881年喝过很多的茶。”",
        "来源中没有这样的数字：1881",
    )
    assert check_quotes("绿茶会发光 [7]。", sources).notes == ("回答标了 [7]，没有这样的来源",)


def test_documents_that_no_graph_has_are_evidence():
    pages = [Document("# Tea\n\nGreen tea is steamed.", id="tea.md"), Document("Rivers flow.")]
    (quote,) = check_quotes("It is “steamed” [2].", pages).quotes
    (span,) = quote.spans
    assert (quote.status, quote.source) == ("elsewhere", 1)
    assert (span.document_id, span.start, span.end) == ("tea.md", 20, 27)
