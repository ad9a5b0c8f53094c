"""Interrupts (Ctrl-C) while modules load."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["app", "search_command", "output"])
def test_interrupt_of_import_is_one_line(here, module, interrupts):
    # A module that is interrupted while it loads, as by Ctrl-C.
    program = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'nodekin.adapters.cli.{module}':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.argv = ['nodekin', 'search', 'tea', '--in', 'docs']\n"
        "from nodekin.adapters.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "nodekin: interrupted\n")
