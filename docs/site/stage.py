"""Copy the pages of the site to ``build/docs``, at the paths that their links name.

The reference pages are generated: a section for every public name of every package.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).parents[2]
STAGE = REPO / "build" / "docs"
PAGES = (
    "README.md",
    "README.zh.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
)
PACKAGES = ("nodegraph", "retrievers", "adapters")
# Public names of modules without a list of names.
MODULES = {
    "nodekin.adapters.openai": ("OpenAIEmbedder", "RerankEndpoint"),
    "nodekin.adapters.openai_chat": ("OpenAIChat",),
}


def public_names(package: str) -> Iterator[tuple[str, list[str]]]:
    """Return the modules of a package with their public names, each name once."""
    top = importlib.import_module(f"nodekin.{package}")
    shown: set[int] = set()
    found = pkgutil.walk_packages(top.__path__, f"{top.__name__}.")
    modules = [top.__name__, *(each.name for each in found)]
    for name in modules:
        if "._" in name or name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        listed = MODULES.get(name, ())
        if hasattr(module, "__path__"):
            listed = (*getattr(module, "__all__", ()), *listed)
        new = []
        for each in listed:
            value = getattr(module, each)
            if id(value) not in shown:
                shown.add(id(value))
                new.append(each)
        if new:
            yield name, sorted(new, key=str.casefold)


def reference(package: str) -> str:
    """Return the reference page of a package."""
    lines = [f"# nodekin.{package}", ""]
    for module, names in public_names(package):
        lines += [f"## {module}", ""]
        lines += [f"::: {module}.{name}\n" for name in names]
    return "\n".join(lines)


def main() -> None:
    """Copy the pages, and write the reference."""
    shutil.rmtree(STAGE, ignore_errors=True)
    (STAGE / "reference").mkdir(parents=True)
    for page in PAGES:
        shutil.copy(REPO / page, STAGE / page)
    ignore = shutil.ignore_patterns("__pycache__", ".cache", "site")
    for folder in ("docs", "benchmarks", "examples"):
        shutil.copytree(REPO / folder, STAGE / folder, ignore=ignore)
    for package in PACKAGES:
        (STAGE / "reference" / f"{package}.md").write_text(reference(package), encoding="utf-8")
    index = ["# Reference", "", "Every public name, from its docstring.", ""]
    for package in PACKAGES:
        index.append(f"- [nodekin.{package}]({package}.md)")
    (STAGE / "reference" / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
