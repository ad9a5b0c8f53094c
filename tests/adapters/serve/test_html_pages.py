"""What the page shows of questions, answers and results."""

import re

import pytest
from support.page_client import Client, found, text_of

from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document, ModelError, NodeGraph
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever

MARK = re.compile(r"<mark[^>]*>(.*?)</mark>", re.S)


def answers(prompt: str) -> str:
    """Play a model."""
    return "Black tea is **fermented** [1], “not smoked” [1]."


# Ask


def test_start_page_names_corpus_size_and_examples(client) -> None:
    start = client.get("/")
    assert "Tea & <b>rivers</b> Documents: 5" in text_of(start)
    questions = re.findall(r'name="question" value="([^"]+)"', start.text)
    assert questions == [f"What is said about “{tea} tea”?" for tea in ("Green", "Black")]
    assert "Black tea is fermented" in text_of(client.ask(questions[1]))
    unnamed = NodeGraph(progress=False)
    unnamed.add(["Tea.", "Coffee."])
    assert "What is said" not in Client(PageApp(unnamed)).get("/").text


def test_ask_without_model_shows_passages(client) -> None:
    answer = client.ask("Is black tea fermented?")
    assert found(answer)[0] == "tea/black.md"
    assert "Passages (2)" in text_of(answer)
    assert re.findall(r'id="source-(\d)"', answer.text) == ["1", "2"]
    assert "no language model" in text_of(answer)


def test_answer_has_text_sources_citations_and_quotations(retriever) -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return answers(prompt)

    answer = Client(PageApp(retriever, model)).ask(
        "And <b>black</b> tea?", [("Tea?", "A *drink*.")]
    )
    live, final = answer.text.split('<div class="live"')[1].split('<div class="answer"')
    assert "Black tea is **fermented** [1]" in live
    assert '<strong>fermented</strong> <a class="citation" href="#source-1">1</a>' in final
    assert '<li id="source-1" data-document="tea/black.md">' in final
    cited, rest = final.split("</details>", 1)
    assert '<details class="sources" open><summary>Sources (1)</summary>' in cited
    count = len(found(answer)) - 1
    assert f'<details class="sources"><summary>+ {count} more read, not cited</summary>' in rest
    assert rest.count('<li id="source-') == count
    assert re.search(
        r'<span class="chip not_found">in no source</span> <q[^>]*>not smoked</q>', final
    )
    assert "<em>drink</em>" in answer.text
    assert any("Tea?" in prompt for prompt in prompts)
    kept = re.findall(r'name="history" value="([^"]*)"', answer.text)
    assert len(kept) == 2  # the second form follows the complete answer
    assert "fermented" in kept[1]


def test_exact_quotation_links_to_its_place(retriever) -> None:
    client = Client(PageApp(retriever, lambda prompt: "It is “fermented” [1]."))
    answer = client.ask("Is black tea fermented?")
    (url,) = re.findall(r'class="chip exact">.*?href="([^"]+)"', answer.text)
    assert MARK.findall(client.get(url.replace("&amp;", "&")).text) == ["fermented"]


@pytest.mark.parametrize("model", [None, answers])
def test_min_score_drops_lower_scores_of_known_range(retriever, model) -> None:
    client = Client(PageApp(retriever, model, min_score=0.9))
    assert "results below 0.9 are left out" in text_of(client.get("/"))
    question = "Who sold black tea to the sailors of the king?"
    assert found(client.ask(question)) == []
    words = Retriever(retriever.graph, "sentence", target="passage")  # whose scores have no end
    assert found(Client(PageApp(words, model, min_score=0.9)).ask(question))


def test_model_error_is_shown_with_passages(retriever) -> None:
    def model(prompt: str) -> str:
        raise ModelError("the model is on <holiday>")

    answer = Client(PageApp(retriever, model)).ask("Tea?")
    assert "No answer: " in text_of(answer)
    assert "on <holiday>" in text_of(answer)
    assert found(answer)


def test_query_engine_keeps_its_settings(graph) -> None:
    engine = QueryEngine(FusionRetriever([Retriever(graph, "ROOT", top_k=2)]), answers, top_k=1)
    client = Client(PageApp(engine, title="Teas"))
    assert found(client.ask("How is green tea made?")) == ["tea/green.md"]
    assert found(client.get("/search", query="green tea"))[0] == "tea/green.md"
    assert len(found(client.get("/documents"))) == 5


def test_external_retriever_and_query_engine_are_shown() -> None:
    documents = pytest.importorskip("langchain_core.documents")
    runnables = pytest.importorskip("langchain_core.runnables")
    tea = [documents.Document("Tea is a drink.")]
    retrieve = runnables.RunnableLambda(lambda question: tea).invoke
    for model in (None, lambda prompt: "A drink [1]."):
        client = Client(PageApp(retrieve, model))
        assert "Tea is a drink." in text_of(client.get("/search", query="tea"))
        assert "Tea is a drink." in text_of(client.ask("tea?"))
    assert "Documents: 0" in text_of(client.get("/"))
    core = pytest.importorskip("llama_index.core")
    models = pytest.importorskip("llama_index.core.llms")
    index = core.SummaryIndex.from_documents([core.Document(text="Green tea is steamed.")])
    client = Client(PageApp(index.as_query_engine(llm=models.MockLLM()).query))
    for answer in (client.get("/search", query="How is it made?"), client.ask("How is it made?")):
        assert "Query: How is it made?" in text_of(answer)  # the model repeats its prompt


# Search


def test_search_without_query_shows_the_form(client) -> None:
    shown = client.get("/search")
    assert (shown.status_code, found(shown)) == (200, [])
    assert 'name="query"' in shown.text


def test_result_has_place_mark_and_folded_evidence(graph) -> None:
    client = Client(PageApp(Retriever(graph, "sentence", target="passage")))
    answer = client.get("/search", query="fermented")
    assert found(answer) == ["tea/black.md"]
    assert MARK.findall(answer.text) == ["Black tea is fermented."]
    shown, evidence = answer.text.split("<details>")
    assert "bm25" not in shown
    for part in ("searched for “fermented”", "matching sentence", "bm25", "Black tea is"):
        assert part in evidence
    assert "…" not in shown
    graph.add("Kettles boil. They sing.")  # the match is at the start
    assert MARK.findall(client.get("/search", query="boil").text) == ["Kettles boil."]
    assert "匹配的句子" in client.get("/search", query="fermented", lang="zh").text


def test_skipped_files_and_errors_are_chinese_on_chinese_page(tmp_path) -> None:
    (tmp_path / "tea.md").write_text("Green tea is steamed.")
    (tmp_path / "empty.txt").write_text("")
    client = Client(PageApp(NodeGraph(tmp_path, progress=False)))
    assert "跳过了 1 个文件：空文件 1 个" in text_of(
        client.get("/search", query="zebra", lang="zh")
    )
    assert "empty.txt 是空文件" in text_of(client.get("/documents", lang="zh"))
    assert "empty.txt is empty" in text_of(client.get("/documents", lang="en"))


def test_reasons_are_the_best_match_of_each_kind(graph) -> None:
    shown = Client(PageApp(graph)).get("/search", query="black tea is fermented by oxygen")
    reasons = [part.count("<li") for part in re.findall(r"<ul>(.*?)</ul>", shown.text, re.S)]
    assert reasons
    assert max(reasons) <= 3
    first = re.findall(r"<ul>(.*?)</ul>", shown.text, re.S)[0]
    assert first.count("matching sentence") == first.count("matching passage") == 1


def test_records_of_a_file_are_folded_below_the_best(tmp_path) -> None:
    lines = [f'{{"text": "The kettle holds {number} cups."}}' for number in range(3)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "note.md").write_text("A kettle and its many cups of tea.", encoding="utf-8")
    with NodeGraph(tmp_path, progress=False) as graph:
        shown = Client(PageApp(graph)).get("/search", query="kettle cups")
    assert "Results: 4" in text_of(shown)
    assert "+ 2 more from this file" in text_of(shown)
    folded = shown.text.split("+ 2 more from this file")[1].split("</ol>")[0]
    assert folded.count("log.jsonl#") >= 2
    assert "note.md" not in folded
    assert len(found(shown)) == 4


def test_text_with_lone_surrogate_is_shown(client, graph) -> None:
    graph.add("Half a \ud83c character.")
    assert "Half a ?" in text_of(client.get("/search", query="half character"))


ROW = "| black | 95 degrees |"


@pytest.mark.parametrize(
    ("hit", "before"),
    [
        ("Kettles boil.", "<p>…</p>\n<p><mark"),
        ("A cup is small.", "<p>…</p>\n<p>"),
        (ROW, "<p>…</p>\n<table>\n<thead>\n<tr>\n<th>tea</th>\n<th>water</th>"),
    ],
)
def test_matching_text_is_in_the_first_lines(graph, hit, before) -> None:
    filling = f"{'y' * 999}. Kettles boil.\n\nA cup is small.\n\n{'z ' * 200}\n\n"
    text = f"{filling}| tea | water |\n|---|---|\n| green | 80 degrees |\n{ROW}\n"
    graph.add(Document(text, id="long.md"))
    graph.create_node_group("part", lambda text: [hit] if hit in text else [])
    answer = Client(PageApp(Retriever(graph, "part", target="ROOT"))).get("/search", query=hit)
    shown = answer.text.split('<div class="passage" dir="auto">')[1]
    assert shown.startswith(before)
    assert "".join(MARK.findall(shown)) in hit.replace(" | ", "").replace("| ", "").replace(
        " |", ""
    )


@pytest.mark.parametrize("break_", [" ", "\n", "\n\n"])
def test_card_is_cut_at_whole_sentences(graph, break_) -> None:
    sentences = [f"Kettle {n} of the long list boils water for tea." for n in range(200)]
    hit = sentences[100]
    graph.add(Document(break_.join(sentences), id="long.md"))
    graph.create_node_group("part", lambda text: [hit] if hit in text else [])
    answer = Client(PageApp(Retriever(graph, "part", target="ROOT"))).get("/search", query=hit)
    passage = answer.text.split('<div class="passage" dir="auto">')[1].partition("</div>")[0]
    shown = " ".join(re.sub(r"<[^>]*>", " ", passage).replace("…", " ").split())
    assert hit in shown
    assert 1_500 < len(shown) < 2_700
    for part in shown.removesuffix(".").split(". "):
        assert f"{part}." in sentences


def test_file_name_comes_before_title_folder_and_place(client, graph) -> None:
    for folder in ("guide", "guide/old"):
        path = f"{folder}/README.md"
        graph.add(Document(f"Kettles boil in {folder}.", {"file_name": "README.md"}, id=path))
    about = {"page_unit": "page", "file_name": "a.pdf", "title": "7方"}
    graph.add(Document("# One\n\n\f\n\n# Two\n\nKettles sing.", about, id="b/a.pdf"))
    shown = text_of(client.get("/search", query="kettles"))
    for part in ("README.md guide ", "README.md guide/old ", "a.pdf 7方 · b · page 2, Two"):
        assert part in shown
    assert "第 2 页, Two" in text_of(client.get("/search", query="kettles", lang="zh"))
    answer = client.ask("Which kettles sing?")
    assert "a.pdf 7方 · b · page 2, Two" in text_of(answer)  # the place of the match
    assert "<mark>Kettles sing.</mark>" in answer.text
