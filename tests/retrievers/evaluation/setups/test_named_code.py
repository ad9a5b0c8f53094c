"""Code of one's own in a file of set-ups: only where it is trusted."""

import sys
import types

import pytest

from nodekin.nodegraph import LLM, NodeGraph, split_sentences
from nodekin.retrievers import RecursiveRetriever, Retriever
from nodekin.retrievers.evaluation import SetupFile, SetupOpener

TEXT = "Green tea is steamed. It stays green. Black tea is fermented. It gets dark."

FILE = """
[groups.sentence]
transform = "split_sentences"

[groups.half]
transform = "mine_for_setups:halves"

[groups.word]
transform = "mine_for_setups:Words"
arguments = {length = 5}

[groups.summary]
transform = "LLMExtractor"
llm = "small"
task = "summary"
parent = "sentence"

[setups.halves]
type = "Retriever"
group_name = "half"

[setups.words]
type = "Retriever"
group_name = "word"
target = "sentence"

[setups.summaries]
type = "Retriever"
group_name = "summary"
target = "sentence"

[setups.mine]
type = "mine_for_setups:Reversed"
group = "sentence"

[setups.reranked]
type = "RerankRetriever"
inner = "mine"
reranker = {name = "mine_for_setups:Shortest"}

[setups.referring]
type = "RecursiveRetriever"
groups = ["sentence"]
references = {black = "mine"}
"""

MODELS = """
[models.small]
chat = "small"
"""


class Words:
    def __init__(self, length):
        self.length = length

    def __call__(self, text):
        return [word for word in text.split() if len(word) >= self.length]


class Reversed:
    def __init__(self, graph, group):
        self.inner = Retriever(graph, group)

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.inner.retrieve(query[::-1], top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


class Shortest:
    name = "shortest"

    def rerank(self, results, query):
        return sorted(results, key=lambda result: len(result.node.text))


@pytest.fixture(autouse=True)
def module(monkeypatch):
    """Make a module with code of one's own."""
    mine = types.ModuleType("mine_for_setups")
    mine.halves = lambda text: [text[: len(text) // 2], text[len(text) // 2 :]]
    mine.Words, mine.Reversed = Words, Reversed
    mine.Shortest = Shortest
    monkeypatch.setitem(sys.modules, "mine_for_setups", mine)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def opener():
    graph = NodeGraph(progress=False)
    graph.add([TEXT])
    file = SetupFile.parse(FILE + MODELS, trust_code=True)
    model = LLM(lambda prompt: "A drink that is " + ("dark" if "dark" in prompt else "green"), "m")
    return SetupOpener(file, graph, {"small": model})


def texts(opener, setup, query):
    return [result.node.text.strip() for result in opener.open(setup).retrieve(query)]


def test_transforms_retrievers_and_rerankers_of_ones_own(opener):
    assert texts(opener, "halves", "fermented") == [TEXT[len(TEXT) // 2 :].strip()]
    assert texts(opener, "words", "steamed")[0] == "Green tea is steamed."
    assert texts(opener, "mine", "krad")[0] == "It gets dark."
    assert texts(opener, "reranked", "aet krad")[0] == "It gets dark."


def test_what_a_model_makes_is_a_group_and_references_are_set_ups(opener):
    assert texts(opener, "summaries", "dark")[0] == "It gets dark."
    retriever = opener.open("referring")
    assert isinstance(retriever, RecursiveRetriever)
    assert list(retriever.references) == ["black"]


@pytest.mark.parametrize("table", ["groups.half", "setups.mine", "setups.reranked"])
def test_code_is_refused_where_it_is_not_trusted(table):
    section = FILE.partition(f"[{table}]")[2].partition("\n\n")[0]
    inner = '[setups.mine]\ntype = "Retriever"\ngroup_name = "ROOT"\n' * (
        table == "setups.reranked"
    )
    with pytest.raises(ValueError, match=r"names the code 'mine_for_setups:\w+', which would be"):
        SetupFile.parse(f"{inner}[{table}]{section}")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("mine_for_setups:halfs", "mine_for_setups has no 'halfs'; there is 'halves'"),
        ("not_there_at_all:x", "can't import 'not_there_at_all': ModuleNotFoundError"),
    ],
)
def test_code_that_is_not_there_is_an_error(name, error):
    file = SetupFile.parse(f'[groups.a]\ntransform = "{name}"', trust_code=True)
    with pytest.raises(ValueError, match=error):
        SetupOpener(file, NodeGraph(progress=False))


def test_split_sentences_needs_no_trust():
    graph = NodeGraph(progress=False)
    SetupOpener(SetupFile.parse('[groups.a]\ntransform = "split_sentences"'), graph)
    assert split_sentences(TEXT)
