"""StoreError: a model cannot be found, named, fetched or kept."""


class StoreError(Exception):
    """The message is for the person at the terminal: what was wanted, what went wrong, what to do."""
