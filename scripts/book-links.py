#!/usr/bin/env python3
"""A preprocessor of mdBook: pages from the root of the repository, and links that lead somewhere in the book.

The source of the book is docs. Its contents also list README.md and other pages of the root, which become
pages of the book. A link to a page of the book leads there; of a link to any other file its text and the
file's path remain. See book.toml and `just book`.
"""

import json
import posixpath
import re
import sys

sys.dont_write_bytecode = True

from markdown_links import LINK, is_relative, prose

# The folder of the book's source, from the root of the repository.
SOURCE = "docs"


def in_book(path):
    """The place of a file in the book: pages of the root stand next to those of docs."""
    if path == "README.md":
        return "index.md"
    if path == f"{SOURCE}/README.md":
        return "readers.md"
    name = path[len(SOURCE) + 1 :] if path.startswith(f"{SOURCE}/") else path.lower()
    return re.sub(r"(^|/)README\.md$", r"\1index.md", name)


def in_repository(path):
    """The place of a chapter in the repository, from the path that the contents have for it."""
    return posixpath.normpath(posixpath.join(SOURCE, path))


def chapters(items):
    """All chapters below a list of the book's items."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            yield chapter
            yield from chapters(chapter["sub_items"])


def rewritten(page, path, pages):
    """The page with links for the book, of a page at `path` of the repository."""
    text, out, at = prose(page), [], 0
    for match in LINK.finditer(text):
        target = match.group(1)
        if not is_relative(target) or target.startswith("#"):
            continue
        name, hash_sign, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        here = posixpath.dirname(pages[path])
        if file in pages:
            new = f"]({posixpath.relpath(pages[file], here or '.')}{hash_sign}{anchor})"
        elif file.startswith(SOURCE + "/"):
            # A picture, which is copied with the source.
            new = f"]({posixpath.relpath(in_book(file), here or '.')})"
        else:
            start = text.rindex("[", at, match.start())
            out.append(page[at:start] + page[start + 1 : match.start()] + f" (`{file}`)")
            at = match.end()
            continue
        out.append(page[at : match.start()] + new)
        at = match.end()
    return "".join(out) + page[at:]


def main():
    """Reads a book from the standard input and writes the changed one."""
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    items = book.get("items", book.get("sections"))
    found = [chapter for chapter in chapters(items) if chapter.get("source_path")]
    pages = {in_repository(chapter["source_path"]): None for chapter in found}
    for path in pages:
        pages[path] = in_book(path)
    for chapter in found:
        path = in_repository(chapter["source_path"])
        chapter["content"] = rewritten(chapter["content"], path, pages)
        chapter["path"] = pages[path]
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
