"""The command ``nodekin``: index a folder, search it, ask it; from any shell."""

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    gc.set_threshold(100_000)  # most objects live until the end
    try:
        from .app import app  # an interrupt may come while modules are imported

        app()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("nodekin: interrupted\n")
        sys.exit(130)
