"""File names, titles and headings in metadata."""

import pytest

from nodekin.nodegraph.source_names import file_name_of, source_title


@pytest.mark.parametrize(
    ("metadata", "name", "title"),
    [
        ({"source": "docs/tea.md"}, "tea.md", "tea.md"),
        ({"source": "/data/茶/绿茶.md", "title": "绿茶"}, "绿茶.md", "绿茶"),
        ({"source": r"C:\docs\tea.md"}, "tea.md", "tea.md"),
        ({"source": "https://example.com/a/tea.md"}, "tea.md", "https://example.com/a/tea.md"),
        ({"source": "https://example.com/t%20a.html?x=1#y"}, "t a.html", None),
        ({"source": "https://example.com/"}, "https://example.com/", "https://example.com/"),
        ({"source": "wikipedia"}, "wikipedia", "wikipedia"),
        ({"file_path": "docs/tea.md", "file_name": "tea.md"}, "tea.md", "tea.md"),
        ({"file_name": "own.md", "source": "https://example.com/tea.md"}, "own.md", "own.md"),
        ({"url": "https://example.com/tea"}, "tea", "https://example.com/tea"),
        ({"source": None, "page": 3}, None, ""),
        ({"source": {"file": "x"}}, None, ""),
        ({}, None, ""),
    ],
)
def test_file_name_and_title_of_metadata(metadata, name, title):
    assert file_name_of(metadata) == name
    if title is not None:
        assert source_title(metadata) == title
