"""What is built: a wheel, a source distribution, and the packages of the ecosystems."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).parents[1]
PARTNERS = {
    "langchain-nodekin": ("langchain_nodekin", "nodekin.adapters.langchain"),
    "llama-index-retrievers-nodekin": (
        "llama_index.retrievers.nodekin",
        "nodekin.adapters.llama_index",
    ),
}
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILD = "from setuptools import build_meta as b; b.build_{kind}({folder!r})"


def skip_without_setuptools() -> None:
    """Skip the test if setuptools is missing or too old.

    It is not imported here, since it replaces ``distutils``, which other tests may have imported.
    """
    try:
        version = metadata.version("setuptools")
    except metadata.PackageNotFoundError:
        pytest.skip("setuptools is not installed")
    if int(version.partition(".")[0]) < 77:
        pytest.skip(f"setuptools 77 is needed, and {version} is installed")


def _run(*command: str, cwd: Path, path: Path | None = None) -> str:
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository without build outputs."""
    copy = tmp_path_factory.mktemp("source") / "nodekin"
    left_out = (".*", "__pycache__", "build", "dist", "*.egg-info", "artifacts")
    shutil.copytree(REPO, copy, ignore=shutil.ignore_patterns(*left_out))
    return copy


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which wheels of the package and its partners are installed."""
    skip_without_setuptools()
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    for folder in (source, *(source / "packaging" / name for name in PARTNERS)):
        code = BUILD.format(kind="wheel", folder=str(wheels))
        _run(sys.executable, "-c", code, cwd=folder)
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(target)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTNERS)
def test_partner_package_runs_its_readme(name: str, installed: Path) -> None:
    package, adapter = PARTNERS[name]
    look = f"import nodekin, {package} as p, {adapter} as a; print(p.__all__ == a.__all__)"
    look += "; print(nodekin.__file__); print(p.__file__)"
    shown = _run(sys.executable, "-W", "ignore", "-c", look, cwd=installed, path=installed)
    same, *files = shown.splitlines()
    assert same == "True"
    assert [file.startswith(str(installed)) for file in files] == [True, True]
    readme = (REPO / "packaging" / name / "README.md").read_text(encoding="utf-8")
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.S)
    shown = _run(sys.executable, "-W", "ignore", "-c", code, cwd=installed, path=installed)
    assert shown == printed


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTNERS)
def test_partner_package_needs_declared_dependencies_only(name: str) -> None:
    package, adapter = PARTNERS[name]
    missing = "import sys; sys.modules['langchain_text_splitters'] = None"  # as in a clean install
    code = f"{missing}; from {package} import NodeGraphRetriever as r; print(r.__module__)"
    path = REPO / "packaging" / name
    if name.startswith("llama"):  # a namespace package, below which ours is put
        code = code.replace(
            "; from",
            f"; import llama_index.retrievers as n; "
            f"n.__path__.append({str(path / 'llama_index' / 'retrievers')!r}); from",
        )
    shown = _run(sys.executable, "-W", "ignore", "-c", code, cwd=REPO, path=path)
    assert shown.startswith(adapter)


@pytest.mark.slow
def test_wheel_contains_only_the_packages(installed: Path) -> None:
    folders = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert folders == {"nodekin", "langchain_nodekin", "llama_index"}
    assert not list((installed / "nodekin").rglob("test_*"))


def _statements(metadata: str) -> tuple[str, str]:
    """Return the version and the licence of a package's metadata."""
    (version,) = re.findall(r"^Version: (.*)$", metadata, re.M)
    (licence,) = re.findall(r"^License-Expression: (.*)$", metadata, re.M)
    return version, licence


@pytest.mark.slow
def test_wheels_state_version_and_licence_of_project(installed: Path) -> None:
    found = [
        _statements(path.read_text(encoding="utf-8"))
        for path in installed.glob("*nodekin-*.dist-info/METADATA")
    ]
    assert found == [(PROJECT["version"], PROJECT["license"])] * (1 + len(PARTNERS))


@pytest.mark.slow
def test_source_distribution_contains_tests_docs_and_examples(source: Path, tmp_path: Path) -> None:
    code = BUILD.format(kind="sdist", folder=str(tmp_path))
    _run(sys.executable, "-c", code, cwd=source)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
        (about,) = (
            name for name in packed.getnames() if name.count("/") == 1 and "PKG-INFO" in name
        )
        metadata = packed.extractfile(about)
        assert metadata
        stated = _statements(metadata.read().decode())
    assert stated == (PROJECT["version"], PROJECT["license"])
    for folder in ("tests", "docs", "examples", "benchmarks", "packaging"):
        for path in (source / folder).rglob("*.*"):
            left_out = path.suffix == ".pyc" or {"__pycache__", "corpus"} & {*path.parts}
            if path.is_file() and not left_out:
                assert path.relative_to(source).as_posix() in names
    assert {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile"} <= names
    assert {"README.md", "SECURITY.md"} <= names


@pytest.mark.slow
def test_release_build_names_its_repository(source: Path, tmp_path: Path) -> None:
    skip_without_setuptools()
    copy = shutil.copytree(source, tmp_path / "nodekin")
    address = "https://github.com/someone/a-fork"
    _run(sys.executable, "packaging/project_urls.py", f"{address}.git", cwd=copy)
    (version,) = re.findall(r'^version = "(.*)"$', (copy / "pyproject.toml").read_text(), re.M)
    for folder in (copy, *(copy / "packaging" / name for name in PARTNERS)):
        wheels = tmp_path / "wheels" / folder.name
        _run(sys.executable, "-c", BUILD.format(kind="wheel", folder=str(wheels)), cwd=folder)
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            (name,) = (name for name in packed.namelist() if name.endswith("/METADATA"))
            metadata = packed.read(name).decode()
        assert re.findall(r"^Project-URL: (.*)$", metadata, re.M) == [
            f"Homepage, {address}",
            f"Documentation, {address}/tree/v{version}/docs",
            f"Source, {address}/tree/v{version}",
            f"Issues, {address}/issues",
            f"Changelog, {address}/blob/v{version}/CHANGELOG.md",
        ]
    readme = (copy / "packaging" / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", readme)
    below = [link.removeprefix(f"{address}/") for link in links if link.startswith(address)]
    assert len(below) == len(
        re.findall(r"\]\((?!https://)", (copy / "README.md").read_text("utf-8"))
    )
    assert f"raw/v{version}/docs/pictures/graph.svg" in below
    entry = json.loads((copy / "packaging" / "server.json").read_text(encoding="utf-8"))
    assert entry["name"] == "io.github.someone/nodekin"
    assert entry["repository"]["url"] == address
    assert f"mcp-name: {entry['name']} " in readme  # the registry's proof of ownership
    for link in below:
        kind, tag, path = link.partition("#")[0].split("/", 2)
        assert (kind in ("blob", "raw"), tag) == (True, f"v{version}")
        assert (REPO / path).exists()


def test_release_address_is_the_same_everywhere(tmp_path: Path) -> None:
    names = ("README.md", "README.zh.md", "CITATION.cff", "pyproject.toml")
    for name in names:
        shutil.copy(REPO / name, tmp_path)
    shutil.copytree(REPO / "packaging", tmp_path / "packaging")
    for owner in ("someone", "another"):  # the second address replaces the first
        address = f"https://github.com/{owner}/a-fork"
        _run(sys.executable, "packaging/project_urls.py", address, cwd=tmp_path)
    files = [tmp_path / "CITATION.cff", *tmp_path.rglob("pyproject.toml")]
    files += [tmp_path / "packaging" / "server.json", tmp_path / "packaging" / "README.md"]
    for path in files:
        found = re.findall(r"https://github\.com/[\w-]+/[\w-]+", path.read_text("utf-8"))
        assert {*found} == {"https://github.com/another/a-fork"}, path
    cited = (tmp_path / "CITATION.cff").read_text(encoding="utf-8")
    assert cited.count("\nrepository-code: https://github.com/another/a-fork\n") == 1


@pytest.mark.parametrize("given", [(), ("http://github.com/a/b",), ("a", "b")])
def test_invalid_addresses_are_refused(given: tuple[str, ...]) -> None:
    command = [sys.executable, "packaging/project_urls.py", *given]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 1
    assert "usage: python packaging/project_urls.py https://" in done.stderr


def test_release_writes_addresses_before_building() -> None:
    yaml = pytest.importorskip("yaml")
    text = (REPO / ".github/workflows/release.yml").read_text(encoding="utf-8")
    steps = [step.get("run", "") for step in yaml.safe_load(text)["jobs"]["build"]["steps"]]
    (written,) = (i for i, run in enumerate(steps) if "packaging/project_urls.py" in run)
    (built,) = (i for i, run in enumerate(steps) if "python -m build" in run)
    assert written < built
    assert "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY" in steps[written]
    assert "packaging/*/" in steps[built]


@pytest.mark.parametrize("name", PARTNERS)
def test_partner_package_requires_same_framework_as_extra(name: str) -> None:
    extra = PARTNERS[name][1].rsplit(".", 1)[1].replace("_", "-")
    requirement = re.compile(rf'^{extra} = \["([^"]*)"\]$', re.M)
    (ours,) = requirement.findall((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    theirs = (REPO / "packaging" / name / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"{ours}"' in theirs


def test_site_lists_every_page_and_public_name() -> None:
    config = (REPO / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(REPO).as_posix() for path in (REPO / "docs").rglob("*.md")]
    assert [page for page in pages if page not in config] == []
    stage = runpy.run_path(str(REPO / "docs" / "site" / "stage.py"))
    reference = stage["reference"]()
    for name in reference:
        assert f"reference/{name}.md" in config
    listed = re.findall(r"^::: (.*)$", "\n".join(reference.values()), re.M)
    for package in ("nodegraph", "retrievers"):
        names = importlib.import_module(f"nodekin.{package}").__all__
        assert {f"nodekin.{package}.{name}" for name in names} <= {*listed}


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("graph", "nodekin.nodegraph.NodeGraph"),
        ("retrievers", "nodekin.retrievers.Retriever"),
        ("retrievers", "nodekin.retrievers.Filters"),
        ("strategies", "nodekin.retrievers.HyDERetriever"),
        ("rerankers", "nodekin.retrievers.CrossEncoderReranker"),
        ("answers", "nodekin.retrievers.QueryEngine"),
        ("answers", "nodekin.retrievers.CorpusTools"),
        ("evaluation", "nodekin.retrievers.evaluation.evaluate"),
        ("adapters", "nodekin.adapters.langchain.NodeGraphRetriever"),
    ],
)
def test_reference_has_a_page_for_each_topic(page: str, name: str) -> None:
    stage = runpy.run_path(str(REPO / "docs" / "site" / "stage.py"))
    assert f"::: {name}\n" in stage["reference"]()[page]


def test_site_has_chinese_pages_in_its_last_section() -> None:
    text = (REPO / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    nav = text.partition("\nnav:\n")[2]
    others, _, chinese = nav.partition("\n  - 中文:\n")
    pages = [path.relative_to(REPO).as_posix() for path in (REPO / "docs" / "zh").glob("*.md")]
    assert [page for page in ("README.zh.md", *pages) if page not in chinese] == []
    assert re.findall(r"^  - ", chinese, re.M) == []
    assert "zh" not in others


def test_site_shows_version_and_repository_of_the_project() -> None:
    details = runpy.run_path(str(REPO / "docs" / "site" / "page_details.py"))
    config = details["on_config"](SimpleNamespace())
    assert config.site_name == f"nodekin {PROJECT['version']}"
    assert config.copyright == f"nodekin {PROJECT['version']}, {PROJECT['license']} license"
    released = {"version": "1.2", "urls": {"Homepage": "https://github.com/me/nodekin"}}
    details["show_project"](config, released)
    assert config.site_name == "nodekin 1.2"
    assert (config.repo_url, config.repo_name) == ("https://github.com/me/nodekin", "me/nodekin")
    assert config.edit_uri == "edit/main/"


@pytest.mark.parametrize(
    ("page", "description"),
    [
        ("# A\n\nOne `b`. [Two](c.md) three.\n\nFour.", "One b. Two three."),
        ("<!-- needs:\nx -->\n\n# A\n\nOne.\n", "One."),
        ("# A\n\n" + "One two. " * 30, "One two. " * 16 + "One two."),
        ("# A\n\n" + "x" * 200, "x" * 159 + "…"),
        ("# 甲\n\n读文件。再读一次。\n", "读文件。 再读一次。"),
    ],
)
def test_site_describes_a_page_by_its_first_sentences(page: str, description: str) -> None:
    details = runpy.run_path(str(REPO / "docs" / "site" / "page_details.py"))
    assert details["description"](page) == description


def test_ci_matrix_matches_supported_versions_and_systems() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((REPO / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    project = (REPO / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert matrix["python"] == listed == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    assert f'requires-python = ">={listed[0]}"' in project
    systems = {name.removesuffix("-latest") for name in matrix["os"]}
    assert systems == {"ubuntu", "macos", "windows"}
    assert {"newest", "oldest"} == {
        *matrix["frameworks"],
        *(i["frameworks"] for i in matrix["include"]),
    }
    commands = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    check_names_exist(commands, r"(?:tests|constraints)[\w/.-]*\.(?:py|txt)|tests/\S+")


def test_weekly_job_tests_oldest_and_newest_dependencies() -> None:
    yaml = pytest.importorskip("yaml")
    text = (REPO / ".github/workflows/dependencies.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow[True]["schedule"] == [{"cron": "17 4 * * 1"}]  # YAML reads "on" as True
    for name, command in (("newest", "python -m pytest"), ("oldest", "make test-oldest")):
        job = workflow["jobs"][name]
        commands = "\n".join(step.get("run", "") for step in job["steps"])
        assert command in commands
        assert "-c constraints.txt" not in commands
        assert "3.10" in job["strategy"]["matrix"]["python"]


def check_names_exist(text: str, paths: str) -> None:
    """Check that the paths and the targets of make in a text exist."""
    found = re.findall(paths, text)
    assert found
    assert [path for path in found if not (REPO / path).exists()] == []
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    targets = " ".join(re.findall(r"\bmake ([a-z -]+)", text)).split()
    assert {*targets} <= {*re.findall(r"^([\w-]+):", makefile, re.M)}


def test_release_steps_name_existing_files() -> None:
    contributing = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = contributing.partition("## Release\n")[2].partition("\n## ")[0]
    check_names_exist(
        steps, r"(?:tests|docs|packaging|benchmarks|\.github)/[\w./-]+\.(?:py|md|yml)"
    )
    assert "PUBLISHED = True" in steps
    release = (REPO / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert '"^PUBLISHED = True$" packaging/index_readme.py' in release
    for name in ("nodekin", *PARTNERS):
        assert f"`{name}`" in steps
    version = PROJECT["version"]
    changes = (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", changes, re.M)  # its release notes
    entry = json.loads((REPO / "packaging" / "server.json").read_text(encoding="utf-8"))
    (package,) = entry["packages"]
    assert entry["version"] == package["version"] == version
    assert package["runtimeArguments"][0]["value"] == f"nodekin[mcp]=={version}"
    assert f"\nversion: {version}\n" in (REPO / "CITATION.cff").read_text(encoding="utf-8")
    for name in PARTNERS:
        partner = (REPO / "packaging" / name / "pyproject.toml").read_text(encoding="utf-8")
        assert f'version = "{version}"' in partner
        (least,) = re.findall(r'"nodekin[^">]*>=([\d.]+)', partner)
        assert f"{version}.".startswith(f"{least}.")


def test_licence_name_and_status_are_the_same_everywhere() -> None:
    licence = (REPO / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("MIT License\n")
    for folder in (REPO, *(REPO / "packaging" / name for name in PARTNERS)):
        project = (folder / "pyproject.toml").read_text(encoding="utf-8")
        assert '\nlicense = "MIT"\nlicense-files = ["LICENSE"]\n' in project
        assert '\nauthors = [{ name = "The nodekin developers" }]\n' in project
        assert re.findall(r'"Development Status :: (.*)"', project) == ["3 - Alpha"]
        assert (folder / "LICENSE").read_text(encoding="utf-8") == licence
    citation = (REPO / "CITATION.cff").read_text(encoding="utf-8")
    assert "\ntitle: nodekin\n" in citation
    assert "\n  - name: The nodekin developers\n" in citation
    assert "\nlicense: MIT\n" in citation
    assert "The nodekin developers" in licence
    entry = json.loads((REPO / "packaging" / "server.json").read_text(encoding="utf-8"))
    assert [entry["title"], entry["packages"][0]["identifier"]] == ["nodekin", "nodekin"]
