"""Closes the stores that are open when the interpreter ends, so that they open without a replay of the log."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

from .errors import FlashgrainError

_open: weakref.WeakSet[Any] = weakref.WeakSet()


def remember(store: Any) -> None:
    """Called with each store that is opened."""
    _open.add(store)


@atexit.register
def _close_all() -> None:
    for store in list(_open):
        try:
            store.close()
        except FlashgrainError:
            # A forked child's stores are its parent's; any other store opens as after a crash.
            pass
