#!/usr/bin/env python3
"""Coverage of the store's lines and of its ways out after an error, from what llvm-cov exports; see coverage.sh. Standard library only.

Tests, planted bugs and decoders for fuzzing do not count: neither the files nor the `#[cfg(test)]` parts of others. A place that handles an error is a `?`, of which llvm-cov counts the way out apart from the way on,
or the beginning of `Err(..)`, of a closure of `map_err` or of a call that poisons, which were reached if the smallest region of code around them was.

Not every error comes from a drive. Which places cannot be reached by a request that fails is said by hand, with a reason, in coverage_beyond.txt; all others count as I/O errors. Lines
of it that are of no use any more are named.
"""

import collections
import json
import os
import re
import sys

NOT_COUNTED = re.compile(r"/(testing|tests)/|/(tests|explored|planted|speed|broken|trouble)\.rs$")
ERROR = re.compile(r"map_err\((?=\|)|\breturn Err\(|=> Err\(|\bErr\(Error::|\.refuse\(|\bpoison\.by\(")
BEYOND = os.path.join(sys.path[0], "coverage_beyond.txt")


def test_lines(source):
    """The lines, from 1, of items under `#[cfg(test)]`, in code as rustfmt leaves it."""
    lines, found, at = source, set(), 0
    while at < len(lines):
        if lines[at].strip() != "#[cfg(test)]":
            at += 1
            continue
        indent = lines[at][:len(lines[at]) - len(lines[at].lstrip())]
        end = at + 1
        while end < len(lines) and not re.match(rf"{indent}(\}}|\S.*[;,}}]$)", lines[end]):
            end += 1
        found.update(range(at + 1, end + 2))
        at = end + 1
    return found


def read_lines(path):
    """Times each line of each file was run; the largest, as programs share code."""
    files, counts = collections.defaultdict(dict), None
    with open(path, encoding="utf-8") as lcov:
        for line in lcov:
            if line.startswith("SF:"):
                counts = files[line[3:].strip()]
            elif line.startswith("DA:"):
                number, count = map(int, line[3:].split(",")[:2])
                counts[number] = max(counts.get(number, 0), count)
    return files


def read_regions(path, files):
    """Times each region of code was run, by file: from (line, column) to (line, column)."""
    with open(path, encoding="utf-8") as export:
        functions = json.load(export)["data"][0]["functions"]
    regions = {path: collections.Counter() for path in files}
    for function in functions:
        for line, column, end_line, end_column, count, file, _, kind in function["regions"]:
            counts = regions.get(function["filenames"][file])
            if kind == 0 and counts is not None:
                counts[(line, column), (end_line, end_column)] += count
    return regions


def places(source, regions, tests):
    """The line and the count of each place of a file that handles an error."""
    for (start, end), count in regions.items():
        line, column = start
        if end == (line, column + 1) and source[line - 1][column - 1 : column] == "?" and line not in tests:
            yield line, count
    for number, text in enumerate(source, 1):
        code = text.split("//")[0]
        found = ERROR.search(code)
        if not found or number in tests:
            continue
        at = (number, found.end() + 1)
        around = [(start, end) for start, end in regions if start <= at < end]
        if around:
            # The one that begins last and ends first.
            smallest = max(around, key=lambda region: (region[0], [-part for part in region[1]]))
            yield number, regions[smallest]


class Beyond:
    """What is said by hand."""

    def __init__(self):
        with open(BEYOND, encoding="utf-8") as lines:
            rows = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        self.rows = [tuple(part.strip() for part in row.split(" :: ")) for row in rows]
        self.used = set()

    def reason(self, file, text):
        for row in self.rows:
            if row[0] in ("*", file) and (row[1] == "*" or row[1] in text):
                self.used.add(row)
                return row[2]
        return None


def main():
    lcov, export, least = sys.argv[1], sys.argv[2], float(sys.argv[3])
    files = {path: counts for path, counts in read_lines(lcov).items() if not NOT_COUNTED.search(path)}
    sources = {path: open(path, encoding="utf-8").read().split("\n") for path in files}
    tests = {path: test_lines(source) for path, source in sources.items()}
    regions = read_regions(export, files)
    start = len(sys.path[0].rsplit("/", 1)[0]) + len("/crates/store/src/")
    beyond, rows, reached, unreached = Beyond(), [], 0, []
    others = collections.defaultdict(list)
    for path, counts in sorted(files.items()):
        counted = [count for line, count in counts.items() if line not in tests[path]]
        rows.append((path[start:], sum(count > 0 for count in counted), len(counted)))
        for line, count in sorted(places(sources[path], regions[path], tests[path])):
            text = sources[path][line - 1].strip()
            row = f"{path[start:]}:{line}: {text}"
            if count > 0:
                reached += 1
            elif reason := beyond.reason(path[start:], text):
                others[reason].append(row)
            else:
                unreached.append(row)
    print(f"{'file':44} {'lines':>6} {'run':>6} {'%':>6}")
    for path, run, lines in sorted(rows, key=lambda row: row[1] / max(row[2], 1)):
        print(f"{path:44} {lines:6} {run:6} {100 * run / max(lines, 1):6.1f}")
    for reason, found in sorted(others.items()):
        print(f"\nNot reached, and by no I/O error: {reason} ({len(found)})")
        print("\n".join(found))
    print(f"\nPlaces that I/O errors can lead to and that were never reached ({len(unreached)}):")
    print("\n".join(unreached))
    for row in beyond.rows:
        if row not in beyond.used:
            print(f"coverage_beyond.txt: of no use: {' :: '.join(row)}")
    run, lines = sum(row[1] for row in rows), sum(row[2] for row in rows)
    share, apart = 100 * run / max(lines, 1), sum(map(len, others.values()))
    print(
        f"\nstore: {share:.2f} % of {lines} lines run; of places that handle errors, {reached} of {reached + len(unreached)} reached"
        f" ({apart} more have other causes)"
    )
    if share < least:
        sys.exit(f"coverage_report.py: less than {least} % of the lines were run")


if __name__ == "__main__":
    main()
