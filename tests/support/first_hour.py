"""Run the commands of the READMEs in a new environment: ``make first-hour``.

The program installs the checkout into a new environment, runs the code blocks of README.md and
README.zh.md, and compares their output. Then it builds the partner packages, installs their wheels,
and runs their READMEs.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

REPO = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ASKS_A_MODEL = "nodekin ask"


def run(what: str, command: list[str], folder: Path, locale: str = "C.UTF-8") -> str:
    """Run a command and print how long it took. If it fails, print its output and exit."""
    begun = time.perf_counter()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "100"}
    environment["LC_ALL"] = locale
    environment |= {name: os.environ[name] for name in os.environ if name.startswith("PIP_")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    sys.stdout.write(f"{time.perf_counter() - begun:7.1f} s  {what}\n")
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def play(page: Path, folder: Path, environment: str = "environment") -> None:
    """Run the code blocks of a page. Each Python block runs in its own process."""
    bin = folder / environment / "bin"
    locale = "zh_CN.UTF-8" if page.name.endswith(".zh.md") else "C.UTF-8"
    printed = ""
    for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            line, _, expected = body.removeprefix("$ ").partition("\n")
            if line.startswith(ASKS_A_MODEL):
                continue
            name, *words = shlex.split(line)
            printed = run(line, [str(bin / name), *words], folder, locale)
        elif kind == "python":
            first = body.partition("\n")[0]
            command = [str(bin / "python"), "-c", body]
            printed = run(first, command, folder, locale)
            continue
        else:
            expected = body
        if not doctest.OutputChecker().check_output(expected, printed, FLAGS):
            sys.exit(f"expected\n{expected}\nbut got\n{printed}")


def play_partners(source: Path, folder: Path) -> None:
    """Build the partner packages, install their wheels, and run their READMEs."""
    packages = sorted(path.parent for path in (source / "packaging").glob("*/pyproject.toml"))
    wheels = folder / "wheels"
    pip = [str(folder / "environment" / "bin" / "python"), "-m", "pip"]
    build = [*pip, "wheel", "-q", "--no-deps", "-w", str(wheels)]
    run("pip wheel of all packages", [*build, *map(str, (source, *packages))], folder)
    for package in packages:
        venv.create(folder / package.name, with_pip=True)
        install = [str(folder / package.name / "bin" / "python"), "-m", "pip", "install", "-q"]
        run(f"pip install {package.name}", [*install, "-f", str(wheels), package.name], folder)
        play(package / "README.md", folder, package.name)


def main() -> None:
    """Run all steps in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(REPO / "examples" / "files", folder / "examples" / "files")
        venv.create(folder / "environment", with_pip=True)
        pip = [str(folder / "environment" / "bin" / "python"), "-m", "pip", "install", "-q"]
        ignored = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__")
        source = shutil.copytree(REPO, folder / "source", ignore=ignored)
        run("pip install nodekin[files]", [*pip, f"{source}[files]"], folder)
        frameworks = f"{source}[langchain,llama-index]"
        run("pip install nodekin[langchain,llama-index]", [*pip, frameworks], folder)
        for page in ("README.md", "README.zh.md"):
            shutil.rmtree(folder / ".nodekin", ignore_errors=True)
            play(REPO / page, folder)
        play_partners(source, folder)


if __name__ == "__main__":
    main()
