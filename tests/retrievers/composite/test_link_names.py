"""Names in questions."""

import pytest

from nodekin.nodegraph.names import name_key
from nodekin.retrievers.composite.link_names import names_in


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("Who wrote Brand?", ["Brand", "Who", "wrote"], ["brand"]),
        ("who wrote brand?", ["Brand"], []),  # a lowercase word
        ("Brand by whom?", ["Brand"], []),  # any first word has a capital
        ("the play peer gynt", ["Peer Gynt"], ["peer gynt"]),
        ("New York City Hall", ["New York City", "York", "City Hall"], ["new york city"]),
        ("Is The Beatles' song long?", ["The Beatles", "Beatles song"], ["beatles song"]),
        ("Über Café Central", ["Cafe Central"], ["cafe central"]),
        ("《红楼梦》和红楼的作者", ["红楼梦", "红楼", "作者"], ["红楼梦", "红楼", "作者"]),
        ("iPhone手机的价格", ["手机"], ["手机"]),
        ("", ["Brand"], []),
    ],
)
def test_names_in(text: str, names: list[str], expected: list[str]) -> None:
    assert names_in(text, {*map(name_key, names)}.__contains__) == expected


def test_names_in_is_linear() -> None:
    lookups = 0

    def is_name(key: str) -> bool:
        nonlocal lookups
        lookups += 1
        return False

    names_in("Word " * 1000 + "字" * 1000, is_name)
    assert lookups < 30 * 2000
