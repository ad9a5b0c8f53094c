"""Write the address of the repository into all packages before a release builds them.

``python packaging/project_urls.py https://github.com/OWNER/NAME`` replaces the project URLs of
nodekin and its partner packages. The README of the package index gets absolute links to the files
of this version, and ``CITATION.cff`` the address. ``server.json`` of the MCP registry gets the
owner's name, which the README must contain.
The release workflow passes the address of its own repository, so packages of a fork name the fork.
"""

from __future__ import annotations

import json
import re
import sys

from index_readme import REPO, index_readme

USAGE = "usage: python packaging/project_urls.py https://github.com/OWNER/NAME"


def project_urls(address: str, tag: str) -> dict[str, str]:
    """Return the URLs of a repository on GitHub, or one that has its paths, by their labels."""
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/{tag}/docs",
        "Source": f"{address}/tree/{tag}",
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
    }


def main() -> None:
    """Write them."""
    address = sys.argv[1].rstrip("/").removesuffix(".git") if len(sys.argv) == 2 else ""
    if not re.fullmatch(r"https://[\w.:-]+/[\w.-]+/[\w.-]+", address):
        sys.exit(f"{USAGE}\nnot {' '.join(sys.argv[1:])!r}")
    projects = [REPO / "pyproject.toml", *sorted((REPO / "packaging").glob("*/pyproject.toml"))]
    texts = {path: path.read_text(encoding="utf-8") for path in projects}
    for path, text in texts.items():
        text = re.sub(r"^\[project\.urls\].*?(?=^\[)", "", text, flags=re.MULTILINE | re.DOTALL)
        (version,) = re.findall(r'^version = "(.*)"$', text, re.MULTILINE)
        urls = project_urls(address, f"v{version}").items()
        lines = "".join(f'{label} = "{url}"\n' for label, url in urls)
        section = f"[project.urls]\n{lines}\n[tool.setuptools]\n"
        path.write_text(text.replace("[tool.setuptools]\n", section, 1), encoding="utf-8")
    readme = index_readme(f"{address}/blob/v{version}", f"{address}/raw/v{version}")
    citation = REPO / "CITATION.cff"
    cited = citation.read_text(encoding="utf-8")
    cited = re.sub(r"^repository-code: .*\n", "", cited, flags=re.MULTILINE)
    cited = re.sub(
        r"^version: ", f"repository-code: {address}\nversion: ", cited, flags=re.MULTILINE
    )
    citation.write_text(cited, encoding="utf-8")
    server = REPO / "packaging" / "server.json"
    entry = json.loads(server.read_text(encoding="utf-8"))
    entry["name"] = entry["name"].replace("OWNER", address.split("/")[-2])
    entry["repository"] = {"url": address, "source": "github"}
    server.write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")
    readme += f"\n<!-- mcp-name: {entry['name']} -->\n"
    (REPO / "packaging" / "README.md").write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
