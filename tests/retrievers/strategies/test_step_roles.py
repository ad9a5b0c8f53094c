"""A multi-step search with a prompt for each role."""

import asyncio

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import MultiStepRetriever, Retriever

PROMPTS = {
    "rewrite": "REWRITE {question} after {steps}",
    "answer": "ANSWER {question} from {passages}",
    "judge": "JUDGE {question} by {answer}",
}

QUESTION = "In which town did the author of Brand live?"


class Roles:
    """A model that plays each role, and records its prompts."""

    def __init__(self, verdicts: tuple[str, ...] = ("False", "True")) -> None:
        self.prompts: list[str] = []
        self.verdicts = iter(verdicts)

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if prompt.startswith("JUDGE"):
            return next(self.verdicts)
        if prompt.startswith("REWRITE"):
            return "<query>Where did Henrik Ibsen live?</query>"
        return "Answer: Skien" if "Henrik Ibsen live" in prompt else "Henrik Ibsen"


@pytest.fixture(name="words")
def fixture_words() -> Retriever:
    graph = NodeGraph()
    graph.add(["Brand is a play by Henrik Ibsen.", "Henrik Ibsen lived in Skien.", "Tea."])
    return Retriever(graph, "ROOT", top_k=1)


def test_roles_are_asked_in_turn(words: Retriever) -> None:
    model = Roles()
    done = MultiStepRetriever(words, model, prompts=PROMPTS).steps(QUESTION)
    assert (done.ended, done.answer, done.calls) == ("answered", "Skien", 5)
    assert [step.question for step in done.steps] == ["Where did Henrik Ibsen live?"]
    roles = [prompt.split()[0] for prompt in model.prompts]
    assert roles == ["ANSWER", "JUDGE", "REWRITE", "ANSWER", "JUDGE"]
    assert "Henrik Ibsen lived in Skien." in model.prompts[3]
    assert model.prompts[4] == f"JUDGE {QUESTION} by Skien"


def test_roles_search_asynchronously(words: Retriever) -> None:
    retriever = MultiStepRetriever(words, Roles(), prompts=PROMPTS)
    results = asyncio.run(retriever.aretrieve(QUESTION, top_k=2))
    assert {result.text for result in results} == {
        "Brand is a play by Henrik Ibsen.",
        "Henrik Ibsen lived in Skien.",
    }


def test_unknown_answer_is_not_judged(words: Retriever) -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "Where did Ibsen die?" if prompt.startswith("REWRITE") else "NONE"

    MultiStepRetriever(words, model, prompts=PROMPTS, max_steps=1).steps(QUESTION)
    assert not any(prompt.startswith("JUDGE") for prompt in prompts)


def test_missing_roles_have_built_in_prompts(words: Retriever) -> None:
    retriever = MultiStepRetriever(words, Roles(), prompts={"judge": PROMPTS["judge"]})
    assert list(retriever.prompts) == ["rewrite", "answer", "judge"]
    changed = retriever.with_prompts({"rewrite": "REWRITE {question}"})
    assert changed.prompts["rewrite"].en == "REWRITE {question}"


@pytest.mark.parametrize("verdict", ["no", "False", "否", "Partly", "True or False"])
def test_search_goes_on_without_clear_yes(words: Retriever, verdict: str) -> None:
    done = MultiStepRetriever(words, Roles((verdict, "yes")), prompts=PROMPTS).steps(QUESTION)
    assert len(done.steps) == 1


def test_invalid_prompts_raise(words: Retriever) -> None:
    with pytest.raises(ValueError, match="unknown prompt 'rewriting'; known: 'rewrite'"):
        MultiStepRetriever(words, Roles(), prompts={"rewriting": "{question}"})
    with pytest.raises(ValueError, match=r"must contain \{answer\}"):
        MultiStepRetriever(words, Roles(), prompts={"judge": "{question}"})
    with pytest.raises(ValueError, match="exclude each other"):
        MultiStepRetriever(words, Roles(), prompt="{question} {passages}", prompts=PROMPTS)
