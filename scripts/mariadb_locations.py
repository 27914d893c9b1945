"""Rows of scripts/mariadb-locations.sh: from results of `flashgrain trace check --json` for one recording."""

import json
import sys

page_size, doublewrite, *results = sys.argv[1:]
results = [json.load(open(path)) for path in results]


def file_of(name):
    """The part of InnoDB that a file is."""
    name = name.rsplit("/", 1)[-1]
    if name.startswith("ibdata"):
        return "system tablespace (undo, doublewrite)"
    if name.startswith("ib_logfile"):
        return "redo log"
    return "table" if name == "t.ibd" else None


def share(part, whole):
    return f"{100 * part / whole:.1f} %".replace(".0 %", " %") if whole else "–"


def cells(group):
    """Reads at hot locations, and for rules 2, 3 and 4 the share of the requests that a rule judges."""
    broken = [group["rules"][rule - 1] for rule in (2, 3, 4)]
    rules = ", ".join(share(rule["broken"], rule["judged"]) if rule else "–" for rule in broken)
    at_hot = group["at_hot"] or {"reads": 0}
    return [share(at_hot["reads"], group["reads"]["requests"]), rules]


for name in ("table", "system tablespace (undo, doublewrite)", "redo log"):
    found = [next((f for f in result["files"] if file_of(f["name"]) == name), None) for result in results]
    if None in found:
        continue
    counts = [str(found[0][of]["requests"]) for of in ("reads", "writes")]
    row = [page_size, "on" if doublewrite == "1" else "off", name, *counts]
    print("| " + " | ".join(row + [cell for group in found for cell in cells(group)]) + " |", flush=True)
