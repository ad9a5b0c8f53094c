"""``nodekin search`` and its filters."""

import pytest
from rich.cells import cell_len
from support.sample_files import pdf_of

from nodekin.adapters.cli.search_command import parse_conditions
from nodekin.nodegraph import Node, PassageSplitter
from nodekin.retrievers.filters import parse_filters


def test_chinese_result_has_line(indexed):
    ran = indexed("search", "谁写了茶经")
    assert ran.out.splitlines()[0].startswith("1. docs/茶.md:3  ")


def test_search_in_folder_without_index(nodekin, here):
    ran = nodekin("search", "Yangtze", "--in", "docs", "--json")
    assert ran.documents == ["docs/river.txt"]
    assert not (here / ".nodekin").exists()


@pytest.mark.parametrize(
    ("conditions", "documents"),
    [
        (["file_name=tea.md"], {"docs/tea.md"}),
        (["file_name=tea.md", "file_name=茶.md"], {"docs/tea.md", "docs/茶.md"}),
        (['{"file_size": {"gte": 100000}}'], set()),
        (['{"file_size": {"gt": 1}}', "file_type=text/markdown"], {"docs/tea.md", "docs/茶.md"}),
        (['{"document.id": "docs/tea.md"}'], {"docs/tea.md"}),
    ],
)
def test_filter_selects_documents(indexed, conditions, documents):
    given = [part for condition in conditions for part in ("--filter", condition)]
    assert set(indexed("search", "tea 茶", "--json", *given).documents) == documents


def test_filter_with_unknown_field_warns(indexed):
    ran = indexed("search", "tea", "--filter", "author=Lu Yu")
    assert ran.status == 1
    assert (
        "a filter compares the metadata field 'author', which no searched node has; known fields:"
        in ran.err
    )


def test_nothing_found_has_status_1(indexed):
    ran = indexed("search", "zebra")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "nodekin: nothing found for 'zebra' in 3 documents\n"
    assert indexed("search", "zebra", "--json").json["results"] == []
    assert indexed("search", "zebra", "-q").err == ""
    for query in ("", " \n"):
        ran = indexed("search", query)
        assert (ran.status, ran.err) == (1, "nodekin: the query is empty; say what to look for\n")


def test_nothing_found_names_skipped_files(indexed, here):
    (here / "docs" / "locked.docx").write_bytes(LOCKED)
    (here / "docs" / "scan.pdf").write_bytes(pdf_of(b"/I Do"))
    ran = indexed("index")
    if "have no reader (.docx 1" in ran.err:
        pytest.skip("the readers of the component files are not installed")
    skipped = (
        "2 files were skipped: 1 encrypted Office file (locked.docx): save without a password; "
        "1 scanned PDF (scan.pdf): read with: nodekin index --ocr"
    )
    assert ran.out.startswith("3 documents in ")
    assert "2 files left out" in ran.out
    assert "docs/locked.docx is encrypted: save it without a password" in ran.err
    assert "docs/scan.pdf has no text" in ran.err
    assert "files were skipped" not in ran.err
    assert indexed("index").err == f"nodekin: {skipped}\n"
    ran = indexed("search", "zebra")
    assert ran.err == f"nodekin: nothing found for 'zebra' in 3 documents; {skipped}\n"
    assert indexed("search", "tea").err == ""


LOCKED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le")


def test_dash_reads_query_from_stdin(indexed):
    assert indexed("search", "-", "--json", input="Yangtze\n").documents == ["docs/river.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tea", "--filter", "year"], "FIELD=VALUE"),
        (["tea", "--filter", '{"year": '], "FIELD=VALUE"),
        (["tea", "--filter", "{year: 2003}"], "FIELD=VALUE"),
        (["tea", "--filter", "{'year': 2003}"], "FIELD=VALUE"),
        (["tea", "--filter", '{"year": 2003,}'], "FIELD=VALUE"),
        (["tea", "--filter", '{"a":' * 100_000], "FIELD=VALUE"),
        (["tea", "--filter", '{"and":[' * 300 + '{"a":1}' + "]}" * 300], "levels"),
        (["tea", "-k", "0"], "top-k"),
        ([], "QUERY"),
    ],
)
def test_wrong_options_are_one_line(indexed, arguments, said):
    ran = indexed("search", *arguments)
    assert ran.status == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.out == ""


def test_filter_with_nested_value_is_text(indexed):
    assert indexed("search", "tea", "--filter", f"author={'[' * 100_000}").status == 1


def test_search_with_failing_model_compares_words(nodekin, embedding):
    embedding()
    nodekin("index", "docs", "--embed", "letters")
    embedding(error=OSError("no server today"))
    ran = nodekin("search", "Yangtze", "--json")
    assert ran.documents == ["docs/river.txt"]
    assert "no server today" in ran.err


def test_words_of_query_need_no_quotes(indexed):
    assert indexed("search", "green", "tea", "--json").json["query"] == "green tea"
    with_options = indexed("search", "-k", "1", "black", "tea", "--json", "is", "fermented").json
    assert (with_options["query"], with_options["count"]) == ("black tea is fermented", 1)
    assert indexed("search").status == 2


def test_search_reports_failures_of_groups(nodekin, monkeypatch):
    split = PassageSplitter.parts

    def raising(self, text, *more):
        if "Yangtze" in text:
            raise RuntimeError("the server is gone")
        return split(self, text, *more)

    monkeypatch.setattr(PassageSplitter, "parts", raising)
    ran = nodekin("search", "steamed tea", "--in", "docs", "--quiet")
    assert (ran.status, ran.out.startswith("1. docs/tea.md")) == (0, True)
    assert ran.err.startswith("nodekin: 1 document failed in the group 'passage'; the first error")
    assert "the server is gone" in ran.err


def test_newer_files_are_reported(indexed, here):
    assert indexed("search", "tea").err == ""
    (here / "docs" / "new.txt").write_text("Coffee.")
    (here / "docs" / ".hidden.txt").write_text("Milk.")
    ran = indexed("search", "tea")
    assert ran.err == "nodekin: files newer than the index: 1; nodekin index reads them\n"
    assert indexed("status", "--json").json["newer_files"] == 1
    assert "files newer than the index: 1" in indexed("status").out
    indexed("index")
    assert indexed("search", "tea").err == ""


def test_options_have_environment_variables(nodekin, monkeypatch):
    monkeypatch.setenv("NODEKIN_SEARCH_TOP_K", "1")
    monkeypatch.setenv("NODEKIN_SEARCH_IN", "docs")
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1
    assert nodekin("search", "steamed 陆羽", "-k", "2", "--json").json["count"] == 2
    monkeypatch.setenv("NODEKIN_SEARCH_TOP_K", "some")
    ran = nodekin("search", "tea")
    assert (ran.status, "'some' is not a valid integer" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("conditions", "value", "good"),
    [
        (["f=2020"], 2020, True),
        (["f=2020"], "2020", True),
        (["f = 陆羽"], "陆羽", True),
        (["f=http://a?b=c"], "http://a?b=c", True),
        (["f=true"], True, True),
        (["f=nan"], "nan", True),
        (["f=1", "f=2"], 2, True),
        (['{"f": {"like": "t%"}}'], "Tea", True),
        (['{"f": {"any": ["tea", "ice"]}}', "f=x"], ["ice", "x"], True),
        ([], "tea", True),
    ],
)
def test_parse_conditions_decides(conditions, value, good):
    assert parse_filters(parse_conditions(conditions)).matches(Node("", {"f": value})) is good


@pytest.mark.parametrize("given", ["year", "=2", "year=", " = ", "", "{"])
def test_invalid_condition_raises(given):
    with pytest.raises(ValueError, match=r"filter|Expecting"):
        parse_conditions([given])


def test_exact_leaves_out_other_results(nodekin, here):
    (here / "teas").mkdir()
    (here / "teas" / "apart.txt").write_text("The tea is green, and tea is tea.", "utf-8")
    (here / "teas" / "together.txt").write_text("We serve Green-Tea and water.", "utf-8")
    search = ("search", "green", "tea", "--in", "teas")
    assert len(nodekin(*search, "--json").documents) == 2
    assert nodekin(*search, "--exact", "--json").documents == ["teas/together.txt"]
    ran = nodekin("search", "tea green", "--in", "teas", "--exact", "--json")
    assert len(ran.documents) == 2
    assert 'no result has "tea green"' in ran.err


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("file_name=coffee.md", "the filter excludes all 3 documents; check its field and value"),
        ("author=Lu", "the metadata field 'author', which no searched node has; known fields:"),
        ('{"not": {"or": [{"author": "Lu"}, {"file_size": {"gte": 0}}]}}', "field 'author', which"),
        ("file_name=tea.md", "nothing found for 'zebra' in 1 of 3 documents, which match"),
    ],
)
def test_filter_without_results_is_explained(indexed, condition, said):
    ran = indexed("search", "zebra", "--filter", condition)
    assert ran.status == 1
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_long_chinese_passage_is_printed_in_full_lines(nodekin, here, monkeypatch):
    sentence = "法国传教士谭卫道（Armand David）在四川见到了大熊猫，并且记下了它的样子。"
    (here / "docs" / "long.md").write_text(sentence * 12, encoding="utf-8")
    ran = nodekin("search", "大熊猫 传教士", "--in", "docs", "-k", "1")
    _, *rows = ran.out.rstrip().splitlines()
    assert len(rows) == 5
    assert all(70 <= cell_len(row) <= 79 for row in rows[:-1])
    assert rows[-1].endswith(("。", "…"))


def test_warning_of_a_search_is_printed_once(indexed):
    ran = indexed("search", "green tea", "--filter", "author=Lu")
    assert ran.err.count("which no searched node has") == 1
