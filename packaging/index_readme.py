"""Make of README.md what a package index shows, where relative links and pictures are dead.

``python packaging/index_readme.py`` writes ``packaging/README.md`` without them; a test compares
it. A release has the address of its repository, by which they are absolute: ``project_urls.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).parents[1]


def index_readme(files: str = "", pictures: str = "") -> str:
    """Return README.md with absolute links only.

    Args:
        files: The address below which the repository's files are shown; without it relative links
            are left out.
        pictures: That below which they are as they are; without it pictures are left out.
    """
    text = (REPO / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^<!-- .* -->\n\n", "", text, flags=re.MULTILINE)
    picture = rf"![\1]({pictures}/\2)\n\n" if pictures else ""
    text = re.sub(r"^!\[([^\]]*)\]\(([^)]*)\)\n\n", picture, text, flags=re.MULTILINE)
    link = rf"[\1]({files}/\2)" if files else r"\1"
    return re.sub(r"\[([^\]]+)\]\((?!https?://)([^)\s]+)\)", link, text)


if __name__ == "__main__":
    (REPO / "packaging" / "README.md").write_text(index_readme(), encoding="utf-8")
