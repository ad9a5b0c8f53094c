from contextlib import closing

import pytest
from stores import file_store


def test_what_was_found_is_told_in_numbers(nodekin):
    ran = nodekin("index", "docs")
    assert ran.status == 0
    assert ran.out.splitlines() == [
        "3 documents in .nodekin: 3 added",
        "3 passage, 11 sentence",
    ]
    assert ran.err == ""


def test_an_index_that_cannot_be_made_there(nodekin, here):
    (here / "file.txt").write_text("Tea.", "utf-8")
    ran = nodekin("index", "docs", "--store", "file.txt/index")
    assert (ran.status, ran.out) == (3, "")
    assert "can't make an index in " in ran.err
    assert ran.err.endswith("; name another folder with --store\n")


def test_again_reads_only_what_changed(nodekin, here):
    nodekin("index", "docs")
    (here / "docs" / "river.txt").unlink()
    (here / "docs" / "tea.md").write_text("# Tea\n\nWhite tea is withered.\n", encoding="utf-8")
    (here / "docs" / "new.txt").write_text("Coffee is roasted.", encoding="utf-8")
    (here / "docs" / "茶.md").rename(here / "docs" / "茶书.md")
    ran = nodekin("index")
    assert ran.out.startswith(
        "3 documents in " + str(here / ".nodekin") + ": 1 added, 1 changed, 1 removed, 1 renamed\n"
    )
    assert nodekin("search", "withered", "--json").documents == ["docs/tea.md"]
    assert nodekin("search", "Yangtze").status == 1


def test_a_second_folder_joins_the_first(nodekin, here):
    (here / "more").mkdir()
    (here / "more" / "milk.txt").write_text("Milk is white.", encoding="utf-8")
    nodekin("index", "docs")
    ran = nodekin("index", "more", "--json")
    assert ran.json["documents"] == 4
    assert (ran.json["added"], ran.json["unchanged"]) == (["more/milk.txt"], 3)


def test_json_tells_all(nodekin, here):
    assert nodekin("index", "docs", "--json").json == {
        "format": 1,
        "command": "index",
        "store": str(here / ".nodekin"),
        "documents": 3,
        "added": ["docs/river.txt", "docs/tea.md", "docs/茶.md"],
        "changed": [],
        "removed": [],
        "renamed": [],
        "unchanged": 0,
        "groups": {"passage": 3, "sentence": 11},
        "embeddings": None,
        "failures": [],
        "notes": [],
        "skipped": {},
    }


def test_a_file_that_cannot_be_read_is_told_and_left_out(nodekin, here):
    (here / "docs" / "old.txt").write_bytes(b"\x81\x20 tea")
    ran = nodekin("index", "docs")
    assert ran.status == 5
    assert "3 documents in .nodekin: 3 added, 1 left out" in ran.out
    assert len(ran.err.splitlines()) == 1
    assert "left out: " in ran.err
    assert "old.txt is not UTF-8" in ran.err
    (failure,) = nodekin("index", "--json").json["failures"]
    assert (failure["document"], failure["group"]) == ("docs/old.txt", "ROOT")
    assert "--encoding gb18030" in failure["error"]
    (here / "docs" / "old.txt").write_text("新的编码", encoding="utf-8")
    assert nodekin("index").status == 0


def test_files_without_a_reader_are_named(nodekin, here):
    (here / "docs" / "picture.png").write_bytes(b"\x89PNG")
    ran = nodekin("index", "docs")
    assert ran.status == 0
    assert "picture.png" in ran.err
    assert nodekin("index", "docs", "--quiet", "--rebuild").err == ""


def test_only_groups_that_a_search_uses_by_default_are_built(nodekin, here):
    (here / "docs" / "table.md").write_text(
        "# Prices\n\n| tea | price |\n|---|---|\n| green | 4 |\n"
    )
    nodekin("index", "docs")
    assert nodekin("search", "green tea").status == 0
    with closing(file_store(here / ".nodekin" / "graph.sqlite")) as store:
        built = {name for name in store.groups() if any(store.nodes(name))}
    (default,) = nodekin("explain", "green tea", "--json").json["trace"]["children"]
    (fusion,) = default["children"]
    searched = {span["attributes"]["group"] for span in fusion["children"]}
    assert built == searched == {"passage", "sentence"}
    nodekin("search", "green", "--group", "table")  # whose group is built when it is asked for
    with closing(file_store(here / ".nodekin" / "graph.sqlite")) as store:
        assert any(store.nodes("table"))


def test_groups_of_ones_own(nodekin):
    ran = nodekin("index", "docs", "-g", "part=chunks:8:2", "-g", "line=lines@part", "--json")
    assert list(ran.json["groups"]) == ["part", "line", "part sentence"]
    found = nodekin("search", "fermented", "--json").json["results"]
    assert [each["group"] for each in found] == ["part"]


def test_a_group_can_be_added_and_changed_later(nodekin):
    nodekin("index", "docs")
    ran = nodekin("index", "-g", "line=lines", "-g", "sentence=sentences", "--json")
    groups = ["passage", "sentence", "line", "passage sentence"]  # the last for the default search
    assert list(ran.json["groups"]) == groups
    assert nodekin("search", "fermented", "-g", "line", "--json").json["count"] == 1


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("line", "not of the form NAME=TRANSFORM"),
        ("line=words", "passages, paragraphs, sentences, lines"),
        ("line=lines:5", "takes no size"),
        ("part=chunks:5:5", "overlap less"),
        ("line=lines@nothing", "no parent 'nothing'"),
    ],
)
def test_a_wrong_group_is_one_line(nodekin, here, rule, said):
    ran = nodekin("index", "docs", "--group", rule)
    assert ran.status == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (here / ".nodekin").exists()


def test_a_folder_that_is_not_there(nodekin, here):
    ran = nodekin("index", "nowhere")
    assert ran.status == 3
    assert ran.err == "nodekin: there is no file or folder 'nowhere'\n"
    assert not (here / ".nodekin").exists()


def test_a_folder_inside_an_indexed_one(nodekin, here):
    (here / "docs" / "deep").mkdir()
    (here / "docs" / "deep" / "well.txt").write_text("Water.", encoding="utf-8")
    nodekin("index", "docs")
    (here / "docs" / "deep" / "sea.txt").write_text("Salt water.", encoding="utf-8")
    ran = nodekin("index", "docs/deep", "--json")
    assert (ran.status, ran.json["added"]) == (0, ["docs/deep/sea.txt"])
    assert nodekin("status", "--json").json["sources"] == [str(here / "docs")]
    assert "holds" in nodekin("index", ".").err
    assert nodekin("index", ".", "--rebuild").status == 0


def test_a_source_that_is_gone_empties_nothing(nodekin, here):
    nodekin("index", "docs")
    (here / "docs").rename(here / "elsewhere")
    ran = nodekin("index")
    assert ran.status == 5
    assert "is missing" in ran.err
    assert nodekin("search", "Yangtze").status == 0


def test_an_empty_folder_gives_nothing(nodekin, here):
    (here / "empty").mkdir()
    ran = nodekin("index", "empty")
    assert ran.status == 1
    assert "0 documents" in ran.out


def test_an_embedding_model_that_is_not_there_changes_nothing(nodekin, here):
    ran = nodekin("index", "docs", "--embed", "bge-m3")
    assert ran.status == 4
    assert "OPENAI_BASE_URL" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (here / ".nodekin").exists()


def test_no_folder_and_no_index(nodekin):
    ran = nodekin("index")
    assert ran.status == 3
    assert "there is no index" in ran.err


def test_an_index_of_an_earlier_version_is_made_anew_and_says_so(nodekin, here, monkeypatch):
    (here / "docs" / "steps.md").write_text("Do it so:\n\n    boil(water)\n", encoding="utf-8")
    with monkeypatch.context() as earlier:
        splitter = "nodekin.adapters.cli.workspace.PassageSplitter"
        earlier.setattr(splitter, lambda text: text.split(":"))
        nodekin("index", "docs")
        (result,) = nodekin("search", "boil", "--json").json["results"]
        assert result["text"].strip() == "boil(water)"
    ran = nodekin("search", "boil", "--json")
    (result,) = ran.json["results"]
    assert result["text"] == "Do it so:\n\n    boil(water)"
    assert "nodekin: building passage and sentence of 4 documents: the index is of an" in ran.err
    assert nodekin("search", "boil").err == ""
    assert nodekin("index", "--json").json["groups"]["passage"] == 4
