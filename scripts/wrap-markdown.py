#!/usr/bin/env python3
"""Wraps the prose of Markdown files at 110 columns.

    scripts/wrap-markdown.py             # all Markdown files of the repository
    scripts/wrap-markdown.py FILE...     # these files
    scripts/wrap-markdown.py --check     # changes nothing; fails and names the files that would change

Only paragraphs and list items change. Blocks of code, tables, headings, HTML, quotes and link definitions
stay as they are. A line never ends within a code span or a link, and no line begins with a marker that
would make it a list item, a heading or a quote. A second run changes nothing.
"""

import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 110

FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)")
# Lines that are no prose, apart from code: headings, quotes, tables, HTML, rules and link definitions.
OTHER = re.compile(
    r"^\s*(#{1,6}(\s|$)|>|\||<[A-Za-z/!]|([-*_]\s*){3,}$|=+\s*$|\[[^\]]+\]:\s)"
)
# Words that would begin a block if they began a line.
MARKER = re.compile(r"^([-*+]$|#{1,6}$|>|\d{1,9}[.)]$|[-=]+$|\||`{3}|~{3}|<[A-Za-z/!]|\[[^\]]+\]:)")


def closing(text, start, opening, end):
    """The index after the bracket that closes the one at `start`, or None."""
    depth, at = 0, start
    while at < len(text):
        if text[at] == "`":
            at = after_code(text, at)
            continue
        depth += (text[at] == opening) - (text[at] == end)
        at += 1
        if depth == 0:
            return at
    return None


def after_code(text, start):
    """The index after the code span that begins at `start`, or after its backquotes if none is closed."""
    ticks = re.match("`+", text[start:]).group()
    close = re.search(f"(?<!`){ticks}(?!`)", text[start + len(ticks) :])
    return start + len(ticks) + (close.end() if close else 0)


def after_link(text, start):
    """The index after the link that begins with the bracket at `start`, or after the bracket."""
    end = closing(text, start, "[", "]")
    if end is not None and end < len(text) and text[end] in "([":
        after = closing(text, end, text[end], ")" if text[end] == "(" else "]")
        if after is not None:
            return after
    return start + 1


def words(text):
    """The parts of a paragraph between which a line may end."""
    found, at, begin = [], 0, None
    while at < len(text):
        if text[at].isspace():
            if begin is not None:
                found.append(text[begin:at])
            begin, at = None, at + 1
            continue
        begin = at if begin is None else begin
        if text[at] == "\\":
            at += 2
        elif text[at] == "`":
            at = after_code(text, at)
        elif text[at] == "[":
            at = after_link(text, at)
        else:
            at += 1
    if begin is not None:
        found.append(text[begin:])
    joined = []
    for word in found:
        if joined and MARKER.match(word):
            joined[-1] += " " + word
        else:
            joined.append(word)
    return joined


def wrap(lines, first, rest):
    """The lines of a paragraph, wrapped, with what begins its first line and all others."""
    text, out, hard = [], [], []
    for line in lines:
        text.append(line.strip())
        # Two blanks or a backslash at the end of a line break it in the output.
        if line.endswith(("  ", "\\")) and line is not lines[-1]:
            hard.append((" ".join(text), "  " if line.endswith("  ") else ""))
            text = []
    hard.append((" ".join(text), ""))
    prefix = first
    for piece, ending in hard:
        line = ""
        for word in words(piece):
            if line and len(prefix) + len(line) + 1 + len(word) > COLUMNS:
                out.append(prefix + line)
                prefix, line = rest, word
            else:
                line = f"{line} {word}" if line else word
        out.append(prefix + line + ending)
        prefix = rest
    return out


def is_table(lines, at):
    """Whether a table without outer bars begins at the line."""
    return at + 1 < len(lines) and bool(re.match(r"^\s*:?-+:?\s*(\|\s*:?-+:?\s*)+$", lines[at + 1]))


def wrapped(page):
    """The page with wrapped prose."""
    lines, out, at, item_indent = page.split("\n"), [], 0, 0
    while at < len(lines):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        fence = FENCE.match(line)
        if fence:
            out.append(line)
            at += 1
            while at < len(lines):
                out.append(lines[at])
                at += 1
                if re.match(rf"^\s*{fence.group(1)[0]}{{{len(fence.group(1))},}}\s*$", out[-1]):
                    break
            continue
        if not line.strip():
            out.append(line)
            at += 1
            continue
        if OTHER.match(line) or is_table(lines, at):
            # HTML and tables last until a blank line.
            block = line.lstrip()[0] in "<|>" or is_table(lines, at)
            out.append(line)
            at += 1
            while block and at < len(lines) and lines[at].strip():
                out.append(lines[at])
                at += 1
            continue
        item = ITEM.match(line)
        if item is None and indent < item_indent:
            item_indent = indent if indent >= 2 else 0
        if indent >= item_indent + 4:
            out.append(line)
            at += 1
            continue
        if item:
            first = item.group()
            rest = " " * len(first)
            item_indent = len(first)
        else:
            first = rest = line[:indent]
        paragraph = [line[len(first) :]]
        at += 1
        while at < len(lines):
            line = lines[at]
            ends = not line.strip() or OTHER.match(line) or ITEM.match(line) or FENCE.match(line)
            if ends:
                break
            paragraph.append(line)
            at += 1
        out.extend(wrap(paragraph, first, rest))
    return "\n".join(out)


def main(arguments):
    """Wraps the files that are named, or all of the repository."""
    check = "--check" in arguments
    names = [argument for argument in arguments if argument != "--check"]
    if not names:
        root = Path(__file__).resolve().parent.parent
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard", "*.md"],
            check=True,
            capture_output=True,
            text=True,
        )
        names = [root / name for name in listed.stdout.split("\0") if name]
    changed = 0
    for name in names:
        before = Path(name).read_text(encoding="utf-8")
        after = wrapped(before)
        if after != before:
            changed += 1
            print(f"{name}: {'is not wrapped' if check else 'wrapped'}")
            if not check:
                Path(name).write_text(after, encoding="utf-8")
    if check and changed:
        print("scripts/wrap-markdown.py wraps them")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
