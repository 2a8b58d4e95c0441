"""Puts the pages together, in a folder: README.md by chapters, docs/ as it is, what is generated, and sources that are linked to."""

import re
import shutil

from . import reference
from .links import Links, outside_code, slug
from .lists import with_indents

# Chapters of the README, and the page that each is; any other is on index.md.
CHAPTERS = {
    "What it is, and what it is not": "promises.md",
    "First lock": "first-lock.md",
    "In tests": "first-lock.md",
    "Kinds": "which-kind.md",
    "Holding safely": "promises.md",
    "Settings": "settings.md",
}
LEFT_OUT = {"More"}  # a list of pages, as the navigation is
RIGHTS = "A restricted user ("  # the paragraph of Settings with which the page about rights begins
TITLES = {"promises.md": "What a lease promises", "which-kind.md": "Which kind of lock"}
LANGUAGES = {"cpp": "cpp", "hpp": "cpp", "py": "python", "js": "javascript", "go": "go", "txt": "text", "yml": "yaml", "json": "json"}
STYLE = """.md-typeset table:not([class]) { font-size: .68rem; }
.md-typeset table:not([class]) th, .md-typeset table:not([class]) td { min-width: 0; padding: .6em .9em; }
.md-typeset table:not([class]) td code { overflow-wrap: normal; word-break: normal; }
.md-typeset thead:not(:has(th:not(:empty))) { display: none; }
.md-typeset img[src$=svg] { display: block; margin: 1rem auto; background: white; border-radius: .4rem; }
"""


def readme_parts(text):
    """(what stands before the first chapter, [(heading, text)])."""
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    return parts[0], list(zip(parts[1::2], parts[2::2]))


def raised(text):
    """Without the mark of a demo's table; chapters one level up where the page has a title of its own."""
    return re.sub(r"<!-- /?[\w ]+: ?(?:begin|end)? ?-->\n", "", text)


def readme_pages(text):
    """page -> Markdown, and anchor of README.md -> page, with an anchor where it is not the whole page."""
    intro, chapters = readme_parts(text)
    pages, anchors = {"index.md": intro}, {slug(intro.splitlines()[0].lstrip("# ")): "index.md"}
    for heading, body in chapters:
        if heading in LEFT_OUT:
            continue
        page = CHAPTERS.get(heading, "index.md")
        if heading == "Settings":
            body, mark, rights = body.partition(RIGHTS)
            if not mark:
                raise SystemExit(f"README.md: no paragraph of {heading} begins with {RIGHTS!r}")
            pages["acl.md"] = "# Rights of a restricted user\n\n" + mark + rights
        new = page not in pages
        title = TITLES.get(page, heading)
        pages[page] = pages.get(page, f"# {title}\n") + ("" if new and title == heading else f"\n## {heading}\n") + body
        anchors[slug(heading)] = page if new and title == heading else f"{page}#{slug(heading)}"
    return pages, anchors


def source_page(root, name, readable):
    path = root / name
    if path.is_dir():
        inside = "\n".join(f"* `{one.name}`" for one in sorted(path.iterdir()) if not one.name.startswith("."))
        return f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\nA folder of the repository, with:\n\n{inside}\n"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return readable(text, name)
    return (f"---\nsearch:\n  exclude: true\n---\n\n# {path.name}\n\n`{name}`, as it is in the repository.\n\n"
            f"````{LANGUAGES.get(path.suffix[1:], 'text')}\n{text.rstrip()}\n````\n")


def with_bars(text):
    """Where a cell has code with a bar, GitHub reads `\\|` as the bar, and Python-Markdown as both."""
    def code(found):
        inner = found[1].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\\|", "&#124;")
        return f"<code>{inner}</code>" if "\\|" in found[1] else found[0]

    return outside_code(text, lambda line: re.sub(r"`([^`]+)`", code, line) if line.startswith("|") else line)


def put(folder, page, text):
    (folder / page).parent.mkdir(parents=True, exist_ok=True)
    (folder / page).write_text(with_indents(with_bars(text)).rstrip() + "\n", encoding="utf-8")


def assemble(root, folder, tool):
    """Fills `folder`, in which the pages of the API are already. Returns what is wrong."""
    texts = {path: path.relative_to(root / "docs").as_posix() for path in sorted((root / "docs").rglob("*.md"))}
    readme, chapters = readme_pages((root / "README.md").read_text(encoding="utf-8"))
    pages = {f"docs/{name}": name for name in texts.values()} | {"CHANGELOG.md": "changes.md"}
    links = Links(root, pages, chapters)
    for path, name in texts.items():
        put(folder, name, links.rewritten(path.read_text(encoding="utf-8"), f"docs/{name}", name))
    for page, text in readme.items():
        put(folder, page, links.rewritten(raised(text), "README.md", page))
    put(folder, "changes.md", links.rewritten((root / "CHANGELOG.md").read_text(encoding="utf-8"), "CHANGELOG.md", "changes.md"))

    errors = folder / "errors-of-the-library.part"
    put(folder, "errors.md", "# Errors and exit codes\n\n## Errors of the library {: #errors }\n\n" + errors.read_text(encoding="utf-8") +
        "\n## Exit codes\n\nOf the program `latchkey`:\n\n" + reference.exit_codes(tool))
    errors.unlink()
    put(folder, "cli.md", reference.command_line(tool))
    put(folder, "metrics-reference.md", reference.metrics(root))
    put(folder, "site.css", STYLE)
    shutil.copytree(root / "docs/plots", folder / "plots", dirs_exist_ok=True)

    done = set()
    while todo := set(links.sources) - done:  # a page that is linked to may link to more
        for name in todo:
            page = links.sources[name]
            put(folder, page, source_page(root, name, lambda text, file, page=page: links.rewritten(text, file, page)))
        done |= todo
    navigation = set(re.findall(r"\b([\w/-]+\.md)$", (root / "mkdocs.yml").read_text(encoding="utf-8"), re.M))
    made = {path.relative_to(folder).as_posix() for path in (folder / "api").iterdir()}
    return links.faults + [f"mkdocs.yml: {page} is not in the navigation" for page in sorted(made - navigation)]
