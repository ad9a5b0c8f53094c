"""What the page requests, without a browser."""

import asyncio
import json
import time
from importlib.resources import files

import pytest
from page_client import Client, events_of

from nodekin.adapters.serve import PageApp
from nodekin.nodegraph import ModelError


def test_the_corpus_with_its_groups_and_setups(client) -> None:
    record = client.get("/api/corpus").json()
    sizes = {one["name"]: one["size"] for one in record["groups"]}
    assert sizes["ROOT"] == 5
    assert sizes["sentence"] > sizes["passage"] > 5
    assert [one["name"] for one in record["setups"]] == ["default", "words"]
    lifted = [(one["group"], one["target"]) for one in record["suggested"]]
    assert ("sentence", "passage") in lifted
    assert record["model"] == ""


def test_each_suggested_setup_searches(client) -> None:
    for one in client.get("/api/corpus").json()["suggested"]:
        found = client.post("/api/search", query="steamed", setup=one["toml"]).json()
        assert found["results"][0]["document"] == "tea/green.md"


def test_a_result_shows_query_hit_lift_and_rank(client) -> None:
    setup = 'type = "Retriever"\ngroup_name = "sentence"\ntarget = "passage"'
    found = client.post("/api/search", query="fermented", setup=setup).json()
    (result,) = found["results"]
    assert (result["rank"], result["group"], result["document"]) == (1, "passage", "tea/black.md")
    (match,) = result["matches"]
    assert (match["query"], match["similarity"], match["group"]) == (
        *("fermented", "bm25"),
        "sentence",
    )
    assert not match["itself"]
    before, hit, after = result["text"]
    assert hit == match["text"] == "Black tea is fermented."
    assert before + hit + after == "# Black tea\n\nBlack tea is fermented. Its leaves are dark."
    assert found["stages"]


def test_why_one_is_missing(client) -> None:
    told = client.post("/api/missing", query="steamed tea", wanted="rivers.md", top_k=1).json()
    assert told["result"] is None
    assert told["words_lacking"] == ["steam", "tea"]
    told = client.post("/api/missing", query="steamed tea", wanted="black.md", top_k=1).json()
    assert told["result"]["rank"] > 1
    assert told["words"] == ["tea"]
    none = client.post("/api/missing", query="tea", wanted="blck.md")
    assert none.status_code == 400
    assert "tea/black.md" in none.json()["error"]


def test_documents_are_paged_and_filtered(client, graph) -> None:
    graph.add([f"Text {number}." for number in range(120)])
    first = client.get("/api/documents").json()
    assert (first["total"], len(first["documents"])) == (125, 50)
    last = client.get("/api/documents", skip=100).json()
    assert len(last["documents"]) == 25
    assert [d["id"] for d in client.get("/api/documents", like="TEA/").json()["documents"]] == [
        *("tea/green.md", "tea/black.md")
    ]


def test_the_tree_of_a_document(client) -> None:
    tree = client.get("/api/tree", node="tea/black.md").json()
    (passages,) = tree["groups"]
    assert passages["name"] == "passage"
    below = client.get("/api/tree", node=passages["nodes"][0]["id"]).json()
    (sentences,) = below["groups"]
    assert [one["text"] for one in sentences["nodes"]] == [
        *("# Black tea", "Black tea is fermented.", "Its leaves are dark.")
    ][-sentences["total"] :]
    assert all(one["leaf"] for one in sentences["nodes"])


def test_children_are_paged(client, graph) -> None:
    (name,) = graph.add(" ".join(f"Sentence number {n} is here." for n in range(400)))
    tree = client.get("/api/tree", node=name, group="passage").json()
    (group,) = tree["groups"]
    assert len(group["nodes"]) == 50 < group["total"]
    second = client.get("/api/tree", node=name, group="passage", skip=50).json()
    assert not {n["id"] for n in group["nodes"]} & {n["id"] for n in second["groups"][0]["nodes"]}


def test_a_passage_stands_in_its_document(client, graph) -> None:
    for node in graph.nodes("sentence"):
        record = client.get("/api/passage", node=node.id, reach=7).json()
        assert record["text"] == node.text
        whole = node.root.text
        assert whole[node.start - len(record["before"]) : node.start] == record["before"]
        assert record["more_before"] == node.start - len(record["before"])
        assert record["more_after"] == len(whole) - node.end - len(record["after"])
    assert client.get("/api/passage", node="nowhere").status_code == 404


def test_without_a_model_there_are_passages(client) -> None:
    first, last = events_of(client.post("/api/ask", question="Is black tea fermented?"))
    assert first["type"] == "sources"
    assert first["sources"][0]["document"] == "tea/black.md"
    assert last == {"type": "end", "answered": True, "notes": []}


def test_an_answer_comes_in_pieces_with_its_sources(setups) -> None:
    prompts = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "It is fermented [1]."

    client = Client(PageApp(setups, model, model_name="a model"))
    history = [{"question": "What is tea?", "answer": "A drink."}]
    events = events_of(client.post("/api/ask", question="And black tea?", history=history))
    kinds = [event["type"] for event in events]
    assert kinds[0] == "sources"
    assert kinds[-2:] == ["sources", "end"]
    assert "".join(e["text"] for e in events if e["type"] == "text") == "It is fermented [1]."
    assert events[-2]["sources"][0]["cited"] is True
    assert any("What is tea?" in prompt for prompt in prompts)


def test_what_a_model_fails_of_is_shown(setups) -> None:
    def model(prompt: str) -> str:
        raise ModelError("the model is on holiday")

    events = events_of(Client(PageApp(setups, model)).post("/api/ask", question="Tea?"))
    assert "on holiday" in events[-1]["error"]
    assert events[-2]["sources"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search", {}),
        ("search", {"query": 3}),
        ("search", {"query": " "}),
        ("search", {"query": "tea", "top_k": 0}),
        ("search", {"query": "tea", "top_k": [1]}),
        ("search", {"query": "tea", "setup": "type = 3"}),
        ("search", {"query": "tea", "setup": "type = "}),
        ("search", {"query": "tea", "setup": 'type = "Retriever"\ngroup_name = "nothing"'}),
        ("search", {"query": "tea", "setup": 'type = "HyDERetriever"\nllm = "none"'}),
        ("ask", {"question": "x" * 30_000}),
        ("ask", {"question": "tea", "history": "all"}),
        ("ask", {"question": "tea", "history": [{"question": 1}]}),
        ("keep", {"name": "", "setup": 'type = "DefaultRetriever"'}),
        ("missing", {"query": "tea", "wanted": ""}),
    ],
)
def test_wrong_requests_are_said_in_one_sentence(client, path, body) -> None:
    answer = client.post(f"/api/{path}", **body)
    assert answer.status_code == 400
    assert 10 < len(answer.json()["error"]) < 600


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 100_000, b"\xff", b"x" * 1_000_001])
def test_bodies_that_are_no_request(client, content) -> None:
    headers = {"content-type": "application/json"}
    request = client.request("POST", "/api/search", content=content, headers=headers)
    assert asyncio.run(request).status_code == 400


def test_a_form_of_another_page_is_refused(client) -> None:
    request = client.request("POST", "/api/search", data={"query": "tea"})
    assert asyncio.run(request).status_code == 400


def test_texts_that_utf_8_does_not_have_are_shown(client, graph) -> None:
    graph.add("Half a \ud83c character.")
    found = client.post("/api/search", query="half character").json()
    assert "Half a ?" in "".join(found["results"][0]["text"])


def test_the_page_has_a_policy_and_loads_itself_alone(client) -> None:
    package = files("nodekin.adapters.serve")
    size = 0
    for path in ("/", "/page.js", "/page.css", "/words.json", "/icon.svg"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        size += len(answer.content)
    assert size < 200_000
    html = package.joinpath("index.html").read_text("utf-8")
    assert "<style" not in html
    assert " on" not in html.replace(" only", "")
    script = package.joinpath("page.js").read_text("utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "http://"):
        assert forbidden not in script
    assert client.get("/../pyproject.toml").status_code == 404


def test_both_languages_have_the_same_words() -> None:
    words = json.loads(files("nodekin.adapters.serve").joinpath("words.json").read_text("utf-8"))
    assert words["en"].keys() == words["zh"].keys()


def test_a_page_that_others_reach_needs_a_token(setups) -> None:
    with pytest.raises(ValueError, match="token"):
        PageApp(setups, host="0.0.0.0")
    client = Client(PageApp(setups, host="0.0.0.0", token="geheim"), "http://192.168.1.4:8766")
    assert client.get("/").status_code == 401
    assert client.get("/api/corpus", token="falsch").status_code == 401
    welcome = client.get("/", token="geheim")
    assert welcome.status_code == 303
    assert welcome.headers["location"] == "/"
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    headers = {"cookie": cookie.split(";")[0]}
    assert asyncio.run(client.request("GET", "/", headers=headers)).status_code == 200


async def test_fifty_people_at_once(app) -> None:
    client = Client(app)

    async def person(number: int) -> list[int]:
        answers = [
            await client.request("GET", "/"),
            await client.request("GET", "/api/corpus"),
            await client.request("POST", "/api/search", json={"query": f"tea {number}"}),
            await client.request("POST", "/api/ask", json={"question": f"Is tea {number} green?"}),
        ]
        return [answer.status_code for answer in answers]

    statuses = await asyncio.gather(*(person(number) for number in range(50)))
    assert statuses == [[200] * 4] * 50


@pytest.mark.slow
def test_the_first_view_of_many_nodes_comes_soon(tmp_path) -> None:
    """The least of several times, as the machine may be busy."""
    from nodekin.adapters.serve import TriedSetups
    from nodekin.nodegraph import Document, NodeGraph
    from nodekin.retrievers.setups import SetupFile, SetupOpener

    graph = NodeGraph(store=tmp_path / "graph.sqlite", progress=False)
    graph.add(
        Document("\n".join(f"Line {line} of {number}." for line in range(20)), id=f"{number}.txt")
        for number in range(5_000)
    )
    graph.create_node_group("line", str.splitlines)
    graph.build("line")
    assert graph.groups["line"].size == 100_000
    opener = SetupOpener(SetupFile({"lines": {"type": "Retriever", "group_name": "line"}}), graph)
    client = Client(PageApp(TriedSetups(opener, tmp_path / "setups.toml")))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for path in ("/", "/page.js", "/page.css", "/words.json", "/api/corpus", "/api/documents"):
            assert client.get(path).status_code == 200
        times.append(time.perf_counter() - start)
    assert min(times) < 0.2
