"""Entities that passages are about and mention, and their links."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, TransformError
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor
from nodekin.nodegraph.extractors.entity_names import name_key
from nodekin.nodegraph.node import LinkedText


def entities(*texts: str, **settings: object) -> dict[str, list[str]]:
    """Return the entities of some texts, with the numbers of the passages."""
    nodes = [Node(text, id=str(at)) for at, text in enumerate(texts)]
    made: list[LinkedText] = EntityExtractor(**settings)(nodes)
    return {each.item.text: [node.id for node in each.to] for each in made}


@pytest.fixture(params=["memory", "file"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeGraph]:
    store = None if request.param == "memory" else tmp_path / "graph"
    with NodeGraph(store=store, progress=False) as graph:
        graph.add(
            [
                Document("Brand (play)\nBrand is a play by Henrik Ibsen.", id="brand"),
                Document("Henrik Ibsen\nIbsen was born in Skien.", id="ibsen"),
            ]
        )
        graph.create_node_group("entity", EntityExtractor(), scope="group")
        yield graph


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Beatles", "beatles"),
        ("Brand (play)", "BRAND"),
        ("Dvořák's", "Dvorak"),
        ("O’Neill", "O'Neill"),
        ("Johnnycake, West Virginia", "Johnnycake West Virginia"),
        ("《红楼梦》", "红楼梦"),
        ("Spider-Man", "spider man"),
    ],
)
def test_name_key_normalizes_spellings(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_name_key_keeps_single_article() -> None:
    assert name_key("The The") == "the"
    assert name_key("...") == ""


def test_entities_link_to_their_passages(graph: NodeGraph) -> None:
    found = {e.text: [node.id for node in graph.linked(e)] for e in graph.nodes("entity")}
    assert found == {
        "Brand (play)": ["brand"],
        "Henrik Ibsen": ["brand", "ibsen"],
        "Ibsen": ["brand", "ibsen"],
    }
    about = {e.text: list(e.own_metadata["about"]) for e in graph.nodes("entity")}
    assert about == {"Brand (play)": ["brand"], "Henrik Ibsen": ["ibsen"], "Ibsen": []}


def test_entities_follow_changes(graph: NodeGraph) -> None:
    graph.add(Document("Skien\nA town. Its theatre is named after Ibsen.", id="skien"))
    found = {e.text: [node.id for node in graph.linked(e)] for e in graph.nodes("entity")}
    assert found["Ibsen"] == ["brand", "ibsen", "skien"]
    assert found["Skien"] == ["ibsen", "skien"]
    graph.remove(["ibsen", "skien"])
    assert [e.text for e in graph.nodes("entity")] == ["Brand (play)"]


def test_first_word_counts_as_written_elsewhere() -> None:
    found = entities(
        "Many people went to Oslo. Oslo is cold, as many towns are.",
        "He saw many ships in Oslo. Many were there.",
        "Many ships.",
    )
    assert found == {"Oslo": ["0", "1"]}


def test_names_have_several_words() -> None:
    found = entities(
        "He read at the University of Oslo and at home.",
        "The University of Oslo, in Norway, is old.",
        "She met J. R. Tolkien of Norway in World War 2.",
        "World War 2 was hard for J. R. Tolkien too.",
    )
    assert {name: found[name] for name in ("University of Oslo", "J R Tolkien", "World War 2")} == {
        "University of Oslo": ["0", "1"],
        "J R Tolkien": ["2", "3"],
        "World War 2": ["2", "3"],
    }
    assert found["Norway"] == ["1", "2"]
    assert "University of Oslo and" not in found


def test_title_is_found_with_lowercase_words() -> None:
    found = entities("Crime and Punishment\nA novel.", "He had read Crime and Punishment twice.")
    assert found["Crime and Punishment"] == ["0", "1"]


def test_names_in_titles_are_found(graph: NodeGraph) -> None:
    graph.add(Document("Life of Henrik Ibsen (book)\nIt was read by many.", id="book"))
    (ibsen,) = [e for e in graph.nodes("entity") if e.text == "Henrik Ibsen"]
    assert [node.id for node in graph.linked(ibsen)] == ["brand", "ibsen", "book"]
    assert ibsen.own_metadata == {"about": ["ibsen"]}


def test_title_comes_from_metadata() -> None:
    nodes = [
        Node("A short line\nIt is no title here.", {"title": "Ibsen"}, id="a"),
        Node("Plays of Ibsen were shown.", id="b"),
    ]
    (ibsen,) = EntityExtractor()(nodes)
    assert (ibsen.item.text, ibsen.item.own_metadata) == ("Ibsen", {"about": ["a"]})
    assert [node.id for node in ibsen.to] == ["a", "b"]


def test_wrapped_lines_and_sentences_are_no_titles() -> None:
    assert entities("a text that was wrapped\nin the middle.", "It is a sentence.\nIt is.") == {}


def test_chinese_titles_are_found_in_texts() -> None:
    found = entities(
        "曹雪芹\n清代作家，写了《红楼梦》。",
        "红楼梦\n小说，作者是曹雪芹。",
        "大观园是红楼梦里的园子，IBM 没有。",
        "IBM公司。",
    )
    assert found == {"曹雪芹": ["0", "1"], "红楼梦": ["0", "1", "2"], "IBM": ["2", "3"]}


def test_names_of_one_passage_are_no_entities() -> None:
    found = entities("in Oslo and Bergen", "in Oslo and Skien")
    assert found == {"Oslo": ["0", "1"]}


def test_names_of_many_passages_are_no_entities() -> None:
    found = entities(*["in Oslo and Bergen"] * 100, "in Oslo")
    assert list(found) == ["Bergen"]


def test_find_replaces_rules() -> None:
    def find(text: str) -> list[str]:
        return [word for word in text.split() if word.startswith("#")]

    assert entities("a #Tea b", "c #tea", "Big Oslo", "Big Oslo", find=find) == {"#Tea": ["0", "1"]}


def test_find_returning_text_raises() -> None:
    graph = NodeGraph(progress=False)
    graph.add("text")
    graph.create_node_group("entity", EntityExtractor(lambda text: "Oslo"), scope="group")
    with pytest.raises(TransformError, match="several names, got one text: 'Oslo'"):
        graph.nodes("entity")


def test_find_without_function_raises() -> None:
    with pytest.raises(TypeError, match="find must be a function from a text to names, got 3"):
        EntityExtractor(3)  # type: ignore[arg-type]


def test_empty_passages_have_no_entities() -> None:
    assert entities() == {}
    assert entities("", "\n", "...") == {}


def test_common_heading_is_no_title() -> None:
    texts = [f"Overview\nThis is an overview of {name}." for name in ("tea", "milk", "bread")]
    nodes = [Node(text, id=str(at)) for at, text in enumerate(texts)]

    def about(*nodes: Node) -> dict[str, list[str]]:
        made: list[LinkedText] = EntityExtractor()([*nodes])
        return {each.item.text: each.item.metadata["about"] for each in made}

    assert about(*nodes).get("Overview") == []
    assert about(*nodes[:2])["Overview"] == ["0", "1"]  # two passages of one article
    beatles = [Node(f"The Beatles\nThe Beatles sang {n}.", id=n) for n in ("this", "that", "it")]
    assert about(*beatles)["The Beatles"] == ["this", "that", "it"]


def test_heading_follows_spelling_of_other_passages() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Overview\nOf {name}.", id=name) for name in ("tea", "milk", "bread")])
    graph.create_node_group("entity", EntityExtractor(), scope="group")

    def titles() -> list[str]:
        return [node.text for node in graph.nodes("entity") if node.metadata["about"]]

    assert titles() == ["Overview"]  # no passage has the word in lowercase
    graph.add(Document("It gives an overview, a second overview.", id="lower"))
    assert titles() == []
    graph.remove("lower")
    assert titles() == ["Overview"]


def test_extractor_reads_only_new_passages() -> None:
    read: list[str] = []

    def find(text: str) -> list[str]:
        read.append(text)
        return text.split()

    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea {number}", id=str(number)) for number in range(50)])
    graph.create_node_group("mention", EntityExtractor(find))
    assert [node.parent_id for node in graph.nodes("mention")] == [str(n) for n in range(50)]
    read.clear()
    graph.remove("7")
    graph.add(Document("Tea now", id="new"))
    assert len(graph.nodes("mention")) == 50
    assert read == ["Tea now"]
