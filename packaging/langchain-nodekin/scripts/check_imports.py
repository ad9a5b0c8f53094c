"""Check that each of the given Python files can be imported."""

import runpy
import sys
import traceback

if __name__ == "__main__":
    failed = False
    for file in sys.argv[1:]:
        try:
            runpy.run_path(file)
        except Exception:
            failed = True
            sys.stderr.write(f"{file}\n")
            traceback.print_exc()
    sys.exit(int(failed))
