"""Let ``python -m nodekin.adapters.cli`` do what ``nodekin`` does."""

from .app import main

if __name__ == "__main__":
    main()
