"""Reads the public headers with Doxygen: what is there, its comments as Markdown, its declarations as they stand in the source."""

import dataclasses
import pathlib
import re
import subprocess
import xml.etree.ElementTree as xml

SETTINGS = """PROJECT_NAME = latchkey
INPUT = {source}/include/latchkey {source}/testing/include/latchkey/testing
EXCLUDE = {source}/include/latchkey/detail
EXCLUDE_SYMBOLS = latchkey::detail latchkey::detail::* std std::* boost boost::*
FILE_PATTERNS = *.hpp
STRIP_FROM_PATH = {source}/testing/include {source}/include
OUTPUT_DIRECTORY = {out}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = LATCHKEY_EXPORT=
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
"""
FOLDERS = ("include", "testing/include")
# Doxygen 1.9.4 looks for the enclosing scope of a specialisation in another namespace, which we do not read.
HARMLESS = re.compile(r"scope for class (boost::system::is_error_code_enum|std::hash)\b")


@dataclasses.dataclass
class Member:
    name: str
    kind: str
    declaration: str
    text: str
    values: list  # of an enumeration: (name, text)
    line: int
    file: str
    ids: list


@dataclasses.dataclass
class Compound:
    name: str
    kind: str
    declaration: str
    header: str
    brief: str
    text: str
    members: list
    identifier: str


def read(source, out):
    """(the compounds of the namespace, its own members, what Doxygen complains of)"""
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["doxygen", "-"], input=SETTINGS.format(source=source, out=out), capture_output=True, text=True, timeout=120)
    complaints = [line for line in done.stderr.splitlines() if "warning:" in line and not HARMLESS.search(line)]
    if done.returncode:
        complaints.append(done.stderr)
    files = sorted(path for path in (out / "xml").glob("*.xml") if path.name not in ("index.xml", "Doxyfile.xml"))
    definitions = [one for path in files for one in xml.parse(path).getroot().iter("compounddef")]
    pages = Pages(definitions)
    compounds, own = [], []
    for one in definitions:
        name = one.findtext("compoundname")
        if one.get("kind") in ("class", "struct") and name.startswith("latchkey::") and "detail" not in name:
            compounds.append(compound(source, one, pages))
        elif one.get("kind") == "namespace" and name == "latchkey":
            own = members(source, one, pages)
    return sorted(compounds, key=lambda one: one.name), own, complaints


def anchor(name):
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower().replace("operator==", "equal").replace("operator<=>", "compare")
                   .replace("operator=", "assign").replace("~", "destructor-")).strip("-")
    return plain or "operator"


class Pages:
    """Where each thing that Doxygen has an id for is described."""

    def __init__(self, definitions):
        self.where = {}
        for one in definitions:
            name = one.findtext("compoundname")
            inside = one.get("kind") in ("class", "struct") and name.startswith("latchkey::")
            if not inside and name != "latchkey":
                continue
            page = name.removeprefix("latchkey::").replace("::", "-") if inside else "functions"
            self.where[one.get("id")] = f"{page}.md"
            for member in one.iter("memberdef"):
                place = f"{page}.md#{anchor(member.findtext('name'))}"
                if member.get("kind") == "enum":
                    place = {"errc": "../errors.md", "event_type": "../events.md"}.get(member.findtext("name"), place)
                    for value in member.iter("enumvalue"):
                        self.where[value.get("id")] = place.partition("#")[0] + "#" + (
                            anchor(value.findtext("name")) if place.startswith("../") else anchor(member.findtext("name")))
                self.where[member.get("id")] = place

    def link(self, text, refid):
        place = self.where.get(refid)
        return f"[{text}]({place})" if place else text


def escaped(text):
    return re.sub(r"([\\*_<>\[\]`])", r"\\\1", re.sub(r"\s+", " ", text))


def inline(element, pages, code=False):
    """The text of an element, with what stands in it."""
    clean = (lambda text: re.sub(r"\s+", " ", text)) if code else escaped
    made = clean(element.text or "")
    for child in element:
        tag = child.tag
        if tag == "computeroutput":
            target = next((one.get("refid") for one in child.iter("ref")), None)
            text = f"`{inline(child, pages, code=True)}`"
            made += pages.link(text, target) if target else text
        elif tag == "ref":
            text = inline(child, pages, code)
            made += text if code else pages.link(text, child.get("refid"))
        elif tag in ("emphasis", "bold"):
            mark = "*" if tag == "emphasis" else "**"
            made += f"{mark}{inline(child, pages)}{mark}"
        elif tag == "ulink":
            made += f"[{inline(child, pages)}]({child.get('url')})"
        elif tag == "linebreak":
            made += "  \n"
        elif tag == "sp":
            made += " "
        elif tag in ("ndash", "mdash", "nonbreakablespace"):
            made += {"ndash": "-", "mdash": "-"}.get(tag, " ")
        elif tag not in ("simplesect", "parameterlist", "itemizedlist", "orderedlist", "programlisting"):
            made += inline(child, pages, code)
        made += clean(child.tail or "")
    return made


def blocks(element, pages):
    """Paragraphs, lists and chapters of a description."""
    made = []
    if element is None:
        return made
    for para in element.findall("para"):
        own = inline(para, pages).strip()
        if own:
            made.append(own)
        for child in para:
            if child.tag == "simplesect":
                title = child.findtext("title") or child.get("kind").capitalize()
                made.append(f"**{title}.** " + "\n\n".join(blocks(child, pages)))
            elif child.tag == "parameterlist":
                for item in child.iter("parameteritem"):
                    name = " ".join("".join(one.itertext()).strip() for one in item.iter("parametername"))
                    word = "Throws " if child.get("kind") == "exception" else ""
                    made.append(f"**{word}`{name}`** " + " ".join(blocks(item.find("parameterdescription"), pages)))
            elif child.tag in ("itemizedlist", "orderedlist"):
                rows = [" ".join(blocks(item, pages)) for item in child.findall("listitem")]
                made.append("\n".join(f"* {row}" for row in rows))
            elif child.tag == "programlisting":
                lines = ["".join(line.itertext()) for line in child.iter("codeline")]
                made.append("```cpp\n" + "\n".join(lines) + "\n```")
    return made


def both(element, pages):
    """A comment of one line is a brief description to Doxygen, and any other a detailed one."""
    return blocks(element.find("briefdescription"), pages) + blocks(element.find("detaileddescription"), pages)


def description(element, pages):
    return "\n\n".join(both(element, pages))


def declaration(source, file, line):
    """As the header has it, without comment, body and export macro."""
    path = next(one for one in (pathlib.Path(source, folder, file) for folder in FOLDERS) if one.exists())
    lines = path.read_text(encoding="utf-8").splitlines()
    first = line - 1
    while first and not re.search(r"(^\s*$|^\s*//|[;{}]\s*(//.*)?$|^\s*(public|private):)", lines[first - 1]):
        first -= 1
    text, depth = "", 0
    for character in "\n".join(re.sub(r"\s*//.*$", "", one) for one in lines[first:first + 20]):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == ";" and depth == 0 or character == "{" and depth == 0 and text.rstrip().endswith((")", "const", "noexcept", "override")):
            break
        elif character == ":" and depth == 0 and re.search(r"\)\s*(noexcept\s*)?$", text):
            break
        text += character
    text = re.sub(r"\bLATCHKEY_EXPORT ", "", text).rstrip()
    indent = min(len(one) - len(one.lstrip()) for one in text.splitlines() if one.strip())
    return "\n".join(one[indent:].rstrip() for one in text.splitlines())


def members(source, definition, pages):
    found = []
    for one in definition.iter("memberdef"):
        name, kind = one.findtext("name"), one.get("kind")
        if one.get("prot") != "public" or kind == "friend" and re.search(r"\b(class|struct)\b", one.findtext("type") or ""):
            continue
        place = one.find("location")
        file, line = place.get("declfile") or place.get("file"), int(place.get("declline") or place.get("line"))
        values = [(value.findtext("name"), description(value, pages)) for value in one.iter("enumvalue")]
        shown = f"enum class {name}" if kind == "enum" else declaration(source, file, line)
        found.append(Member(name, kind, shown, description(one, pages), values, line, file, [one.get("id")]))
    return sorted(found, key=lambda one: (one.file, one.line))


def compound(source, definition, pages):
    place = definition.find("location")
    first = next(iter(both(definition, pages)), "")
    brief = re.split(r"(?<=[.])\s", first, maxsplit=1)[0]
    name = definition.findtext("compoundname").removeprefix("latchkey::")
    return Compound(name, definition.get("kind"), f"{definition.get('kind')} {name}", place.get("file"), brief,
                    description(definition, pages), members(source, definition, pages), definition.get("id"))
