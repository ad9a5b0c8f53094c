import json

import pytest

from nodekin.adapters.evaluation.setup_session import load_setup
from nodekin.retrievers.evaluation.setups.opening import SetupOpener
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile

SETUPS = """
[graph]
source = "docs"

[setups.documents]
type = "Retriever"
group_name = "ROOT"
"""


@pytest.fixture
def tuned(nodekin, here):
    """Run the command where there are questions and a file of set-ups."""
    (here / "mine.toml").write_text(SETUPS, encoding="utf-8")
    rows = [
        {"id": "1", "question": "Which tea is steamed?", "document_ids": ["docs/tea.md"]},
        {"id": "2", "question": "What runs past Wuhan?", "document_ids": ["docs/river.txt"]},
        {"id": "3", "question": "谁写了茶经？", "document_ids": ["docs/茶.md"]},
        {"id": "4", "question": "绿茶经过发酵吗？", "document_ids": ["docs/茶.md"]},
    ]
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (here / "q.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return nodekin


def test_the_chosen_set_up_is_written_and_opened(tuned, here):
    ran = tuned("tune", "mine.toml", "--data", "q.jsonl")
    assert (ran.status, ran.err) == (0, "")
    assert "chosen by ndcg@5 on 2 questions, reported on 2 others" in ran.out
    assert "4 questions are too few to choose by" in ran.out
    assert "written to tuned.toml" in ran.out
    text = (here / "tuned.toml").read_text(encoding="utf-8")
    assert text.startswith("# Chosen by nodekin tune: by ndcg@5, on 2 questions.\n# On 2 others: ")
    assert SetupFile.read(here / "tuned.toml").graph == {"source": ["docs"]}
    found = load_setup(here / "tuned.toml").retrieve("谁写了茶经？")
    assert found[0].node.document_id == "docs/茶.md"
    again = tuned("eval", "tuned.toml", "--data", "q.jsonl", "-m", "mrr@5")
    assert again.out.splitlines()[1].startswith("default  1.0000")


def test_paths_begin_where_the_file_is_written(tuned, here):
    (here / "out").mkdir()
    ran = tuned("tune", "--data", "q.jsonl", "--docs", "docs", "-o", "out/t.toml", "--seconds", "9")
    assert ran.status == 0
    assert SetupFile.read(here / "out" / "t.toml").graph == {"source": ["../docs"]}
    assert load_setup(here / "out" / "t.toml").retrieve("tea")


def test_json_and_a_dash(tuned, here):
    ran = tuned("tune", "mine.toml", "--data", "q.jsonl", "--json")
    assert (ran.json["command"], ran.json["changed"], ran.json["chosen_on"]) == ("tune", False, 2)
    assert (ran.json["chosen"], ran.json["tried"]) == ("default", 9)
    assert SetupFile.parse(ran.json["setup"]).default == "default"
    ran = tuned("tune", "mine.toml", "--data", "q.jsonl", "-o", "-")
    assert SetupFile.parse(ran.out).default == "default"


def test_a_file_that_is_there_is_replaced_only_if_told_to(tuned, here):
    (here / "tuned.toml").write_text("mine")
    ran = tuned("tune", "mine.toml", "--data", "q.jsonl")
    assert ran.status == 2
    assert "tuned.toml is there already" in ran.err
    assert (here / "tuned.toml").read_text() == "mine"
    assert tuned("tune", "mine.toml", "--data", "q.jsonl", "--force").status == 0
    assert (here / "tuned.toml").read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("-m", "ndgc@5"), "there is no metric 'ndgc'; there are 'ndcg'"),
        (("--seconds", "0"), "0"),
        (("--docs", "nothing"), "there is no file or folder 'nothing'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_searched(tuned, here, arguments, error):
    ran = tuned("tune", "--data", "q.jsonl", *arguments)
    assert ran.status in (2, 3)
    assert error in ran.err
    assert not (here / "tuned.toml").exists()


def test_an_index_is_read_and_not_changed(tuned, here):
    assert tuned("index", "docs").status == 0
    before = tuned("groups", "--json").json["groups"]
    ran = tuned("tune", "--data", "q.jsonl", "--store", ".nodekin", "--seconds", "9")
    assert ran.status == 0
    assert SetupFile.read(here / "tuned.toml").graph == {}
    assert tuned("groups", "--json").json["groups"] == before
    found = tuned("search", "谁写了茶经？", "--setups", "tuned.toml", "-k", "1", "--json")
    assert found.documents == ["docs/茶.md"]


def test_interrupted_it_says_how_to_go_on(tuned, here, monkeypatch):
    opened = []

    def interrupted(self, name, open=SetupOpener.open):
        opened.append(name)
        if len(opened) == 2:
            raise KeyboardInterrupt
        return open(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(SetupOpener, "open", interrupted)
        ran = tuned("tune", "mine.toml", "--data", "q.jsonl")
    assert ran.status == 130
    assert "tuned.trials.jsonl has what is done; the same command goes on" in ran.err
    assert not (here / "tuned.toml").exists()
    before = (here / "tuned.trials.jsonl").read_text(encoding="utf-8")
    ran = tuned("tune", "mine.toml", "--data", "q.jsonl")
    assert (ran.status, ran.err) == (0, "")
    after = (here / "tuned.trials.jsonl").read_text(encoding="utf-8")
    assert after.startswith(before)
    assert len(after.splitlines()) > len(before.splitlines()) > 1
