import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.nodegraph import Document, Node, NodeGraph, count_tokens
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.answers import Answer, QueryEngine

LENGTHS = st.sampled_from([count_tokens, lambda text: len(text) // 3 + 1])
SENTENCES = st.sampled_from(["Tea is a hot drink. ", "茶是一种热饮。", "word " * 9, "好" * 30])
TEXTS = st.lists(SENTENCES, min_size=1, max_size=30).map("".join)


class Fixed:
    def __init__(self, texts):
        self.results = [ScoredNode(Node(t, {"title": f"T{n}"}), 1.0) for n, t in enumerate(texts)]

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.results

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.results


def told_of(answer: Answer) -> list[int]:
    """Return the identities of all results that an answer accounts for."""
    shown = [id(r.node) for s in answer.sources for r in (s.result, *s.merged)]
    return sorted(shown + [id(each.result.node) for each in answer.omitted])


@settings(max_examples=40)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    mode=st.sampled_from(["stuff", "refine", "map_reduce", "map_rerank"]),
    window=st.integers(420, 900),
    length=LENGTHS,
    max_calls=st.integers(1, 12),
    question=st.sampled_from(["What is tea?", "茶是什么？"]),
    wordy=st.integers(1, 60),
)
def test_no_prompt_is_too_long_and_every_result_is_accounted_for(
    texts, mode, window, length, max_calls, question, wordy
) -> None:
    prompts = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "Tea is a drink [1]. " * wordy + "\nConfidence: 50"

    retriever = Fixed(texts)
    scale = 1 if length is count_tokens else 2
    engine = QueryEngine(
        *(retriever, model, mode),
        context_window=scale * window,
        num_output=50,
        length=length,
        max_calls=max_calls,
    )
    answer = engine.query(question)
    assert max(map(length, prompts)) <= scale * window - 50
    assert len(prompts) == answer.calls <= max_calls
    assert told_of(answer) == sorted(id(result.node) for result in retriever.results)
    assert [source.number for source in answer.sources] == list(range(1, len(answer.sources) + 1))
    for source in answer.sources:
        content = source.result.node.content
        assert source.text == content if source.complete else source.text != content


def test_stuff_leaves_out_what_does_not_fit_and_goes_on_with_what_does(scripted) -> None:
    big = [f"Big {name}. " + "word " * 150 for name in "ab"]
    retriever = Fixed([big[0], big[1], "Small."])
    answer = QueryEngine(
        retriever, scripted(lambda _: "Tea [1]."), context_window=450, num_output=50
    ).query("?")
    assert [source.text for source in answer.sources] == [big[0], "Small."]
    assert [(each.result.node.text, each.reason) for each in answer.omitted] == [
        (big[1], "context_window")
    ]


def test_a_passage_longer_than_the_budget_is_cut_around_its_match(scripted) -> None:
    graph = NodeGraph(progress=False)
    text = "".join(f"Sentence {n} tells of rivers and sand. " for n in range(400))
    text = text.replace("Sentence 300 tells of rivers", "Sentence 300 tells of zebras")
    graph.add(Document(text, id="long"))
    graph.create_node_group("sentence", lambda t: re.findall(r"Sentence [^.]*\.", t))
    retriever = Retriever(graph, "sentence", "bm25", target="ROOT")
    engine = QueryEngine(
        retriever, scripted(lambda _: "Zebras [1]."), context_window=500, num_output=50
    )
    (source,) = engine.query("zebras").sources
    assert "Sentence 300 tells of zebras" in source.text
    assert source.text.startswith("Sentence ")
    assert source.text.endswith("sand.")
    assert not source.complete
    assert engine.query("zebras").notes == ("[1] was cut: it is too long for the context window",)


@pytest.mark.parametrize("mode", ["refine", "map_reduce"])
def test_other_modes_read_a_long_passage_in_parts(mode, scripted) -> None:
    text = "".join(f"Sentence {n} tells of rivers and sand. " for n in range(100)).strip()
    model = scripted(lambda _: "Sand [1].")
    answer = QueryEngine(Fixed([text]), model, mode, context_window=600, num_output=50).query(
        "sand?"
    )
    shown = "\n".join(model.prompts)
    assert all(f"Sentence {n} tells" in shown for n in range(100))
    (source,) = answer.sources
    assert (source.text, source.complete, answer.omitted) == (text, True, ())


@pytest.mark.parametrize("mode", ["refine", "map_reduce", "map_rerank"])
def test_the_number_of_calls_is_bounded_and_what_is_left_out_told(mode, scripted) -> None:
    retriever = Fixed([f"Fact {n}. " + "word " * 60 for n in range(20)])
    model = scripted(lambda _: "Tea [1].\nConfidence: 9")
    answer = QueryEngine(
        retriever, model, mode, context_window=440, num_output=50, max_calls=3
    ).query("tea?")
    assert len(model.prompts) == 3
    assert answer.omitted
    assert {each.reason for each in answer.omitted} == {"calls"}
    assert len(answer.sources) + len(answer.omitted) == 20


def test_a_question_that_leaves_no_room_is_an_error(scripted) -> None:
    engine = QueryEngine(
        Fixed(["Tea."]), scripted(lambda _: "?"), context_window=450, num_output=50
    )
    with pytest.raises(ValueError, match=r"no room for a passage.*of 400"):
        engine.query("word " * 390)
