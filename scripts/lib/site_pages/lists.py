"""Lists as Python-Markdown wants them: what belongs to an item is indented by four blanks for each level, where GitHub is content with the
width of the mark; and an empty line stands before a list."""

import re

ITEM = re.compile(r"( {0,3})([*-]|\d+\.)( +)(?=\S)")
FENCE = re.compile(r" *(```+|~~~+)")


def with_indents(text):
    made, levels = [], []  # levels: (indent of what belongs to the item, the same as it shall be)
    fence = None
    apart = False  # must an item that comes now be set apart: from a paragraph before the list, from an item of several blocks?
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip():
            made.append("")
            apart = bool(levels)
            continue
        if not fence:
            while levels and indent < levels[-1][0]:
                levels.pop()
        old, new = levels[-1] if levels else (0, 0)
        rest = line[min(old, indent):]
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
        elif mark:
            fence, apart = mark[1], True
        elif item := ITEM.match(rest):
            if apart and made[-1]:
                made.append("")
            apart = False
            levels.append((old + len(item[0]), new + 4))
        made.append(" " * new + rest)
        apart = apart or not levels
    return "\n".join(made)
