"""Gold that was moved, renamed, edited or split differently is found again."""

import random

import pytest
from support.fixed_retriever import fixed

from nodekin.nodegraph import Document, Node, NodeGraph, SentenceSplitter, split_sentences
from nodekin.retrievers import Retriever
from nodekin.retrievers.evaluation import (
    Dataset,
    DocumentTexts,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Matching,
    Question,
    compare_with_baseline,
    evaluate,
    locate_gold,
)

TEA = "# Tea\n\nGreen tea is heated in iron pans soon after it is picked.\n\n"
TEA += "## Black tea\n\nBlack tea is fermented for hours in a warm and damp room.\n\n"
TEA += "### Keemun\n\nIt is from Anhui.\n\n## White tea\n\nIt is only withered.\n"
SENTENCE = "Black tea is fermented for hours in a warm and damp room."


def located(gold, *documents, **options):
    data = Dataset([Question("1", "a?", (gold,))])
    return locate_gold(data, DocumentTexts(documents), **options)


def span(text, content, name="docs/tea.md"):
    return GoldSpan(name, content.index(text), content.index(text) + len(text), text)


def test_locate_gold_prefers_equal_white_space():
    content = f"Tea. {SENTENCE.replace(' is ', '  is ')}\n\n{SENTENCE}"
    gold = located(GoldSpan("docs/tea.md", 0, 20, SENTENCE), Document(content, id="docs/tea.md"))
    (place,) = gold.dataset.questions[0].gold
    assert (place.start, place.text) == (content.index(SENTENCE), SENTENCE)
    content = f"A. {SENTENCE} {SENTENCE} {SENTENCE}"
    gold = GoldSpan("docs/tea.md", 70, 70 + len(SENTENCE), SENTENCE)
    (place,) = located(gold, Document(content, id="docs/tea.md")).dataset.questions[0].gold
    assert place.start == 3 + len(SENTENCE) + 1  # the nearest


@pytest.mark.parametrize(
    ("content", "now"),
    [
        ("A new first line.\n\n" + TEA, SENTENCE),
        (TEA.replace("fermented for hours", "fermented\nfor hours"), None),
        (TEA.replace("for hours in a warm", "for some hours in the warm"), None),
        (TEA.replace("Black tea is fermented", "Black tea gets fermented"), None),
    ],
)
@pytest.mark.parametrize("name", ["docs/tea.md", "handbook/drinks/tea.md", "drinks/of-china.md"])
def test_locate_gold_after_edits_and_moves(content, now, name):
    gold = located(
        span(SENTENCE, TEA), Document("Milk is white.", id="m"), Document(content, id=name)
    )
    assert not gold.missing
    (place,) = gold.dataset.questions[0].gold
    assert (place.document_id, content[place.start : place.end]) == (name, place.text)
    assert place.text.startswith("Black tea")
    assert place.text.endswith("damp room.")
    assert now is None or place.text == now
    assert [moved.now for moved in gold.moved] == [place]


def test_text_edited_in_two_documents_stays_in_its_document():
    edited = TEA.replace("for hours in a warm", "for some hours in the warm")
    documents = [Document(edited, id=name) for name in ("a.md", "docs/tea.md", "z.md")]
    gold = located(span(SENTENCE, TEA), *documents)
    (place,) = gold.dataset.questions[0].gold
    assert place.document_id == "docs/tea.md"


PREMIUM = "The refund period for Premium customers is 90 days from the date of purchase."


@pytest.mark.parametrize(
    ("text", "content", "is_found"),
    [
        (PREMIUM, PREMIUM.replace("90", "30"), False),
        (PREMIUM, PREMIUM.replace("The refund", "Our repayment"), True),
        ("EU customers can return it for a month.", "They can return it.", False),
        ("退款期限是三十天，从购买之日算起。", "退款期限是九十天，从购买之日算起。", False),
        ("退款期限是三十天，从购买之日算起。", "退款期限是三十天，从购买那天算起。", True),
    ],
)
@pytest.mark.parametrize("name", ["a.md", "b.md"])
def test_similar_text_with_other_numbers_is_missing(text, content, is_found, name):
    for gold in (GoldPassage(text), GoldSpan("a.md", 0, len(text), text)):
        missing = located(gold, Document(content, id=name)).missing
        assert (not missing) is is_found


def test_missing_gold_has_nearest_text():
    tea = Document("Green tea is not fermented.\n\nBlack  tea\nis.", id="tea-1")
    gold = (
        GoldPassage("Black tea is."),
        GoldPassage("Green tea is withered for days."),
        GoldDocument("tea-2"),
        GoldDocument("tea-1"),
        GoldSpan("tea-1", 0, 500),
    )
    missing = locate_gold(Dataset([Question("1", "a?", gold)]), DocumentTexts([tea])).missing
    assert [(one.gold, one.nearest) for one in missing] == [
        (gold[1], "Green tea is not fermented."),
        (gold[2], "tea-1"),
        (gold[4], "tea-1"),
    ]
    assert str(missing[1]) == "1: 'tea-2' is in no document; nearest: 'tea-1'"


def test_missing_gold_is_listed_and_not_counted(caplog):
    data = Dataset(
        [
            Question("1", "Which tea is heated?", (span(TEA[7:60], TEA), GoldDocument("gone.md"))),
            Question("2", "Which milk is white?", (GoldPassage("Milk of goats is whiter still."),)),
        ],
        [Document(TEA, id="docs/tea.md")],
    )
    node = Node(TEA, id="docs/tea.md")
    result = evaluate({"search": fixed([node])}, data, ["recall@1"])
    assert "gold of questions that is in no document" in caplog.text
    assert [gold.question_id for gold in result.missing_gold] == ["1", "2"]
    figure = result.figure("search", "recall@1")
    assert (figure.judged, figure.not_judged) == (1, 1)
    assert any("2 gold items are in no document and not counted" in n for n in result.notes())


def corpus():
    """Return 60 documents of three paragraphs each, and a question on the second of each."""
    documents, questions = [], []
    for n in range(60):
        name = "".join(random.Random(n).choices("aeioklmnrst", k=8))
        fact = (
            f"The harvest of {name} begins in week {n} and is brought to the town of {name[::-1]}."
        )
        texts = [f"A word on {n}. Nothing is known of it.", fact, "Weather decides. So do prices."]
        documents.append(Document("\n\n".join(texts), id=f"farms/{n}.txt"))
        start = len(texts[0]) + 2
        gold = GoldSpan(f"farms/{n}.txt", start, start + len(fact), fact)
        questions.append(Question(str(n), f"When does the harvest of {name} begin?", (gold,)))
    return documents, questions


def search(documents, transform):
    graph = NodeGraph(progress=False)
    graph.add(documents)
    graph.create_node_group("part", transform)
    return graph, Retriever(graph, "part", "bm25")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d,
        lambda d: Document(d.text, id=f"archive/{d.id.rpartition('/')[2]}"),
        lambda d: Document("A new preface for everybody.\n\n" + d.text, id=d.id),
        lambda d: Document(d.text.replace("and is brought to", "and gets carried to"), id=d.id),
        lambda d: Document(d.text.replace(" ", "  "), id=d.id.replace("farms", "fields")),
    ],
    ids=["split again", "moved", "preface", "edited", "all"],
)
def test_gate_passes_after_edits_moves_and_resplitting(change, tmp_path):
    documents, questions = corpus()
    graph, retriever = search(documents, split_sentences)
    with graph:
        before = evaluate({"search": retriever}, Dataset(questions), ["recall@3"], documents=graph)
        before.save(tmp_path / "b.jsonl")
    assert before.figure("search", "recall@3").value == 1
    graph, retriever = search(map(change, documents), SentenceSplitter(40, 0))
    with graph:
        after = evaluate({"search": retriever}, Dataset(questions), ["recall@3"], documents=graph)
        gate = compare_with_baseline(after, tmp_path / "b.jsonl", {"recall@3": 0.0})
    assert not after.missing_gold
    assert after.figure("search", "recall@3").value == 1
    assert gate.passed
    assert gate.checks[0].difference.questions == 60
    assert not gate.checks[0].lost


def test_results_without_ids_are_located():
    documents, questions = corpus()

    def texts(question):  # returns changed texts without document ids
        name = question.split()[-2]
        return [d.text.replace("\n\n", "\n")[20:] for d in documents if name in d.text]

    data = Dataset(questions, documents)
    result = evaluate({"mine": texts}, data, ["recall@1"])
    assert result.figure("mine", "recall@1").value == 1
    by_document = [
        Question(q.id, q.text, (GoldDocument(q.gold[0].document_id),)) for q in questions
    ]
    result = evaluate({"mine": texts}, Dataset(by_document, documents), ["recall@1"])
    assert result.figure("mine", "recall@1").value == 1


def test_matching_by_place_works_for_all_splitters():
    documents, questions = corpus()
    passages = [Question(q.id, q.text, (GoldPassage(q.gold[0].text),)) for q in questions]
    figures = {}
    for transform in (split_sentences, SentenceSplitter(6, 0), lambda text: [text]):
        graph, retriever = search(documents, transform)
        with graph:
            for way in ("edit", "place"):
                result = evaluate(
                    {"search": retriever},
                    Dataset(passages, documents),
                    ["recall@1"],
                    matching=Matching(way),
                )
                figures.setdefault(way, []).append(result.figure("search", "recall@1").value)
    assert figures["place"] == [1, 1, 1]
    assert min(figures["edit"]) < 0.5


@pytest.mark.parametrize(("stored", "asked"), [("é.md", "e\u0301.md"), ("e\u0301.md", "é.md")])
def test_gold_ids_ignore_unicode_form(stored, asked):
    graph = NodeGraph(progress=False)
    graph.add([Document("Tea is green.", id=f"a/{stored}"), Document("Milk.", id="b.md")])
    assert DocumentTexts(graph).resolve_id(asked) == f"a/{stored}"
    data = Dataset([Question("1", "tea?", (GoldDocument(f"a/{asked}"),))])
    report = evaluate({"words": Retriever(graph, "ROOT")}, data, ["mrr@2"])
    assert report.figure("words", "mrr@2").value == 1.0
