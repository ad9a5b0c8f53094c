"""The page in a real browser, served by uvicorn; the model is a scripted server.

Screenshots are in ``tests/artifacts``.
"""

import contextlib
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from scripted_server import ChatServer, broken, serving

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.adapters.serve.page_app import PageApp, page_of
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


@contextlib.contextmanager
def served(app):
    """Serve an application on a free port; yield its address."""
    config = uvicorn.Config(
        app, port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()


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
    with served(PageApp(retriever, llm, model_name="scripted", title="Tea & <b>rivers</b>")) as url:
        yield url


class PageVisit:
    """An opened page with its requests and errors."""

    def __init__(self, chromium, address: str, fragment: str = "", **options) -> None:
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
        self.page.goto(address + fragment)
        self.page.wait_for_selector("[data-ready]")

    def close(self) -> None:
        """Check that it requested nothing from elsewhere and ran without an error."""
        assert [url for url in self.requests if not url.startswith(self.address)] == []
        assert self.errors == []
        self.context.close()

    def screenshot(self, name: str, **options) -> None:
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"serve_{name}.png", **options)

    def ask(self, question: str) -> None:
        self.wait_for_end()  # the previous answer must end first
        self.page.locator("#question").fill(question)
        self.page.locator("#question").press("Enter")

    def wait_for_end(self) -> None:
        expect(self.page.locator("#stop")).not_to_be_visible()


@pytest.fixture
def visit(chromium, address):
    visits = []

    def open_page(fragment: str = "", **options) -> PageVisit:
        visits.append(PageVisit(chromium, address, fragment, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


def expect(locator):
    return playwright.expect(locator)


def test_answer_is_streamed_and_citation_opens_passage(visit, model) -> None:
    opened = visit()
    model.go.clear()
    opened.ask("Which tea is fermented?")
    answer = opened.page.locator(".turn .answer")
    expect(answer).to_contain_text("Black tea is")
    assert answer.get_attribute("aria-busy") == "true"
    assert "fermented" not in answer.inner_text()
    model.go.set()
    expect(answer).to_contain_text("green tea is steamed")
    expect(answer).to_have_attribute("aria-busy", "false")
    opened.page.locator(".turn summary").click()
    opened.screenshot("ask")
    opened.page.get_by_role("button", name="Open source 1 in its document").click()
    expect(opened.page.locator("#passage mark").last).to_contain_text("Black tea is fermented.")
    expect(opened.page.locator("#passage-title")).to_have_text("tea/black.md")
    opened.screenshot("passage")
    opened.page.keyboard.press("Escape")
    expect(opened.page.locator("#passage")).not_to_be_visible()


def test_stop_button_ends_the_model_request(visit, model) -> None:
    opened = visit()
    model.go.clear()
    model.text = "One two three four five six seven eight nine ten [1]."
    opened.ask("Which tea is fermented?")
    expect(opened.page.locator(".answer")).to_contain_text("One two three")
    opened.page.get_by_role("button", name="Stop").click()
    expect(opened.page.locator(".note")).to_have_text("Stopped.")
    expect(opened.page.locator("#stop")).not_to_be_visible()
    assert model.left.wait(30)
    model.go.set()
    model.text = "It goes on [1]."
    opened.ask("Which tea is steamed?")
    expect(opened.page.locator(".answer").nth(1)).to_contain_text("It goes on")


def test_conversation_is_kept_until_new_conversation(visit, model) -> None:
    opened = visit()
    opened.ask("Which tea is fermented?")
    expect(opened.page.locator(".answer")).to_contain_text("steamed")
    opened.ask("And the green one?")
    expect(opened.page.locator(".answer")).to_have_count(2)
    expect(opened.page.locator(".answer").nth(1)).to_contain_text("steamed")
    assert any("Which tea is fermented?" in prompt for prompt in model.prompts[1:])
    opened.wait_for_end()  # the turn is stored then
    opened.page.reload()
    opened.page.wait_for_selector("[data-ready]")
    assert opened.page.locator(".turn h3").all_inner_texts() == [
        *("Which tea is fermented?", "And the green one?")
    ]
    opened.page.get_by_role("button", name="New conversation").click()
    assert opened.page.locator(".turn").count() == 0


def test_model_error_is_shown_above_passages(visit, model) -> None:
    broken(model)
    model.error = "out of <b>memory</b>"
    chinese = visit(locale="zh-CN")
    chinese.ask("陆羽写了什么？")
    expect(chinese.page.locator(".turn .wrong")).to_contain_text("没有回答：语言模型出错：'")
    opened = visit()
    opened.ask("Which tea is fermented?")
    expect(opened.page.locator(".turn .wrong")).to_contain_text("out of <b>memory</b>")
    expect(opened.page.locator(".sources > li").first).to_contain_text("Black tea")
    opened.screenshot("model_failed")


def test_page_without_model_shows_passages(chromium, retriever) -> None:
    with served(PageApp(retriever)) as address:
        opened = PageVisit(chromium, address)
        opened.ask("唐代的陆羽写了什么？")
        expect(opened.page.locator(".sources > li").first).to_contain_text("陆羽写了《茶经》。")
        assert "no language model" in opened.page.locator("#model").inner_text()
        opened.screenshot("passages")
        opened.close()


def test_pdf_page_shows_marked_sentence(chromium) -> None:
    with (
        NodeGraph("examples/files/handbook.pdf", progress=False) as graph,
        served(page_of(graph)) as address,
    ):
        opened = PageVisit(chromium, address, viewport={"width": 390, "height": 800})
        opened.ask("When is the kettle cleaned with vinegar?")
        opened.page.locator(".sources .link").first.click()
        expect(opened.page.locator("#passage mark").first).to_contain_text("vinegar on Mondays")
        opened.page.locator("#passage-page").focus()
        opened.page.keyboard.press("Enter")
        image = opened.page.locator("#passage img")
        expect(image).to_have_attribute(
            "alt", "Page 2 of 2 of handbook.pdf, with the passage marked"
        )
        expect(image).to_have_js_property("naturalWidth", 1200)
        opened.screenshot("page")
        opened.page.get_by_role("button", name="Previous page").click()
        expect(image).to_have_attribute(
            "alt", "Page 1 of 2 of handbook.pdf, with the passage marked"
        )
        opened.page.get_by_role("button", name="Show the text").click()
        expect(image).to_have_count(0)
        opened.close()


def test_search_shows_evidence_of_results(visit) -> None:
    opened = visit("#search")
    opened.page.locator("#query").fill("fermented tea")
    opened.page.locator("#query").press("Enter")
    first = opened.page.locator(".ranking > li").first
    expect(first).to_contain_text("Black tea")
    path = first.locator(".path").first
    for part in ("fermented tea", "bm25", "rank 1"):
        assert part in path.inner_text()
    opened.page.get_by_text("What the search did").click()
    opened.screenshot("search", full_page=True)


def test_corpus_view_opens_a_document(visit, graph) -> None:
    graph.add([f"Text {number}." for number in range(70)])
    graph.build("sentence")
    opened = visit("#corpus")
    page = opened.page
    expect(page.locator("#documents > li")).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#documents > li")).to_have_count(25)
    page.locator("#like").fill("black")
    expect(page.locator("#documents > li")).to_have_count(1)
    opened.screenshot("corpus")
    page.get_by_role("button", name="tea/black.md").click()
    expect(page.locator("#passage-text")).to_contain_text("Its leaves are dark.")


def test_hostile_documents_are_shown_as_text(visit) -> None:
    opened = visit("#search")
    opened.page.locator("#query").fill("oolong")
    opened.page.locator("#query").press("Enter")
    first = opened.page.locator(".ranking > li").first
    expect(first).to_contain_text("<script>document.title")
    first.locator(".link").click()
    expect(opened.page.locator("#passage-text")).to_contain_text("onerror=")
    assert opened.page.locator("main img, dialog img, main script, dialog script").count() == 0
    assert "Search" in opened.page.title()


MARKDOWN = """**Black tea** is *fermented* [1]:

1. It is `dried`, then
   - rolled.

| tea | water in degrees | minutes | leaves in a pot | may be poured again, how often |
|---|--:|--:|--:|---|
| black [1] | 95 | 4 | 3 | twice |

```
x = leaves[1]  # a long line of code, which is longer than a phone is wide
```

[the site](https://example.com/) <b>bold</b> ![cup](https://example.com/cup.png)"""


@pytest.mark.parametrize("width", [360, 1280])
def test_markdown_of_answer_is_rendered(visit, model, width) -> None:
    opened = visit(viewport={"width": width, "height": 900})
    page, answer = opened.page, opened.page.locator(".turn .answer")
    model.text = MARKDOWN
    model.go.clear()
    opened.ask("Which tea is fermented?")
    expect(answer).to_contain_text("**Black")  # the incomplete block
    model.go.set()
    expect(answer).to_have_attribute("aria-busy", "false")
    expect(answer.locator("p > strong")).to_have_text("Black tea")
    expect(answer.locator("ol > li > ul > li")).to_have_text("rolled.")
    expect(answer.locator("td").nth(1)).to_have_text("95")
    expect(answer.locator("pre")).to_contain_text("leaves[1]")
    expect(answer.locator(".citation")).to_have_count(2)
    expect(answer).to_contain_text("the site (https://example.com/) <b>bold</b> cup")
    assert answer.locator("a, img, b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator(".turn summary").click()
    expect(page.locator(".sources h4").first).to_have_text("Black tea")
    opened.screenshot(f"markdown_{width}", full_page=True)
    opened.wait_for_end()
    page.reload()
    page.wait_for_selector("[data-ready]")
    expect(page.locator(".turn .answer p > strong")).to_have_text("Black tea")
    page.locator(".answer .citation").first.click()
    expect(page.locator("#passage mark").first).to_be_visible()
    opened.screenshot(f"markdown_passage_{width}")


def test_page_works_in_chinese_by_keyboard(visit) -> None:
    opened = visit("#search", locale="zh-CN", color_scheme="dark")
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("陆羽")
    page.keyboard.press("Enter")
    expect(page.locator(".ranking > li").first).to_contain_text("陆羽写了《茶经》")
    expect(page.locator(".path").first).to_contain_text("第 1 名")
    opened.screenshot("search_zh_dark")
    page.locator(".ranking .link").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#passage")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#language").press("Enter")
    expect(page.locator("nav a").first).to_have_text("Ask")


@pytest.mark.parametrize("view", ["ask", "search", "corpus"])
def test_page_fits_a_phone_screen(visit, view) -> None:
    screen = {"width": 360, "height": 740}
    for language, scheme in (("en-US", "light"), ("zh-CN", "dark")):
        opened = visit(f"#{view}", viewport=screen, locale=language, color_scheme=scheme)
        if view == "ask":
            opened.ask("Which tea is fermented?")
            expect(opened.page.locator(".answer")).to_contain_text("steamed")
        elif view == "corpus":
            expect(opened.page.locator("#documents .link").first).to_be_visible()
        else:
            opened.page.locator("#query").fill("tea")
            opened.page.locator("#query").press("Enter")
            expect(opened.page.locator(".ranking").first).to_be_visible()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
        opened.screenshot(f"phone_{view}_{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_and_controls_have_names(visit, scheme) -> None:
    opened = visit("#search", color_scheme=scheme)
    page = opened.page
    page.locator("#query").fill("fermented tea water")
    page.locator("#query").press("Enter")
    expect(page.locator(".ranking").first).to_be_visible()
    for summary in page.locator("#view-search summary").all():
        summary.click()
    page.wait_for_timeout(50)
    assert page.evaluate(WEAK_WORDS) == []
    assert page.evaluate(NAMELESS) == []
    for view in ("ask", "corpus"):
        page.locator(f"nav a[href='#{view}']").click()
        if view == "ask":
            opened.ask("Which tea is fermented?")
            expect(page.locator(".answer")).to_contain_text("steamed")
            page.locator(".turn summary").click()
        else:
            expect(page.locator("#documents .link").first).to_be_visible()
        assert page.evaluate(WEAK_WORDS) == []
        assert page.evaluate(NAMELESS) == []
        opened.screenshot(f"{view}_{scheme}")


@pytest.mark.parametrize("view", ["ask", "search", "corpus"])
def test_focused_elements_have_a_visible_outline(visit, view) -> None:
    page = visit(f"#{view}").page
    page.locator("h1").wait_for()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline, color, paper = page.evaluate(FOCUSED)
        if name == "BODY":
            break
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

NAMELESS = """() => [...document.querySelectorAll("button, select, input, textarea, [role=region]")]
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
