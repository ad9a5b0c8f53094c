import pickle
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, ModelError, NodeGraph, TransformError, split_paragraphs
from nodekin.nodegraph.extractors.llm_extractor import PROMPTS, LLMExtractor
from nodekin.nodegraph.hashing import fingerprint
from nodekin.nodegraph.models.llm import LLM


class Scripted:
    """A model that answers by the words in the text, and records its prompts."""

    name = "scripted"

    def __init__(self, answers=(), default="A summary."):
        self.answers = dict(answers)
        self.default = default
        self.prompts = []
        self.api_key = "secret"

    def complete(self, prompt):
        self.prompts.append(prompt)
        text = re.search(r"<text>\n(.*)\n</text>", prompt, re.S)
        seen = text[1] if text else prompt
        answer = next((a for word, a in self.answers.items() if word in seen), self.default)
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("task", "answer", "texts"),
    [
        ("summary", "摘要：茶是饮品。", ["茶是饮品。"]),
        ("keywords", "1. tea\n2. 水，tea", ["tea", "水"]),
        ("questions", "1. What is tea?\n2. Who drinks it?", ["What is tea?", "Who drinks it?"]),
        ("qa", "Q: What is tea?\nA: A drink.", ["What is tea?"]),
        ("questions", "NONE", []),
    ],
)
def test_extractor_returns_items_of_task(task, answer, texts):
    assert [n.text for n in LLMExtractor(lambda prompt: answer, task)("Tea.")] == texts


def test_pair_has_question_as_text():
    nodes = LLMExtractor(lambda p: "问：茶是什么？\n答：饮品。\nQ: Who?\nA: All.\nMany.", "qa")(
        "茶"
    )
    assert [node.content for node in nodes] == [
        "问：茶是什么？\n答：饮品。",
        "Q: Who?\nA: All.\nMany.",
    ]
    assert [node.own_metadata for node in nodes] == [
        {"answer": "饮品。"},
        {"answer": "All.\nMany."},
    ]


def test_prompt_has_language_and_limit():
    limits = {task: LLMExtractor(Scripted(), task).limit for task in PROMPTS["en"]}
    assert limits == {"summary": 3, "keywords": 8, "questions": 5, "qa": 5}  # as documented
    model = Scripted(default="a, b, c")
    for text in ("茶是一种饮品。", "Tea is a drink."):
        LLMExtractor(model)(text)
    assert len(LLMExtractor(model, "keywords", "en", limit=2)("茶是一种饮品。")) == 2
    for prompt, parts in zip(
        model.prompts,
        [
            ("请用中文", "最多 3 句话"),
            (
                "in the language of the text",
                "at most 3 sentences",
                "<text>\nTea is a drink.\n</text>",
            ),
            ("at most 2 keywords", "in English"),
        ],
        strict=True,
    ):
        assert all(part in prompt for part in parts)


def test_given_prompt_replaces_prompt():
    model = Scripted(default="tea")
    asked = 'Terms as {"json": 1}, {limit} of them: {text}'
    LLMExtractor(model, "keywords", prompt=asked, limit=4)("Tea {limit}.")
    assert model.prompts == ['Terms as {"json": 1}, 4 of them: Tea {limit}.']


def test_blank_text_makes_no_call():
    assert LLMExtractor(Scripted(default=OSError()))(" \n") == []


def test_invalid_answer_is_retried_with_error():
    model = Scripted({"Tea": ["I like tea.", "What is tea?"]})
    assert [n.text for n in LLMExtractor(model, "questions")("Tea is.")] == ["What is tea?"]
    assert len(model.prompts) == 2
    assert "the answer has no question" in model.prompts[1]


def test_garbage_raises_with_text_and_answer():
    model = Scripted(default="I like tea.")
    says = r"'scripted' gave no questions of the text 'Tea is.*no question.*answered 'I like tea.'"
    with pytest.raises(ModelError, match=says):
        LLMExtractor(model, "questions")("Tea is.")
    assert len(model.prompts) == 2


def test_failing_model_is_not_retried():
    model = Scripted(default=OSError("down"))
    with pytest.raises(ModelError, match="OSError: down"):
        LLMExtractor(model)("Tea.")
    assert len(model.prompts) == 1


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"task": "keyword"}, ValueError, "unknown task 'keyword'; known: 'keywords'"),
        ({"language": "fr"}, ValueError, "unknown language 'fr'; known:"),
        ({"prompt": "Summarize!"}, ValueError, r"must contain \{text\}"),
        ({"prompt": 3}, TypeError, "prompt must be a text"),
        ({"limit": 0}, ValueError, "limit must be 1 or more"),
        ({"limit": 1.5}, TypeError, "limit must be an integer"),
        ({"llm": Path("gpt-4o")}, TypeError, "name of a model"),
    ],
)
def test_invalid_settings_raise(given, error, says):
    with pytest.raises(error, match=says):
        LLMExtractor(**{"llm": Scripted(), **given})


def test_fingerprint_depends_on_result():
    same = fingerprint(LLMExtractor(Scripted()))
    used = Scripted({"a": "b"})
    used.complete("count")
    used.api_key = "other"
    assert fingerprint(LLMExtractor(used)) == same
    others = [
        LLMExtractor(LLM(Scripted(), "another")),
        LLMExtractor(Scripted(), "keywords"),
        LLMExtractor(Scripted(), language="zh"),
        LLMExtractor(Scripted(), prompt="Say {text}"),
        LLMExtractor(Scripted(), limit=4),
    ]
    assert len({same, *map(fingerprint, others)}) == 6


def test_extractor_is_pickled_with_model():
    made = pickle.loads(pickle.dumps(LLMExtractor(Scripted(default="tea"), "keywords", limit=4)))
    assert [node.text for node in made("Tea.")] == ["tea"]
    assert made.limit == 4


TEXTS = [Document(f"paragraph {n} one\n\nparagraph {n} two", id=str(n)) for n in range(3)]


def graph_of(path, model, task="summary", on_error="raise", workers=0, **settings):
    graph = NodeGraph(store=path, progress=False, on_error=on_error)
    graph.create_node_group("paragraph", split_paragraphs)
    extractor = LLMExtractor(model, task, **settings)
    graph.create_node_group("made", extractor, parent="paragraph", num_workers=workers)
    graph.add(TEXTS)
    return graph


def test_stored_answers_are_reused(tmp_path):
    model = Scripted()
    with graph_of(tmp_path / "graph", model) as graph:
        assert len(graph.nodes("made")) == len(model.prompts) == 6
        graph.add(Document("paragraph 1 one\n\nparagraph 1 changed", id="1"))
        graph.nodes("made")
        assert len(model.prompts) == 7
        graph.add(TEXTS[1])
    model = Scripted()
    with graph_of(tmp_path / "graph", model) as graph:
        assert len(graph.nodes("made")) == 6
        assert model.prompts == []  # all answers are stored
    model = Scripted()
    with graph_of(tmp_path / "graph", model, limit=1) as graph:
        graph.nodes("made")
        assert len(model.prompts) == 6  # another limit


def test_failures_are_listed_and_retried(tmp_path):
    model = Scripted({"1 two": "I'm sorry, I can't."})
    failed = r"group 'made' failed on document '1': .*refused"
    with graph_of(None, model) as graph, pytest.raises(TransformError, match=failed):
        graph.nodes("made")
    model.prompts.clear()
    with graph_of(tmp_path / "graph", model, on_error="skip") as graph:
        assert len(graph.nodes("made")) == 4
        (failure,) = graph.failures
        assert (failure.document, failure.group) == ("1", "made")
        assert isinstance(failure.error.__cause__, ModelError)
        assert "'paragraph 1 two': the model refused" in str(failure.error)
        assert len(model.prompts) == 7
        model.answers.clear()
        assert graph.build("made") == []
        assert len(graph.nodes("made")) == 6
        assert len(model.prompts) == 8  # only the failed text


def test_num_workers_call_model_concurrently():
    together = threading.Barrier(4)
    calls = iter(range(6))

    def answer(prompt):
        if next(calls) < 4:
            together.wait(300)
        return "A summary."

    with graph_of(None, LLM(answer, "slow"), workers=4) as graph:
        assert [node.parent.text for node in graph.nodes("made")] == [
            f"paragraph {n} {which}" for n in range(3) for which in ("one", "two")
        ]


CHINESE = (
    "长江发源于青藏高原的唐古拉山脉，全长约6300公里，是亚洲最长的河流。它流经十一个省级行政区，在上海注入东海。"
    "三峡水电站位于湖北省宜昌市，2012年全部机组投产，是世界上装机容量最大的水电站。"
)
ENGLISH = (
    "The Panama Canal is an artificial 82-kilometre waterway in Panama that connects the Atlantic "
    "and Pacific oceans. France began work on it in 1881 but stopped. The United States took over "
    "the project in 1904 and opened the canal on 15 August 1914."
)


@pytest.mark.models
@pytest.mark.enable_socket
@pytest.mark.parametrize("task", ["summary", "keywords", "questions", "qa"])
@pytest.mark.parametrize(
    ("text", "about", "script"),
    [(CHINESE, "长江", "[一-鿿]"), (ENGLISH, "Panama", "[a-z]")],
    ids=["zh", "en"],
)
def test_real_model_extracts_items(language_model, task, text, about, script):
    nodes = LLMExtractor(language_model, task)(text)
    whole = "\n".join(str(node.content) for node in nodes)
    assert about in whole
    assert all(re.search(script, node.text, re.I) for node in nodes)
    if task == "summary":
        assert len(nodes) == 1
        assert len(whole) < len(text)
    else:
        assert 2 <= len(nodes) <= 8
    if task in ("questions", "qa"):
        assert all(node.text.endswith(("?", "？")) for node in nodes)


class Structured:
    """A model that supports schemas, or answers in words."""

    name = "structured"

    def __init__(self, value: object) -> None:
        self.value = value
        self.schemas: list[Any] = []

    def complete(self, prompt: str) -> str:
        return "1. What is tea?"

    def complete_json(self, prompt: str, schema: Any) -> object:
        assert "JSON" in prompt
        self.schemas.append(schema)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize(
    ("task", "value", "texts"),
    [
        ("summary", {"summary": "Tea is a drink."}, ["Tea is a drink."]),
        ("keywords", {"keywords": ["tea", "leaves"]}, ["tea", "leaves"]),
        ("questions", {"questions": ["Is tea old?"]}, ["Is tea old?"]),
        ("qa", {"pairs": [{"question": "Is tea old?", "answer": "It is."}]}, ["Is tea old?"]),
        ("questions", RuntimeError("no schemas here"), ["What is tea?"]),
    ],
)
def test_schema_is_used_if_supported(task: Any, value: object, texts: list[str]) -> None:
    model = Structured(value)
    assert [node.text for node in LLMExtractor(model, task)("Tea is old.")] == texts
    assert len(model.schemas) == 1
