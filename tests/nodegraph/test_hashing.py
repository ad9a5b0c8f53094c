"""Fingerprints of transforms."""

import functools
import re
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodekin.nodegraph import RecursiveSplitter, SentenceSplitter
from nodekin.nodegraph.hashing import fingerprint


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
