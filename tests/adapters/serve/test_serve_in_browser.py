"""The page in a real browser, served by uvicorn; the model is a scripted server.

Screenshots are in ``tests/artifacts``.
"""

import os
import shutil
import threading
from pathlib import Path

import pytest
from support.scripted_server import ChatServer, serving
from support.uvicorn_server import served

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import NodeGraph

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page in a browser needs playwright (dependency group ci)"
)
playwright.expect.set_options(timeout=60_000)  # on a busy machine a page of a PDF takes seconds

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
ARTIFACTS = Path(__file__).parents[2] / "artifacts"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.usefixtures("socket_enabled"),
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


class PausingServer(ChatServer):
    """A server that sends the first words of an answer and waits for ``go``.

    Attributes:
        go: Releases the rest of the answer.
        left: Set if the client disconnects before the end of the answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()
        self.left = threading.Event()

    def _events(self, head, text, usage):
        for number, event in enumerate(super()._events(head, text, usage)):
            if number >= 3 and not self.go.is_set():
                while not self.go.wait(0.02) and not self.ended.is_set():
                    try:
                        yield {**head, "choices": []}  # raises after the client has disconnected
                    except GeneratorExit:
                        self.left.set()
                        raise
            yield event


@pytest.fixture
def model():
    with serving(PausingServer()) as server:
        server.text = "Black tea is fermented [1], and green tea is steamed [2]."
        yield server


@pytest.fixture
def address(retriever, model):
    llm = OpenAIChat("scripted", base_url=model.url, api_key="none")
    with served(PageApp(retriever, llm, title="Tea & <b>rivers</b>")) as url:
        yield url


class PageVisit:
    """An opened page with its requests and errors."""

    def __init__(self, chromium, address: str, path: str = "", **options) -> None:
        options = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options}
        self.address = address
        self.context = chromium.new_context(**options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.page.goto(address + path)

    def close(self) -> None:
        """Check that it requested nothing from elsewhere and ran without an error."""
        assert [url for url in self.requests if not url.startswith(self.address)] == []
        assert self.errors == []
        self.context.close()

    def screenshot(self, name: str, **options) -> None:
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"serve_{name}.png", **options)

    def ask(self, question: str) -> None:
        """Send a question with the last form, and wait for the start of the answer."""
        field = self.page.locator("input[name=question]").last
        field.fill(question)
        # The answer is streamed: the page does not finish loading before its end.
        self.page.evaluate("document.querySelector('main > form:last-of-type').requestSubmit()")
        expect(self.page.locator(".question").last).to_have_text(question)


@pytest.fixture
def visit(chromium, address):
    visits = []

    def open_page(path: str = "", **options) -> PageVisit:
        visits.append(PageVisit(chromium, address, path, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


def expect(locator):
    return playwright.expect(locator)


def test_answer_is_streamed_and_citation_leads_to_passage(visit, model) -> None:
    opened = visit()
    page = opened.page
    model.go.clear()
    opened.ask("Which tea is fermented?")
    expect(page.locator(".live")).to_contain_text("Black tea is")
    assert "fermented" not in page.locator(".live").inner_text()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    model.go.set()
    expect(page.locator(".answer")).to_contain_text("green tea is steamed")
    expect(page.locator(".live")).not_to_be_visible()
    expect(page.locator("main > form:visible")).to_have_count(1)
    opened.screenshot("ask")
    page.locator(".citation").first.click()
    page.locator("#source-1 a").click()
    expect(page.locator("#hit")).to_be_visible()
    expect(page.locator(".document h2")).to_have_text("tea/black.md")
    opened.screenshot("passage")


@pytest.mark.parametrize("stop", ["button", "key"])
def test_stop_ends_the_model_request(visit, model, stop) -> None:
    opened = visit()
    model.go.clear()
    model.text = "One two three four five six seven eight nine ten [1]."
    opened.ask("Which tea is fermented?")
    expect(opened.page.locator(".live")).to_contain_text("One two three")
    if stop == "button":
        opened.page.get_by_role("button", name="Stop").click()
    else:
        opened.page.keyboard.press("Escape")
    expect(opened.page.get_by_role("button", name="Stop")).not_to_be_visible()
    assert model.left.wait(30)
    model.go.set()
    model.text = "It goes on [1]."
    opened.ask("Which tea is steamed?")
    expect(opened.page.locator(".answer").last).to_contain_text("It goes on")


def test_pdf_page_shows_marked_sentence(chromium) -> None:
    with (
        NodeGraph("examples/files/handbook.pdf", progress=False) as graph,
        served(PageApp(graph)) as address,
    ):
        opened = PageVisit(chromium, address, viewport={"width": 390, "height": 800})
        page = opened.page
        opened.ask("When is the kettle cleaned with vinegar?")
        page.locator(".sources a").first.click()
        expect(page.locator("#hit")).to_contain_text("vinegar on Mondays")
        page.get_by_text("Show the page").click()
        image = page.locator("main img")
        alternative = "Page {} of 2 of handbook.pdf, with the passage marked"
        expect(image).to_have_attribute("alt", alternative.format(2))
        expect(image).to_have_js_property("naturalWidth", 1200)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        opened.screenshot("page")
        page.get_by_text("Previous page").click()
        expect(image).to_have_attribute("alt", alternative.format(1))
        page.get_by_text("Show the text").click()
        expect(image).to_have_count(0)
        opened.close()


MARKDOWN = """**Black tea** is *fermented* [1]:

1. It is `dried`, then
   - rolled.

| tea | water in degrees | minutes | leaves in a pot | may be poured again, how often |
|---|--:|--:|--:|---|
| black [1] | 95 | 4 | 3 | twice |

```
x = leaves[1]  # a long line of code, which is longer than a phone is wide
```

<b>bold</b>"""


@pytest.mark.parametrize("width", [390, 1280])
def test_markdown_of_answer_is_rendered(visit, model, width) -> None:
    opened = visit(viewport={"width": width, "height": 900})
    page, answer = opened.page, opened.page.locator(".answer")
    model.text = MARKDOWN
    opened.ask("Which tea is fermented?")
    expect(answer.locator("p > strong")).to_have_text("Black tea")
    expect(answer.locator("ol > li > ul > li")).to_have_text("rolled.")
    expect(answer.locator("td").nth(1)).to_have_text("95")
    expect(answer.locator(".citation")).to_have_count(2)
    expect(answer).to_contain_text("<b>bold</b>")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    opened.screenshot(f"markdown_{width}", full_page=True)


def test_page_works_in_chinese_by_keyboard(visit) -> None:
    opened = visit("search", locale="zh-CN", color_scheme="dark")
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("陆羽")
    page.keyboard.press("Enter")
    expect(page.locator(".results > li").first).to_contain_text("陆羽写了《茶经》")
    page.locator(".results summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".results details").first).to_contain_text("匹配的句子")
    opened.screenshot("search_zh_dark")
    page.locator(".results a").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#hit")).to_be_visible()
    page.get_by_text("English").press("Enter")
    expect(page.locator("nav a").first).to_have_text("Ask")


def test_next_question_is_typed_and_recalled_by_keyboard(visit) -> None:
    page = visit().page
    for question in ("Which tea is fermented?", "Which tea is steamed?"):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.type(question)
        page.keyboard.press("Enter")
        expect(page.locator(".question").last).to_have_text(question)
        expect(page.locator("main > form:visible")).to_have_count(1)
        expect(page.locator("input[name=question]").last).to_be_focused()
    field = page.locator("input[name=question]").last
    recalled = []
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        recalled.append(field.input_value())
    assert recalled == [
        "Which tea is steamed?",
        "Which tea is fermented?",
        "Which tea is steamed?",
        "",
    ]


VIEWS = ["", "search?query=fermented+tea+water", "documents", "document?node=hostile.md"]


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_view_fits_phone_with_contrast_and_names(visit, path, scheme) -> None:
    locale = "zh-CN" if scheme == "dark" else "en-US"
    screen = {"width": 360, "height": 740}
    opened = visit(path, viewport=screen, locale=locale, color_scheme=scheme)
    page = opened.page
    if not path:
        opened.ask("Which tea is fermented?")
        expect(page.locator(".answer")).to_contain_text("steamed")
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(WEAK_WORDS) == []
    assert page.evaluate(NAMELESS) == []
    assert page.locator("main img, main script").count() == 0
    opened.screenshot(f"phone_{path.partition('?')[0] or 'ask'}_{scheme}", full_page=True)
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline, color, paper = page.evaluate(FOCUSED)
        if name == "BODY":  # the focus goes around
            continue
        reached.add(name)
        assert outline >= 2, name
        assert color != paper, name
    assert len(reached) >= 3


FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const shown = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
  const paper = getComputedStyle(document.body).backgroundColor;
  return [one.tagName === "BODY" ? "BODY" : one.outerHTML, shown, style.outlineColor, paper];
}"""

NAMELESS = """() => [...document.querySelectorAll("button, input:not([type=hidden]), a")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !one.textContent.trim() && !one.labels?.length && !one.ariaLabel
    && !one.ariaLabelledByElements?.length)
  .map((one) => one.outerHTML)"""

WEAK_WORDS = """() => {
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
    const [a, b] = [light(getComputedStyle(element).color), light(paper(element))]
      .sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(element.textContent);
  }
  return weak;
}"""
