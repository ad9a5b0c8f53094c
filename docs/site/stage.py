"""Copy the pages of the site to ``build/docs``, at the paths that their links name.

The reference is generated: a page for each topic, with a section for each public name.
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
TOPICS = {
    "graph": "The node graph, documents, splitters, readers and models",
    "retrievers": "Retrievers, filters, results and similarities",
    "strategies": "Strategies that change what is searched",
    "rerankers": "Rerankers and filters of results",
    "answers": "Answers, quotations and tools for agents",
    "evaluation": "Measures, comparisons and gates",
    "adapters": "Frameworks, files, servers and engines",
}
"""The pages of the reference, with their titles."""
FOLDERS = {
    "nodegraph": "graph",
    "retrievers": "retrievers",
    "retrievers.strategies": "strategies",
    "retrievers.plans": "strategies",
    "retrievers.rerankers": "rerankers",
    "retrievers.answers": "answers",
    "retrievers.corpus_tools": "answers",
    "retrievers.evaluation": "evaluation",
    "adapters": "adapters",
    "adapters.evaluation": "evaluation",
}
"""The topic of the names that a folder defines. The longest matching folder decides."""
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


def topic(module: str, value: object) -> str:
    """Return the topic of a public name by the folder that defines its value."""
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or not home.startswith("nodekin."):
        home = module
    path = home.removeprefix("nodekin.")
    folders = [folder for folder in FOLDERS if f"{path}.".startswith(f"{folder}.")]
    return FOLDERS[max(folders, key=len)]


def reference() -> dict[str, str]:
    """Return the reference pages by topic."""
    pages = {name: [f"# {title}", ""] for name, title in TOPICS.items()}
    for package in PACKAGES:
        for module, names in public_names(package):
            shown = set()
            for name in names:
                page = topic(module, getattr(importlib.import_module(module), name))
                if page not in shown:
                    shown.add(page)
                    pages[page] += [f"## {module}", ""]
                pages[page].append(f"::: {module}.{name}\n")
    return {name: "\n".join(lines) for name, lines in pages.items()}


def main() -> None:
    """Copy the pages, and write the reference."""
    shutil.rmtree(STAGE, ignore_errors=True)
    (STAGE / "reference").mkdir(parents=True)
    for page in PAGES:
        shutil.copy(REPO / page, STAGE / page)
    ignore = shutil.ignore_patterns("__pycache__", ".cache", "corpus", "site")
    for folder in ("docs", "benchmarks", "examples"):
        shutil.copytree(REPO / folder, STAGE / folder, ignore=ignore)
    shutil.copy(REPO / "docs" / "site" / "site.css", STAGE / "site.css")
    for name, page in reference().items():
        (STAGE / "reference" / f"{name}.md").write_text(page, encoding="utf-8")
    index = ["# Reference", "", "Every public name, from its docstring.", ""]
    for name, title in TOPICS.items():
        index.append(f"- [{title}]({name}.md)")
    (STAGE / "reference" / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
