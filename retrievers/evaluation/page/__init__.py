"""An evaluation as a page for a browser, and as plots."""
