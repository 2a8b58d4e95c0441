"""Makes Markdown of what Doxygen has read: a page for each class, one for functions, one each for errors and events."""

import re

from .doxygen import anchor

# What is said by its type alone, or is there for the compiler's message.
UNWRITTEN = re.compile(r"no_lock_body|=\s*delete\b|~\w+\(\)\s*override")
CHAPTERS = (("Types", ("typedef", "enum")), ("Made and ended", ()), ("Functions", ("function",)), ("Beside it", ("friend",)),
            ("Members", ("variable",)))


def undocumented(compounds, own):
    """Names of public things that nobody has written about."""
    found = [f"{one.header}: {one.kind} {one.name}" for one in compounds if not one.text]
    for owner, members in [(one.name + "::", one.members) for one in compounds] + [("", own)]:
        for member in members:
            if UNWRITTEN.search(member.declaration):
                continue
            if not member.text:
                found.append(f"{member.file}:{member.line}: {owner}{member.name}")
            found += [f"{member.file}:{member.line}: {owner}{member.name}::{name}" for name, text in member.values if not text]
    return found


def grouped(members):
    """Overloads together, in the order of the first."""
    groups = {}
    for member in members:
        if not UNWRITTEN.search(member.declaration):
            groups.setdefault(member.name, []).append(member)
    return groups.items()


def chapter(member, owner):
    bare = owner.rsplit("::", 1)[-1]
    if member.name in (bare, f"~{bare}", "operator=") and member.kind == "function":
        return "Made and ended"
    return next(title for title, kinds in CHAPTERS if member.kind in kinds)


def one_group(name, members, level):
    lines = [f"{'#' * level} `{name}` {{ #{anchor(name)} }}", ""]
    for member in members:
        lines += ["```cpp", member.declaration, "```", "", member.text, ""]
        lines += table(member.values) if member.values else []
    return lines


def table(values, anchors=False):
    rows = ["| name | meaning |", "| --- | --- |"]
    for name, text in values:
        mark = f'<a id="{anchor(name)}"></a>' if anchors else ""
        rows.append(f"| {mark}`{name}` | " + re.sub(r"\s*\n+\s*", " ", text).replace("|", "\\|") + " |")
    return [*rows, ""]


def class_page(one):
    lines = [f"# {one.name}", "", "```cpp", f"#include <{one.header}>", f"{one.kind} latchkey::{one.name};", "```", "", one.text, ""]
    groups = list(grouped(one.members))
    for title, _ in CHAPTERS:
        inside = [(name, members) for name, members in groups if chapter(members[0], one.name) == title]
        if not inside:
            continue
        lines += [f"## {title}", ""]
        if title == "Members":
            lines += data_members(inside)
            continue
        for name, members in inside:
            lines += one_group(name, members, 3)
    return "\n".join(lines)


def data_members(groups):
    rows = ["| member | meaning |", "| --- | --- |"]
    for name, members in groups:
        text = re.sub(r"\s*\n+\s*", " ", members[0].text).replace("|", "\\|")
        shown = re.sub(r"\s+", " ", members[0].declaration)
        rows.append(f'| <a id="{anchor(name)}"></a>`{shown}` | {text} |')
    return [*rows, ""]


def index_page(compounds, own):
    lines = ["# API", "", "Everything is in the namespace `latchkey`; `#include <latchkey/latchkey.hpp>` has all of it but the metrics.", "",
             "| class | |", "| --- | --- |"]
    lines += [f"| [`{one.name}`]({one.name.replace('::', '-')}.md) | {one.brief} |" for one in compounds]
    names = [name for name, _ in grouped(own)]
    lines += ["", "Functions, enumerations and names: " + ", ".join(f"[`{name}`](functions.md#{anchor(name)})" for name in names) + ".", ""]
    return "\n".join(lines)


def functions_page(own):
    lines = ["# Functions, enumerations, names", ""]
    for name, members in grouped(own):
        if name == "errc":
            lines += [f"## `{name}` {{ #{anchor(name)} }}", "", members[0].text, "", "See [errors](../errors.md).", ""]
        elif name == "event_type":
            lines += [f"## `{name}` {{ #{anchor(name)} }}", "", members[0].text, "", "See [events](../events.md).", ""]
        else:
            lines += one_group(name, members, 2)
    return "\n".join(lines)


def enumeration(own, name):
    return next(member for member in own if member.name == name and member.kind == "enum")


def moved_up(text):
    """Links of a page in api/, on a page beside that folder."""
    return re.sub(r"\]\((?:\.\./)?([\w-]+\.md)", lambda found: f"]({found[1]}" if found[0].startswith("](../") else f"](api/{found[1]}", text)


def errors_part(own):
    return moved_up("\n".join([enumeration(own, "errc").text, "", *table(enumeration(own, "errc").values, anchors=True)]))


def events_page(own, event):
    lines = ["# Events", "", "`config::on_event` is told what happens: for logs and traces. An event has:", "",
             *data_members(list(grouped(event.members))), "`event::type` is one of:", "",
             *table(enumeration(own, "event_type").values, anchors=True)]
    return moved_up("\n".join(lines))
