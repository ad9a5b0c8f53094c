import pytest

from nodekin.nodegraph.models.output.routes import parse_route

NAMES = ["docs", "web", "web search", "数据库"]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("**Docs**.", "docs"),
        ("(2)", "web"),
        ("选项2", "web"),
        ("②", "web"),
        ("选②", "web"),
        ("⑵", "web"),
        ('The best is "web search".', "web search"),
        ("我选择数据库，因为更合适。", "数据库"),
        ("I would choose docs, as web is slower.", "docs"),
        ('{"name": "docs"}', "docs"),
        ('[{"choice": 2, "reason": "docs is bad"}]', "web"),
        ("1, 2", "docs"),
        ("web\ndocs", "web"),
        ("<think>web?</think>docs", "docs"),
        ("Not docs, but web.", "web"),
        ("docs rather than web", "docs"),
        ("不是web，而是数据库", "数据库"),
        ("the second", "web"),
        ("第四个", "数据库"),
    ],
)
def test_parse_route_reads_names_and_numbers(answer: str, name: str) -> None:
    assert parse_route(answer, NAMES) == name


@pytest.mark.parametrize("answer", ["neither", "5", "docsweb", "1.5"])
def test_parse_route_without_name_raises(answer: str) -> None:
    with pytest.raises(ValueError, match="names none of 'docs'"):
        parse_route(answer, NAMES)
