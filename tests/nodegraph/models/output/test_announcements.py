"""Announcements before a query are removed, topics stay."""

import pytest

from nodekin.nodegraph.models.output.announcements import without_announcement

QUERY = "Where did Ibsen live?"

LEADS = """
Here is the rewritten query:
Here's a clearer version of the question:
Try searching for:
I would rewrite it as:
The user wants to know:
I fixed the typos. Here is the rewritten query:
Based on the conversation, the standalone question is:
Let me search for:
You could also ask:
**Rewritten question**:
We need to find:
根据您的要求，改写后的问题是：
您可以这样问：
用户想问：
我会搜索：
""".strip().split("\n")


@pytest.mark.parametrize("lead", LEADS)
def test_announcement_is_removed(lead: str) -> None:
    assert without_announcement(f"{lead} {QUERY}") == QUERY


@pytest.mark.parametrize(
    "query",
    [
        "Tea: who drinks it?",
        "Python: how do I search a list?",
        "Search engine: definition",
        'What is meant by "Who watches the watchmen?"',
        "《问题的问题》：作者是谁？",
        "用户体验：什么是可用性？",
    ],
)
def test_topic_before_question_stays(query: str) -> None:
    assert without_announcement(query) == query
