"""What people ask LangChain's own retrievers for in vain, in one script."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "langchain_index.py"


def test_it_runs_and_says_what_happened(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    added = "{'num_added': 3, 'num_updated': 0, 'num_skipped': 0, 'num_deleted': 0}"
    assert f"full         {added}\n             3 parents, 6 children" in shown
    assert "茶[7:14] = 红茶是发酵的。" in shown
    assert "'num_deleted': 1}\n             3 parents, 5 children" in shown  # the old version went
    assert "tea[0:25] = Oolong is half fermented." in shown
    assert "'num_skipped': 2, 'num_deleted': 1}\n             2 parents, 3 children" in shown
    assert shown.endswith("rivers       []\n")
