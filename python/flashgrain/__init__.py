"""Flashgrain: profiles of drives, cost models, simulated drives, and an embedded key-value store.

    store = flashgrain.Store.open_or_create("fruit.flashgrain")
    samples = flashgrain.Samples.read_csv("samples.csv")
    models = samples.fit()
    drive = flashgrain.Drive("970evo")
"""

from __future__ import annotations

from collections.abc import MutableMapping

from . import errors
from ._flashgrain import (
    AffineCosts,
    Batch,
    Design,
    Range,
    Records as RecordIterator,
    Snapshot,
    Store,
    Transaction,
    Tree,
    __version__,
    drive_presets,
    workload_preset,
)
from .costs import Advice, Cost, Records, advise, cost, demand
from .drives import Drive, Latencies, Run
from .errors import ConflictError, FlashgrainError
from .models import Comparison, Estimate, Models, Parameter, Samples
from .profiles import Profile
from .studies import StudyAnswer, load_studies

MutableMapping.register(Tree)

__all__ = [
    "Advice",
    "AffineCosts",
    "Batch",
    "Comparison",
    "ConflictError",
    "Cost",
    "Design",
    "Drive",
    "Estimate",
    "FlashgrainError",
    "Latencies",
    "Models",
    "Parameter",
    "Profile",
    "Range",
    "RecordIterator",
    "Records",
    "Run",
    "Samples",
    "Snapshot",
    "Store",
    "StudyAnswer",
    "Transaction",
    "Tree",
    "__version__",
    "advise",
    "cost",
    "demand",
    "drive_presets",
    "errors",
    "load_studies",
    "workload_preset",
]
