"""The page in a real browser: it is opened from a file, clicked, typed into and looked at.

Screenshots are in ``tests/artifacts``.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from fixed_retriever import fixed
from langchain_core.runnables import RunnableLambda

from nodekin.nodegraph import Node
from nodekin.nodegraph.models.llm import as_llm
from nodekin.retrievers import QueryEngine
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page in a browser needs playwright (dependency group ci)"
)

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
ARTIFACTS = Path(__file__).parents[3] / "artifacts"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None, reason="no chromium; apt-get install chromium fonts-noto-cjk"
    ),
]


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        sandbox = [] if getattr(os, "geteuid", lambda: 1)() else ["--no-sandbox"]
        browser = driver.chromium.launch(executable_path=BROWSER, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def path(evaluation, tmp_path) -> Path:
    path = tmp_path / "evaluation.html"
    path.write_text(evaluation.to_html(), encoding="utf-8")
    return path


class Visit:
    """A page that was opened, with what it requested and what went wrong in it."""

    def __init__(self, chromium, path: Path, fragment: str = "", **options) -> None:
        options = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options}
        self.context = chromium.new_context(**options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.page.goto(path.as_uri() + fragment)
        self.page.wait_for_selector("#list")

    def close(self) -> None:
        """Check that it loaded itself alone and ran without an error."""
        assert [url for url in self.requests if not url.startswith("file:")] == []
        assert len({url.split("#")[0] for url in self.requests}) == 1
        assert self.errors == []
        self.context.close()

    def screenshot(self, name: str, **options) -> None:
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"{name}.png", **options)

    def cell(self, setup: int, metric: int):
        return self.page.locator(f'#figures [data-setup="{setup}"][data-metric="{metric}"]')

    def questions(self) -> list[str]:
        return self.page.locator(".row .question").all_inner_texts()


@pytest.fixture
def visit(chromium, path):
    visits = []

    def open_page(fragment: str = "", **options) -> Visit:
        visits.append(Visit(chromium, path, fragment, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


def test_a_figure_leads_to_both_rankings_with_gold_and_explanations(visit, evaluation):
    opened = visit()
    opened.screenshot("page")
    opened.cell(1, 0).click()
    second = list(evaluation.records)[1]
    differing = evaluation.difference("mrr@3", "words", second).different
    assert len(opened.questions()) == differing
    row = opened.page.get_by_role("button", name="Where is black tea from?")
    row.click()
    sides = opened.page.locator(".rankings > section")
    assert sides.count() == 2
    for side, setup in enumerate(("words", second)):
        record = evaluation.records[setup]["2"]
        ranking = sides.nth(side).locator(".ranking > li:not(.beyond)")
        assert ranking.count() == len(record.items)
        for place, item in enumerate(record.items):
            shown = ranking.nth(place).inner_text()
            assert shown.startswith(str(place + 1))
            assert item.text[:60] in shown
            for line in item.explanation.splitlines()[1:]:
                assert line.strip() in shown
    gold = sides.nth(0).locator(".is-gold")
    assert gold.count() == 1
    assert "★ gold" in gold.inner_text()
    assert "at 1" in opened.page.locator(".golds").inner_text()
    assert opened.page.locator("mark").first.inner_text() == "Fujian"
    opened.screenshot("question", full_page=True)


def test_each_figure_leads_to_as_many_questions_as_the_evaluation_says(visit, evaluation):
    opened = visit()
    for setup, name in list(enumerate(evaluation.records))[1:]:
        for place, metric in enumerate(evaluation.metrics):
            opened.cell(setup, place).click()
            one = evaluation.difference(metric, "words", name)
            chips = opened.page.locator("[data-show]").all_inner_texts()
            counts = {re.sub(r"\s*\d+$", "", chip): int(chip.split()[-1]) for chip in chips}
            assert counts["differ"] == one.different
            assert counts["A better"] + counts["B better"] <= one.different
            judged = len(evaluation.dataset) - counts.get("not judged", 0)
            assert judged == one.questions == counts["differ"] + counts["equal"]
            assert opened.page.locator("#sentence").inner_text() == str(one)


def test_where_no_question_differs_all_are_listed(visit):
    opened = visit()
    opened.cell(2, 0).click()
    assert len(opened.questions()) == 8


def test_two_other_setups_are_compared_with_their_interval(visit, evaluation):
    opened = visit()
    opened.page.locator("#browser select").nth(1).select_option("2")
    opened.page.locator("#browser select").nth(2).select_option("1")
    second = list(evaluation.records)[1]
    one = evaluation.difference("mrr@3", second, "句子")
    sentence = opened.page.locator("#sentence").inner_text()
    assert str(one) == sentence


def test_questions_are_searched_sorted_and_filtered(visit):
    opened = visit()
    opened.page.locator("[data-show=all]").click()
    assert len(opened.questions()) == 8
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("fujian tea")
    assert opened.questions() == ["Where is black tea from?"]
    opened.page.locator("#search").fill("长江")
    assert opened.questions() == ["长江流入哪个海？"]
    opened.page.locator("#search").fill("nothing has this")
    assert opened.page.locator("#count").inner_text() == "No question is like this."
    opened.page.locator("#search").fill("")
    opened.page.locator("#browser select").nth(3).select_option("place")
    assert opened.questions()[0] == "Which tea is heated soon?"
    opened.page.locator("#browser select").nth(3).select_option("text")
    assert opened.questions()[0] == "What is not judged?"
    opened.page.locator("[data-show=failed]").click()
    assert opened.questions() == ["What runs past Cologne, the Rhine?"]


def test_a_question_that_failed_says_what_was_raised(visit):
    opened = visit("#question=5&show=all")
    shown = opened.page.locator(".rankings").inner_text()
    assert "ConnectionError: the server of <i>vectors</i> is offline" in shown


def test_the_keyboard_is_enough(visit):
    opened = visit()
    keys = opened.page.keyboard
    for _ in range(60):
        keys.press("Tab")
        if opened.page.evaluate("document.activeElement.dataset.setup") == "2":
            break
    keys.press("Enter")
    assert opened.page.evaluate("document.activeElement.id") == "h-questions"
    opened.page.locator("[data-show=all]").press("Enter")
    opened.page.locator(".row").first.focus()
    keys.press("ArrowDown")
    keys.press("Enter")
    assert opened.page.locator(".row").nth(1).get_attribute("aria-expanded") == "true"
    opened.page.get_by_role("button", name="next", exact=True).press("Enter")
    assert opened.page.locator(".row").nth(2).get_attribute("aria-expanded") == "true"
    keys.press("Escape")
    assert opened.page.locator(".detail").count() == 0


def test_the_address_names_what_is_shown(visit):
    opened = visit()
    opened.cell(2, 1).click()
    opened.page.locator("[data-show=all]").click()
    opened.page.get_by_role("button", name="长江流入哪个海").click()
    fragment = opened.page.evaluate("location.hash")
    again = visit(fragment)
    assert again.page.locator(".row[aria-expanded=true]").inner_text().startswith("长江流入哪个海")
    assert again.page.locator("#sentence").inner_text().startswith("recall@1")


def test_it_speaks_the_readers_language_and_changes_it(visit):
    opened = visit("#question=三&show=all", locale="zh-CN")
    page = opened.page
    assert page.locator("h1").inner_text() == "评测：Tea & rivers <b>"
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert page.locator("svg text", has_text="每个问题的毫秒数").first.is_visible()
    shown = page.locator(".rankings").inner_text()
    assert "★ 标准" in shown
    assert "长江是中国最长的河流。" in shown
    assert page.locator(".passage span", has_text="长江是中国").first.get_attribute("lang") == "zh"
    assert page.locator(".passage span", has_text="The Rhine").first.get_attribute("lang") == ""
    page.locator("details", has_text="各指标的评判").last.locator("summary").first.click()
    assert "标准内容的位次：1" in page.locator(".detail").inner_text()
    assert '查询 "长江流入哪个海？"：自身' in page.locator(".evidence pre").first.inner_text()
    notes = page.locator("#h-figures ~ details").first
    assert "在 8 个问题中有 1 个失败；问题 '5'：ConnectionError" in notes.text_content()
    assert "questions" not in notes.text_content()
    opened.screenshot("page_zh", full_page=True)
    page.get_by_role("button", name="English").click()
    assert "failed on 1 of 8 questions; question '5': ConnectionError" in notes.text_content()
    assert "gold at 1" in page.locator(".detail").text_content()
    assert page.locator("h1").inner_text() == "Evaluation of Tea & rivers <b>"
    assert page.evaluate("document.title") == "Evaluation of Tea & rivers <b>"
    assert "★ gold" in page.locator(".rankings").inner_text()


def test_a_hostile_document_is_text(visit):
    opened = visit("#show=all")
    opened.page.get_by_role("button", name="Which </script>").click()
    assert "onerror=" in opened.page.locator(".ranking").nth(1).inner_text()
    assert opened.page.locator(".rankings img, #figures img, #browser script").count() == 0
    assert opened.page.title().startswith("Evaluation of")
    for text in opened.page.locator("body").all_inner_texts():
        assert "{metric}" in text


def test_the_policy_stops_what_gets_in_all_the_same(visit):
    opened = visit()
    opened.page.evaluate(
        """() => { document.body.insertAdjacentHTML('beforeend',
             '<img src="data:image/png;base64,AAAA" onerror="document.title=1">') }"""
    )
    opened.page.wait_for_function("document.querySelector('img').complete")
    assert opened.page.title().startswith("Evaluation of")
    assert all("Content Security Policy" in error for error in opened.errors)
    assert opened.errors
    opened.errors.clear()


@pytest.fixture
def visit_other(chromium, tmp_path):
    """Open the page of an evaluation of some set-ups."""
    visits = []

    def open_page(setups, question: Question) -> Visit:
        path = tmp_path / "other.html"
        result = evaluate(setups, Dataset([question]), ["mrr@2"])
        path.write_text(result.to_html(), encoding="utf-8")
        visits.append(Visit(chromium, path))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


def test_one_setup_is_shown_alone_with_its_answer(visit_other):
    node = Node("Much black tea is from Fujian.", id="black")
    model = RunnableLambda(lambda _: "It is from Fujian [1].")
    engine = QueryEngine(fixed([node]), as_llm(model))
    gold = (GoldDocument("black"),)
    opened = visit_other({"answers": engine}, Question("1", "Where is it from?", gold))
    opened.cell(0, 0).click()
    opened.page.locator(".row").click()
    assert opened.page.locator(".rankings > section").count() == 1
    assert "It is from Fujian" in opened.page.locator(".answer").inner_text()
    assert opened.page.locator(".letter").count() == opened.page.locator(".side-0.letter").count()


def test_a_pair_whose_interval_is_not_in_the_page_says_how_to_get_it(visit_other):
    setups = {f"set-up {n}": fixed([]) for n in range(6)}
    opened = visit_other(setups, Question("1", "?", (GoldDocument("x"),)))
    opened.page.locator("#browser select").nth(1).select_option("4")
    opened.page.locator("#browser select").nth(2).select_option("5")
    said = opened.page.locator("#sentence").inner_text()
    assert 'result.difference("mrr@2", "set-up 4", "set-up 5")' in said


@pytest.mark.parametrize("encoding", ["gbk", "utf-8"])
def test_every_character_that_is_written_comes_back(chromium, tmp_path, encoding):
    letters = [chr(code) for code in range(0x20, 0xFFFE) if not 0xD800 <= code < 0xE000]
    text = "".join(letters) + "𠮷" + ("中" if encoding == "gbk" else "é") * 100_000
    result = evaluate({"a": fixed([])}, Dataset([Question("1", text)]), ["mrr@2"])
    path = tmp_path / "letters.html"
    path.write_text(result.to_html(max_bytes=10_000_000), encoding="utf-8")
    opened = Visit(chromium, path)
    assert opened.page.locator("#data").get_attribute("data-encoding") == encoding
    assert opened.page.locator(".question").evaluate("(one) => one.textContent") == text
    opened.close()


def test_long_texts_open_to_all_there_is(visit):
    opened = visit("#question=5&show=all")
    passage = opened.page.locator(".ranking .passage", has_text="The Rhine runs").first
    assert len(passage.inner_text()) < 600
    passage.get_by_role("button").click()
    assert len(passage.inner_text()) > 5000
    passage.get_by_role("button").click()
    assert len(passage.inner_text()) < 600


def test_on_a_phone_nothing_is_wider_than_the_screen(visit):
    screen = {"width": 360, "height": 740}
    for language, scheme in (("en-US", "light"), ("zh-CN", "dark")):
        opened = visit(
            "#question=2&show=all", viewport=screen, locale=language, color_scheme=scheme
        )
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
        opened.screenshot(f"phone_{scheme}", full_page=True)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_have_enough_contrast(visit, theme):
    opened = visit("#question=2&show=all", color_scheme=theme)
    opened.screenshot(f"question_{theme}", full_page=True)
    assert opened.page.evaluate(CONTRASTS) == []


CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = (color) => {
    const parts = [...rgba(color)].slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (rgba(color)[3] === 255) return color;
    }
    return "white";
  };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, style, noscript")) continue;
    if (!element.checkVisibility() || element.closest(":disabled")) continue;
    const style = getComputedStyle(element);
    const ink = element.closest("svg") ? style.fill : style.color;
    if (element.matches(".number")) continue;  // on its own circle
    const [a, b] = [light(ink), light(paper(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push([element.textContent, ink, paper(element)]);
  }
  return weak;
}"""


def test_controls_have_names(visit):
    opened = visit("#question=2&show=all")
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [role=region]")]
             .filter((one) => one.checkVisibility())
             .filter((one) => !one.textContent.trim() && !one.labels?.length
                              && !one.ariaLabel && !one.ariaLabelledByElements?.length)
             .map((one) => one.outerHTML)"""
    )
    assert nameless == []


def test_a_browser_that_cannot_unpack_says_so(chromium, path):
    page = chromium.new_page(locale="en-US")
    page.add_init_script("delete globalThis.DecompressionStream")
    page.goto(path.as_uri())
    assert "can't unpack" in page.locator("#state").inner_text()
    assert page.locator("#figures").is_visible()
    page.close()


def test_without_scripts_table_and_plots_are_there(chromium, path):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("#figures tr").count() == 4
    assert page.locator("svg").first.is_visible()
    assert "need JavaScript" in page.locator("noscript").inner_text()
    context.close()
