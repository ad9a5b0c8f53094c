"""Write the URL of the repository into all packages before they are built for a release.

``python packaging/project_urls.py https://github.com/OWNER/NAME`` replaces the project URLs in
nodekin and its partner packages. It also makes the links in the README for the package index
absolute, writes the URL into ``CITATION.cff``, and writes the owner's name into ``server.json`` for
the MCP registry, which requires that the README contains this name. The release workflow passes the
URL of its own repository, so packages that are built in a fork refer to the fork.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from index_readme import REPO, index_readme

USAGE = "usage: python packaging/project_urls.py https://github.com/OWNER/NAME"


def project_urls(address: str, tag: str) -> dict[str, str]:
    """Return the project URLs for a repository, keyed by label.

    The repository must be on GitHub, or on a server that uses the same paths.
    """
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/{tag}/docs",
        "Source": f"{address}/tree/{tag}",
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
    }


def repository_address(arguments: list[str]) -> str:
    """Return the URL of the repository, without a suffix such as ``.git``.

    Raises:
        SystemExit: If the only argument is not a URL.
    """
    address = ""
    if len(arguments) == 1:
        address = arguments[0].rstrip("/").removesuffix(".git")
    if not re.fullmatch(r"https://[\w.:-]+/[\w.-]+/[\w.-]+", address):
        sys.exit(f"{USAGE}\nnot {' '.join(arguments)!r}")
    return address


def write_urls(path: Path, address: str) -> str:
    """Replace the project URLs of a package and return its version."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^\[project\.urls\].*?(?=^\[)", "", text, flags=re.MULTILINE | re.DOTALL)
    (version,) = re.findall(r'^version = "(.*)"$', text, re.MULTILINE)
    urls = project_urls(address, f"v{version}")
    lines = "".join(f'{label} = "{url}"\n' for label, url in urls.items())
    section = f"[project.urls]\n{lines}\n[tool.setuptools]\n"
    path.write_text(text.replace("[tool.setuptools]\n", section, 1), encoding="utf-8")
    return str(version)


def write_citation(address: str) -> None:
    """Write the URL of the repository into ``CITATION.cff``."""
    citation = REPO / "CITATION.cff"
    text = citation.read_text(encoding="utf-8")
    text = re.sub(r"^repository-code: .*\n", "", text, flags=re.MULTILINE)
    lines = f"repository-code: {address}\nversion: "
    text = re.sub(r"^version: ", lines, text, flags=re.MULTILINE)
    citation.write_text(text, encoding="utf-8")


def write_server(address: str) -> str:
    """Write the URL of the repository into ``server.json``, and return the name of the server."""
    server = REPO / "packaging" / "server.json"
    entry = json.loads(server.read_text(encoding="utf-8"))
    entry["name"] = entry["name"].replace("OWNER", address.split("/")[-2])
    entry["repository"] = {"url": address, "source": "github"}
    server.write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")
    return str(entry["name"])


def main() -> None:
    """Write the URL of the repository into all files."""
    address = repository_address(sys.argv[1:])
    version = write_urls(REPO / "pyproject.toml", address)
    for path in sorted((REPO / "packaging").glob("*/pyproject.toml")):
        write_urls(path, address)
    write_citation(address)
    readme = index_readme(f"{address}/blob/v{version}", f"{address}/raw/v{version}")
    readme += f"\n<!-- mcp-name: {write_server(address)} -->\n"
    (REPO / "packaging" / "README.md").write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
