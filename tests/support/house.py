"""Measure the source: sizes, imports, names. ``python tests/support/house.py`` prints it all.

With ``picture`` it draws the packages for docs/architecture.md; with ``words FOLDER`` it lists the
names of a folder that have a word of the two lists in them.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]
ROOMS = ("nodegraph", "retrievers", "adapters")
ISLANDS = (
    *("adapters/engines", "adapters/files", "adapters/serve", "adapters/mcp"),
    *("adapters/evaluation", "retrievers/evaluation"),
)

# Words that say something only to whoever wrote the code. The field has a word for each.
DIALECT = frozenset(
    """
    each found made asked asking asks known kept told tell tells telling teller said says speak
    given wanted begun began gone there here mine ours theirs alone whole held heard hear hears
    took taken left drafts needs pools marks slot pieces piece forest around within prose
    cutting unite united fits remember remembered forget forgotten recall shown bare came forms
    form facts owed lent unread
    """.split()
)

# The second list: each has a standard word. "end" (of a span) and "number" are ordinary words too,
# so that "begin" stands for the pair, and ids that are called numbers are left to the reader.
SECOND = frozenset(
    """
    begin begins begun place places one own some whole rest mark marks most few fewest longest
    room rooms shown linked portion breadth gone goes tell tells learned known tags said
    """.split()
)


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def islands(path: Path) -> str | None:
    """Return the island that a file belongs to; None for the core."""
    return next((island for island in ISLANDS if short(path).startswith(f"{island}/")), None)


def files(*, faces: bool = True) -> list[Path]:
    """Return the source files, with or without the packages' ``__init__.py``."""
    found = sorted(path for room in ROOMS for path in (REPO / room).rglob("*.py"))
    return [path for path in found if faces or path.name != "__init__.py"]


def short(path: Path) -> str:
    """Return a path below the repository, with slashes."""
    return path.relative_to(REPO).as_posix()


def code_lines(path: Path) -> tuple[int, int]:
    """Count the lines of code (no docstrings, comments, blanks), and those of docstrings."""
    docs: set[int] = set()
    for node in ast.walk(tree(path)):
        for child in node.body if isinstance(getattr(node, "body", None), list) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                docs |= set(range(child.lineno, (child.end_lineno or 0) + 1))
    lines = path.read_text(encoding="utf-8").splitlines()
    code = (line.strip() for number, line in enumerate(lines, 1) if number not in docs)
    return sum(1 for line in code if line and not line.startswith("#")), len(docs)


def _module(base: Path, name: str) -> Path | None:
    place = base / name.replace(".", "/") if name else base
    for path in (place.with_suffix(".py") if name else None, place / "__init__.py"):
        if path is not None and path.exists():
            return path
    return None


@cache
def imports(path: Path) -> frozenset[Path]:
    """Return the files that a file imports from, those it needs for its types only included."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[Path]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1]
            package = base / node.module.replace(".", "/") if node.module else base
            for alias in node.names:  # a module of that name, or a name in the module
                target = _module(package, alias.name) or _module(base, node.module or "")
                if target is not None and target != path:
                    yield target

        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            for constant in node.args:  # importing by a string is importing
                if isinstance(constant, ast.Constant) and str(constant.value).startswith("."):
                    name = str(constant.value)
                    dots = len(name) - len(name.lstrip("."))
                    target = _module(path.parents[dots - 1], name[dots:])
                    if target is not None and target != path:
                        yield target


def through_a_face() -> list[tuple[str, str]]:
    """List imports of a neighbour's names through its ``__init__.py``, which is for users."""
    return sorted(
        {
            (short(path), short(target))
            for path in files(faces=False)
            for target in imports(path)
            if target.name == "__init__.py"
        }
    )


def rings() -> list[list[str]]:
    """List the files that import each other in a ring, types included (Tarjan's algorithm)."""
    arrows = {path: imports(path) for path in files()}
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    result: list[list[str]] = []

    def visit(path: Path) -> None:
        index[path] = low[path] = len(index)
        stack.append(path)
        for target in arrows[path]:
            if target not in index:
                visit(target)
                low[path] = min(low[path], low[target])
            elif target in stack:
                low[path] = min(low[path], index[target])
        if low[path] == index[path]:
            ring = [stack.pop()]
            while ring[-1] != path:
                ring.append(stack.pop())
            if len(ring) > 1:
                result.append(sorted(map(short, ring)))

    for path in arrows:
        if path not in index:
            visit(path)
    return result


def identifiers(path: Path) -> Counter[str]:
    """Count the names in a file, keywords apart."""
    with path.open("rb") as file:
        return Counter(
            token.string
            for token in tokenize.tokenize(file.readline)
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string)
        )


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def dialect(
    paths: Iterable[Path], words: frozenset[str] = DIALECT
) -> tuple[int, int, Counter[str]]:
    """Count the names that have a word of the list in them, all names, and which those are."""
    names: Counter[str] = Counter()
    for path in paths:
        names += identifiers(path)
    own = (name for name in names if not hasattr(builtins, name))  # not ModuleNotFoundError
    private = Counter({name: names[name] for name in own if _words(name) & words})
    return private.total(), names.total(), private


def twice(names: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Keep what stands in several places."""
    return {name: places for name, places in names.items() if len(places) > 1}


def file_names() -> dict[str, list[str]]:
    """Map the name of each file to where it is."""
    names: dict[str, list[str]] = defaultdict(list)
    for path in files(faces=False):
        names[path.name].append(short(path))
    return names


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield all classes with their files."""
    for path in files(faces=False):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def class_names() -> dict[str, list[str]]:
    """Map the name of each class to where it is."""
    names: dict[str, list[str]] = defaultdict(list)
    for path, node in classes():
        names[node.name].append(short(path))
    return names


def changeable_dataclasses() -> set[str]:
    """Return the names of the dataclasses that are not frozen."""
    decorators = {
        node.name: ast.unparse(decorator)
        for _, node in classes()
        for decorator in node.decorator_list
    }
    return {
        name
        for name, decorator in decorators.items()
        if decorator.startswith("dataclass") and "frozen=True" not in decorator
    }


def _fields(name: str, classes_by_name: Mapping[str, ast.ClassDef]) -> list[str]:
    """Return the fields of a class, those that it inherits included."""
    if name not in classes_by_name:
        return []
    node = classes_by_name[name]
    inherited = [f for b in node.bases for f in _fields(ast.unparse(b), classes_by_name)]
    return inherited + [ast.unparse(s.target) for s in node.body if isinstance(s, ast.AnnAssign)]


def constructors() -> dict[str, int]:
    """Map each class to how many arguments it takes, those in ``**options`` counted."""
    named = {node.name: node for _, node in classes()}
    counts = {}
    for _, node in classes():
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and child.name == "__init__":
                args = child.args
                counts[node.name] = len(args.posonlyargs + args.args + args.kwonlyargs) - 1
                if args.kwarg is not None and args.kwarg.annotation is not None:
                    kinds = [n for n in ast.walk(args.kwarg.annotation) if isinstance(n, ast.Name)]
                    counts[node.name] += sum(len(_fields(kind.id, named)) for kind in kinds)
    return counts


def wide_constructors(most: int = 10) -> dict[str, int]:
    """Return the constructors with more arguments than that."""
    return {name: count for name, count in sorted(constructors().items()) if count > most}


def public_names() -> dict[str, list[str]]:
    """Map each package that users import from to the names in its stub."""
    return {
        short(stub.parent): [
            alias.asname or alias.name
            for node in tree(stub).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        for room in ROOMS
        for stub in sorted((REPO / room).rglob("*.pyi"))
    }


def methods(name: str) -> list[str]:
    """Return the public methods and properties of a class."""
    (node,) = (node for _, node in classes() if node.name == name)
    functions = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.name for function in functions if not function.name.startswith("_")]


def untyped_options(room: str = "retrievers") -> list[str]:
    """List the functions of a room that take ``**anything: Any``."""
    return [
        f"{short(path)}: {node.name}"
        for path in files()
        if short(path).startswith(room)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.args.kwarg is not None
        and node.args.kwarg.annotation is not None
        and ast.unparse(node.args.kwarg.annotation) == "Any"
    ]


def without_tests() -> list[str]:
    """List the source files that have no test at the mirrored path."""
    return [
        short(path)
        for path in files(faces=False)
        if not (REPO / "tests" / path.relative_to(REPO).parent / f"test_{path.name}").exists()
    ]


def packages() -> dict[str, set[str]]:
    """Map each package to the packages of the project that it imports from."""
    arrows: dict[str, set[str]] = {short(p.parent): set() for p in files() if "__init__" in p.name}
    for path in files():
        source = short(path.parent)
        for target in imports(path):
            other = short(target.parent)
            if other != source and target.parent not in path.parents:
                arrows[source].add(other)
    return arrows


def picture() -> str:
    """Draw the packages as a Mermaid diagram: who imports from whom, what follows left out.

    An arrow is left out where another way leads there too, and from a package to those in it.
    """
    arrows = {
        source: {t for t in targets if source not in t} for source, targets in packages().items()
    }
    reach: dict[str, set[str]] = {}

    def below(source: str) -> set[str]:
        if source not in reach:
            reach[source] = set()  # there is no ring: the line below is its first and last value
            reach[source] = arrows[source].union(*(below(target) for target in arrows[source]))
        return reach[source]

    lines = ["flowchart TD"]
    for source in sorted(arrows):
        direct = {
            target
            for target in arrows[source]
            if not any(target in below(other) for other in arrows[source])
        }
        lines += [
            f"    {source.replace('/', '.')} --> {t.replace('/', '.')}" for t in sorted(direct)
        ]
    return "```mermaid\n" + "\n".join(lines) + "\n```"


def _share(paths: Iterable[Path], words: frozenset[str]) -> float:
    private, names, _ = dialect(paths, words)
    return private / max(names, 1)


def _report() -> Iterator[str]:
    code = {path: code_lines(path)[0] for path in files()}
    core = sum(count for path, count in code.items() if islands(path) is None)
    sources = files(faces=False)
    names = {name for listed in public_names().values() for name in listed}
    arguments = constructors()
    widest = sorted(arguments, key=lambda name: -arguments[name])[:5]
    tests = {short(p): p.read_text("utf8").count("\n") for p in (REPO / "tests").rglob("*.py")}
    yield f"lines of code {sum(code.values())} (goal 43,500), without the islands {core} (33,500)"
    yield f"files besides faces {len(sources)} (goal 250)"
    yield f"public names {len(names)} (goal 220)"
    yield f"public methods of NodeGraph {len(methods('NodeGraph'))} (goal 24)"
    yield f"most arguments {', '.join(f'{name} {arguments[name]}' for name in widest)} (goal 10)"
    yield f"rings of imports {rings()} (goal none)"
    yield f"first list of words {_share(files(), DIALECT):.2%}"
    yield f"second list of words {_share(files(), SECOND):.2%} (goal 0.5 %)"
    yield f"lines of tests {sum(tests.values())}"
    for face in ("adapters/langchain", "adapters/llama_index"):
        lines = sum(count for name, count in tests.items() if name.startswith(f"tests/{face}/"))
        own = sum(count for path, count in code.items() if short(path).startswith(f"{face}/"))
        yield f"    {face}: {lines / max(own, 1):.2f} lines a line of code (goal 2.2)"
    yield ""
    for part in (*ROOMS, *sorted(packages())):
        here = [path for path in files() if short(path).startswith(part)]
        docs = sum(code_lines(path)[1] for path in here)
        yield (
            f"{part:28} {sum(code[p] for p in here):6} code {docs:5} docstrings "
            f"{_share(here, DIALECT):6.1%} first {_share(here, SECOND):6.1%} second list"
        )
    yield f"first list: {dialect(files())[2].most_common(40)}"
    yield f"second list: {dialect(files(), SECOND)[2].most_common(40)}"
    yield f"imports through a face: {through_a_face()}"
    yield f"file names in two places: {twice(file_names())}"
    yield f"class names in two places: {twice(class_names())}"
    yield f"untyped options: {untyped_options()}"
    yield f"without a test at the mirrored path: {len(without_tests())} {without_tests()}"


if __name__ == "__main__":
    if "picture" in sys.argv:
        text = picture()
    elif "words" in sys.argv:
        text = "\n".join(
            f"{count:5} {name}"
            for words in (DIALECT, SECOND)
            for name, count in dialect(
                (path for path in files() if short(path).startswith(sys.argv[-1])), words
            )[2].most_common()
        )
    else:
        text = "\n".join(_report())
    sys.stdout.write(f"{text}\n")
