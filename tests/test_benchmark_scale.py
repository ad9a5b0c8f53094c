"""The benchmark of large graphs in a file, at small sizes, and its table on the page."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("harness", "speed", "scale")
WORDS = ("tea", "river", "kettle", "lantern", "harbor", "maple", "engine", "violin", "winter")


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")  # which the benchmarks set
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    forget_benchmarks()
    import scale

    yield scale
    forget_benchmarks()


def forget_benchmarks():
    """Remove the modules, which other tests may have imported."""
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def case_of(scale, tmp_path):
    """Return a function that makes the case of a system over 2,500 texts."""
    rng = random.Random(69)
    texts = [f"The {' '.join(rng.sample(WORDS, 3))} is number {n}." for n in range(2_500)]
    questions = [f"Which {rng.choice(WORDS)} has number {n}?" for n in range(200)]
    scale.write_texts(tmp_path, texts, questions)

    def make(system, kind):
        return scale.Case(system, kind, "English", len(texts), str(tmp_path))

    return make


@pytest.mark.parametrize("kind", ["lines", "passages"])
@pytest.mark.parametrize("system", ["nodekin", "tantivy", "bm25s"])
def test_row_has_all_figures(scale, case_of, system, kind):
    if system != "nodekin":
        pytest.importorskip(system)
    name, *figures = scale.row(case_of(system, kind))
    assert name.strip("*") == system
    assert len(figures) == len(scale.HEADER) - 2
    edit = figures.pop()
    assert (edit == "a build") == (system == "bm25s")
    assert all(float(figure.replace(",", "")) >= 0 for figure in figures)


@pytest.mark.parametrize(("kind", "documents"), [("lines", 1_250), ("passages", 2_500)])
def test_pages_have_all_texts(scale, case_of, kind, documents):
    pages = [*scale.pages(case_of("nodekin", kind))]
    assert len(pages) == documents
    assert pages[0].texts[0].endswith("is number 0.")
    assert sum(len(page.texts) for page in pages) == 2_500


@pytest.mark.parametrize("system", ["nodekin", "tantivy", "bm25s"])
def test_filter_returns_texts_of_one_part(scale, case_of, system):
    if system != "nodekin":
        pytest.importorskip(system)
    case = case_of(system, "passages")
    case.store.mkdir()
    engine = scale.SYSTEMS[system](case)
    engine.build(scale.pages(case))
    found = engine.ask("Which kettle is by the river?", 42)
    assert len(found) == 10
    assert {int(text.rpartition(" ")[2][:-1]) % scale.PARTS for text in found} == {42}


def test_missing_package_is_a_row(scale, case_of, monkeypatch):
    def absent(script, work):
        raise ImportError("no tantivy", name="tantivy")

    monkeypatch.setattr(scale, "in_new_process", absent)
    name, note, *cells = scale.row(case_of("tantivy", "lines"))
    assert (name, note) == ("tantivy", "not installed: tantivy")
    assert len(cells) == len(scale.HEADER) - 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_other_processes_are_measured(scale):
    with (
        scale.OtherProcesses() as others,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
    ):
        until = time.monotonic() + 20
        while not others.peaks and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
    assert others.peaks[process.pid] > 0


def test_scale_page_matches_results(scale):
    harness = sys.modules["harness"]
    page = harness.SCALE_PAGE.read_text(encoding="utf-8")
    assert page == harness.scale_page(), "run python benchmarks/harness.py"
