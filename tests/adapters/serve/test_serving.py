"""A retriever or an engine that a program made, on the page."""

from __future__ import annotations

import pytest
from page_client import Client, events_of

from nodekin.adapters.serve import page_app
from nodekin.adapters.serve.page_app import page_of, serve
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever, restrict


def answers(prompt: str) -> str:
    """Play a model."""
    return "Green tea is steamed [1]."


def test_query_engine_answers_on_the_page(graph: NodeGraph) -> None:
    engine = QueryEngine(FusionRetriever([Retriever(graph, "ROOT", top_k=2)]), answers, top_k=1)
    client = Client(page_of(engine, title="Teas"))
    corpus = client.get("/api/corpus").json()
    assert corpus["title"] == "Teas"
    assert client.get("/api/documents").json()["total"] == 5
    found = client.post("/api/search", query="green tea").json()["results"]
    assert found[0]["document"] == "tea/green.md"
    events = events_of(client.post("/api/ask", question="How is green tea made?"))
    assert "".join(e["text"] for e in events if e["type"] == "text") == answers("")
    sources = [event["sources"] for event in events if event["type"] == "sources"][-1]
    assert [source["document"] for source in sources] == ["tea/green.md"]


def test_page_of_external_retriever_shows_results() -> None:
    documents = pytest.importorskip("langchain_core.documents")
    runnables = pytest.importorskip("langchain_core.runnables")
    found = runnables.RunnableLambda(
        lambda question: [documents.Document("Tea is a drink.")]
    ).invoke
    client = Client(page_of(found))
    assert client.get("/api/corpus").json()["model"] == ""
    assert client.post("/api/search", query="tea").json()["results"][0]["text"][2]
    events = events_of(client.post("/api/ask", question="tea?"))
    assert events[0]["sources"][0]["text"] == "Tea is a drink."
    client = Client(page_of(found, lambda prompt: "A drink [1]."))
    events = events_of(client.post("/api/ask", question="tea?"))
    assert "A drink [1]." in "".join(e["text"] for e in events if e["type"] == "text")


def test_page_of_restricted_engine_hides_other_tenants() -> None:
    graph = NodeGraph(progress=False)
    texts = {"a": "Green tea of a.", "b": "The secret tea of b."}
    graph.add([Document(text, {"tenant": name}, id=f"{name}.md") for name, text in texts.items()])
    graph.build("FineChunk")
    (other,) = graph.find("FineChunk")(graph.node("b.md"))
    retriever = FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "FineChunk")])
    engines = [QueryEngine(one, answers) for one in (Retriever(graph, "ROOT"), retriever)]
    for engine in engines:
        client = Client(page_of(restrict(engine, {"tenant": "a"})))
        listed = client.get("/api/documents").json()
        assert (listed["total"], [one["id"] for one in listed["documents"]]) == (1, ["a.md"])
        assert client.get("/api/passage", node="a.md").json()["text"] == texts["a"]
        for node in ("b.md", other.id):
            for path in ("passage", "picture"):
                refused = client.get(f"/api/{path}", node=node)
                unknown = client.get(f"/api/{path}", node="0" * len(node))
                assert refused.status_code == unknown.status_code == 404
                assert refused.text.replace(node, "") == unknown.text.replace("0" * len(node), "")
        found = client.post("/api/search", query="secret tea")
        assert {one["document"] for one in found.json()["results"]} == {"a.md"}
        asked = client.post("/api/ask", question="secret tea?")
        assert "The secret" not in f"{found.text} {asked.text}"
    with pytest.raises(ValueError, match="only known in a call"):
        page_of(restrict(retriever, lambda: {"tenant": "a"}))


def test_search_returns_answer_of_wrapped_query_engine() -> None:
    core = pytest.importorskip("llama_index.core")
    models = pytest.importorskip("llama_index.core.llms")
    index = core.SummaryIndex.from_documents([core.Document(text="Green tea is steamed.")])
    client = Client(page_of(index.as_query_engine(llm=models.MockLLM()).query))
    (result,) = client.post("/api/search", query="How is it made?").json()["results"]
    assert "Query: How is it made?" in "".join(result["text"])  # the model repeats its prompt


@pytest.mark.enable_socket
def test_serve_prints_address_with_token(graph, monkeypatch, capsys) -> None:
    served = []
    monkeypatch.setattr(
        page_app, "serve_http", lambda app, listener, **_: served.append(listener.getsockname())
    )
    serve(graph, port=0)
    host, port = served.pop()
    assert host == "127.0.0.1"
    assert port
    assert f"http://127.0.0.1:{port}/?token=" in capsys.readouterr().err
    with pytest.raises(ValueError, match="token"):
        serve(graph, host="0.0.0.0")
    with pytest.raises(TypeError):
        serve(3)
