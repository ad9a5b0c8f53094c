"""Evaluation sets of LangChain, LlamaIndex and Ragas, saved by their own objects."""

import csv
import datetime
import json
import uuid

import pytest
from langchain_classic.evaluation.qa import QAGenerateChain
from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage, SystemMessage, message_to_dict
from langsmith.schemas import Example
from llama_index.core.evaluation.dataset_generation import QueryResponseDataset

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.evaluation import (
    GoldDocument,
    GoldPassage,
    Question,
    evaluate,
    load_langchain,
    load_llama_index,
    load_ragas,
)


def example(number, inputs, outputs=None):
    return Example(
        id=uuid.UUID(int=number),
        inputs=inputs,
        outputs=outputs,
        dataset_id=uuid.UUID(int=9),
        created_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
    )


def id_of(number):
    return str(uuid.UUID(int=number))


EXAMPLES = [
    example(
        1,
        {"question": "Which tea is green?"},
        {"answer": "Longjing", "contexts": ["Longjing is a green tea."]},
    ),
    example(2, {"question": "哪种茶？"}, {"answer": "绿茶"}),
    example(3, {"question": "No answer?"}),
]

QUESTIONS = (
    Question(
        id_of(1),
        "Which tea is green?",
        (GoldPassage("Longjing is a green tea."),),
        ("Longjing",),
    ),
    Question(id_of(2), "哪种茶？", (), ("绿茶",)),
    Question(id_of(3), "No answer?"),
)


def test_examples_of_langsmith_as_they_are():
    assert load_langchain(EXAMPLES).questions == QUESTIONS


def test_examples_of_langsmith_saved_as_json_and_json_lines(tmp_path):
    rows = [one.model_dump(mode="json") for one in EXAMPLES]
    whole, lines = tmp_path / "examples.json", tmp_path / "examples.jsonl"
    whole.write_text(json.dumps(rows), encoding="utf-8")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    below = tmp_path / "export.json"
    below.write_text(json.dumps({"examples": rows}), encoding="utf-8")
    for path in (whole, lines, below):
        assert load_langchain(path).questions == QUESTIONS
    assert load_langchain(whole).name == "examples.json"


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        (("id", "inputs", "outputs"), ("1", '{"question": "Why?"}', '{"answer": "So."}')),
        (("id", "inputs", "outputs"), ("1", "{'question': 'Why?'}", "{'answer': 'So.'}")),
        (("id", "input_question", "output_answer"), ("1", "Why?", "So.")),
        (("id", "inputs.question", "outputs.answer"), ("1", "Why?", "So.")),
        (("question", "answer"), ("Why?", "So.")),
        (("id", "inputs.anything", "outputs.other"), ("1", "Why?", "So.")),
    ],
)
def test_csv_files_of_langsmith(tmp_path, header, cells):
    path = tmp_path / "examples.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, cells])
    assert load_langchain(path).questions == (Question("1", "Why?", (), ("So.",)),)


def test_a_conversation_asks_what_its_last_person_said():
    messages = [SystemMessage("Be kind."), HumanMessage("Why?")]
    for dumped in (
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}],
        [message_to_dict(message) for message in messages],
        [message.model_dump() for message in messages],
    ):
        loaded = load_langchain([{"inputs": {"messages": dumped}}])
        assert loaded.questions == (Question("1", "Why?"),)


def test_documents_of_langchain_are_gold_passages():
    document = LangChainDocument("Longjing is green.", metadata={"source": "tea"})
    for passage in (document, document.model_dump(), document.to_json()):
        row = {"inputs": {"q": "Which?"}, "outputs": {"answer": "L", "documents": [passage]}}
        (question,) = load_langchain([row]).questions
        assert question.gold == (GoldPassage("Longjing is green."),)
    for names, answers in (({}, ()), ({"answer": "documents"}, ("Longjing is green.",))):
        row = {"inputs": {"q": "Which?"}, "outputs": {"documents": ["Longjing is green."]}}
        (question,) = load_langchain([row], passages="documents", **names).questions
        assert question.gold == (GoldPassage("Longjing is green."),)
        assert question.answers == answers


def test_questions_that_langchain_generates():
    model = FakeListChatModel(responses=["QUESTION: Which tea is green?\nANSWER: Longjing"])
    chain = QAGenerateChain.from_llm(model)
    examples = [chain.invoke({"doc": "Longjing is a green tea."})["qa_pairs"]]
    assert load_langchain(examples).questions == (
        Question("1", "Which tea is green?", (), ("Longjing",)),
    )


def test_names_that_have_to_be_said():
    row = {"inputs": {"a": "Why?", "b": "x"}, "outputs": {"c": "So.", "d": "y"}}
    with pytest.raises(ValueError, match="has 'a', 'b': say by question= which of them"):
        load_langchain([row])
    with pytest.raises(ValueError, match="has 'c', 'd': say by answer= which of them"):
        load_langchain([row], question="a")
    (question,) = load_langchain([row], question="a", answer="c", passages="d").questions
    assert question == Question("1", "Why?", (GoldPassage("y"),), ("So.",))
    with pytest.raises(ValueError, match="has no 'e', but"):
        load_langchain([row], question="e")


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.json", "{", "is no JSON"),
        ("a.json", "3", "is no list of examples"),
        ("a.json", "[3]", "example 1 is no JSON object"),
        ("a.jsonl", '{"inputs": {"question": 3}}', "'question' is no text but 3"),
        ("a.jsonl", '{"inputs": ["Why?"]}', "has no inputs and outputs"),
        ("a.json", "[]", "has no questions"),
    ],
)
def test_what_is_no_example(tmp_path, name, text, error):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=error):
        load_langchain(path)


# As LlamaIndex 0.13 saves them; later versions have no such classes.
EMBEDDING_SET = {
    "queries": {"q1": "Which tea is green?", "q2": "哪种茶？"},
    "corpus": {"n1": "Green tea.", "n2": "红茶。"},
    "relevant_docs": {"q1": ["n1"], "q2": ["n2", "n1"]},
    "mode": "text",
}

RAG_SET = {
    "examples": [
        {
            "query": "哪种茶？",
            "query_by": {"model_name": "", "type": "human"},
            "reference_contexts": ["Green tea.", "红茶。"],
            "reference_answer": "绿茶",
            "reference_answer_by": {"model_name": "m", "type": "ai"},
        },
        {
            "query": "Which?",
            "query_by": None,
            "reference_contexts": None,
            "reference_answer": "",
            "reference_answer_by": None,
        },
    ]
}

RAG_QUESTIONS = (
    Question("1", "哪种茶？", (GoldPassage("Green tea."), GoldPassage("红茶。")), ("绿茶",)),
    Question("2", "Which?"),
)


def saved(tmp_path, value):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")
    return path


def test_an_embedding_set_of_llama_index_from_its_file(tmp_path):
    path = saved(tmp_path, EMBEDDING_SET)
    data = load_llama_index(path)
    assert data.questions == (
        Question("q1", "Which tea is green?", (GoldPassage("Green tea."),)),
        Question("q2", "哪种茶？", (GoldPassage("红茶。"), GoldPassage("Green tea."))),
    )
    by_id = load_llama_index(path, gold="documents")
    assert by_id.questions[1].gold == (GoldDocument("n2"), GoldDocument("n1"))
    with NodeGraph(progress=False) as graph:
        graph.add(by_id.documents)
        result = evaluate({"words": Retriever(graph, "ROOT")}, by_id, ["mrr@2"], progress=False)
    assert result.figure("words", "mrr@2").judged == 2
    assert result.missing_gold == []


def test_a_rag_set_of_llama_index_from_its_file(tmp_path):
    assert load_llama_index(saved(tmp_path, RAG_SET)).questions == RAG_QUESTIONS


def test_the_sets_that_llama_index_saves_itself(tmp_path):
    sets = pytest.importorskip("llama_index.core.llama_dataset", reason="gone since 0.14")
    legacy = pytest.importorskip("llama_index.core.llama_dataset.legacy.embedding")
    path = tmp_path / "set.json"
    embedding = legacy.EmbeddingQAFinetuneDataset(**EMBEDDING_SET)
    embedding.save_json(str(path))
    assert load_llama_index(path).questions == load_llama_index(embedding).questions
    rag = sets.LabelledRagDataset(
        examples=[
            sets.LabelledRagDataExample(
                query=row["query"],
                query_by=None,
                reference_contexts=row["reference_contexts"],
                reference_answer=row["reference_answer"],
                reference_answer_by=None,
            )
            for row in RAG_SET["examples"]
        ]
    )
    rag.save_json(str(path))
    assert load_llama_index(path).questions == RAG_QUESTIONS == load_llama_index(rag).questions


def test_questions_and_responses_of_llama_index(tmp_path):
    pairs = QueryResponseDataset.from_qr_pairs([("Why?", "So."), ("How?", "")])
    path = tmp_path / "set.json"
    pairs.save_json(str(path))
    expected = (Question("0", "Why?", (), ("So.",)), Question("1", "How?"))
    assert load_llama_index(path).questions == expected == load_llama_index(pairs).questions


def test_a_relevant_node_that_is_not_in_the_corpus(tmp_path):
    path = saved(tmp_path, EMBEDDING_SET | {"corpus": {"n1": "Green tea."}})
    with pytest.raises(ValueError, match="node 'n2' is relevant for query 'q2', and not in"):
        load_llama_index(path)


@pytest.mark.parametrize("value", [[], {"data": []}, {"queries": {}, "corpus": {}}])
def test_what_is_no_set_of_llama_index(tmp_path, value):
    with pytest.raises(ValueError, match="a set of LlamaIndex has queries, corpus"):
        load_llama_index(saved(tmp_path, value))


RAGAS = [
    {
        "user_input": "Which tea is green?",
        "reference_contexts": ["Longjing's leaves are heated.\nIt is green.", "红茶"],
        "reference": "Longjing",
        "retrieved_contexts": ["something else"],
        "response": "Assam",
        "synthesizer_name": "single_hop_specific_query_synthesizer",
    }
]


def test_test_sets_of_ragas(tmp_path):
    texts = RAGAS[0]["reference_contexts"]
    expected = (
        Question("1", "Which tea is green?", tuple(map(GoldPassage, texts)), ("Longjing",)),
    )
    lines, table = tmp_path / "set.jsonl", tmp_path / "set.csv"
    lines.write_text(json.dumps(RAGAS[0], ensure_ascii=False) + "\n", encoding="utf-8")
    with table.open("w", encoding="utf-8", newline="") as file:  # as Ragas' to_csv does
        writer = csv.DictWriter(file, fieldnames=RAGAS[0].keys())
        writer.writeheader()
        writer.writerows(RAGAS)
    assert load_ragas(RAGAS).questions == expected
    assert load_ragas(lines).questions == expected
    assert load_ragas(table).questions == expected


def test_contexts_that_were_retrieved_are_no_gold():
    old = {"question": "Why?", "contexts": ["a"], "ground_truth": "So."}
    assert load_ragas([old]).questions == (Question("1", "Why?", (), ("So.",)),)
    of_test_set = load_ragas([{**old, "evolution_type": "simple"}])
    assert of_test_set.questions[0].gold == (GoldPassage("a"),)
    with pytest.raises(ValueError, match="has no 'user_input'"):
        load_ragas([{"text": "Why?"}])


def test_they_are_searched_like_any_other(tmp_path):
    with NodeGraph(progress=False) as graph:
        graph.add([Document("Longjing is a green tea."), Document("Assam is a black tea.")])
        data = load_langchain(EXAMPLES[:1])
        result = evaluate({"words": Retriever(graph, "ROOT")}, data, ["recall@1"], progress=False)
    assert result.figure("words", "recall@1").value == 1.0
