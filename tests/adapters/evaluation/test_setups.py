import pytest

from nodekin.adapters.evaluation.setup_session import load_setup
from nodekin.nodegraph import Document, NodeGraph

TOML = """
default = "sentences"
[graph]
source = "docs"
[groups.sentence]
transform = "split_sentences"
[setups.documents]
type = "Retriever"
group_name = "ROOT"
[setups.sentences]
type = "Retriever"
group_name = "sentence"
target = "ROOT"
top_k = 1
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.md").write_text("Green tea is not fermented. Black tea is.")
    (tmp_path / "docs" / "river.md").write_text("The Rhine is a river.")
    path = tmp_path / "setups.toml"
    path.write_text(TOML)
    return path


def _documents(retriever, query="Which tea is black?"):
    return [result.node.document_id or result.node.id for result in retriever.retrieve(query)]


def test_the_sources_of_the_file_are_below_its_own_folder(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert _documents(load_setup(path)) == ["docs/tea.md"]
    assert load_setup(path, "documents").group_name == "ROOT"


def test_documents_or_a_graph_of_ones_own_come_before_the_file_s(path):
    documents = [Document("Black tea is black.", id="own")]
    assert _documents(load_setup(path, documents=documents)) == ["own"]
    graph = NodeGraph(progress=False)
    graph.add(documents)
    assert _documents(load_setup(path, graph=graph)) == ["own"]
    assert "sentence" in graph.groups
    with pytest.raises(ValueError, match="not both"):
        load_setup(path, graph=graph, documents=documents)


def test_embeddings_are_named_or_given(path):
    text = TOML.replace('source = "docs"', 'source = "docs"\nembed = "letters"')
    path.write_text(
        text + '\n[setups.vectors]\ntype = "Retriever"\ngroup_name = "sentence"\n'
        'similarity = "cosine"\ntop_k = 1\n'
    )

    def letters(texts):
        return [[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    found = load_setup(path, "vectors", models={"letters": letters}).retrieve("black tea")
    assert found[0].node.text == "Black tea is."


def test_a_graph_in_a_store_is_read_again(path):
    path.write_text(TOML.replace('source = "docs"', 'source = "docs"\nstore = "graph.sqlite"'))
    retriever = load_setup(path)
    assert _documents(retriever) == ["docs/tea.md"]
    retriever.graphs[0].close()
    assert (path.parent / "graph.sqlite").exists()
    assert _documents(load_setup(path)) == ["docs/tea.md"]


def test_nothing_to_search_is_an_error(path):
    path.write_text(TOML.replace('source = "docs"', ""))
    with pytest.raises(ValueError, match="no documents to search: name a folder as source"):
        load_setup(path)
    with pytest.raises(ValueError, match="no set-up 'sentence'; there are 'sentences'"):
        load_setup(path, "sentence", documents=["tea"])
