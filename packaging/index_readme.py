"""Make of README.md what a package index shows: no pictures, and no links into the repository.

``python packaging/index_readme.py`` writes ``packaging/README.md``; a test compares it. With the
address of a public repository, make them absolute in place of leaving them out.
"""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).parents[1]


def index_readme() -> str:
    """Return README.md with its pictures left out, and with only absolute links."""
    text = (REPO / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^<!-- .* -->\n\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)\s]+\)", r"\1", text)


if __name__ == "__main__":
    (REPO / "packaging" / "README.md").write_text(index_readme(), encoding="utf-8")
