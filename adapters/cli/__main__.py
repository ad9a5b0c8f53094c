"""Let ``python -m nodekin.adapters.cli`` do what ``nodekin`` does."""

from . import main

if __name__ == "__main__":
    main()
