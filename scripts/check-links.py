#!/usr/bin/env python3
"""Checks the relative links of all Markdown files: the file exists, and the heading if one is named.

    scripts/check-links.py

Links to other sites are not followed. Fails with one line for each link that leads nowhere.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
LINK = re.compile(r"!?\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HTML = re.compile(r"<[a-z]+\s[^>]*?(?:href|src)=\"([^\"]+)\"")


def without_fences(page):
    """The page with empty lines in place of its blocks of code."""
    lines, fence = [], None
    for line in page.split("\n"):
        match = FENCE.match(line)
        if fence is None and match:
            fence = match.group(1)
            lines.append("")
        elif fence is not None:
            closes = match and match.group(1).startswith(fence) and line.strip() == match.group(1)
            fence = None if closes else fence
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines)


def without_code(text):
    """The text with blanks in place of its code spans."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", blank, text, flags=re.DOTALL)


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


def broken(path, page, anchors_of):
    """The links of a page that lead nowhere, each with its line and the reason."""
    text = without_fences(page)
    prose = without_code(text)
    for pattern, source in ((LINK, prose), (DEFINITION, prose), (HTML, prose)):
        for match in pattern.finditer(source):
            target = unquote(match.group(1))
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            line = source.count("\n", 0, match.start(1)) + 1
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if name.startswith("/") or not file.is_relative_to(ROOT):
                yield line, f"{target} is outside of the repository"
            elif not file.exists():
                yield line, f"there is no {target}"
            elif anchor and file.suffix == ".md" and anchor not in anchors_of(file):
                yield line, f"{target}: {file.relative_to(ROOT)} has no heading #{anchor}"


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

    count, links = 0, 0
    for path, page in pages.items():
        links += len(LINK.findall(without_code(without_fences(page))))
        for line, reason in broken(path, page, anchors_of):
            count += 1
            print(f"{path.relative_to(ROOT)}:{line}: {reason}")
    print(f"{links} links in {len(pages)} Markdown files, {count} lead nowhere")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
