"""Set the version, the repository and the descriptions of pages when the site is built."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).parents[2]
LENGTH = 160
"""The largest number of characters of a description, which search engines show."""


def on_config(config: Any) -> Any:
    """Show the project of ``pyproject.toml``."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    show_project(config, project)
    return config


def show_project(config: Any, project: dict[str, Any]) -> None:
    """Add the version to the title. A release also has the address of its repository."""
    config.site_name = f"nodekin {project['version']}"
    config.copyright = f"nodekin {project['version']}, MIT license"
    address = project.get("urls", {}).get("Homepage")
    if address:
        config.repo_url = address
        config.repo_name = address.split("/", 3)[-1]
        config.edit_uri = "edit/main/"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Describe a page by its first paragraph. Generated pages cannot be edited."""
    page.meta.setdefault("description", description(markdown))
    if page.file.src_uri.startswith("reference/"):
        page.edit_url = None
    return markdown


def description(markdown: str) -> str:
    """Return the sentences at the beginning of a page that fit into a description."""
    text = re.sub(r"<!--.*?-->|^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    first = text.strip().partition("\n\n")[0]
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", first).replace("`", "")
    sentences = re.split(r"(?<=[.:。：])\s*(?=\S)", " ".join(plain.split()))
    said = sentences[0]
    for sentence in sentences[1:]:
        longer = f"{said} {sentence}"
        if len(longer) > LENGTH:
            break
        said = longer
    return said if len(said) <= LENGTH else said[: LENGTH - 1] + "…"
