"""The normal form of names."""

import pytest

from nodekin.nodegraph.names import name_key


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
        ("The The", "the"),
        ("...", ""),
    ],
)
def test_name_key_normalizes_spellings(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize("run", [" ", "(", "（a", "a ", "(a)", "\n"])
def test_name_key_of_long_runs_ends(run: str) -> None:
    name = f"Tea{run * 300_000}x"
    assert name_key(name).startswith("tea")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("Tea (play) ", "tea"), ("Tea(1)（2）", "tea 1"), ("Tea (a", "tea a"), ("(play)", "")),
        *(("Tea ((a))", "tea a"), ("Tea (a) b", "tea a b"), ("Tea（戏剧）", "tea")),
    ],
)
def test_name_key_drops_last_remark(name: str, key: str) -> None:
    assert name_key(name) == key
