import json
import shutil
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from support.scripted_server import ChatServer, serving

from nodekin.adapters.chinese_messages import in_chinese
from nodekin.retrievers.evaluation.dataset import FIELDS, Dataset, GoldPassage, Question
from nodekin.retrievers.evaluation.gate import Gate, MetricCheck, compare_with_baseline
from nodekin.retrievers.evaluation.gold_places import LocatedGold
from nodekin.retrievers.evaluation.metrics import get_metric
from nodekin.retrievers.evaluation.report import Difference, Evaluation
from nodekin.retrievers.evaluation.runner import evaluate

REPO = Path(__file__).parents[3]

MODULE = """
from functools import cache

from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever


@cache
def graph():
    graph = NodeGraph("docs", progress=False, on_error="skip")
    graph.create_node_group("sentence", split_sentences)
    graph.create_node_group("broken", broken)
    return graph


def documents():
    return Retriever(graph(), "ROOT")


def sentences():
    return Retriever(graph(), "sentence", target="ROOT")


def fused():
    return FusionRetriever([documents(), sentences()], "relative", [3, 1])


def broken(text):
    raise RuntimeError("the server is gone")


def summaries():
    return Retriever(graph(), "broken", target="ROOT")


def search(question):
    for document in graph().nodes("ROOT"):
        if "Wuhan" in question and fails_once:
            raise RuntimeError(fails_once.pop())
        if set(document.text.split()) & set(question[:-1].split()):
            yield document.text


fails_once = []


def texts(question):
    return list(search(question))


def numbered(query, top_k=1):
    nodes = graph().nodes("ROOT")[:top_k]
    return [{"text": n.text, "document_id": n.id, "score": 1.0} for n in nodes]


def chain(documents):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Chain(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(d.text, metadata={"source": d.id}) for d in documents]

    return Chain()


def stored(question):
    return [{"text": text, "document_id": "4f2a"} for text in search(question)]


def unset():
    raise RuntimeError("no key is set")


number = 3
"""

BOTH = ("eval", "mine:documents", "mine:fused", "--data", "q.jsonl")

QUESTIONS = [
    {"id": "1", "question": "Which tea is steamed?", "document_ids": ["docs/tea.md"]},
    {"id": "2", "question": "Which river runs past Wuhan?", "document_ids": ["docs/river.txt"]},
    {"id": "3", "question": "谁写了茶经？", "document_ids": ["docs/茶.md"]},
]


@pytest.fixture
def measured(nodekin, here, monkeypatch):
    """Run the command in a folder with retrievers and questions."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.syspath_prepend(here)
    (here / "mine.py").write_text(MODULE, encoding="utf-8")
    write_questions(here, QUESTIONS)
    return nodekin


def write_questions(here, rows):
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (here / "q.jsonl").write_text("\n".join(lines), encoding="utf-8")


def test_eval_compares_functions_of_a_module(measured):
    ran = measured(*BOTH)
    assert (ran.status, ran.err) == (0, "")
    header, first, second, *sentences = ran.out.splitlines()
    assert header.split()[:5] == ["set-up", "recall@1", "recall@5", "mrr@5", "ndcg@5"]
    assert first.startswith("documents  1.0000 (0.000 to 1.000)")
    assert second.startswith("fused      1.0000")
    assert len(sentences) == 4
    assert sentences[0].startswith("recall@1: no difference between documents and fused")


def test_eval_table_is_in_chinese(measured, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    ran = measured("eval", "mine:documents", "mine:summaries", "--data", "q.jsonl", "-m", "mrr@1")
    header, first, second, *_ = ran.out.splitlines()
    names = "检索器     mrr@1                     已评判  失败  毫秒"
    assert header.startswith(names)
    assert header.split()[-3:] == ["token", "数", "模型调用"]
    assert first.startswith("documents  1.0000（0.000 到 1.000）  3       0     ")
    assert second.startswith("summaries  未评判")


def test_lost_questions_of_the_gate_are_in_chinese(tmp_path):
    data = Dataset([Question(f"{n}", f"茶 {n}？", (GoldPassage(f"茶 {n}？"),)) for n in range(12)])
    before = evaluate({"a": lambda query: [query]}, data, ["recall@1"], progress=False)
    now = evaluate({"a": lambda query: ["水"]}, data, ["recall@1"], progress=False)
    before.save(tmp_path / "b.jsonl")
    gate = compare_with_baseline(now, tmp_path / "b.jsonl")
    assert gate.text(translate=partial(in_chinese, kind="gate")).splitlines()[1:] == [
        *[f"  丢失 {n}：茶 {n}？（1.000 -> 0.000）" for n in range(10)],
        "  另有 2 个",
        "没有给出限度，任何损失都能通过；请用 --max-loss recall@5=.02 设定",
    ]


def test_every_sentence_of_the_gate_is_in_chinese():
    checks = [
        MetricCheck("a", get_metric("mrr@5"), limit, difference)
        for limit, difference in [
            (0.1, Difference("mrr@5", "a (baseline)", "a", -0.5, -0.6, -0.4, 40, 20, None)),
            (0.1, Difference("mrr@5", "a (baseline)", "a", 0.0, -0.05, 0.05, 40, 20, None)),
            (0.1, Difference("mrr@5", "a (baseline)", "a", 0.0, -0.2, 0.05, 1, 1, None)),
            (0.1, Difference("mrr@5", "a (baseline)", "a", None, None, None, 0, 0, None)),
            (None, Difference("mrr@5", "a (baseline)", "a", -0.5, -0.6, -0.4, 40, 20, None)),
        ]
    ]
    gate = Gate(
        checks,
        Evaluation(LocatedGold(Dataset([Question("1", "茶？")])), [], {}, {}),
        failures={"a": 3},
        notes=[
            "2 questions not in the baseline, and not compared",
            "b is only in the baseline, and not compared",
            "c is not in the baseline, and not compared",
        ],
        lost_gold=["6", "7"],
        lost_questions=["8"],
    )
    assert gate.text(translate=partial(in_chinese, kind="gate")).splitlines() == [
        "a 的 mrr@5：40 个问题，-0.500（-0.600 到 -0.400），损失超过允许的 0.1",
        "a 的 mrr@5：40 个问题，+0.000（-0.050 到 +0.050），损失不超过 0.1",
        "a 的 mrr@5：+0.000（-0.200 到 +0.050），1 个问题太少，说不准损失是否超过 0.1",
        "a 的 mrr@5：没有现在和基线都评判过的问题",
        "a 的 mrr@5：40 个问题，-0.500（-0.600 到 -0.400）",
        "a 有 3 个问题失败",
        "2 个问题的标准答案在文档里找不到了：'6', '7'；如果这是有意的，请存一份新的基线",
        "1 个问题在基线之后删除或修改过：'8'；如果这是有意的，请存一份新的基线",
        "2 个问题不在基线里，没有比较",
        "b 只在基线里，没有比较",
        "c 不在基线里，没有比较",
        "没有通过",
    ]


@pytest.mark.parametrize(
    ("note", "chinese"),
    [
        (
            "a failed on 1 of 3 questions; question '2': RuntimeError: gone",
            "a 的 3 个问题中有 1 个失败；问题 '2'：RuntimeError: gone",
        ),
        (
            "2 gold items are in no document and not counted; 1: 'a' is in no document",
            "2 条标准答案不在任何文档里，没有计算；1：'a' 不在任何文档里",
        ),
        (
            "a, mrr@5: 2 of 3 questions are not judged ('1', '2'); gone",
            "a，mrr@5：3 个问题中有 2 个未评判（'1', '2'）；gone",
        ),
        (
            "3 gold items are moved; 1: 'tea.md' is now 'docs/tea.md'",
            "3 条标准答案换了位置；1：'tea.md' 现在是 'docs/tea.md'",
        ),
    ],
)
def test_notes_on_an_evaluation_are_in_chinese(note, chinese):
    assert in_chinese(note, "evaluation") == chinese


def test_eval_reports_failed_groups_without_a_figure(measured):
    ran = measured("eval", "mine:documents", "mine:summaries", "--data", "q.jsonl", "-m", "mrr@1")
    assert ran.status == 1
    first, second = ran.out.splitlines()[1:3]
    assert first.startswith("documents  1.0000")
    assert second.startswith("summaries  not judged")
    assert "summaries failed on 3 of 3 questions" in ran.out
    assert "3 documents failed in the group 'broken'; the first error" in ran.out
    assert "the server is gone" in ran.out


def test_eval_measures_the_default_on_an_index(measured):
    assert measured("index", "docs").status == 0
    for where in (("--store", ".nodekin"), ("--docs", "docs"), ()):
        ran = measured("eval", "--data", "q.jsonl", *where, "-m", "mrr@3")
        assert ran.status == 0, ran.err
        assert ran.out.splitlines()[1].startswith("default  1.0000")


def test_eval_uses_documents_of_questions(measured, here):
    answers = [{"text": "green", "answer_start": 0}]
    rows = [{"id": 1, "question": "Which tea?", "answers": answers}]
    paragraphs = [{"context": "green tea", "qas": rows}, {"context": "a river", "qas": []}]
    data = {"data": [{"paragraphs": paragraphs}]}
    (here / "dev.json").write_text(json.dumps(data))
    assert measured("eval", "--data", "dev.json", "-m", "recall@1").out.split("\n")[1][:15] == (
        "default  1.0000"
    )


def test_eval_writes_markdown_and_figure(measured, here):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    ran = measured(*BOTH, "-m", "mrr@5", "--markdown", "table.md", "--figure", "figure.png")
    assert ran.out.startswith("set-up")
    assert (here / "table.md").read_text().startswith("| set-up | mrr@5 |")
    assert (here / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("-m", "recal@5"), "a metric must be 'recall'"),
        (("--field", "question:Frage"), "--field must have the form question=COLUMN"),
        (("--field", "questions=Frage"), "a field must be 'question'"),
    ],
)
def test_eval_with_invalid_option_raises(measured, arguments, error):
    ran = measured(*BOTH, *arguments)
    assert ran.status == 2
    assert error in ran.err
    assert len(ran.err.splitlines()) == 1


def test_eval_with_invalid_questions_raises(measured, here):
    write_questions(here, [{"id": "1", "frage": "Tee?"}])
    ran = measured(*BOTH)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert "has no field 'question', only 'id', 'frage'" in ran.err
    assert ran.err.endswith("name it: --field question=COLUMN\n")
    ran = measured("eval", "mine:fused", "--data", "nothing.jsonl")
    assert (ran.status, len(ran.err.splitlines())) == (3, 1)


def test_eval_lists_missing_and_moved_gold(measured, here):
    rows = [{**row, "document_ids": [f"{row['document_ids'][0]}x"]} for row in QUESTIONS]
    write_questions(here, [*rows[:2], QUESTIONS[2]])
    ran = measured(*BOTH, "-m", "recall@5")
    assert "2 gold items are in no document and not counted" in ran.out
    assert "1: 'docs/tea.mdx' is in no document; nearest: 'docs/tea.md'" in ran.err
    assert (ran.status, ran.out.splitlines()[1].split()[5]) == (0, "1")
    moved = [{**row, "document_ids": [row["document_ids"][0][5:]]} for row in QUESTIONS]
    write_questions(here, moved)
    ran = measured(*BOTH, "-m", "recall@5")
    assert "3 gold items are moved; 1: 'tea.md' is now 'docs/tea.md'" in ran.out


@pytest.mark.parametrize("metrics", [(), ("-m", "recall@5", "-m", "tokens@5")])
def test_eval_of_unknown_ids_fails_without_baseline(measured, here, metrics):
    command = ("eval", "mine:stored", "--data", "q.jsonl", *metrics)
    ran = measured(*command, "--save-baseline", "b.jsonl")
    assert ran.status == 1
    assert ran.out.splitlines()[1].startswith("stored  not judged")
    assert "stored is not judged: no result has the id of any gold or document: '4f2a'" in ran.out
    assert "--docs" in ran.out
    assert "no baseline was saved: stored is not judged" in ran.err
    assert not (here / "b.jsonl").exists()
    ran = measured(*command, "--docs", "docs", "--save-baseline", "b.jsonl")
    assert ran.status == 0
    assert (here / "b.jsonl").exists()
    assert measured(*command, "--baseline", "b.jsonl", "--json").status == 1


def test_eval_reports_failed_questions(measured):
    import_module("mine").fails_once.append("the server is gone")
    ran = measured("eval", "mine:documents", "mine:texts", "--data", "q.jsonl", "-m", "recall@1")
    assert ran.status == 5
    assert "texts failed on 1 of 3 questions; question '2': RuntimeError: the server" in ran.out


OTHERS = ("texts", "numbered", "chain")


def test_eval_measures_functions_objects_and_langchain(measured, here):
    pytest.importorskip("langchain_core", reason="one of the retrievers is LangChain's")
    names = [f"mine:{name}" for name in OTHERS]
    options = ("--docs", "docs", "-m", "recall@3", "-q")
    ran = measured("eval", *names, "default", "--data", "q.jsonl", *options)
    assert ran.status == 0, ran.err
    rows = [line.split() for line in ran.out.splitlines()[1:5]]
    assert [row[0] for row in rows] == [*OTHERS, "default"]
    assert {row[1] for row in rows if row[0] in ("numbered", "chain", "default")} == {"1.0000"}


@pytest.mark.parametrize(
    ("names", "status", "error"),
    [
        (["mine:serch"], 2, "mine:serch: AttributeError: module 'mine' has no attribute 'serch'"),
        (["mine:number"], 2, "mine:number must be an object with retrieve()"),
        (["mine:unset"], 2, "mine:unset: RuntimeError: no key is set"),
        (["mine:texts", "mine:texts"], 2, "retrievers must be different, got mine:texts"),
        (["no_such_module:a"], 2, "no_such_module:a: ModuleNotFoundError: No module"),
        (["mine:chain"], 2, "there are no documents: name a folder with --docs"),
        (["default"], 3, "there is no index"),
    ],
)
def test_invalid_retriever_is_one_line(measured, names, status, error):
    ran = measured("eval", *names, "--data", "q.jsonl", "-q")
    assert (ran.status, len(ran.err.splitlines())) == (status, 1)
    assert error in ran.err


@pytest.fixture
def server(monkeypatch):
    """Return a scripted server. The environment has its address."""
    pytest.importorskip("openai", reason="a server's model needs openai")
    with serving(ChatServer()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def test_baseline_gate_fails_after_loss(measured, here):
    def compare(*options):
        sys.modules.pop("mine", None)  # each command reads the documents
        names = ("mine:documents", "--data", "many.jsonl", "-m", "recall@1")
        return measured("eval", *names, "-q", *options)

    rows = [{**row, "id": f"{n}{row['id']}"} for n in range(4) for row in QUESTIONS]
    lines = "\n".join(json.dumps(row) for row in rows)
    (here / "many.jsonl").write_text(lines, encoding="utf-8")
    ran = compare("--baseline", "b.jsonl")
    assert (ran.status, "File 'b.jsonl' does not exist" in ran.err) == (2, True)
    assert compare("--save-baseline", "b.jsonl").status == 0
    limit = ("--baseline", "b.jsonl", "--max-loss", "recall@1=.1")
    ran = compare(*limit)
    assert (ran.status, ran.out.splitlines()[-1]) == (0, "the gate passed")
    assert compare(*limit, "--save-baseline", "new.jsonl").status == 0
    (here / "many.jsonl").write_text(lines.rpartition("\n")[0], encoding="utf-8")
    ran = compare(*limit, "--markdown", "m.md")
    assert (ran.status, ran.out.splitlines()[-1]) == (1, "the gate failed")
    assert "save a new baseline" in (here / "m.md").read_text(encoding="utf-8")
    (here / "many.jsonl").write_text(lines, encoding="utf-8")
    (here / "docs" / "tea.md").write_text("Milk.", encoding="utf-8")
    (here / "docs" / "river.txt").write_text("Water.", encoding="utf-8")
    ran = compare(*limit, "--save-baseline", "lost.jsonl", "--markdown", "m.md")
    assert (ran.status, ran.out.splitlines()[-1]) == (1, "the gate failed")
    assert (here / "new.jsonl").exists()
    assert not (here / "lost.jsonl").exists()
    assert "  - lost 1" in (here / "m.md").read_text(encoding="utf-8")
    gate = compare(*limit, "--json").json["gate"]
    assert (gate["passed"], gate["checks"][0]["verdict"]) == (False, "lost")
    for options, error in [
        (("--max-loss", "recall@1=.1"), "--max-loss needs --baseline FILE"),
        (
            ("--baseline", "b.jsonl", "--max-loss", "recall@1"),
            "--max-loss must have the form recall@5=.02",
        ),
        (("--baseline", "b.jsonl", "--max-loss", "recal@1=1"), "a metric must be"),
    ]:
        ran = compare(*options)
        assert (ran.status, error in ran.err) == (2, True), ran.err


EXAMPLES = {
    "recursive": ["base", "recursive"],
    "node_groups": [
        *("blocks", "sentences", "summaries", "keywords", "questions"),
        *("several", "reranked", "rewritten", "answers"),
    ],
}


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
@pytest.mark.parametrize("example", EXAMPLES)
def test_eval_measures_example_node_groups(nodekin, here, monkeypatch, server, example):
    shutil.copytree(REPO / "examples" / "data", here / "data")
    shutil.copytree(REPO / "examples" / "evaluation", here / "evaluation")
    monkeypatch.chdir(here / "evaluation")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, example, raising=False)
    monkeypatch.setenv("OPENAI_MODEL", "scripted")
    monkeypatch.setenv("DOCS", str(here / "docs"))
    server.text = "1. A text on tea and rivers"
    lines = (here / "data" / "zh_questions.jsonl").read_text(encoding="utf-8").splitlines()
    (here / "few.jsonl").write_text("\n".join(lines[:2]), encoding="utf-8")
    sources = [f"{example}:{name}" for name in EXAMPLES[example]]
    data = ("--data", here / "few.jsonl", "--field", "answers=answer", "-m", "answer_in_context@2")
    ran = nodekin("eval", *sources, *data, "-q", "--json")
    assert ran.status in (0, 1), ran.err
    judged = {name: f["answer_in_context@2"]["judged"] for name, f in ran.json["figures"].items()}
    # The scripted answer is no list of questions and answers: that group fails, and has no figure.
    assert judged == {name: 0 if name == "questions" else 2 for name in EXAMPLES[example]}


@pytest.mark.slow
def test_eval_measures_examples_of_other_frameworks(nodekin, here, monkeypatch):
    pytest.importorskip("langchain_community")
    pytest.importorskip("llama_index.core")
    shutil.copytree(REPO / "examples" / "evaluation", here / "evaluation")
    shutil.copytree(REPO / "examples" / "data", here / "data")
    monkeypatch.chdir(here / "evaluation")
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = {
        "langchain_faiss:faiss": 0.9250,
        "langchain_ensemble:ensemble": 1.0,
        "llama_index_vectors:vector_index": 0.8750,
        "llama_index_auto_merging:auto_merging": 0.7,
    }
    data = ("--docs", "../data/zh", "--data", "../data/zh_questions.jsonl")
    ran = nodekin("eval", *names, "default", *data, "--field", "answers=answer", "-q", "--json")
    assert ran.status == 0, ran.err
    figures = {name: f["answer_in_context@5"]["value"] for name, f in ran.json["figures"].items()}
    assert figures == {**{n.partition(":")[2]: v for n, v in names.items()}, "default": 1.0}


def test_eval_help_names_the_fields_of_questions(nodekin):
    text = " ".join(nodekin("eval", "--help").out.split())
    for field in FIELDS:
        assert f'"{field}"' in text
