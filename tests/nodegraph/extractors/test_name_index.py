"""An index of names that followed changes is as one that is built anew."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from nodekin.nodegraph.extractors import entity_extractor
from nodekin.nodegraph.extractors.entity_extractor import NameIndex, TitledText

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


def known(index: NameIndex, keys: set[str]) -> dict[str, object]:
    """Return all that an index says of some names."""
    return {
        key: (
            index.spelling(key),
            [passage.id for passage in index.passages(key)],
            [passage.id for passage in index.about(key)],
            [passage.id for passage in index.in_titles(key)],
        )
        for key in keys
        if index.count(key)
    }


def letters(body: str) -> list[str]:
    return [word for word in body.split() if word.istitle()]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("find", [None, letters])
def test_changes_end_where_building_anew_begins(
    seed: int, find: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entity_extractor, "_REMOVED", 3)  # postings are cleared, too
    monkeypatch.setattr(entity_extractor, "_FEW_NAMES", seed % 2)
    rng = random.Random(seed)
    index = NameIndex(find)  # type: ignore[arg-type]
    passages: dict[str, TitledText] = {}
    seen: dict[str, object] = {}
    keys: set[str] = set()
    for _ in range(12):
        removed = rng.sample(sorted(passages), min(len(passages), rng.randrange(3)))
        added: list[TitledText] = []
        for _ in range(rng.randrange(1, 4)):
            i = rng.choice("abcdefghij")
            if i not in passages or i in removed:
                title = rng.choice(TITLES)
                added.append(TitledText(i, ord(i), title, text(rng)))
        added = list({passage.id: passage for passage in added}.values())
        touched = index.update(removed, added)
        keys |= touched
        for i in removed:
            del passages[i]
        passages.update((passage.id, passage) for passage in added)
        now = anew(list(passages.values()), keys, find)
        assert known(index, keys) == now
        changed = {key for key in keys if seen.get(key) != now.get(key)}
        assert changed <= touched
        seen = now


def anew(passages: Sequence[TitledText], keys: set[str], find: object) -> dict[str, object]:
    index = NameIndex(find)  # type: ignore[arg-type]
    keys |= index.update((), passages)
    return known(index, keys)


def test_a_name_of_a_new_passage_is_recognised_in_the_old_ones() -> None:
    index = NameIndex()
    index.update(
        (),
        [
            TitledText("a", 1, "", "He drinks Old Green Tea Blend."),
            TitledText("b", 2, "", "Brand is a play."),
        ],
    )
    assert "green tea" in index.update((), [TitledText("c", 3, "Green Tea", "A drink.")])
    assert [passage.id for passage in index.passages("green tea")] == ["a", "c"]
    index.update((), [TitledText("d", 4, "", "He saw Brand.")])  # so it is a name, not a word
    assert [passage.id for passage in index.passages("brand")] == ["b", "d"]
    index.update(["c", "d"], ())
    assert not index.count("green tea")
    assert not index.count("brand")


def test_only_new_passages_are_read() -> None:
    bodies: list[str] = []

    def find(body: str) -> list[str]:
        bodies.append(body)
        return body.split()

    index = NameIndex(find)
    index.update((), [TitledText(str(i), i, "", f"Tea {i}") for i in range(50)])
    bodies.clear()
    index.update(["7"], [TitledText("new", 50, "", "Tea now")])
    assert bodies == ["Tea now"]
