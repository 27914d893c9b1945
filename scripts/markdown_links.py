"""Finds the links of Markdown pages. `check-links.py` and `book-links.py` use it."""

import re

FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
# The target of `](target)`, which may have a title behind it.
LINK = re.compile(r"\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HTML = re.compile(r"<[a-z]+\s[^>]*?(?:href|src)=\"([^\"]+)\"")


def without_fences(page):
    """The page with blanks in place of its blocks of code, and the same length."""
    lines, fence = [], None
    for line in page.split("\n"):
        match = FENCE.match(line)
        blank = fence is not None or match is not None
        if fence is None and match:
            fence = match.group(1)
        elif match and match.group(1).startswith(fence) and line.strip() == match.group(1):
            fence = None
        lines.append(" " * len(line) if blank else line)
    return "\n".join(lines)


def prose(page):
    """The page with blanks in place of blocks of code and code spans, and the same length."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    span = r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)"
    return re.sub(span, blank, without_fences(page), flags=re.DOTALL)


def is_relative(target):
    """Whether a target is a file or a heading of the repository."""
    return not re.match(r"[a-z][a-z0-9+.-]*:", target)
