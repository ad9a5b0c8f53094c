"""The settings of a query engine: what is checked, and with which error."""

import pytest
from fixed_retriever import FixedRetriever

from nodekin.retrievers.answers.engine import QueryEngine
from nodekin.retrievers.answers.settings import AnswerSettings
from nodekin.retrievers.validation import with_settings


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"mode": "stuf"}, ValueError, "there is no mode 'stuf'; there is 'stuff'"),
        (
            {"prompts": {"anwser": "x"}},
            ValueError,
            "there is no prompt 'anwser'; there is 'answer'",
        ),
        ({"prompts": {"answer": "{question}"}}, ValueError, "has no place for 'passages'"),
        ({"prompts": {"condense": "{history}{question}{tea}"}}, ValueError, "place for 'tea'"),
        ({"prompts": "x"}, TypeError, "by name"),
        ({"context_window": 300, "num_output": 200}, ValueError, "raise context_window"),
        ({"context_window": 0}, ValueError, "context_window must be 1 or more"),
        ({"num_output": -1}, ValueError, "num_output must be 0 or more"),
        ({"max_calls": 0}, ValueError, "max_calls must be 1 or more"),
        ({"top_k": 0}, ValueError, "top_k"),
        ({"language": "fr"}, ValueError, "'zh', 'en' or 'auto'"),
        ({"on_error": "keep"}, ValueError, "'raise' or 'extract'"),
        ({"length": 5}, TypeError, "length is a function"),
        ({"qa": object()}, TypeError, "QaRetriever"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"reserve": 9}, TypeError, "reserve"),
        ({"settings": {"timeout": 9}}, TypeError, r"settings are AnswerSettings\(...\), not"),
    ],
)
def test_settings_are_checked(settings, error, words, lines) -> None:
    with pytest.raises(error, match=words):
        QueryEngine(lines, lambda _: "", **with_settings(QueryEngine, settings))


def test_only_the_prompts_of_the_mode_have_to_fit():
    words = {"length": lambda text: len(text.split()), "language": "en", "num_output": 1}
    brief = {name: "{passages} {question}" for name in ("answer", "refine", "rank")}
    brief["refine"] += " {answer}" + " more" * 300
    brief["condense"] = "{history} {question}"
    settings = {"prompts": brief, "settings": AnswerSettings(context_window=100, **words)}
    assert QueryEngine(FixedRetriever([]), str.upper, "stuff", **settings).mode == "stuff"
    with pytest.raises(ValueError, match=r"the prompt 'refine' alone measures 303"):
        QueryEngine(FixedRetriever([]), str.upper, "refine", **settings)
