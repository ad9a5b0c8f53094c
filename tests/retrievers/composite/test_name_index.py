"""Names that passages have in common, also after changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from nodekin.nodegraph import Node
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor, Mentions
from nodekin.retrievers.composite import name_index
from nodekin.retrievers.composite.name_index import Entity, NameIndex

Entities = dict[str, list[str]]


def index_of(nodes: list[Node], find: Any = None) -> tuple[NameIndex, set[str]]:
    """Return an index of passages, and the keys of their names."""
    extractor, index = EntityExtractor(find), NameIndex(find is not None)
    rows = [(node.id, at, extractor.mentions(node)) for at, node in enumerate(nodes)]
    return index, index.update((), rows)


def found(index: NameIndex, keys: Iterable[str]) -> list[Entity]:
    """Return the entities of some names, sorted by rank."""
    return sorted(filter(None, map(index.entity, keys)), key=lambda entity: entity.rank)


def entities(*texts: str, find: Any = None) -> Entities:
    """Return the passages of each entity in some texts. The ids of passages are numbers."""
    nodes = [Node(text, id=str(at)) for at, text in enumerate(texts)]
    return {entity.name: entity.passages for entity in found(*index_of(nodes, find))}


def about(*nodes: Node) -> Entities:
    """Return the passages with the title, of each entity."""
    return {entity.name: entity.about for entity in found(*index_of([*nodes]))}


BRAND = Node("Brand (play)\nBrand is a play by Henrik Ibsen.", id="brand")
IBSEN = Node("Henrik Ibsen\nIbsen was born in Skien.", id="ibsen")


def test_entities_are_names_of_several_passages_and_titles() -> None:
    assert entities(BRAND.text, IBSEN.text) == {
        "Brand (play)": ["0"],
        "Henrik Ibsen": ["0", "1"],
        "Ibsen": ["0", "1"],
    }
    assert about(BRAND, IBSEN) == {
        "Brand (play)": ["brand"],
        "Henrik Ibsen": ["ibsen"],
        "Ibsen": [],
    }


def test_entities_follow_changes() -> None:
    index, keys = index_of([BRAND, IBSEN])
    skien = Node("Skien\nA town. Its theatre is named after Ibsen.", id="skien")
    keys |= index.update((), [("skien", 2, EntityExtractor().mentions(skien))])
    passages = {entity.name: entity.passages for entity in found(index, keys)}
    assert passages["Ibsen"] == ["brand", "ibsen", "skien"]
    assert passages["Skien"] == ["ibsen", "skien"]
    keys |= index.update(["ibsen", "skien"], ())
    assert [entity.name for entity in found(index, keys)] == ["Brand (play)"]


def test_first_word_counts_as_written_elsewhere() -> None:
    assert entities(
        "Many people went to Oslo. Oslo is cold, as many towns are.",
        "He saw many ships in Oslo. Many were there.",
        "Many ships.",
    ) == {"Oslo": ["0", "1"]}


def test_names_have_several_words() -> None:
    names = entities(
        "He read at the University of Oslo and at home.",
        "The University of Oslo, in Norway, is old.",
        "She met J. R. Tolkien of Norway in World War 2.",
        "World War 2 was hard for J. R. Tolkien too.",
    )
    assert {name: names[name] for name in ("University of Oslo", "J R Tolkien", "World War 2")} == {
        "University of Oslo": ["0", "1"],
        "J R Tolkien": ["2", "3"],
        "World War 2": ["2", "3"],
    }
    assert names["Norway"] == ["1", "2"]
    assert "University of Oslo and" not in names


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("Crime and Punishment\nA novel.", "He had read Crime and Punishment twice."), "01"),
        (("Ibsen\nA man.", "Life of Ibsen (book)\nIt was read by many."), "01"),
        (("in Oslo and Bergen", "in Oslo and Skien"), "01"),  # names of one passage link nothing
    ],
)
def test_name_is_found_in_texts_and_titles(texts: tuple[str, ...], expected: str) -> None:
    names = entities(*texts)
    assert next(iter(names.values())) == [*expected]
    assert "Bergen" not in names


def test_title_comes_from_metadata() -> None:
    nodes = [
        Node("A short line\nIt is no title here.", {"title": "Ibsen"}, id="a"),
        Node("Plays of Ibsen were shown.", id="b"),
    ]
    (ibsen,) = found(*index_of(nodes))
    assert (ibsen.name, ibsen.about, ibsen.passages) == ("Ibsen", ["a"], ["a", "b"])


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("", "\n", "..."),
        ("a text that was wrapped\nin the middle.", "It is a sentence.\nIt is."),
    ],
)
def test_wrapped_lines_and_sentences_are_not_titles(texts: tuple[str, ...]) -> None:
    assert entities(*texts) == {}


def test_chinese_titles_are_found_in_texts() -> None:
    assert entities(
        "曹雪芹\n清代作家，写了《红楼梦》。",
        "红楼梦\n小说，作者是曹雪芹。",
        "大观园是红楼梦里的园子，IBM 没有。",
        "IBM公司。",
    ) == {"曹雪芹": ["0", "1"], "红楼梦": ["0", "1", "2"], "IBM": ["2", "3"]}


def test_names_of_many_passages_are_left_out() -> None:
    assert list(entities(*["in Oslo and Bergen"] * 100, "in Oslo")) == ["Bergen"]


def test_find_replaces_rules() -> None:
    def find(text: str) -> list[str]:
        return [word for word in text.split() if word.startswith("#")]

    assert entities("a #Tea b", "c #tea", "Big Oslo", "Big Oslo", find=find) == {"#Tea": ["0", "1"]}


def test_common_heading_is_not_a_title() -> None:
    texts = [f"Overview\nThis is an overview of {name}." for name in ("tea", "milk", "bread")]
    nodes = [Node(text, id=str(at)) for at, text in enumerate(texts)]
    assert about(*nodes).get("Overview") == []
    assert about(*nodes[:2])["Overview"] == ["0", "1"]  # two passages of one article
    beatles = [Node(f"The Beatles\nThe Beatles sang {n}.", id=n) for n in ("this", "that", "it")]
    assert about(*beatles)["The Beatles"] == ["this", "that", "it"]


def test_heading_follows_spelling_of_other_passages() -> None:
    nodes = [Node(f"Overview\nOf {name}.", id=name) for name in ("tea", "milk", "bread")]
    index, keys = index_of(nodes)
    lower = Node("It gives an overview, a second overview.", id="lower")

    def titles() -> list[str]:
        return [entity.name for entity in found(index, keys) if entity.about]

    assert titles() == ["Overview"]  # no passage has the word in lowercase
    index.update((), [("lower", 3, EntityExtractor().mentions(lower))])
    assert titles() == []
    index.update(["lower"], ())
    assert titles() == ["Overview"]


NAMES = ["Green Tea", "Green", "Tea", "Ibsen", "Henrik Ibsen", "The Bank of China", "Bank", "US"]
WORDS = ["green", "tea", "of", "in", "bank", "and", "Green", "The", "China", "Tea", "5", "is"]
CHINESE = ["《红楼梦》", "红楼梦很长。", "“曹雪芹写”", "曹雪芹写书，", "红楼", "《红楼》"]
TITLES = [
    *("", "", "Green Tea", "Ibsen (writer)", "红楼梦", "The"),
    *("Tea of the Bank of China", "2018 Green tea", "Henrik Ibsen's Bank", "红楼梦的曹雪芹写"),
]


def text(rng: random.Random) -> str:
    """Return sentences in which names stand at the beginning, inside and in longer names."""
    if rng.random() < 0.2:
        return "".join(rng.choices(CHINESE, k=3))
    return " ".join(
        " ".join(rng.choices(NAMES + WORDS, k=rng.randrange(2, 7))) + "." for _ in range(3)
    )


Row = tuple[str, int, Mentions]


def row(extractor: EntityExtractor, i: str, order: int, title: str, body: str) -> Row:
    return i, order, extractor.mentions(Node(body, {"title": title}))


def known(index: NameIndex, keys: set[str]) -> dict[str, object]:
    """Return the entities of some names, and the numbers of their passages."""
    return {key: (index.entity(key), index.count(key)) for key in keys if index.count(key)}


def letters(body: str) -> list[str]:
    return [word for word in body.split() if word.istitle()]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("find", [None, letters])
def test_name_index_after_changes_equals_new_index(
    seed: int, find: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_index, "_FEW_NAMES", seed % 2)
    monkeypatch.setattr(name_index, "_MIN_PASSAGES", 1)
    rng = random.Random(seed)
    extractor = EntityExtractor(find)  # type: ignore[arg-type]
    index = NameIndex(find is not None)
    passages: dict[str, Row] = {}
    seen: dict[str, object] = {}
    keys: set[str] = set()
    for _ in range(12):
        removed = rng.sample(sorted(passages), min(len(passages), rng.randrange(3)))
        added: dict[str, Row] = {}
        for _ in range(rng.randrange(1, 4)):
            i = rng.choice("abcdefghij")
            if i not in passages or i in removed:
                added[i] = row(extractor, i, ord(i), rng.choice(TITLES), text(rng))
        touched = index.update(removed, added.values())
        keys |= touched
        for i in removed:
            del passages[i]
        passages.update(added)
        now = new_index(find is not None, passages, keys)
        assert known(index, keys) == now
        changed = {key for key in keys if seen.get(key) != now.get(key)}
        assert changed <= touched
        seen = now
        if rng.random() < 0.3:
            state = json.loads(json.dumps(index.state()))
            index = NameIndex.from_state(find is not None, state)
            assert known(index, keys) == now


def new_index(has_finder: bool, passages: Mapping[str, Row], keys: set[str]) -> dict[str, object]:
    index = NameIndex(has_finder)
    keys |= index.update((), passages.values())
    return known(index, keys)
