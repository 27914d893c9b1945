#!/usr/bin/env python3
"""Checks the relative links of all Markdown files: the file exists, and the heading if one is named.

    scripts/check-links.py

Links to other sites are not followed. Fails with one line for each link that leads nowhere, and for each page
of docs that docs/SUMMARY.md, the contents of the book, does not list.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

sys.dont_write_bytecode = True

from markdown_links import DEFINITION, HTML, LINK, is_relative, prose, without_fences

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "docs" / "SUMMARY.md"


def anchors(page):
    """The names of the headings, as GitHub and mdBook make them."""
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", without_fences(page), re.MULTILINE):
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        text = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = seen.get(text, 0)
        seen[text] = count + 1
        found.add(f"{text}-{count}" if count else text)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", page))


def targets(page):
    """The relative targets of a page, each with its line."""
    text = prose(page)
    for pattern in (LINK, DEFINITION, HTML):
        for match in pattern.finditer(text):
            target = unquote(match.group(1))
            if is_relative(target):
                yield text.count("\n", 0, match.start(1)) + 1, target


def broken(path, target, anchors_of):
    """The reason why a target leads nowhere, or None."""
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if name.startswith("/") or not file.is_relative_to(ROOT):
        return f"{target} is outside of the repository"
    if not file.exists():
        return f"there is no {target}"
    if anchor and file.suffix == ".md" and anchor not in anchors_of(file):
        return f"{target}: {file.relative_to(ROOT)} has no heading #{anchor}"
    return None


def main():
    """Checks all pages; the exit status says whether all links lead somewhere."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard", "*.md"],
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    pages = {path: path.read_text(encoding="utf-8") for path in paths if path.exists()}
    known = {}

    def anchors_of(path):
        if path not in known:
            known[path] = anchors(pages.get(path) or path.read_text(encoding="utf-8"))
        return known[path]

    links, failures = 0, []
    for path, page in pages.items():
        for line, target in targets(page):
            links += 1
            reason = broken(path, target, anchors_of)
            if reason:
                failures.append(f"{path.relative_to(ROOT)}:{line}: {reason}")
    in_book = {(SUMMARY.parent / target).resolve() for _, target in targets(pages[SUMMARY])}
    for path in pages:
        if path.is_relative_to(SUMMARY.parent) and path != SUMMARY and path not in in_book:
            failures.append(f"docs/SUMMARY.md does not list {path.relative_to(ROOT)}")
    print("\n".join([*failures, f"{links} relative links in {len(pages)} Markdown files"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
