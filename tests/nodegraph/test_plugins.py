"""Entry points of installed packages are found by group and name."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodekin.nodegraph import plugins


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    plugins.plugins.cache_clear()
    yield
    plugins.plugins.cache_clear()


def _install(folder: Path, package: str, entries: str) -> None:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[nodekin.test]\n{entries}\n")


def test_entry_point_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "one", "path = pathlib:Path\nmissing = no_such_module:Thing")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert [*plugins.plugins("nodekin.test")] == ["path", "missing"]
    assert plugins.load_plugin("nodekin.test", "path") is Path
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        plugins.load_plugin("nodekin.test", "missing")
    with pytest.raises(KeyError):
        plugins.load_plugin("nodekin.test", "other")


def test_two_packages_with_one_name_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "one", "path = pathlib:Path")
    _install(tmp_path, "two", "path = pathlib:Path")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert [*plugins.plugins("nodekin.test")] == ["path"]
    _install(tmp_path, "three", "path = pathlib:PurePath")
    plugins.plugins.cache_clear()
    with pytest.raises(RuntimeError, match=r"two packages register 'path'.*uninstall one"):
        plugins.plugins("nodekin.test")
