"""Costs of designs, and advice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flashgrain
from flashgrain import AffineCosts, Design, Records, errors

RECORDS = Records(count=1e8, key_bytes=16, value_bytes=100)
DRIVE = AffineCosts(setup_seconds=60e-6, transfer_seconds_per_byte=0.5e-9)


def test_costs_of_a_btree_have_a_best_node() -> None:
    def seconds(node_bytes: float) -> float:
        found = flashgrain.cost(Design.btree(node_bytes), "point_hit", DRIVE, records=RECORDS, cache_bytes=1e8)
        assert found is not None and found.binding == "device"
        return found.latency_seconds

    # Memory has the upper nodes, and few leaves: a query reads a leaf, and at most one node above it.
    leaf = 60e-6 + 4096 * 0.5e-9
    assert 0.95 * leaf < seconds(4096) < 2 * leaf
    assert seconds(4096) < seconds(1 << 22)


def test_structures_differ_as_the_papers_say() -> None:
    def cost(design: Design, operation: str) -> float:
        found = flashgrain.cost(
            design, operation, DRIVE, records=RECORDS, cache_bytes=1e8  # type: ignore[arg-type]
        )
        assert found is not None
        return found.device_seconds

    btree, lsm = Design.btree(16384), Design.lsm_tree(filter_bits_per_key=10.0)
    be_tree = Design.b_epsilon_tree(1 << 20, fanout=32)
    assert cost(lsm, "insert") < cost(be_tree, "insert") < cost(btree, "insert")
    assert cost(btree, "point_hit") < cost(Design.b_epsilon_tree(1 << 20, fanout=32, whole_nodes=True), "point_hit")
    assert "LSM" in lsm.name
    for other in (Design.out_of_place_btree(4096, write_unit_bytes=1 << 20), Design.pdam_btree(4096, parallelism=8)):
        assert cost(other, "point_hit") > 0
    demand = flashgrain.demand(btree, "update", records=RECORDS, cache_bytes=1e8)
    assert demand["write_amplification"] > 1 and demand["transfers"]


def test_costs_on_a_fitted_drive(samples: flashgrain.Samples) -> None:
    models = samples.fit(resamples=10)
    found = flashgrain.cost(
        Design.btree(4096), "range", models, records=RECORDS, cache_bytes=1e9, range_bytes=1e5, clients=8
    )
    assert found is not None and found.operations_per_second > 0
    # No writes were measured.
    assert flashgrain.cost(Design.btree(4096), "update", models, records=RECORDS, cache_bytes=1e9) is None


def test_arguments_are_checked() -> None:
    for make in (
        lambda: Design.btree(0),
        lambda: Design.btree(float("nan")),
        lambda: Design.btree(10**400),
        lambda: Design.btree(-(10**400)),
        lambda: Design.lsm_tree(fanout=10**400),
        lambda: AffineCosts(10**400, 0),
        lambda: Design.b_epsilon_tree(4096, fanout=1),
        lambda: Design.lsm_tree("wide"),
        lambda: Design.lsm_tree(fanout=float("inf")),
        lambda: AffineCosts(-1, 0),
        lambda: flashgrain.cost(Design.btree(4096), "range", DRIVE, records=RECORDS, cache_bytes=1e9),
        lambda: flashgrain.cost(
            Design.btree(4096), "grow", DRIVE, records=RECORDS, cache_bytes=1e9  # type: ignore[arg-type]
        ),
        lambda: flashgrain.cost(
            Design.btree(4096), "insert", DRIVE, records=Records(0, 16, 100), cache_bytes=1e9
        ),
    ):
        with pytest.raises(errors.ArgumentError):
            make()
    with pytest.raises(TypeError):
        flashgrain.cost(
            Design.btree(4096), "insert", "disk", records=RECORDS, cache_bytes=1  # type: ignore[arg-type]
        )


def test_advice_for_a_workload(profile_path: Path) -> None:
    advice = flashgrain.advise(flashgrain.Profile.load(profile_path), "ycsb-a", ["rocksdb", "sqlite"])
    ranking = advice.ranking()
    assert len(advice.designs) > 2 and list(ranking["design"]) == advice.designs
    rates = ranking["rate_per_second.value"]
    assert (np.diff(rates) <= 0).all() and (ranking["rate_per_second.low"] <= rates).all()
    assert "PRAGMA" in advice.file("sqlite") and len(advice.settings("rocksdb")["name"]) > 3
    with pytest.raises(KeyError):
        advice.file("mariadb")
    text = flashgrain.workload_preset("ycsb-c")
    assert flashgrain.advise(profile_path, text).designs
    for workload in ("ycsb-z", "operations = 3", "count ="):
        with pytest.raises(errors.ArgumentError):
            flashgrain.advise(profile_path, workload)
    with pytest.raises(errors.ArgumentError, match="oracle"):
        flashgrain.advise(profile_path, "ycsb-a", ["oracle"])
