"""The arguments of a query engine, and the context window of its model."""

from types import SimpleNamespace

import pytest
from support.fixed_retriever import FixedRetriever, candidates

from nodekin.retrievers.answers.engine import QueryEngine


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"mode": "stuf"}, ValueError, "mode must be 'stuff', .* got 'stuf'"),
        (
            {"prompts": {"anwser": "x"}},
            ValueError,
            "unknown prompt 'anwser'; known: 'answer'",
        ),
        ({"prompts": {"answer": "{question}"}}, ValueError, r"must contain \{passages\}"),
        ({"prompts": {"condense": "{history}{question}{tea}"}}, ValueError, "placeholder 'tea'"),
        ({"prompts": "x"}, TypeError, "by name"),
        ({"context_window": 300, "num_output": 200}, ValueError, "raise context_window"),
        ({"context_window": 0}, ValueError, "context_window must be 1 or more"),
        ({"num_output": -1}, ValueError, "num_output must be 0 or more"),
        ({"top_k": 0}, ValueError, "top_k"),
        ({"language": "fr"}, ValueError, "language must be None, 'zh' or 'en'"),
        ({"length": 5}, TypeError, "length must be a function"),
        ({"qa": object()}, TypeError, "QaRetriever"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"reserve": 9}, TypeError, "reserve"),
        ({"k": 3}, TypeError, "'k' is called 'top_k' here"),
        ({"score_threshold": 0.5}, TypeError, "'score_threshold' is called 'min_score' here"),
    ],
)
def test_invalid_arguments_raise(settings, error, words, lines) -> None:
    with pytest.raises(error, match=words):
        QueryEngine(lines, lambda _: "", **settings)


class Model:
    """A model with attributes of a framework."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)

    def complete(self, prompt: str) -> str:
        return "It is [1]."


@pytest.mark.parametrize(
    ("model", "window"),
    [
        (Model(context_window=8_000), 8_000),
        (Model(metadata=SimpleNamespace(context_window=32_000)), 32_000),  # LlamaIndex
        (Model(profile={"max_input_tokens": 128_000}), 128_000),  # LangChain
        (Model(metadata={"tags": "tea"}, profile=None), 16_000),
        (Model(), 16_000),
    ],
)
def test_context_window_defaults_to_the_models(model, window, lines) -> None:
    assert QueryEngine(lines, model).context_window == window
    assert QueryEngine(lines, model, context_window=4_096).context_window == 4_096


def test_notes_name_results_without_space() -> None:
    retriever = FixedRetriever(candidates("tea " * 600, "coffee " * 700, "milk " * 800))
    answer = QueryEngine(retriever, Model(), context_window=1_200).query("What is tea?")
    assert [omission.reason for omission in answer.omitted] == ["context_window"] * 2
    assert "2 results were omitted because of context_window=1200" in answer.notes
