"""Check that every extra can be installed with every Python version in the classifiers.

``python packaging/dependencies.py`` lets pip resolve the base install, each extra and the
environments of the Makefile for each Python version. Nothing is installed. The option ``--python
3.10`` selects Python versions, ``--only files`` selects sets of requirements, and ``--skip NAME``
leaves out one set.

pip evaluates the environment markers of other packages for the Python version that runs pip. The
weekly workflow therefore runs this script with each version. The function ``problems()`` does not
need a network and is called in the tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).parents[1]
NEWEST = "constraints.txt"
OLDEST = "constraints-oldest.txt"

SOURCE_ONLY = ("blockbuster", "jieba")
"""Development tools that are not available as wheels, or depend on such a package.

pip cannot resolve source distributions for a different Python version.
"""

ENVIRONMENTS = {
    "make demo": (NEWEST, ("all",), ("demo",)),
    "make test": (NEWEST, ("all",), ("demo", "dev")),
    "make test-oldest": (OLDEST, ("all",), ("dev",)),
}
"""The constraints, extras and dependency groups that each target of the Makefile installs."""


class Project:
    """The requirements in ``pyproject.toml`` and the pinned versions in the constraints files.

    Args:
        folder: The folder that contains these files.
    """

    def __init__(self, folder: Path = REPO) -> None:
        self._folder = folder
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        self._config: dict[str, Any] = tomllib.loads(text)
        self._project: dict[str, Any] = self._config["project"]
        self.extras: dict[str, list[str]] = self._project["optional-dependencies"]

    @property
    def pythons(self) -> list[str]:
        """The Python versions listed in the classifiers, oldest first."""
        prefix = "Programming Language :: Python :: 3."
        minors = [
            line.removeprefix(prefix)
            for line in self._project["classifiers"]
            if line.startswith(prefix)
        ]
        return [f"3.{minor}" for minor in sorted(minors, key=int)]

    def requirements(
        self,
        python: str,
        extras: Iterable[str] = (),
        groups: Iterable[str] = (),
    ) -> list[Requirement]:
        """Return the requirements of the base install, extras and groups for a Python version."""
        lines = list(self._project["dependencies"])
        for extra in extras:
            lines += self._extra(extra)
        for group in groups:
            lines += self._group(group)
        requirements = [Requirement(line) for line in lines]
        return [one for one in requirements if applies(one, python)]

    def pins(self, file: str, python: str) -> list[Requirement]:
        """Return the pinned versions in a constraints file that apply to a Python version."""
        lines = (self._folder / file).read_text(encoding="utf-8").splitlines()
        texts = [line.partition("#")[0].strip() for line in lines]
        pins = [Requirement(text) for text in texts if text]
        return [pin for pin in pins if applies(pin, python)]

    def _extra(self, name: str) -> Iterator[str]:
        for line in self.extras[name]:
            requirement = Requirement(line)
            if requirement.name == self._project["name"]:
                for inner in sorted(requirement.extras):
                    yield from self._extra(inner)
            else:
                yield line

    def _group(self, name: str) -> Iterator[str]:
        for entry in self._config["dependency-groups"][name]:
            if isinstance(entry, str):
                yield entry
            else:
                yield from self._group(entry["include-group"])

    @property
    def groups(self) -> list[str]:
        """The names of the dependency groups."""
        return list(self._config["dependency-groups"])


def applies(requirement: Requirement, python: str) -> bool:
    """Return whether the environment markers of a requirement include a Python version."""
    if requirement.marker is None:
        return True
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    return requirement.marker.evaluate(environment)


# Checks that do not need a network


def problems(project: Project) -> list[str]:
    """Check pins, requirements and classifiers, and return descriptions of all conflicts.

    - A pinned version must satisfy all requirements for the package.
    - A constraints file must not contain several pins for the same package and Python version.
    - Each dependency must be pinned to its oldest allowed version in ``constraints-oldest.txt``.
    - If the installed version is the oldest allowed version, it must support all Python versions.
    """
    found: dict[str, list[str]] = {}
    for python in project.pythons:
        needed = _by_name(project.requirements(python, project.extras, project.groups))
        users = _by_name(project.requirements(python, project.extras))
        oldest = _by_name(project.pins(OLDEST, python))
        lines = [
            *_wrong_pins(NEWEST, _by_name(project.pins(NEWEST, python)), needed),
            *_wrong_pins(OLDEST, oldest, users),
            *_untested_floors(oldest, users),
            *_excluded(users, python),
        ]
        for line in lines:
            found.setdefault(line, []).append(python)
    return [f"Python {', '.join(pythons)}: {line}" for line, pythons in found.items()]


def _by_name(requirements: Iterable[Requirement]) -> dict[str, list[Requirement]]:
    named: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        named.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return named


def _wrong_pins(
    file: str,
    pins: dict[str, list[Requirement]],
    needed: dict[str, list[Requirement]],
) -> Iterator[str]:
    for name, same in pins.items():
        if len(same) > 1:
            yield f"{file} pins {name} {len(same)} times"
        for requirement in needed.get(name, []):
            if not requirement.specifier.contains(_version(same[0]), prereleases=True):
                yield f"{file} has {same[0]}, but pyproject.toml has {requirement}"


def _untested_floors(
    pins: dict[str, list[Requirement]],
    users: dict[str, list[Requirement]],
) -> Iterator[str]:
    """Yield the dependencies whose oldest allowed version is not pinned.

    For some Python versions, a newer version may be pinned, since old releases have no wheels for
    new Python versions.
    """
    for name, requirements in users.items():
        if name not in pins:
            yield f"{OLDEST} has no {name}"
            continue
        pin = pins[name][0]
        floor = _floor(requirements)
        version = Version(_version(pin))
        is_newer_wheel = pin.marker is not None and version > floor
        if version != floor and not is_newer_wheel:
            yield f"{OLDEST} has {pin}, but the oldest version is {floor}"


def _excluded(users: dict[str, list[Requirement]], python: str) -> Iterator[str]:
    """Yield the dependencies whose oldest allowed version does not support a Python version."""
    for name, requirements in users.items():
        try:
            installed = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        needs = installed.get("Requires-Python") or ""
        is_oldest = Version(installed["Version"]) == _floor(requirements)
        if is_oldest and not SpecifierSet(needs).contains(f"{python}.0"):
            yield f"{requirements[0]} needs Python {needs}"


def _version(pin: Requirement) -> str:
    (specifier,) = pin.specifier
    return specifier.version


def _floor(requirements: Iterable[Requirement]) -> Version:
    """Return the oldest version of a package that satisfies all requirements."""
    specifiers = [one for requirement in requirements for one in requirement.specifier]
    floors = [Version(one.version) for one in specifiers if one.operator == ">="]
    return max(floors, default=Version("0"))


# Checks that use the package index


def sets(project: Project) -> dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return the constraints, extras and groups of each set of requirements, keyed by its name."""
    extras = {extra: ("", (extra,), ()) for extra in project.extras}
    return {"base": ("", (), ()), **extras, **ENVIRONMENTS}


def resolve(
    requirements: Iterable[Requirement],
    pins: Iterable[Requirement],
    python: str,
) -> str:
    """Resolve requirements for a Python version. Return the error message, or an empty string."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(_without_marker(pin) for pin in pins), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary=:all:", "--python-version", python]
        command += ["--target", folder, "--constraint", str(constraints)]
        named = [one for one in requirements if one.name not in SOURCE_ONLY]
        command += [_without_marker(requirement) for requirement in named]
        done = subprocess.run(command, capture_output=True, text=True)
    if not done.returncode:
        return ""
    lines = done.stderr.splitlines()
    return "\n".join(line for line in lines if not line.startswith("WARNING"))


def _without_marker(requirement: Requirement) -> str:
    return str(requirement).partition(";")[0].strip()


def main() -> None:
    """Resolve all sets and print the results. Exit with status 1 if a set cannot be installed."""
    project = Project()
    known = sets(project)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", choices=project.pythons)
    parser.add_argument("--only", action="append", choices=known)
    parser.add_argument("--skip", action="append", choices=known, default=[])
    options = parser.parse_args()
    failures = problems(project)
    for failure in failures:
        print(failure)
    for python in options.python or project.pythons:
        for name in options.only or known:
            if name in options.skip:
                print(f"Python {python}, {name}: skipped")
                continue
            constraints, extras, groups = known[name]
            requirements = project.requirements(python, extras, groups)
            pins = project.pins(constraints, python) if constraints else []
            error = resolve(requirements, pins, python)
            print(f"Python {python}, {name}: {error or 'ok'}", flush=True)
            if error:
                failures.append(name)
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
