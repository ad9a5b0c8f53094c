"""The six corpus tools: exact places, budgets, filters and errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    KeywordFilter,
    RerankRetriever,
    Retriever,
    restrict,
)
from nodekin.retrievers.corpus_tools.tool_output import ToolError
from nodekin.retrievers.corpus_tools.toolset import CorpusTools

BRAND = """# Brand

Brand is a play in verse by Henrik Ibsen. It was written in 1865.

## Plot

Brand is a priest who wants all or nothing. {filler}

## Reception

The play was a great success in Copenhagen.
""".format(filler="He climbs the mountains with his people. " * 40)

IBSEN = "Henrik Ibsen was born in Skien. He wrote plays, and lived in Rome for years."

TEA = "# 茶\n\n陆羽写了《茶经》。他生活在唐代。\n\n## 绿茶\n\n绿茶不经过发酵，所以是绿的。"


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document(BRAND, {"title": "Brand (play)", "year": 1865}, id="plays/brand.md"),
            Document(IBSEN, {"title": "Henrik Ibsen", "year": 1828}, id="people/ibsen.txt"),
            Document(TEA, {"title": "茶", "year": 780}, id="茶/茶.md"),
        ]
    )
    return graph


@pytest.fixture(scope="module")
def tools(graph) -> CorpusTools:
    return CorpusTools(graph)


def text_of(graph, entry) -> str:
    return graph.node(entry["document"]).text[entry["start"] : entry["end"]]


# search


def test_search_returns_match_with_exact_span(graph, tools) -> None:
    output = tools.call("search", {"query": "Where was the play a success?"})
    entry = output.entries[0]
    assert entry["document"] == "plays/brand.md"
    assert (entry["headings"], entry["line"]) == (["Brand", "Reception"], 11)  # of the best match
    assert "great success in Copenhagen" in text_of(graph, entry)
    assert "bm25 of passage sentence" in entry["why"]
    first, body = output.text.split("\n", 1)
    assert first.startswith(
        f"plays/brand.md [{entry['start']}:{entry['end']}] Brand (play) > Brand"
    )
    assert "great success in Copenhagen" in body


def test_linked_passage_is_cut_around_linking_name() -> None:
    rain = "It rained on the mountains for weeks and weeks. " * 8
    graph = NodeGraph(progress=False)
    graph.add(Document("Brand was written by Henrik Ibsen.", {"title": "Brand (play)"}))
    letters = f"{rain}The letters of Henrik Ibsen were kept there. {rain}"
    graph.add(Document(letters, {"title": "Museum of Skien"}))
    tools = CorpusTools(graph, DefaultRetriever(graph, follow_links=True), max_tokens=150)
    output = tools.call("search", {"query": "Who wrote Brand?"})
    brand, museum = output.entries
    assert (museum["names"], museum["whole"]) == (["Henrik Ibsen"], False)
    assert "The letters of Henrik Ibsen were kept there." in museum["text"]
    assert "Museum of Skien (also mentions Henrik Ibsen)\n| " in output.text
    assert "names" not in brand


def test_excerpt_contains_the_matching_last_sentence() -> None:
    rain = "It rained on the mountains for weeks and weeks. " * 16
    graph = NodeGraph(progress=False)
    graph.add([f"{rain}The yak slept.", "A goat slept."])
    yak, _ = CorpusTools(graph, max_tokens=100).call("search", {"query": "yak slept"}).entries
    assert (yak["text"], yak["whole"]) == ("… The yak slept.", False)


@pytest.mark.parametrize("budget", [50, 199, 200])  # parts of passages, windows
def test_truncated_search_explains_how_to_continue(tools, budget) -> None:
    whole = tools.call("search", {"query": "play in verse by Ibsen"}, max_tokens=2000)
    seen, skip = [], 0
    for _ in range(60):
        output = tools.call(
            "search", {"query": "play in verse by Ibsen", "skip": skip}, max_tokens=budget
        )
        if not output.entries:
            break
        seen += [(e["document"], *part) for e in output.entries for part in e["parts"]]
        skip += len(output.entries)
        assert output.text.endswith(f" more: search with skip={skip}.") == bool(output.left_out)
    assert {document for document, *_ in seen} == {e["document"] for e in whole.entries}
    places = [(document, start) for document, start, _ in seen]
    assert (("plays/brand.md", 1771) in places) == (budget < 200)  # a sentence alone
    for document, start, end in seen:  # nothing twice
        assert sum(d == document and a < end and start < b for d, a, b in seen) == 1
    assert output.text.startswith("Nothing more was found")


OLD = {"year": {"lt": 1850, "gt": 1000}}


@pytest.mark.parametrize(
    "make",
    [
        lambda graph: CorpusTools(graph, filters=OLD),
        lambda graph: CorpusTools(graph, restrict(Retriever(graph, "ROOT"), OLD)),
        lambda graph: CorpusTools(
            graph, RerankRetriever(restrict(Retriever(graph, "ROOT"), OLD), KeywordFilter())
        ),
    ],
)
def test_filters_and_restrictions_apply_to_all_tools(graph, make) -> None:
    tools, ibsen = make(graph), ["people/ibsen.txt"]
    for name, arguments in (
        ("outline", {}),
        ("grep", {"pattern": "Ibsen"}),
        ("search", {"query": "Ibsen plays"}),
    ):
        assert [e["document"] for e in tools.call(name, arguments).entries] == ibsen
    assert not tools.call("search", {"query": "Ibsen plays", "filters": {"year": 1865}}).entries
    assert tools.call("cite", {"draft": '"He wrote plays"'}).entries[0]["status"] == "exact"
    (cited,) = tools.call("cite", {"draft": "Brand is a play in verse by Henrik Ibsen"}).entries
    assert cited["status"] == "not_found"
    assert {entry["document"] for entry in cited["nearest"]} <= {*ibsen}
    for name in ("plays/brand.md", "茶/茶.md"):
        with pytest.raises(ToolError, match="unknown document") as error:
            tools.call("read", {"document": name})
        assert str(error.value).count(name) == 1
    with pytest.raises(ValueError, match="only known in a call"):
        CorpusTools(graph, restrict(Retriever(graph, "ROOT"), lambda: {"year": 780}))


# grep


def test_grep_of_folder_continues_with_skip(tools) -> None:
    everywhere = tools.call("grep", {"pattern": "mountains"}, max_tokens=120)
    assert everywhere.left_out
    assert f"grep with skip={len(everywhere.entries)}" in everywhere.text
    below = tools.call("grep", {"pattern": "mountains", "document": "people"})
    assert not below.entries
    assert "does not occur below 'people'" in below.text


def test_grep_shows_each_line_once() -> None:
    graph = NodeGraph(progress=False)
    text = "Green tea and black tea.\nNo coffee.\nTea " + "with milk and sugar " * 20 + "or tea"
    graph.add(Document(text, {"title": "Drinks"}, id="a"))
    output = CorpusTools(graph).call("grep", {"pattern": "tea"})
    places = [(entry["start"], entry["end"]) for entry in output.entries]
    assert places == [(6, 9), (36, 39), (443, 446)]
    assert all(text[slice(*place)].lower() == "tea" for place in places)
    lines = [line for line in output.text.splitlines() if not line.startswith("| ")]
    assert [line for line in lines if line] == [
        "a [6:9] Drinks (line 1)",
        "a [36:39] Drinks (line 3)",
        "a [443:446] Drinks (line 3)",
    ]
    shown = [line[:3] for line in output.text.splitlines() if line.startswith("| ")]
    assert shown == ["| G", "| T", "| …"]


# outline and read


def test_outline_lists_documents_or_headings(graph, tools) -> None:
    documents = tools.call("outline").entries
    assert [entry["document"] for entry in documents] == graph.reader.document_ids()
    assert [e["document"] for e in tools.call("outline", {"document": "plays"}).entries] == [
        "plays/brand.md"
    ]
    headings = tools.call("outline", {"document": "brand.md"}).entries
    assert [(e["level"], e["heading"]) for e in headings] == [
        (1, "Brand"),
        (2, "Plot"),
        (2, "Reception"),
    ]
    assert text_of(graph, headings[1]).startswith("## Plot\n\nBrand is a priest")
    first = tools.call("outline", {"document": "brand.md"}, max_tokens=1)
    assert (len(first.entries), first.left_out) == (1, 2)
    assert "outline with skip=1" in first.text
    (entry,) = tools.call("outline", {"document": "people/ibsen.txt"}).entries
    assert entry["heading"].startswith("Henrik Ibsen was born in Skien")


def test_read_continues_to_end_of_document(graph, tools) -> None:
    text, start = "", 0
    for _ in range(50):
        output = tools.call(
            "read", {"document": "brand.md", "start": start, "end": 10**6}, max_tokens=60
        )
        text += output.entries[0]["text"]
        start = output.entries[0]["end"]
        assert output.tokens < 120
        if not output.left_out:
            break
        assert f"read with start={start}" in output.text
    assert text == BRAND
    at = BRAND.index("great success")
    (entry,) = tools.call("read", {"document": "brand.md", "start": at}).entries
    assert entry["text"] == "great success in Copenhagen."


# arguments


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("find", {}, "unknown tool 'find'; known: search, grep, outline, read, related"),
        ("search", {}, "search needs query: A question or key words"),
        ("search", {"q": "tea"}, "no argument 'q'; it has 'query'"),
        ("search", {"query": " "}, "the query is empty"),
        ("search", {"query": 3}, "query of search must be of type string, got 3"),
        ("search", {"query": "tea", "skip": "many"}, "skip of search must be of type integer"),
        ("search", {"query": "tea", "filters": {"year": {"above": 3}}}, "above"),
        ("read", {"document": "ibsen.md"}, r"unknown document 'ibsen.md'; known: 'people/ibsen"),
        (
            "read",
            {"document": "ibsen.txt", "start": 5, "end": 3},
            "must be from 0 to 76 in ",
        ),
        ("grep", {"pattern": ""}, "the pattern is empty"),
        (
            "grep",
            {"pattern": "Skien", "skip": 5},
            "skip must be below 1, the number of matches, got 5",
        ),
        ("search", {"query": "a" * 20_001}, "query of search must be of 20,000 characters"),
        (
            "search",
            {"query": "tea", "skip": 10**9},
            "skip of search must be 1,000 or less",
        ),
        ("outline", {"document": "nothing/"}, "no document is below 'nothing/'"),
        ("outline", {"skip": 3}, "skip must be below 3, the number of documents, got 3"),
        ("cite", {"draft": "“…”"}, "must contain words"),
    ],
)
def test_invalid_argument_raises_with_remedy(tools, name, arguments, message) -> None:
    with pytest.raises(ToolError, match=message):
        tools.call(name, arguments)


def test_numeric_strings_and_nulls_are_accepted(tools) -> None:
    arguments = {"document": "ibsen.txt", "start": "7", "end": 12.0}
    assert tools.call("read", arguments).entries[0]["text"] == "Ibsen"
    assert tools.call("outline", {"document": None, "skip": None}).entries


def test_cite_returns_spans_of_quotations(graph, tools) -> None:
    draft = (
        "It is “a play in verse” [3]. He “was Born … Skien”, “in Oslo, in a hut”, "
        "“lived in Rome for years. Henrik Ibsen was born in Skien”, 「绿茶不经过发酵」, “whales”."
    )
    output = tools.call("cite", {"draft": draft})
    exact, elided, invented, stitched, chinese, missing = output.entries
    assert [entry["status"] for entry in output.entries] == [
        *("exact", "shortened", "not_found", "not_found", "exact", "not_found")
    ]
    for entry in (exact, elided, chinese):
        assert all(text_of(graph, span) == span["text"] for span in entry["spans"])
    (span,) = exact["spans"]
    assert (span["document"], span["start"], span["end"]) == ("plays/brand.md", 18, 33)
    assert (span["title"], span["headings"], span["line"]) == ("Brand (play)", ["Brand"], 3)
    assert [span["text"] for span in elided["spans"]] == ["was born", "Skien"]
    assert invented["nearest"] == missing["nearest"] == []
    assert stitched["nearest"]
    assert "“a play in verse”: exact, plays/brand.md [18:33] Brand (play)" in output.text
    one = {"draft": "he wrote plays, and lived in Rome", "document": "ibsen.txt"}
    assert tools.call("cite", one).entries[0]["status"] == "same_letters"
    less = tools.call("cite", {"draft": draft}, max_tokens=50)
    assert f"cite with skip={len(less.entries)}" in less.text
    (last,) = tools.call("cite", {"draft": draft, "skip": 5}).entries
    assert last["quote"] == "whales"


VALUES = st.one_of(
    st.sampled_from([None, True]),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.lists(st.integers()),
)

ARGUMENTS = "query skip filters pattern document start end draft".split()


@given(
    st.sampled_from(["search", "grep", "outline", "read", "cite", "x"]),
    st.dictionaries(st.sampled_from(ARGUMENTS), VALUES),
)
def test_any_call_returns_output_or_tool_error(tools, name, arguments) -> None:
    try:
        output = tools.call(name, arguments)
    except ToolError:
        pass
    else:
        assert json.loads(json.dumps(output.to_dict()))["text"] == output.text
        assert output.tokens < 1500


def test_results_of_paged_files_contain_page() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("Tea is\n\n\fsteamed.\n\n\fOn a cup.", {"page_unit": "slide"}, id="deck"))
    tools = CorpusTools(graph)
    output = tools.call("grep", {"pattern": "steamed"})
    assert output.text.startswith("deck [9:16] slide 2 (line 3)")
    assert output.entries[0]["pages"] == "slide 2"


def test_related_returns_documents_linked_by_names(tools) -> None:
    output = tools.call("related", {"document": "people/ibsen.txt"})
    assert [(e["document"], e["names"]) for e in output.entries] == [
        ("plays/brand.md", ["Henrik Ibsen"])
    ]
    assert "No name in this part" in tools.call("related", {"document": "茶.md"}).text
    with pytest.raises(ToolError, match="start must be below end"):
        tools.call("related", {"document": "茶.md", "start": 900})


def test_related_uses_names_and_passages_of_visible_documents() -> None:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document("A play by HENRIK IBSEN.", {"of": "b", "title": "HENRIK IBSEN"}, id="b"),
            Document("Brand is by Henrik Ibsen.", {"of": "a", "title": "Brand"}, id="brand"),
            Document("Peer is by Henrik Ibsen.", {"of": "a", "title": "Peer"}, id="peer"),
        ]
    )
    tools = CorpusTools(graph, filters={"of": "a"})
    (entry,) = tools.call("related", {"document": "brand"}).entries
    assert (entry["document"], entry["names"]) == ("peer", ["Henrik Ibsen"])


def test_texts_for_the_model(tools) -> None:
    documents = (
        "plays/brand.md (409 tokens) Brand (play)\npeople/ibsen.txt (18 tokens) Henrik Ibsen"
    )
    assert tools.call("outline").text == f"{documents}\n茶/茶.md (36 tokens)"
    assert tools.call("outline", {"document": "brand.md"}).text == (
        "- Brand [0:76] (20 tokens)\n  - Plot [76:1771] (374 tokens)\n"
        "  - Reception [1771:1829] (15 tokens)"
    )
    assert tools.call("read", {"document": "brand.md", "end": 19}).text == (
        "plays/brand.md [0:19] Brand (play) > Brand\n| # Brand\n|\n| Brand is a\n\n"
        "1,810 more characters: read with start=19."
    )
    end = {"document": "brand.md", "start": len(BRAND), "end": len(BRAND)}
    assert "more characters" not in tools.call("read", end).text
    text = tools.call("search", {"query": "priest who wants all"}, max_tokens=100).text
    assert text.endswith("> Brand > Plot\n| … Brand is a priest who wants all or nothing. …")


def test_related_puts_rare_names_first() -> None:
    graph = NodeGraph(progress=False)
    texts = {
        "a": "Ada Lovelace and Lu Yu met.",
        "b": "Lu Yu wrote a book.",
        "c": "Lu Yu drank tea.",
    }
    texts["d"] = "A letter of Ada Lovelace."
    graph.add([Document(text, {"title": f"Title {id}"}, id=id) for id, text in texts.items()])
    output = CorpusTools(graph).call("related", {"document": "a"})
    assert output.text == (
        "d [0:25] Title d\nalso mentions Ada Lovelace\nb [0:19] Title b\nalso mentions Lu Yu\n"
        "c [0:16] Title c\nalso mentions Lu Yu"
    )


def test_search_without_results_names_skipped_files(tmp_path):
    (tmp_path / "tea.md").write_text("Green tea.")
    (tmp_path / "secret.docx").write_bytes(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le")
    )
    graph = NodeGraph(tmp_path, progress=False)
    found = CorpusTools(graph).call("search", {"query": "zebra"})
    assert found.text.endswith(
        " 1 file was skipped: 1 encrypted Office file (secret.docx): save without a password."
    )
    restricted = CorpusTools(graph, filters={"tenant": "a"})
    assert "secret" not in restricted.call("search", {"query": "zebra"}).text
