"""Write the README of the package index, where relative links and pictures do not work.

``python packaging/index_readme.py`` writes ``packaging/README.md`` without relative links and
pictures; a test compares the file. A release knows the address of its repository and makes the
links absolute: see ``project_urls.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).parents[1]


def index_readme(files: str = "", pictures: str = "") -> str:
    """Return README.md with absolute links only.

    Args:
        files: The address of the repository's files as pages. If it is empty, relative links and
            what only refers to them are left out.
        pictures: The address of the raw files. If it is empty, pictures are left out.
    """
    text = (REPO / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^<!-- .* -->\n\n", "", text, flags=re.MULTILINE)
    picture = rf"![\1]({pictures}/\2)\n\n" if pictures else ""
    text = re.sub(r"^!\[([^\]]*)\]\(([^)]*)\)\n\n", picture, text, flags=re.MULTILINE)
    if not files:
        text = _without_references(text)
    link = rf"[\1]({files}/\2)" if files else r"\1"
    return re.sub(r"\[([^\]]+)\]\((?!https?://)([^)\s]+)\)", link, text)


_LINK = r"\[[^\]]+\]\((?!https?://)[^)\s]+\)"


def _without_references(text: str) -> str:
    """Remove sentences, parentheses and the section that only consist of relative links."""
    text = re.sub(r"^## Read on\n\n(?:- .*\n)+\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"^{_LINK}\.\n\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"(?<=\.) {_LINK}\.?$", "", text, flags=re.MULTILINE)
    return re.sub(rf" \({_LINK}\)", "", text)


if __name__ == "__main__":
    (REPO / "packaging" / "README.md").write_text(index_readme(), encoding="utf-8")
