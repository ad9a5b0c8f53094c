"""Fingerprints of transforms."""

import functools
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from nodekin.nodegraph import Document, NodeGraph, RecursiveSplitter, SentenceSplitter
from nodekin.nodegraph.hashing import digest, digests, fingerprint, stable_repr


def split_at(separator):
    return lambda text: text.split(separator)


def comma(text, limit=1, *, strip=True):
    return text.split(",", limit)


class Cutter:
    def __init__(self, size):
        self.size = size

    def __call__(self, text):
        return text[: self.size]

    def other(self, text):
        return text


@dataclass(frozen=True, slots=True)
class Slotted:
    size: int


SAME = {
    "lambdas of one code": lambda: (lambda text: text.split(","), lambda text: text.split(",")),
    "partials": lambda: (functools.partial(comma, limit=2), functools.partial(comma, limit=2)),
    "objects": lambda: (Cutter(3), Cutter(3)),
    "slots": lambda: (Slotted(3), Slotted(3)),
    "bound methods": lambda: (Cutter(3).other, Cutter(3).other),
    "sets in another order": lambda: ({"a", "b", "c"}, {"c", "b", "a"}),
    "mappings in another order": lambda: ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "patterns": lambda: (re.compile("a+").split, re.compile("a+").split),
    "paths, one of them used": lambda: (Path("a/b"), [p := Path("a/b"), str(p), hash(p)][0]),
    "shared or equal": lambda: ([x := Cutter(1), x], [Cutter(1), Cutter(1)]),
    "locks": lambda: (threading.Lock(), threading.Lock()),
}

DIFFERENT = {
    "constants": lambda: (lambda text: text.split(","), lambda text: text.split(";")),
    "code": lambda: (lambda text: text[1:], lambda text: text[:1]),
    "closures": lambda: (split_at(","), split_at(";")),
    "defaults": lambda: (lambda text, n=1: text, lambda text, n=2: text),
    "attributes": lambda: (Cutter(3), Cutter(4)),
    "methods": lambda: (Cutter(3).other, Cutter(3).__call__),
    "patterns": lambda: (re.compile("a+"), re.compile("b+")),
    "classes": lambda: (SentenceSplitter, RecursiveSplitter),
    "nesting": lambda: ([[1], 2], [[1, 2]]),
    "caches around different functions": lambda: (
        functools.cache(lambda text: text[1:]),
        functools.cache(lambda text: text[:1]),
    ),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_equal_rules_have_equal_fingerprints(make) -> None:
    one, other = make()
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("make", DIFFERENT.values(), ids=DIFFERENT)
def test_different_rules_have_different_fingerprints(make) -> None:
    one, other = make()
    assert fingerprint(one) != fingerprint(other)


def test_object_with_rule_state_ignores_other_attributes() -> None:
    class Counting:
        def __init__(self, size: int) -> None:
            self.size = size
            self.calls = 0

        def rule_state(self) -> int:
            return self.size

    one, used, other = Counting(3), Counting(3), Counting(4)
    used.calls = 7
    assert fingerprint(one) == fingerprint(used)
    assert fingerprint(one) != fingerprint(other)


def test_cyclic_objects_have_fingerprints() -> None:
    def make(size: int) -> Cutter:
        one, other = Cutter(size), Cutter(1)
        one.other, other.other = other, [one, {"me": other}]
        return one

    assert fingerprint(make(3)) == fingerprint(make(3))
    assert fingerprint(make(3)) != fingerprint(make(4))

    def again(text):
        return again(text[1:])

    assert fingerprint(again) == fingerprint(again)


def test_fingerprint_leaves_the_object_unchanged() -> None:
    class Careless(Cutter):
        def __getstate__(self):
            self.__dict__.pop("size")
            return self.__dict__

    cutter = Careless(3)
    assert fingerprint(cutter) != fingerprint(Careless(4))
    assert cutter("abcdef") == "abc"


def test_class_version_changes_the_fingerprint() -> None:
    class Splitter:
        rules = 1

    before = {fingerprint(Splitter), fingerprint(Splitter())}
    Splitter.rules = 2
    assert before.isdisjoint({fingerprint(Splitter), fingerprint(Splitter())})


IDS = """
from dataclasses import dataclass
from typing import NamedTuple
from nodekin.nodegraph import Document, Node, NodeGraph

class Plain:
    def __init__(self, name):
        self.name = name

@dataclass
class Tea:
    tags: set
    maker: object

class Pair(NamedTuple):
    left: object
    right: object

words = {"green", "black", "white", "oolong"}
contents = [
    words, frozenset(words), {"tags": words}, [words, {frozenset(words)}], Plain("tea"),
    [Plain("a"), Plain(words)], Tea(words, Plain("x")), Pair(words, Plain("y")), Pair,
]
graph = NodeGraph(progress=False)
graph.create_node_group("tea", lambda text: [Node("tea", content=c) for c in contents], version="1")
graph.add([Document("tea", {"value": content}) for content in contents])
print([node.id for group in ("ROOT", "tea") for node in graph.nodes(group)])
"""


def test_ids_are_equal_in_all_processes() -> None:
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = [sys.executable, "-c", IDS]
        found.add(subprocess.check_output(run, env=environment, text=True, timeout=120))
    assert len(found) == 1


@pytest.mark.parametrize(
    "value",
    [
        *(1, -0.5, True, None, "a at 0x12", b"at 0x1", (), (1,), (1, "a"), [], [1, [2]], {}, set()),
        *({"a": 1, 2: None}, {"x"}, frozenset(), frozenset({1}), range(3), 3j, Fraction(1, 2)),
    ],
)
def test_stable_repr_equals_repr_of_plain_values(value: object) -> None:
    assert stable_repr(value) == repr(value)


class Size(NamedTuple):
    width: int
    units: frozenset[str] = frozenset()


def test_stable_repr_of_named_tuple_orders_sets() -> None:
    assert stable_repr(Size(2)) == repr(Size(2))
    units = frozenset({"mm", "cm", "inch"})
    expected = "Size(width=2, units=frozenset({'cm', 'inch', 'mm'}))"
    assert stable_repr(Size(2, units)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({1: "a"}, {"1": "a"}),
        ({None: "a"}, {"null": "a"}),
        ({True: "a"}, {"true": "a"}),
        ({1.5: "a"}, {"1.5": "a"}),
        ([{1: "a"}], [{"1": "a"}]),
        ({"b": {1: "a"}}, {"b": {"1": "a"}}),
        ({1: "a", 2: "b"}, {1: "b", 2: "a"}),
        ({1: "a", "1": "b"}, {1: "b", "1": "a"}),
    ],
)
def test_documents_with_other_keys_have_other_ids(one: object, other: object) -> None:
    graph = NodeGraph(progress=False)
    ids = graph.add([Document("tea", {"value": one}), Document("tea", {"value": other})])
    assert len(set(ids)) == len(graph.nodes("ROOT")) == 2


def test_order_of_keys_does_not_change_id() -> None:
    one = Document("tea", {"value": {1: "a", "2": {3: "b", 4: "c"}}})
    other = Document("tea", {"value": {"2": {4: "c", 3: "b"}, 1: "a"}})
    assert one.id == other.id


def test_ids_of_plain_metadata_are_frozen() -> None:
    metadata = {"a": {"b": [1, (2, "x")], "c": {"s"}}, "d": date(2024, 5, 1)}
    assert Document("tea", metadata).id == "d86a319ffdae5943e894fdbf"


def test_digests_are_those_of_all_beginnings() -> None:
    parts = ["a", "", "\ud800", "bc"]
    assert digests(*parts) == tuple(digest(*parts[:end]) for end in range(1, 5))
