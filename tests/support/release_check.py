"""Rehearse a release. ``make release-check`` builds, checks, installs and uses the packages.

The source distributions and wheels are checked with twine. For each supported Python version, the
wheel is installed into an empty environment, in which the first commands of the README must work.
Each partner package is also installed into an empty environment for each Python version, in which
its own tests must pass. Finally, ``first_hour.py`` runs. If an interpreter is missing, the check
fails, unless its version is excluded: ``make release-check WITHOUT="3.13 3.14"``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from support import first_hour

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def interpreters(excused: Iterable[str]) -> dict[str, str]:
    """Return the interpreter for each supported Python version, except for excluded versions.

    Raises:
        SystemExit: If an interpreter is missing.
    """
    unknown = sorted({*excused} - {*PYTHONS})
    if unknown:
        sys.exit(f"WITHOUT must name versions of {', '.join(PYTHONS)}, got {', '.join(unknown)}")
    found = {version: _interpreter(version) for version in PYTHONS if version not in excused}
    missing = [version for version, name in found.items() if not name]
    if missing:
        sys.exit(
            f"Python {', '.join(missing)} is missing: install it, or excuse it with "
            f'WITHOUT="{" ".join([*excused, *missing])}"'
        )
    return {version: name for version, name in found.items() if name}


def _interpreter(version: str) -> str | None:
    name = shutil.which(f"python{version}")
    if name is None:
        return None
    done = subprocess.run([name, "-c", ""], capture_output=True)
    return None if done.returncode else name


def built(folder: Path) -> list[Path]:
    """Build all packages, check them with twine, and return the paths of the files."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    source = shutil.copytree(first_hour.REPO, folder / "source", ignore=ignored)
    python = _environment(sys.executable, folder / "tools")
    first_hour.run("install build, twine", [*_pip(python), "build", "twine"], folder)
    packages = [source, *(path.parent for path in source.glob("packaging/*/pyproject.toml"))]
    for package in packages:
        command = [python, "-m", "build", "--outdir", str(folder / "dist"), str(package)]
        first_hour.run(f"build {package.name}", command, folder)
    files = sorted((folder / "dist").iterdir())
    check = [python, "-m", "twine", "check", "--strict", *map(str, files)]
    first_hour.run(f"twine check {len(files)} files", check, folder)
    return files


def install_and_use(version: str, name: str, wheel: Path, folder: Path) -> None:
    """Install a wheel into an empty environment, and run a search with it."""
    here = folder / version
    shutil.copytree(first_hour.REPO / "examples" / "files", here / "docs")
    python = _environment(name, here / "environment")
    first_hour.run(f"python{version}: pip install", [*_pip(python), f"{wheel}[files]"], here)
    nodekin = str(Path(python).with_name("nodekin"))
    first_hour.run(f"python{version}: nodekin index docs", [nodekin, "index", "docs"], here)
    question = [nodekin, "search", "who pays the freight", "-k", "1"]
    printed = first_hour.run(f"python{version}: nodekin search", question, here)
    if "pays the freight" not in printed:
        sys.exit(f"python{version}: the search printed {printed!r}")


def partners() -> list[Path]:
    """Return the folders of all partner packages that contain tests."""
    folders = first_hour.REPO.glob("packaging/*/tests")
    return sorted(folder.parent for folder in folders)


def test_requirements(partner: Path) -> list[str]:
    """Return the packages in the dependency group ``test`` of a partner package."""
    text = (partner / "pyproject.toml").read_text(encoding="utf-8")
    requirements: list[str] = tomllib.loads(text)["dependency-groups"]["test"]
    return requirements


def install_and_test(
    version: str, name: str, partner: Path, files: list[Path], folder: Path
) -> None:
    """Install a partner package and nodekin into an empty environment, and run its tests."""
    here = folder / f"{partner.name}-{version}"
    shutil.copytree(partner / "tests", here / "tests")
    shutil.copy(partner / "pyproject.toml", here)
    stem = partner.name.replace("-", "_")
    wheels = [file for file in files if file.match("nodekin-*.whl") or file.match(f"{stem}-*.whl")]
    python = _environment(name, here / "environment")
    packages = [*map(str, wheels), *test_requirements(partner)]
    first_hour.run(f"python{version}: install {partner.name}", [*_pip(python), *packages], here)
    command = [python, "-m", "pytest", "-q", "tests"]
    first_hour.run(f"python{version}: test {partner.name}", command, here)


def main() -> None:
    pythons = interpreters(sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = built(folder)
        (wheel,) = (file for file in files if file.match("nodekin-*.whl"))
        for version, python in pythons.items():
            install_and_use(version, python, wheel, folder)
            for partner in partners():
                install_and_test(version, python, partner, files, folder)
    first_hour.main()
    sys.stdout.write(f"ready to be released; tried with Python {', '.join(pythons)}\n")


def _environment(python: str, folder: Path) -> str:
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    return str(folder / "bin" / "python")


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "-q"]


if __name__ == "__main__":
    main()
