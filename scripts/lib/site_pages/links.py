"""Links of the repository's texts, as they must be on the site: sources become pages of the site, chapters of the README the pages that
they are on. A link that leads nowhere is a fault here already."""

import os
import pathlib
import re

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:)([^)\s#]*)(#[^)\s]*)?\)")
NAMED = re.compile(r"(?<![\[\w/])`(docs/[\w-]+\.md)`(?!\])")
FENCE = re.compile(r"^\s*(```|~~~)")
IMAGE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^)\s]+)\)")


def slug(heading):
    """As Python-Markdown's toc makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain.replace("`", "")).strip().lower())


def outside_code(text, change):
    """Applies `change` to each line that is not in a block of code."""
    inside, lines = False, []
    for line in text.split("\n"):
        if FENCE.match(line):
            inside = not inside
        lines.append(line if inside else change(line))
    return "\n".join(lines)


class Links:
    def __init__(self, root, pages, chapters):
        self.root = root
        self.pages = pages  # file of the repository -> page
        self.chapters = chapters  # anchor of the README -> page
        self.sources = {}  # file of the repository -> page of its own
        self.faults = []

    def rewritten(self, text, file, page):
        """`text`, which stands in `file` of the repository, as it is on `page`."""
        here = pathlib.PurePosixPath(file).parent

        def target(path, anchor):
            to = os.path.normpath(here / path) if path else file
            return self.place(to, anchor or "", file)

        def relative(to, start):
            path, _, anchor = to.partition("#")
            made = os.path.relpath(path, os.path.dirname(start) or ".")
            return f"{made}#{anchor}" if anchor else made

        def change(line):
            line = NAMED.sub(lambda found: f"[`{found[1]}`]({os.path.relpath(found[1], here)})", line)
            line = LINK.sub(lambda found: f"[{found[1]}]({relative(target(found[2], found[3]), page)})", line)
            return IMAGE.sub(lambda found: f"![{found[1]}]({relative(self.image(os.path.normpath(here / found[2]), file), page)})", line)

        return outside_code(text, change)

    def image(self, name, file):
        if not (self.root / name).is_file():
            self.faults.append(f"{file}: there is no {name}")
        return name.removeprefix("docs/")

    def place(self, name, anchor, file):
        if name == "README.md":
            chapter = anchor.removeprefix("#")
            if chapter and chapter not in self.chapters:
                self.faults.append(f"{file}: README.md has no chapter {anchor}")
            page = self.chapters.get(chapter, "index.md")
            # A chapter that is a page of its own has no anchor there.
            return page if page.partition("#")[0] != "index.md" or not chapter else f"{page}{anchor}"
        if name in self.pages:
            return self.pages[name] + anchor
        path = self.root / name
        if not path.exists():
            self.faults.append(f"{file}: there is no {name}")
        if path.is_dir():
            return self.source_folder(name)
        self.sources[name] = f"source/{name}.md"
        return self.sources[name]

    def source_folder(self, name):
        self.sources[name] = f"source/{name}/index.md"
        return self.sources[name]
