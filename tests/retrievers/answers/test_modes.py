"""The modes of answering, and how much of the passages fits in their prompts."""

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.fixed_retriever import FixedRetriever, passage
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph, count_tokens
from nodekin.retrievers import Retriever
from nodekin.retrievers.answers.answer import Answer
from nodekin.retrievers.answers.engine import QueryEngine

LENGTHS = st.sampled_from([count_tokens, lambda text: len(text) // 3 + 1])
SENTENCES = st.sampled_from(["Tea is a hot drink. ", "茶是一种热饮。", "word " * 9, "好" * 30])
TEXTS = st.lists(SENTENCES, min_size=1, max_size=30).map("".join)


def passages(*texts: str) -> FixedRetriever:
    return FixedRetriever([passage(text, title=f"T{n}") for n, text in enumerate(texts)])


def small(
    retriever: Any, model: Any, mode: Any = "stuff", window: int = 450, **options
) -> QueryEngine:
    return QueryEngine(retriever, model, mode, context_window=window, num_output=50, **options)


def accounted_for(answer: Answer) -> list[int]:
    """Return the identities of all results in an answer."""
    return sorted(id(result.node) for result in answer.results)


TEA = "Tea is a hot drink. "


@settings(max_examples=amount(13, 40))
@example(
    texts=[TEA, TEA * 2, TEA * 4, TEA * 4 + "好" * 60 + TEA + "好" * 90],
    mode="stuff", window=420, length=count_tokens, question="What is tea?", wordy=1,
)  # fmt: skip
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    mode=st.sampled_from(["stuff", "refine", "map_reduce", "map_rerank"]),
    window=st.integers(420, 900),
    length=LENGTHS,
    question=st.sampled_from(["What is tea?", "茶是什么？"]),
    wordy=st.integers(1, 60),
)
def test_prompts_fit_and_results_are_used_or_omitted(
    texts, mode, window, length, question, wordy
) -> None:
    prompts = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "Tea is a drink [1]. " * wordy + "\nConfidence: 50"

    retriever = passages(*texts)
    scale = 1 if length is count_tokens else 2
    engine = small(retriever, model, mode, scale * window, length=length)
    answer = engine.query(question)
    assert max(map(length, prompts)) <= scale * window - 50
    assert len(prompts) == answer.calls
    assert accounted_for(answer) == sorted(id(result.node) for result in retriever.results)
    assert [source.number for source in answer.sources] == list(range(1, len(answer.sources) + 1))
    for source in answer.sources:
        content = source.result.node.content
        assert source.text == content if source.complete else source.text != content


def test_long_passage_is_truncated_around_its_match(scripted) -> None:
    graph = NodeGraph(progress=False)
    text = "".join(f"Sentence {n} tells of rivers and sand. " for n in range(400))
    text = text.replace("Sentence 300 tells of rivers", "Sentence 300 tells of zebras")
    graph.add(Document(text, id="long"))
    graph.create_node_group("sentence", lambda t: re.findall(r"Sentence [^.]*\.", t))
    retriever = Retriever(graph, "sentence", "bm25", target="ROOT")
    answer = small(retriever, scripted(lambda _: "Zebras [1]."), window=500).query("zebras")
    (source,) = answer.sources
    assert "Sentence 300 tells of zebras" in source.text
    assert source.text.startswith("Sentence ")
    assert source.text.endswith("sand.")
    assert not source.complete
    assert answer.notes == ("[1] was cut: it is too long for the context window",)


@pytest.mark.parametrize("mode", ["refine", "map_reduce"])
def test_other_modes_read_a_long_passage_in_parts(mode, scripted) -> None:
    text = "".join(f"Sentence {n} tells of rivers and sand. " for n in range(100)).strip()
    model = scripted(lambda _: "Sand [1].")
    answer = small(passages(text), model, mode, 600).query("sand?")
    shown = "\n".join(model.prompts)
    assert all(f"Sentence {n} tells" in shown for n in range(100))
    (source,) = answer.sources
    assert (source.text, source.complete, answer.omitted) == (text, True, ())


def test_refine_reads_all_passages(scripted, numbers_in, four_ways) -> None:
    retriever = passages(*(f"Fact {n} about tea. " + "x " * 60 for n in range(6)))
    model = scripted(lambda prompt: f"So far {numbers_in(prompt)}")
    for answer in four_ways(small(retriever, model, "refine", 520), "tea?"):
        assert len(answer.sources) == 6
        assert answer.calls > 1
    shown = [numbers_in(prompt) for prompt in model.prompts[: answer.calls]]
    assert [number for numbers in shown for number in numbers] == [1, 2, 3, 4, 5, 6]
    assert "The answer so far:\nSo far" in model.prompts[1]
    assert answer.text == f"So far {shown[-1]}"


def test_refine_keeps_answer_if_passages_do_not_help(scripted, four_ways) -> None:
    retriever = passages(*(f"Fact {n}. " + "x " * 60 for n in range(6)))
    model = scripted(lambda p: "NO_ANSWER" if "The answer so far" in p else "Tea is a drink [1].")
    for answer in four_ways(small(retriever, model, "refine", 520), "tea?"):
        assert (answer.text, answer.answered) == ("Tea is a drink [1].", True)


def test_map_reduce_reduces_until_it_fits(scripted, numbers_in, four_ways) -> None:
    def reply(prompt: str) -> str:
        if "<partial>\n" not in prompt:
            return f"Partial [{numbers_in(prompt)[0]}] " + "word " * 50
        return "All: " + " ".join(sorted(set(re.findall(r"\[\d\]", prompt.split("<partial>")[-1]))))

    model = scripted(reply)
    retriever = passages(*(f"Fact {n} about tea." for n in range(1, 8)))
    engine = small(retriever, model, "map_reduce", 400)
    for answer in four_ways(engine, "tea?"):
        assert answer.text.startswith("All:")
        assert answer.calls == 10  # seven passages and three reductions
        assert len(answer.sources) == 7
    assert max(map(engine.length, model.prompts)) <= 350


def test_failed_reduction_returns_all_partial_answers(scripted, four_ways) -> None:
    def reply(prompt: str):
        if "<partial>\n" in prompt:
            return RuntimeError("down")
        return "A drink [1]." if "a drink" in prompt else "Hot [2]."

    engine = QueryEngine(passages("Tea is a drink.", "Tea is hot."), scripted(reply), "map_reduce")
    for answer in four_ways(engine, "Tea?"):
        assert (answer.text, answer.answered) == ("A drink [1].\n\nHot [2].", True)
        assert [source.number for source in answer.cited] == [1, 2]
        assert "were not combined" in answer.notes[0]


@pytest.mark.parametrize("mode", ["refine", "map_reduce", "map_rerank"])
def test_failed_call_is_noted_and_others_continue(mode, scripted, four_ways) -> None:
    def reply(prompt: str):
        return RuntimeError("out of memory") if "Bad." in prompt else "Tea [2].\nConfidence: 50"

    retriever = passages(*(f"{word}. {'x ' * 80}" for word in ("Bad", "Good", "Fine")))
    for answer in four_ways(small(retriever, scripted(reply), mode, 420), "What is tea?"):
        assert answer.answered
        assert answer.text.startswith("Tea [2].")
        (note,) = answer.notes
        assert "[1]" in note
        assert "out of memory" in note
