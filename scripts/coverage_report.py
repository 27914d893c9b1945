#!/usr/bin/env python3
"""Line coverage of the store from what llvm-cov exports; see coverage.sh. Standard library only.

Tests, planted bugs and decoders for fuzzing do not count: neither the files nor the `#[cfg(test)]` parts of others. A place that handles an error is a `?`, `return Err`, `map_err` or a word of poison; of a `?`, the
way out counts, which llvm-cov counts apart from the way on.
"""

import collections
import json
import re
import sys

NOT_COUNTED = re.compile(r"/(testing|tests)/|/(tests|explored|planted|speed)\.rs$")
ERROR = re.compile(r"map_err|return Err\(|=> Err\(|\bErr\(Error::|poison\(|\.refuse\(")


def test_lines(source):
    """The lines, from 1, of items under `#[cfg(test)]`, in code as rustfmt leaves it."""
    lines, found, at = source, set(), 0
    while at < len(lines):
        if lines[at].strip() != "#[cfg(test)]":
            at += 1
            continue
        indent = lines[at][:len(lines[at]) - len(lines[at].lstrip())]
        end = at + 1
        while end < len(lines) and not re.match(rf"{indent}(\}}|.*;$|.*,$|.*\}}$)", lines[end]):
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


def read_ways_out(path, files):
    """Times each `?` was left by: file, line and column."""
    with open(path, encoding="utf-8") as export:
        functions = json.load(export)["data"][0]["functions"]
    counts = collections.Counter()
    for function in functions:
        for line, column, end_line, end_column, count, file, _, kind in function["regions"]:
            place = (function["filenames"][file], line, column)
            # A region of code, as long as the sign.
            if kind == 0 and line == end_line and end_column == column + 1 and place[0] in files:
                counts[place] += count
    return counts


def main():
    lcov, export, least = sys.argv[1], sys.argv[2], float(sys.argv[3])
    files = {path: counts for path, counts in read_lines(lcov).items() if not NOT_COUNTED.search(path)}
    sources = {path: open(path, encoding="utf-8").read().split("\n") for path in files}
    tests = {path: test_lines(source) for path, source in sources.items()}
    rows, unreached, reached = [], [], 0
    for path, counts in files.items():
        counted = {line: count for line, count in counts.items() if line not in tests[path]}
        rows.append((path, sum(count > 0 for count in counted.values()), len(counted)))
        for line, count in sorted(counted.items()):
            if ERROR.search(sources[path][line - 1]):
                reached += count > 0
                unreached += [(path, line)] if count == 0 else []
    for (path, line, column), count in read_ways_out(export, files).items():
        if line in tests[path] or sources[path][line - 1][column - 1:column] != "?":
            continue
        reached += count > 0
        unreached += [(path, line)] if count == 0 else []
    start = len(sys.path[0].rsplit("/", 1)[0]) + len("/crates/store/src/")
    print(f"{'file':44} {'lines':>6} {'run':>6} {'%':>6}")
    for path, run, lines in sorted(rows, key=lambda row: row[1] / max(row[2], 1)):
        print(f"{path[start:]:44} {lines:6} {run:6} {100 * run / max(lines, 1):6.1f}")
    unreached = sorted(set(unreached))
    print(f"\nPlaces that handle errors and were never reached ({reached} others were):")
    for path, line in unreached:
        print(f"{path[start:]}:{line}: {sources[path][line - 1].strip()}")
    run, lines = sum(row[1] for row in rows), sum(row[2] for row in rows)
    share = 100 * run / max(lines, 1)
    print(f"\nstore: {share:.2f} % of {lines} lines run; {reached} of {reached + len(unreached)} places that handle errors reached")
    if share < least:
        sys.exit(f"coverage_report.py: less than {least} % of the lines were run")


if __name__ == "__main__":
    main()
