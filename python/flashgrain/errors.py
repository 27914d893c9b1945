"""The exceptions of Flashgrain: one class for each kind of failure, all of them `FlashgrainError`."""

from __future__ import annotations


class FlashgrainError(Exception):
    """Base class of all errors of this package."""


class ArgumentError(FlashgrainError, ValueError):
    """An argument out of its range: a key that is too long, options that contradict each other, a load that
    makes no sense on a drive, samples that cannot be."""


class LockedError(FlashgrainError):
    """This process or another one has the store open."""


class NotFoundError(FlashgrainError, LookupError):
    """No store at that place, or no tree of that name."""


class ExistsError(FlashgrainError):
    """There is something already where a store or a tree was to be created."""


class FormatVersionError(FlashgrainError):
    """The store was written by another version of Flashgrain."""


class HandleError(FlashgrainError):
    """A tree of another store, or one that was dropped."""


class ConflictError(FlashgrainError):
    """Another commit changed one of the keys that the transaction writes: run it again."""


class FullError(FlashgrainError):
    """The device has no room left. Reads go on."""


class NotDurableError(FlashgrainError):
    """The commit is made, but not durable before the next checkpoint."""


class TreeFailedError(FlashgrainError):
    """Background work of a tree failed: it takes no writes until that is done."""


class PoisonedError(FlashgrainError):
    """An earlier write failed, so nothing more can be promised durable: open the store again."""


class CorruptError(FlashgrainError):
    """Bytes on the device are not those that were written."""


class DeviceError(FlashgrainError, OSError):
    """A device refused a request; `errno` is the operating system's number, or None."""


class OperatorError(FlashgrainError):
    """A merge operator is missing, or has failed."""


class ProfileError(FlashgrainError, ValueError):
    """A file is no profile, is damaged, or comes from a newer version of Flashgrain."""


class ReadOnlyError(FlashgrainError):
    """A write to a store that was opened read-only, or to a snapshot."""


class ClosedError(FlashgrainError, ValueError):
    """The store, snapshot, transaction or batch has ended: the message says which, and how."""


class ForkedError(FlashgrainError):
    """The store was opened by the process that this one was forked from: open it after forking."""


__all__ = [
    "ArgumentError",
    "ClosedError",
    "ConflictError",
    "CorruptError",
    "DeviceError",
    "ExistsError",
    "FlashgrainError",
    "ForkedError",
    "FormatVersionError",
    "FullError",
    "HandleError",
    "LockedError",
    "NotDurableError",
    "NotFoundError",
    "OperatorError",
    "PoisonedError",
    "ProfileError",
    "ReadOnlyError",
    "TreeFailedError",
]
