import pytest

from nodekin.nodegraph.models.output.lines import parse_lines, strip_markup


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1. Green tea.", "Green tea"),
        ('- **"Green tea"**', "Green tea"),
        ("2) `红茶`；", "红茶"),
        ("to be continued...", "to be continued..."),
        ("1.5 litres", "1.5 litres"),
        ("", ""),
    ],
)
def test_strip_markup(line: str, text: str) -> None:
    assert strip_markup(line) == text


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("- tea", ("tea", True, False)),
        ("**Rewritten question:** tea?", ("tea?", False, True)),
        ("子问题一：茶？", ("茶？", True, True)),
        ("> tea", ("tea", False, False)),
        ("# Questions", None),
        ("Here they are:", None),
        ("Explanation: it is so", None),
        ("NONE", None),
        ("---", None),
    ],
)
def test_parse_lines(line: str, read: tuple[str, bool, bool] | None) -> None:
    assert [tuple(found) for found in parse_lines(line)] == ([] if read is None else [read])
