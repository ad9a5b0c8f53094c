"""The command ``nodekin``: index a folder, search it, ask it; from any shell."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    try:
        from .app import run  # an interrupt may come while modules are imported

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("nodekin: interrupted\n")
        sys.exit(130)
