"""Update the install instructions on all pages, and generate the README for the package index.

``python packaging/index_readme.py`` writes the install instructions into ``README.md``,
``README.zh.md`` and the pages in ``docs/`` and ``examples/``. The package is installed from a
checkout, or from the package index if ``PUBLISHED`` is True. The README for the package index,
``packaging/README.md``, does not contain relative links or pictures, since these do not work there.
Tests check that all these files are up to date. For a release, links are made absolute with the
address of the repository (see ``project_urls.py``).
"""

from __future__ import annotations

import re
from pathlib import Path

REPO = Path(__file__).parents[1]

# Set this to True in the commit of the first release, and then run this script.
PUBLISHED = False

EXTRA = "files"
CHECKOUT = {
    "README.md": "nodekin is not on PyPI yet. Install it from a checkout of this repository, with "
    "the readers for PDF, Office, web pages and e-books:",
    "README.zh.md": "nodekin 还没有发布到 PyPI。在本仓库的目录里安装，"
    "连同 PDF、Office、网页和电子书的读取器：",
}
INDEX = {
    "README.md": "Install it with the readers for PDF, Office, web pages and e-books:",
    "README.zh.md": "安装，连同 PDF、Office、网页和电子书的读取器：",
}
_INSTALL = re.compile(r"(?<=^<!-- install -->\n\n).*?(?=^<!-- end of install -->$)", re.M | re.S)


PAGES = [*sorted(REPO.glob("docs/**/*.md")), *sorted(REPO.glob("examples/**/*.md"))]
_EXTRAS = re.compile(r'(?<=pip install ")(?:nodekin|\.)(?=\[)')


def page(text: str, published: bool = PUBLISHED) -> str:
    """Return a page with the instructions to install from a checkout or from the package index."""
    return _EXTRAS.sub("nodekin" if published else ".", text)


def readme(name: str = "README.md", published: bool = PUBLISHED) -> str:
    """Return a README with instructions to install from a checkout or the package index."""
    text = (REPO / name).read_text(encoding="utf-8")
    source = "nodekin" if published else "."
    sentence = INDEX[name] if published else CHECKOUT[name]
    lines = f'{sentence}\n\n```sh\npip install "{source}[{EXTRA}]"\n```\n\n'
    return _INSTALL.sub(lambda found: lines, text)


def index_readme(files: str = "", pictures: str = "") -> str:
    """Return the README for the package index with absolute links only.

    Args:
        files: The base URL for links to files in the repository. If it is empty, relative links are
            removed together with the sentences that need them.
        pictures: The base URL for pictures. If it is empty, pictures are removed.
    """
    text = readme(published=True)
    text = re.sub(r"^<!-- .* -->\n\n", "", text, flags=re.MULTILINE)
    picture = rf"![\1]({pictures}/\2)\n\n" if pictures else ""
    text = re.sub(r"^!\[([^\]]*)\]\(([^)]*)\)\n\n", picture, text, flags=re.MULTILINE)
    if not files:
        text = _without_references(text)
    link = rf"[\1]({files}/\2)" if files else r"\1"
    return re.sub(r"\[([^\]]+)\]\((?!https?://)([^)\s]+)\)", link, text)


_LINK = r"\[[^\]]+\]\((?!https?://)[^)\s]+\)"
_LINKS = rf"{_LINK}(?:, {_LINK})*\."


def _without_references(text: str) -> str:
    """Remove sentences, parentheses and the section that consist only of relative links."""
    text = re.sub(r"^## Read on\n\n(?:- .*\n)+\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"^{_LINKS}\n\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"(?<=\.) {_LINKS}?$", "", text, flags=re.MULTILINE)
    text = re.sub(rf"(?<=\.) {_LINK}$", "", text, flags=re.MULTILINE)
    return re.sub(rf" \({_LINK}\)", "", text)


def main() -> None:
    """Update the install instructions on all pages, and write the README for the package index."""
    for name in CHECKOUT:
        (REPO / name).write_text(readme(name), encoding="utf-8")
    for path in PAGES:
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
    (REPO / "packaging" / "README.md").write_text(index_readme(), encoding="utf-8")


if __name__ == "__main__":
    main()
