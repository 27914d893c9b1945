#!/usr/bin/env python3
"""Runs SQLite's tests with databases in a layout, each file of tests in a process of its own, and again with SQLite's
own VFS where some fail: `sqlite-veryquick.sh` calls it.

A test counts against the layout if it fails with it and not with SQLite's own VFS, with as many bytes of each page
reserved. Files of tests that write into databases without SQLite, or count bytes of files, are named in
`sqlite_layouts.txt`, with the reason.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


def run(arguments, name, environment):
    """Failed tests of a file, how many ran, and whether it came to its end."""
    folder = arguments.folder / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if arguments.user:
        shutil.chown(folder, *arguments.user)
    command = [str(arguments.testfixture), str(arguments.source / "test/permutations.test"), "veryquick", name]
    if arguments.user:
        command = ["setpriv", f"--reuid={arguments.user[0]}", f"--regid={arguments.user[1]}", "--clear-groups"] + command
    environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), **environment}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=600, check=False)
        text = done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
    (arguments.folder / "last.log").write_text(text)
    failed = set()
    for line in re.findall(r"^!Failures on these tests:(.*)$", text, re.M):
        failed.update(line.split())
    failed.update(re.findall(r"^! (\S+) expected:", text, re.M))
    ended = re.search(r"^(\d+) errors out of (\d+) tests", text, re.M)
    count = int(ended[2]) if ended else len(re.findall(r"\.\.\. Ok$", text, re.M))
    return failed, count, bool(ended), text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--testfixture", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True, help="SQLite's source")
    parser.add_argument("--folder", type=Path, required=True, help="where tests run")
    parser.add_argument("--names", type=Path, required=True, help="names of files of tests, one a line")
    parser.add_argument("--extension", required=True)
    parser.add_argument("--layout", required=True)
    parser.add_argument("--start", required=True, help="offset of the database in its file")
    parser.add_argument("--reserve", required=True, help="bytes that the layout needs of each page")
    parser.add_argument("--user", help="USER:GROUP of the tests")
    arguments = parser.parse_args()
    arguments.user = arguments.user.split(":") if arguments.user else None
    for path in ("testfixture", "source", "folder", "names"):
        setattr(arguments, path, getattr(arguments, path).resolve())
    arguments.folder.mkdir(exist_ok=True, parents=True)
    known = set()
    for line in (Path(__file__).parent / "sqlite_layouts.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, layouts = line.split()
            if layouts == "any" or f"+{layouts}" in arguments.layout:
                known.add(name)
    reserve = {"FLASHGRAIN_TEST_RESERVE": arguments.reserve}
    layout = {**reserve, "FLASHGRAIN_EXTENSION": arguments.extension, "FLASHGRAIN_LAYOUT": arguments.layout,
              "FLASHGRAIN_TEST_START": arguments.start}
    tests, skipped, files, bad, excused = 0, 0, 0, [], []
    for name in arguments.names.read_text().split():
        files += 1
        failed, count, ended, text = run(arguments, name, layout)
        if failed or not ended:
            others, other_count, other_ended, _ = run(arguments, name, reserve)
            # Some tests measure time: what fails does so twice.
            again = run(arguments, name, layout)[0] if failed - others and name not in known else failed
            new = sorted((failed & again) - others)
            if new or (other_ended and not ended):
                if name in known:
                    excused.append(name)
                    skipped += count
                    tests += count
                    continue
                bad.append(name)
                (arguments.folder / f"{name}.log").write_text(text)
                print(f"{name}: {' '.join(new[:8])}{' and more' if len(new) > 8 else ''}"
                      f"{'' if ended else '; it did not end'}", flush=True)
        tests += count
    print(f"{arguments.layout}: {tests} tests of {files} files, {skipped} of them in {len(excused)} "
          f"files that write or measure files themselves; {len(bad)} files fail that do not with SQLite's own VFS")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
