"""Requests to the page: errors, limits, the security policy and the token."""

import asyncio
import json
import re
from importlib.resources import files
from string import Formatter

import pytest
from support.page_client import Client, found, text_of
from support.sample_files import pdf_of

from nodekin.adapters.serve import page_app
from nodekin.adapters.serve.page_app import PageApp, serve
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever, Retriever, restrict

VIEWS = ("/", "/search?query=tea", "/documents", "/document?node=hostile.md")


@pytest.mark.parametrize(
    "path",
    [
        *("/search?query=", "/document?node=a&page=-1", "/document?node=a&end=1e9"),
        *("/search?query=" + "x" * 21_000, "/picture?node=rivers.md", "/document?page=%C2%B2"),
    ],
)
def test_invalid_queries_show_a_short_error(client, path) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert re.search(r'<p class="wrong" role="alert" dir="auto">.{10,600}</p>', answer.text)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("question=", "x-www-form-urlencoded"),
        ("question=" + "x" * 21_000, "x-www-form-urlencoded"),
        ("question=tea&history=all", "x-www-form-urlencoded"),
        ("question=tea&history=[[1]]", "x-www-form-urlencoded"),
        ("question=tea&history=" + "[" * 100_000, "x-www-form-urlencoded"),
        ("x" * 1_000_001, "x-www-form-urlencoded"),
        ('{"question": "tea"}', "json"),
    ],
)
def test_invalid_questions_return_status_400(client, body, kind) -> None:
    headers = {"content-type": f"application/{kind}"}
    answer = asyncio.run(client.request("POST", "/ask", content=body, headers=headers))
    assert answer.status_code == 400


def test_question_of_one_character_is_answered(client) -> None:
    for answer in (client.get("/search", query="茶"), client.ask("茶")):
        assert answer.status_code == 200


def test_question_by_link_is_refused(client) -> None:
    assert client.get("/ask?question=tea").status_code == 405


def test_page_has_policy_and_loads_no_external_files(client) -> None:
    answers = [client.get(path) for path in (*VIEWS, "/page.js", "/page.css", "/icon.svg")]
    answers += [client.ask("tea"), client.get("/document?node=nowhere")]
    for answer in answers:
        # With "no-referrer", browsers send "Origin: null" with forms.
        assert answer.headers["referrer-policy"] == "same-origin"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert "://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"<style|<[^>]* (?:on\w+|style)=", answer.text)
        assert len(answer.content) < 20_000
    assert client.get("/../pyproject.toml").status_code == 404


def test_hostile_documents_are_shown_as_text(client) -> None:
    for answer in (
        *map(client.get, VIEWS),
        client.get("/search?query=oolong"),
        client.ask("oolong"),
    ):
        assert answer.text.count("<script") == 1
        assert "<img" not in answer.text
        assert "<b>r" not in answer.text
        assert "Tea & <b>rivers</b>" in text_of(answer)


def test_both_languages_have_the_same_words() -> None:
    package = files("nodekin.adapters.serve")
    english, chinese = json.loads(package.joinpath("words.json").read_text("utf-8")).values()
    assert english.keys() == chinese.keys()
    for key, word in english.items():
        fields = [{f for _, f, *_ in Formatter().parse(w) if f} for w in (word, chinese[key])]
        assert fields[0] == fields[1] or key.startswith("unit_"), key
    names = ("page_app.py", "html_pages.py", "document_pages.py", "page.html")
    sources = "".join(package.joinpath(name).read_text("utf-8") for name in names)
    used = {*re.findall(r'["\'](\w+)["\']', sources)}
    families = ("group_", "unit_", "quote_", "error_")
    assert {key for key in english if not key.startswith(families)} <= used


def test_language_defaults_to_the_browser_language(client) -> None:
    def shown(**headers: str) -> str:
        return asyncio.run(client.request("GET", "/", headers=headers)).text

    assert "提问" in shown(**{"accept-language": "zh-CN,en;q=0.5"})
    assert "提问" not in shown(**{"accept-language": "en"})
    chosen = client.get("/?lang=zh")
    assert '<html lang="zh-Hans">' in chosen.text
    assert "提问" in shown(cookie=chosen.headers["set-cookie"].split(";")[0])
    assert client.get("/?lang=xx").status_code == 200


def test_other_hosts_and_origins_are_refused(client) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
        answer = asyncio.run(client.request("GET", "/", headers=headers))
        assert answer.status_code == 403
    assert client.get("/").status_code == 200


def test_failed_request_is_logged_with_reason(app, client, caplog, monkeypatch) -> None:
    errors = [OSError(), RuntimeError("the disk is gone")]

    def fail(*arguments: object) -> None:
        raise errors.pop()

    monkeypatch.setattr(app.pages, "ids", fail)
    assert client.get("/documents").status_code == 500
    assert "GET '/documents' failed: RuntimeError: the disk is gone" in caplog.text
    assert "OSError" in text_of(client.get("/documents"))  # which has no text
    assert client.get("/document", node="no\x1b[2J").status_code == 404
    assert "GET '/document' failed: " in caplog.text
    assert "\x1b" not in caplog.text


@pytest.mark.enable_socket
def test_serve_prints_random_token_only(graph, monkeypatch) -> None:
    served = []
    monkeypatch.setattr(page_app, "serve_http", lambda app, *address: served.append(address))
    serve(graph, port=0)
    serve(graph, port=0, token="geheim")
    random, given = served
    assert random[:2] == ("127.0.0.1", 0)
    assert re.fullmatch(r"/\?token=[\w-]{16,}", random[2])
    assert given[2] == "/?token=..."
    with pytest.raises(ValueError, match="token"):
        serve(graph, host="0.0.0.0")
    with pytest.raises(TypeError):
        serve(3)


def test_page_of_restricted_engine_hides_other_tenants() -> None:
    from nodekin.retrievers import FusionRetriever, QueryEngine, restrict

    graph = NodeGraph(progress=False)
    texts = {"a": "Green tea of a.", "b": "The secret tea of b."}
    graph.add([Document(text, {"tenant": name}, id=f"{name}.md") for name, text in texts.items()])
    graph.build("FineChunk")
    (other,) = graph.find("FineChunk")(graph.node("b.md"))
    retriever = FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "FineChunk")])
    for inner in (Retriever(graph, "ROOT"), retriever):
        engine = QueryEngine(inner, lambda prompt: "It is steamed [1].")
        client = Client(PageApp(restrict(engine, {"tenant": "a"})))
        start = client.get("/")
        assert "Documents: 1" in text_of(start)
        assert "b.md" not in start.text
        assert found(client.get("/documents")) == ["a.md"]
        assert texts["a"] in text_of(client.get("/document", node="a.md"))
        for node in ("b.md", other.id):
            for path in ("document", "picture"):
                refused = client.get(f"/{path}", node=node)
                unknown = client.get(f"/{path}", node="0" * len(node))
                assert refused.status_code == unknown.status_code == 404
                assert refused.text.replace(node, "") == unknown.text.replace("0" * len(node), "")
        answers = [client.get("/search", query="secret tea"), client.ask("secret tea?")]
        assert {document for answer in answers for document in found(answer)} == {"a.md"}
        assert "The secret" not in "".join(answer.text for answer in answers)
    with pytest.raises(ValueError, match="only known in a call"):
        PageApp(restrict(retriever, lambda: {"tenant": "a"}))


def test_search_without_results_names_skipped_files(tmp_path) -> None:
    (tmp_path / "tea.md").write_text("Green tea.")
    (tmp_path / "secret.pdf").write_bytes(pdf_of(b"/I Do"))
    graph = NodeGraph(tmp_path, progress=False)
    skipped = "1 file was skipped: 1 scanned PDF (secret.pdf): pass ReadOptions(ocr=...)"
    client = Client(PageApp(graph))
    assert skipped in text_of(client.get("/search", query="zebra"))
    assert skipped in text_of(client.ask("zebra"))
    assert "secret" not in text_of(client.get("/search", query="tea"))
    restricted = Client(PageApp(restrict(DefaultRetriever(graph), {"tenant": "a"})))
    assert "secret" not in text_of(restricted.get("/search", query="zebra"))
    assert "secret" not in text_of(restricted.ask("zebra"))
