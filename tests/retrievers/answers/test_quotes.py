"""The check of an answer's quotations against its sources."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fixed_retriever import FixedRetriever, scored
from support.planted_quotes import VOCABULARIES, Planter
from support.streams import finish
from support.stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import Answer, QueryEngine, Retriever, check_quotes

GREEN = "Green tea is steamed. It grows in Japan, at 400 m and above."
BLACK = "Black tea is fermented,\nthen dried. It is drunk with milk."
SOURCES = [GREEN, BLACK]

LEAST = {
    "exact": 1.0,
    "not_found": 1.0,
    "other_source": 0.99,
    "same_letters": 0.98,
    "shortened": 0.98,
}
"""The minimum share of planted quotations with the right status."""


@pytest.mark.parametrize("language", VOCABULARIES)
def test_planted_quotations_have_expected_status(language: str) -> None:
    rng = random.Random(language)
    right, tried = Counter[str](), Counter[str]()
    wrong: list[Any] = []
    while tried.total() < amount(60, 2_000):
        planter = Planter(rng, language)
        for answer in [planter.next() for _ in range(20)]:
            tried[answer.status] += 1
            quotes = check_quotes(answer.text, planter.sources).quotes
            if [(q.status, q.source) for q in quotes] == [(answer.status, answer.source)]:
                right[answer.status] += 1
            else:
                wrong.append((answer, quotes))
    shares = {status: right[status] / tried[status] for status in tried}
    assert all(shares[status] >= LEAST[status] for status in tried), (shares, wrong[:3])


CASES = [
    ('It is "steamed" [1].', ["exact 1"], []),
    ("It is «STEAMED» [1].", ["same_letters 1"], []),
    ("It “grows in … 400 m” [1].", ["shortened 1"], ["leaves out a part of a sentence"]),
    ("It “grows in … above ... Green tea” [1].", ["not_found"], ["is in no source"]),
    ("“Black tea is fermented, then dried” [2].", ["same_letters 2"], []),
    ("“Black tea is fermented” [1].", ["other_source 2"], ["is in [2], not in [1]"]),
    ("“It grows in Japan. Green tea is steamed.” [1]", ["not_found"], ["is in no source"]),
    ("Tea grows “at 500 m and above” [1].", ["not_found"], ["nearest text is “It grows in"]),
    ("Tea grows “at 40” m high [1].", ["not_found"], ["“at 40” is in no source"]),
    ("Tea is “team” [1].", ["not_found"], []),
    ("> Green tea is steamed.\n>\n> — The tea book [1]", ["exact 1"], []),
    ("「Green tea is steamed」【1】。", ["exact 1"], []),
    ("Green tea is steamed [1].", ["exact 1"], []),
    ("Green tea is steamed. [1] It is dear.", ["exact 1"], ["1 sentence cites no source: “It is"]),
    ("- **Green tea** is steamed [1].", ["exact 1"], []),
    ("- It is a leaf.", [], ["1 sentence cites no source: “It is a leaf.”"]),
    ("Steam makes it green [1].", ["not_found"], []),
    ("One “steamed” [1], one “dried” [2].", ["exact 1", "exact 2"], []),
    ("Both “steamed” and “Japan” occur [1].", ["exact 1", "exact 1"], []),
    ("It is steamed at 90 °C [1].", ["not_found"], []),
    ("It came to Uji [1].", ["not_found"], []),
    ("It is green [3].", ["not_found"], ["cites missing sources: [3]"]),
    ('Use `"x"` [1].', ["not_found"], []),
    ("Call `steam()` once a day.", [], ["cites no source: “Call `steam()` once a day.”"]),
    ("绿茶是蒸青的[1]。它是“steamed”[1]。", ["not_found", "exact 1"], []),
    ("“Green tea [1] is steamed” [1].", ["exact 1"], []),
    ("It isn’t ‘dried’ [2], it’s “…” [2].", ["exact 2"], []),
    ("“Green tea is “steamed” and blue” [1].", ["not_found"], []),
    ("\"Black 'tea' is\" [2].", ["not_found"], []),
]


@pytest.mark.parametrize(("text", "expected", "notes"), CASES)
def test_status_of_quotations(text: str, expected: list[str], notes: list[str]) -> None:
    answer = check_quotes(text, SOURCES)
    classed = [" ".join([q.status, *([str(q.source)] if q.source else [])]) for q in answer.quotes]
    assert classed == expected
    assert len(answer.notes) >= len(notes)
    for note in notes:
        assert any(note in written for written in answer.notes), answer.notes


ASPIRIN = "Aspirin relieves most pain. A snake kills mice. It is fun, and many children like it."


@pytest.mark.parametrize(
    ("quote", "source", "status"),
    [
        ("Aspirin … kills … children", ASPIRIN, "not_found"),
        ("Aspirin … pain", ASPIRIN, "shortened"),
        ("Aspirin relieves most pain ... fun, and many children like it", ASPIRIN, "shortened"),
        ("The drug is … safe", "The drug is not safe.", "shortened"),
        ("The drug is … safe", "The drug is not safe. The drug is otherwise safe.", "shortened"),
        ("The drug … safe", "The drug isn’t safe.", "shortened"),
        ("该药……安全", "该药并不安全。", "shortened"),
        ("该药……安全", "该药十分安全。", "shortened"),
        ("5 °C", "It fell to −5 °C.", "not_found"),
        ("5 °C", "It fell to －5 °C.", "not_found"),
        ("5 °C", "It is ±5 °C.", "not_found"),
        ("5 °C", "气温降至-5 °C。", "not_found"),
        ("−5 °C", "It fell to 5 °C.", "not_found"),
        ("-5 °C", "It fell to −5 °C.", "same_letters"),
        ("5 °C", "From 3–5 °C.", "not_found"),
        ("2 cups", "Take 1/2 cups.", "not_found"),
        ("Take 1", "Take 1⁄2 cups.", "not_found"),
        ("5 cups", "Take .5 cups.", "not_found"),
        ("...5 cups of tea", "Take 5 cups of tea.", "same_letters"),
        ("- 5 cups of tea", "Take 5 cups of tea.", "same_letters"),
        ("000 people died", "And 10 000 people died.", "not_found"),
        ("000 people died", "And 10\u202f000 people died.", "not_found"),
        ("And 10", "And 10 000 people died.", "not_found"),
        ("500 people died", "In 2019 500 people died.", "exact"),
        ("grew 5", "It grew 5% in May.", "not_found"),
        ("fell by 5", "It fell by 5 %.", "not_found"),
        ("十五万元", "共二十五万元。", "not_found"),
        ("三百元", "共五千三百元。", "not_found"),
        ("共五千", "共五千三百元。", "not_found"),
        ("三十", "增长百分之三十。", "not_found"),
        ("共5", "共5万元。", "not_found"),
        ("五万元", "共三点五万元。", "not_found"),
        ("5千元", "共8万5千元。", "not_found"),
        ("他们是一个很大的家族，- 3万年前很有名", "他们是一个很大的家族，很有名。", "not_found"),
        (
            "他们都说这就是一2008年他被选入队",
            "2008年他被选入队。他们都说这就是一个队。",
            "not_found",
        ),
        ("三百元", "共三百元。", "exact"),
        ("106 cells", "It has 10⁶ cells.", "not_found"),
        ("10⁶ cells", "It has 106 cells.", "not_found"),
        ("10 cells", "It has 10⁶ cells.", "not_found"),
        ("10⁶ Cells", "It has 10⁶ cells.", "same_letters"),
        ("C6H12O6 and m2", "It is C₆H₁₂O₆ and m².", "same_letters"),
        ("5 m2 of tea", "It has 5 m² of tea.", "same_letters"),
        ("C6H1", "It is C₆H₁₂O₆.", "not_found"),
        (
            "都在于金华改为县城，他们共三百六十五",
            "他们共三百六十五个人。都在于金华改为县城。",
            "not_found",
        ),
        ("tea has 70% water, it has 30% of", "It has 30% of all. Tea has 70% water.", "not_found"),
    ],
)
def test_negations_and_numbers_stay_whole(quote: str, source: str, status: str) -> None:
    assert [q.status for q in check_quotes(f"“{quote}” [1].", [source]).quotes] == [status]


SHORTENED = [
    ("Smoking is not allowed here.", "Smoking is … allowed here"),
    ("Rauchen ist nicht erlaubt.", "Rauchen ist … erlaubt"),
    ("他没有付款给我们。", "他……付款给我们"),
    ("Roken is niet toegestaan.", "Roken is … toegestaan"),
    ("Rygning er ikke tilladt.", "Rygning er … tilladt"),
    ("Kouření není dovoleno.", "Kouření … dovoleno"),
    ("Курить не разрешено здесь.", "Курить … разрешено здесь"),
    ("Sigara içmek serbest değil burada.", "Sigara içmek serbest … burada"),
    ("التدخين غير مسموح هنا.", "التدخين … مسموح هنا"),
    ("धूम्रपान की अनुमति नहीं है यहाँ.", "धूम्रपान की अनुमति … है यहाँ"),
    ("그는 안 갔다 집에.", "그는 … 갔다 집에"),
    ("A dohányzás nem engedélyezett itt.", "A dohányzás … engedélyezett itt"),
    ("公园内禁止吸烟和遛狗。", "公园内……吸烟和遛狗"),
    ("The company failed to pay its debts.", "The company … pay its debts"),
    ("The plan costs 5 million euros.", "The plan costs 5 … euros"),
    ("A fee of less than 5 euros is paid.", "A fee of … 5 euros is paid"),
    ("The fee, which the board set in May, is 5 euros.", "The fee … is 5 euros"),
    ("会费由理事会决定，每年五月公布，金额为五元。", "会费由理事会决定，……金额为五元"),
]


@pytest.mark.parametrize(("source", "quote"), SHORTENED)
def test_gap_inside_sentence_is_shortened(source: str, quote: str) -> None:
    answer = check_quotes(f"It says “{quote}” [1].", [source])
    assert [checked.status for checked in answer.quotes] == ["shortened"]
    assert any("[1]" in note for note in answer.notes)


def test_gap_between_sentences_has_same_letters() -> None:
    source = (
        "The fee for all members of the club is 5 euros a year. It was set in May. "
        "Children and students of all schools pay half of this amount."
    )
    quote = (
        "The fee for all members of the club is 5 euros a year. … "
        "Children and students of all schools pay half of this amount."
    )
    answer = check_quotes(f"It says “{quote}” [1].", [source])
    assert [checked.status for checked in answer.quotes] == ["same_letters"]
    assert answer.notes == ()


PARTS = [
    ("Meet in the non-smoking area here.", "smoking area here"),
    ("The anti-war party won the vote.", "war party won the vote"),
    ("Das ist eine nicht-öffentliche Sitzung.", "öffentliche Sitzung"),
    ("In all, twenty-five staff came.", "five staff came"),
    ("About 5-10 people came by.", "10 people came by"),
    ("About 5–10 people came by.", "10 people came by"),
    ("About 5–10 people came by.", "About 5"),
    ("The COVID-19 cases rose.", "19 cases rose"),
    ("The talks are tax-free for all.", "The talks are tax"),
    ("A non‑smoking area.", "SMOKING area"),
    ("Not for sub-zero days … or for post-war houses.", "zero days … post-war houses"),
]


@pytest.mark.parametrize(("source", "quote"), PARTS)
def test_part_of_compound_is_not_found(source: str, quote: str) -> None:
    (checked,) = check_quotes(f"It says “{quote}” [1].", [source]).quotes
    assert checked.status == "not_found"


@pytest.mark.parametrize(
    ("source", "quote"),
    [
        ("The well-known author came late.", "well-known author came"),
        ("He came - it was late - and sat down.", "it was late"),
        ("He came—it was late—and sat down.", "it was late"),
        ("The Ein- und Ausgang is here.", "und Ausgang is here"),
        ("From Paris – 20 km away – he came.", "20 km away"),
    ],
)
def test_words_beside_dash_are_exact(source: str, quote: str) -> None:
    (checked,) = check_quotes(f"It says “{quote}” [1].", [source]).quotes
    assert checked.status == "exact"


MARKS = (
    '“{}”|"{}"|‘{}’|«{}»|„{}“|「{}」|\'{}\'|‚{}‘|‚{}’|＂{}＂|“{}"|"{}”|„{}"|<q>{}</q>|‹{}›|›{}‹|»{}«'
    "|『{}』|｢{}｣|〝{}〞|〝{}〟|＇{}＇|``{}''|”{}”|„{}”|&quot;{}&quot;|&ldquo;{}&rdquo;"
).split("|")


@pytest.mark.parametrize("mark", MARKS)
def test_invented_quotation_in_any_marks_has_note(mark: str) -> None:
    quotation = mark.format("Payment is by cash only")
    source = "Fees are due in May. Payment is by bank transfer."
    notes = check_quotes(f"The rules say {quotation} [1].", [source]).notes
    assert any("the quotation “Payment is by cash only” is in no source" in note for note in notes)


@pytest.mark.parametrize(
    "text",
    [
        "The company's fees are due, and the members' bank doesn't take cash [1].",
        "A 5' by 6' room is due in May [1].",
        "It was the '90s, and the '80s were over [1].",
        "Rock 'n' roll is played in May [1].",
        "It's the girls' and the boys' room [1].",
    ],
)
def test_apostrophes_and_feet_are_no_quotations(text: str) -> None:
    source = "Fees are due in May. Payment is by bank transfer."
    assert not any("quotation" in note for note in check_quotes(text, [source]).notes)


def test_spans_have_document_positions() -> None:
    graph = NodeGraph()
    text = f"# Tea\n\n{GREEN}\n\n{BLACK}"
    graph.add(Document(text, {"source": "docs/tea.md"}, id="tea.md"))
    graph.create_node_group("line", lambda text: [part for part in text.split("\n\n") if part])
    results = Retriever(graph, "line", top_k=5).retrieve("green black tea steamed milk")
    numbers = {result.node.text: n for n, result in enumerate(results, 1)}
    answer = check_quotes(f"“Then Dried” [{numbers[BLACK]}].", results)
    (span,) = answer.quotes[0].spans
    assert (span.text, text[span.start : span.end]) == ("then dried", "then dried")
    assert (span.document_id, span.place) == ("tea.md", "tea.md, line 6, Tea")


@pytest.mark.parametrize("run", ["query", "stream"])
def test_engine_checks_its_answers(run: str) -> None:
    retriever = FixedRetriever(scored([Node(GREEN, id="a"), Node(BLACK, id="b")]))
    engine = QueryEngine(retriever, lambda prompt: "It is “roasted” [1].", check="quotes")
    answer = engine.query("How?") if run == "query" else finish(engine.stream("How?"))
    assert [quote.status for quote in answer.quotes] == ["not_found"]
    assert answer.notes[0].startswith("the quotation “roasted” is in no source")
    unchecked = QueryEngine(retriever, lambda prompt: "It is “roasted” [1].").query("How?")
    assert (unchecked.quotes, unchecked.notes) == ((), ())
    assert check_quotes(unchecked).quotes == answer.quotes


@pytest.mark.parametrize(
    ("quote", "source", "found"),
    [
        ("retrieval helps", "Good re-\ntrieval  helps.", "re-\ntrieval  helps"),
        ("a fine day", "It is a ﬁne day.", "a ﬁne day"),
        ("OK? no", "So ＯＫ？ no.", "ＯＫ？ no"),
        ("Café noir", "Ein cafe\u0301 noir.", "cafe\u0301 noir"),
        ("a 'b' - c", "Say a ”b“ — c.", "a ”b“ — c"),
    ],
)
def test_equal_letters_have_exact_spans(quote: str, source: str, found: str) -> None:
    (checked,) = check_quotes(f"“{quote}” [1]", [Document(source, id="a")]).quotes
    (span,) = checked.spans
    assert (checked.status, span.text) == ("same_letters", found)
    assert (span.document_id, span.start) == ("a", source.index(found))


def test_output_of_a_chain_is_checked() -> None:
    documents = [SimpleNamespace(page_content=text, metadata={}, id=None) for text in SOURCES]
    twice = [documents[0], documents[0], documents[1]]  # which keep their numbers
    answer = check_quotes({"answer": "It is “dried” [3].", "context": twice})
    assert [(quote.status, quote.source) for quote in answer.quotes] == [("exact", 3)]
    assert check_quotes("“dried” [2]", documents).quotes[0].source == 2


def test_invalid_answer_or_evidence_raises() -> None:
    with pytest.raises(TypeError, match="an answer must be a text, a message"):
        check_quotes(3, SOURCES)
    with pytest.raises(TypeError, match="evidence must be a list of documents"):
        check_quotes("“tea”", GREEN)
    with pytest.raises(TypeError, match="each item must be a document"):
        check_quotes("“tea”", [3])
    with pytest.raises(ValueError, match="check must be None or 'quotes', got 'facts'"):
        QueryEngine(FixedRetriever([]), str, check="facts")  # type: ignore[arg-type]


def test_answer_without_sources_is_unchanged() -> None:
    answer = Answer("Nothing was found.", "What?", answered=False)
    assert check_quotes(answer) is answer
    assert check_quotes(replace(answer, answered=True)).quotes == ()


def test_long_texts_take_linear_time() -> None:
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
def test_spans_of_any_text_are_in_its_source(text: str) -> None:
    answer = check_quotes(text, SOURCES)
    for quote in answer.quotes:
        assert 0 <= quote.start < quote.end <= len(text)
        assert (quote.source is None) == (quote.status == "not_found") == (not quote.spans)
        for span in quote.spans:
            assert quote.source is not None
            assert span.text in SOURCES[quote.source - 1]


def test_notes_on_a_chinese_answer_are_in_chinese() -> None:
    sources = ["绿茶是蒸青的。它长在四百米以上。", "红茶是发酵的，然后烘干。"]
    answer = check_quotes(
        "绿茶是“蒸青的” [2]，它“长在五百米以上” [1]。鲁迅1881年喝过很多的茶。", sources
    )
    assert answer.notes == (
        "引文“蒸青的”出自 [1]，不在 [2] 中",
        "引文“长在五百米以上”不在任何来源中；最接近的原文是“它长在四百米以上。”",
        "1 句没有标来源：“鲁迅1881年喝过很多的茶。”",
    )
    assert check_quotes("绿茶会发光 [7]。", sources).notes == ("回答标了 [7]，没有这样的来源",)


@pytest.mark.parametrize(
    ("source", "quotation"),
    [
        (
            "Visitors may not bring dogs into the garden.",
            "Visitors may ... bring dogs into the garden",
        ),
        ("The drug is rarely safe for children.", "The drug is [...] safe for children"),
        ("The bridge was never opened to cars.", "The bridge was … opened to cars"),
        ("该药物并非对儿童安全。", "该药物……对儿童安全"),
        ("学生不得携带手机进入考场。", "学生……携带手机进入考场"),
        ("价格约为三千万元。", "价格约为三……元"),
        ("The rule applies to non-profit clubs.", "profit clubs"),
        ("It opened in 1990–1995.", "1995"),
        ("The anti-aging cream failed.", "aging cream failed"),
        ("A well-known fact is cited.", "known fact is cited"),
        ("Use of the e-mail is free.", "mail is free"),
        ("会议于2020-05-04举行。", "05-04举行"),
        ("The price is 1,250 euros.", "The price is 250 euros"),
        ("Nobody knows the answer.", "body knows the answer"),
    ],
)
def test_quotation_that_changes_meaning_is_not_exact(source: str, quotation: str) -> None:
    answer = check_quotes(f"It says “{quotation}” [1].", [Document(source)])
    assert answer.quotes[0].status in ("not_found", "shortened")


@pytest.mark.parametrize(
    ("source", "quotation"),
    [
        ("Tea is a drink. It is hot.", "Tea is a drink. It is hot."),
        ("Tea is a drink.", "Tea is a drink"),
        ("Don't run in the halls.", "Don’t run in the halls"),
        ("He said “go” and left.", "He said 'go' and left"),
        ("茶是一种饮品。它很热。", "茶是一种饮品。它很热"),
        ("Price: 5 €", "Price: 5 €"),
        ("The   fee is\n5 euros.", "The fee is 5 euros"),
        ("ＡＢＣ公司成立于1990年。", "ABC公司成立于1990年"),
        ("The co-operation began in May.", "The co-operation began in May"),
        ("The coffee is hot.", "the coffee is hot"),
        ("It’s a boy’s book.", "It's a boy's book"),
        ("会费由理事会决定，每年公布。", "会费由理事会决定"),
        ("The café opened.", "The café opened"),
        ("See § 5 (2) of the act.", "§ 5 (2) of the act"),
    ],
)
def test_quotation_with_other_marks_is_found(source: str, quotation: str) -> None:
    answer = check_quotes(f"It says “{quotation}” [1].", [Document(source)])
    assert answer.quotes[0].status in ("exact", "same_letters")
