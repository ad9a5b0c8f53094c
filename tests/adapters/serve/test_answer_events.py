"""Events of a streamed answer."""

import pytest
from page_client import Client, events_of

from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import ModelError
from nodekin.retrievers import Retriever


def test_ask_without_model_returns_passages(client) -> None:
    first, last = events_of(client.post("/api/ask", question="Is black tea fermented?"))
    assert first["type"] == "sources"
    assert first["sources"][0]["document"] == "tea/black.md"
    assert last == {"type": "end", "answered": True, "notes": []}


def test_answer_is_streamed_after_its_sources(retriever) -> None:
    prompts = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "It is fermented [1]."

    client = Client(PageApp(retriever, model, model_name="a model"))
    history = [{"question": "What is tea?", "answer": "A drink."}]
    events = events_of(client.post("/api/ask", question="And black tea?", history=history))
    kinds = [event["type"] for event in events]
    assert kinds[0] == "sources"
    assert kinds[-2:] == ["sources", "end"]
    assert "".join(e["text"] for e in events if e["type"] == "text") == "It is fermented [1]."
    assert events[-2]["sources"][0]["cited"] is True
    assert any("What is tea?" in prompt for prompt in prompts)


def test_quotations_have_status_and_spans(retriever) -> None:
    client = Client(PageApp(retriever, lambda prompt: "It is “fermented”, “not smoked” [1]."))
    end = events_of(client.post("/api/ask", question="Is black tea fermented?"))[-1]
    assert [(quote["text"], quote["status"]) for quote in end["quotes"]] == [
        ("fermented", "exact"),
        ("not smoked", "not_found"),
    ]
    assert end["quotes"][0]["spans"][0]["document_id"] == "tea/black.md"


@pytest.mark.parametrize("model", [None, lambda prompt: "It is fermented [1]."])
def test_min_score_drops_lower_cosine_results(retriever, model) -> None:
    client = Client(PageApp(retriever, model, min_score=0.9))
    assert client.get("/api/corpus").json()["min_score"] == 0.9
    question = "Who sold black tea to the sailors of the king?"
    events = events_of(client.post("/api/ask", question=question))
    assert events[-1]["answered"] is False
    assert not any(event.get("sources") for event in events)
    words = Retriever(retriever.graph, "sentence", target="passage")  # whose scores have no end
    client = Client(PageApp(words, model, min_score=0.9))
    assert events_of(client.post("/api/ask", question=question))[0]["sources"]


def test_model_error_is_an_event(retriever) -> None:
    def model(prompt: str) -> str:
        raise ModelError("the model is on holiday")

    events = events_of(Client(PageApp(retriever, model)).post("/api/ask", question="Tea?"))
    assert "on holiday" in events[-1]["error"]
    assert events[-1]["kind"] == "model"
    assert events[-2]["sources"]
