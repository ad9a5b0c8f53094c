"""The page without a browser: figures, escaping, its policy, its size."""

import base64
import hashlib
import html
import logging
import random
import re
from html.parser import HTMLParser

import pytest
from fixed_retriever import fixed

from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate, load_squad


class PageParser(HTMLParser):
    """Collect elements and texts as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def words_of(page: str) -> str:
    """Return the page's text without its script and style."""
    body = re.sub(r"<(script|style)[ >].*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", body))


@pytest.fixture(scope="module")
def page(evaluation):
    return evaluation.to_html(language="en")


def test_every_figure_and_difference_is_that_of_the_evaluation(evaluation, page):
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)[1:]
    for setup, row in zip(evaluation.records, rows, strict=True):
        cells = [words_of(cell).split("\n") for cell in re.findall(r"<td>.*?</td>", row, re.DOTALL)]
        assert words_of(row).strip().startswith(setup)
        for (metric, figure), cell in zip(evaluation.figures[setup].items(), cells, strict=True):
            digits = 4 if figure.value < 10 else 1
            assert f"{figure.value:.{digits}f}" in cell
            if setup != "words":
                own = evaluation.difference(metric, "words", setup)
                assert f"{own.different} differ" in cell
        costs = evaluation.costs(setup)
        assert ("failed: 1" in words_of(row)) == (costs["failed"] == 1)
        assert f"{1000 * costs['median_seconds']:,.1f}" in words_of(row)
        assert f"{costs['tokens']:,.0f}" in words_of(row)


def test_differences_in_words_are_the_sentences_of_the_evaluation(evaluation, page):
    lines = words_of(page).split("\n")
    for one in evaluation.differences():
        assert str(one) in lines


def test_notes_and_missing_gold_are_there(evaluation, page):
    text = words_of(page)
    for line in (*evaluation.notes(), *map(str, evaluation.missing_gold)):
        assert re.sub("[\x01-\x03\ud800]", "\ufffd", line) in text


def test_what_others_wrote_is_never_markup(page):
    elements = PageParser(page).elements
    assert not [tag for tag, _ in elements if tag in {"img", "i", "iframe", "object", "base"}]
    assert sum(tag == "script" for tag, _ in elements) == 3
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    assert page.encode("utf-8")


def test_the_policy_lets_its_own_script_and_style_run_and_loads_nothing(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    script = page.rsplit("<script>", 1)[1].split("</script>")[0]
    style = page.split("<style>", 1)[1].split("</style>")[0]
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    elements = PageParser(page).elements
    assert not [a for _, a in elements if {"src", "href", "style", "srcset"} & a.keys()]


def test_the_script_writes_no_markup(page):
    script = page.rsplit("<script>", 1)[1]
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "write(", "eval(", "fetch("):
        assert word not in script


def test_the_same_evaluation_gives_the_same_page(evaluation, page):
    assert evaluation.to_html(language="en") == page


def test_the_language_is_the_readers_unless_given(evaluation, page):
    assert '<html lang="en" data-language="en">' in page
    chinese = evaluation.to_html(language="zh")
    assert '<html lang="zh" data-language="zh">' in chinese
    assert "方案与指标" in words_of(chinese)
    assert "data-language" not in evaluation.to_html().split("<body>")[0]
    with pytest.raises(ValueError, match=r"'en'.*'zh'"):
        evaluation.to_html(language="de")


def test_a_page_that_stays_too_large_is_whole_and_logged(evaluation, caplog):
    with caplog.at_level(logging.WARNING, "nodekin"):
        page = evaluation.to_html(max_bytes=20_000)
    assert "more than 20000" in caplog.text
    assert "Texts are cut to 60 characters" in words_of(page)
    with pytest.raises(ValueError, match="max_bytes"):
        evaluation.to_html(max_bytes=0)


def test_more_questions_may_take_more_bytes():
    letters = random.Random(0)
    texts = (
        "".join(chr(letters.randrange(0x4E00, 0x9FA5)) for _ in range(280)) for _ in range(2000)
    )
    data = Dataset([Question(str(n), text) for n, text in enumerate(texts)])
    page = evaluate({"a": fixed([])}, data, ["mrr@2"]).to_html(language="en")
    assert "Texts are cut" not in words_of(page)
    assert 1_000_000 < len(page.encode("utf-8")) < 2_000_000


def test_with_many_setups_the_differences_are_those_to_the_first():
    data = Dataset([Question("1", "?", (GoldDocument("x"),))])
    result = evaluate({f"setup {n}": fixed([]) for n in range(7)}, data, ["mrr@2"])
    assert words_of(result.to_html(language="en")).count("0 differ") == 6


@pytest.mark.data
@pytest.mark.slow
def test_a_thousand_questions_and_three_setups_are_under_a_megabyte(data):
    loaded = load_squad(data / "cmrc2018" / "dev.json")
    questions = Dataset(loaded.questions[:1000], loaded.documents, "CMRC 2018")
    with NodeGraph(progress=False) as graph:
        graph.add(loaded.documents)
        graph.create_node_group("sentence", split_sentences)
        paragraphs = Retriever(graph, "ROOT")
        sentences = Retriever(graph, "sentence", target="ROOT")
        setups = {
            "paragraphs": paragraphs,
            "sentences": sentences,
            "both": FusionRetriever([paragraphs, sentences]),
        }
        result = evaluate(
            setups, questions, ["recall@1", "recall@5", "mrr@5", "answer_in_context@5"]
        )
    page = result.to_html()
    assert len(page.encode("utf-8")) < 1_000_000
    cut = re.search(r"Texts are cut to (\d+) characters", words_of(page))
    assert int(cut[1]) >= 300
