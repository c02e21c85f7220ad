"""One file per family of HTTP routes."""
