"""An index of names after changes equals a new index."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest

from nodekin.nodegraph import Node
from nodekin.nodegraph.extractors import entity_extractor
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor, NameIndex
from nodekin.nodegraph.extractors.entity_names import Mentions

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
    found = {key: index.entity(key) for key in keys}
    passages = {key: sorted(index._having.get(key, ())) for key in keys}
    return {key: (found[key], len(passages[key])) for key in keys if passages[key]}


def letters(body: str) -> list[str]:
    return [word for word in body.split() if word.istitle()]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("find", [None, letters])
def test_name_index_after_changes_equals_new_index(
    seed: int, find: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entity_extractor, "_FEW_NAMES", seed % 2)
    monkeypatch.setattr(entity_extractor, "_MIN_PASSAGES", 1)
    rng = random.Random(seed)
    extractor = EntityExtractor(find)  # type: ignore[arg-type]
    index = NameIndex(extractor)
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
        now = anew(extractor, passages, keys)
        assert known(index, keys) == now
        changed = {key for key in keys if seen.get(key) != now.get(key)}
        assert changed <= touched
        seen = now
        if rng.random() < 0.3:
            state = json.loads(json.dumps(index.state()))
            index = NameIndex.from_state(extractor, state)
            assert known(index, keys) == now


def anew(
    extractor: EntityExtractor, passages: Mapping[str, Row], keys: set[str]
) -> dict[str, object]:
    index = NameIndex(extractor)
    keys |= index.update((), passages.values())
    return known(index, keys)
