"""Evaluators: recall of a retriever, and examples that are selected by similarity."""

import pytest
from langchain_classic.evaluation import load_evaluator
from langchain_core.example_selectors import (
    MaxMarginalRelevanceExampleSelector,
    SemanticSimilarityExampleSelector,
)
from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from support.langchain_programs import QUESTIONS, RETRIEVERS, THEIRS, check
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphVectorStore

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)
GOLD = ["d0", "d1", "d5"]
EXAMPLES = [
    {"input": "Which tea is steamed?", "output": "green"},
    {"input": "Which tea is dried?", "output": "white"},
    {"input": "What runs to the sea?", "output": "rivers"},
]


def recall(make, config):
    found = make(k=2).batch(QUESTIONS, config)
    ids = [[document.id for document in documents] for documents in found]
    return ids, [gold in each for gold, each in zip(GOLD, ids, strict=True)]


def distances(make, config):
    evaluator = load_evaluator("embedding_distance", embeddings=Letters())
    scores = []
    for question in QUESTIONS:
        best = make(k=1).invoke(question, config)[0].page_content
        scores.append(evaluator.evaluate_strings(prediction=best, reference=question))
    return scores


def selected_examples(cls, config):
    selector = SemanticSimilarityExampleSelector.from_examples(EXAMPLES, Letters(), cls, k=2)
    prompt = FewShotPromptTemplate(
        example_selector=selector,
        example_prompt=PromptTemplate.from_template("{input} {output}"),
        suffix="{input}",
        input_variables=["input"],
    )
    selector.add_example({"input": "Which tea is black?", "output": "black"})
    return [prompt.invoke({"input": question}, config).text for question in QUESTIONS]


def diverse_examples(cls, config):
    selector = MaxMarginalRelevanceExampleSelector.from_examples(
        EXAMPLES, Letters(), cls, k=2, fetch_k=3
    )
    return [selector.select_examples({"input": question}) for question in QUESTIONS]


@ours
@pytest.mark.parametrize("program", [recall, distances])
def test_evaluation_equals_that_of_langchains_retriever(program, ours):
    check(program, THEIRS, ours)


@pytest.mark.parametrize("program", [selected_examples, diverse_examples])
def test_examples_equal_those_of_langchains_store(program):
    check(program, InMemoryVectorStore, NodeGraphVectorStore)
