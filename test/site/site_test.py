"""D3: the site is built offline, and a browser finds nothing wrong with any page of it: at 390 and 1,440 px, light and dark, no error
on the console, no request to elsewhere, no broken link, nothing that scrolls sideways; and its search finds what one looks for.

site_test.py HTML            judges a site that scripts/site has built
site_test.py --self-test     shows that each fault is noticed, on a page that has it
--pictures FOLDER            keeps a picture of each page at each width and colour
"""

import argparse
import contextlib
import html.parser
import pathlib
import sys
import tempfile
import urllib.parse

import browser

WIDTHS = (390, 1440)
# What is looked for, and a page that must be among what is found.
SEARCHES = {"force-unlock": "cli/", "Fence a database": "fence-a-database/"}
# In this order a page is looked at, while it stays loaded: who turns a phone, or whose evening begins, does not load it anew.
LOOKS = ((390, False), (1440, False), (1440, True), (390, True))
SWITCH = 5  # seconds at most until a page has other colours
SIDEWAYS = "(root => root.scrollWidth > root.clientWidth ? root.scrollWidth : 0)(document.scrollingElement)"
COLOURS = """(() => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = text => rgb(text).reduce((sum, one, at) => sum + one * [.2126, .7152, .0722][at], 0) / 255;
  return [light(getComputedStyle(document.body).backgroundColor), light(getComputedStyle(document.querySelector('main p, main h1, p') ||
          document.body).color)];
})()"""
# What Python-Markdown has taken for text, where GitHub sees a list, a link or bold letters.
UNREAD = r"""(() => {
  const words = one => [...one.childNodes].map(part => part.nodeType == 3 ? part.data : part.matches?.('code, pre') ? '' : words(part)).join('');
  return [...document.querySelectorAll('article p, article li, article td')].map(words)
      .map(text => text.match(/\*\*|\]\(|(^|\n)\s*[*-] |[.:?)]\s\d\. [A-Z]|[^\n]{0,20}`[^\n]{0,20}/)?.[0]).filter(Boolean);
})()"""
FOUND = """(() => {
  const inside = root => [...root.querySelectorAll('a[href]')].concat(
      ...[...root.querySelectorAll('*')].filter(one => one.shadowRoot).map(one => inside(one.shadowRoot)));
  const overlays = [...document.querySelectorAll('div')].filter(one => one.shadowRoot);
  return [].concat(...overlays.map(one => inside(one.shadowRoot))).map(one => one.href);
})()"""


class Page(html.parser.HTMLParser):
    """Its links and its places."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids.update(filter(None, (named.get("id"), named.get("name") if tag == "a" else None)))
        for name in ("href", "src"):
            if named.get(name) and tag != "base":
                self.links.append(named[name])


def pages_of(folder):
    return {path.relative_to(folder).as_posix(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}


def address(name):
    return name.removesuffix("index.html")


def broken_links(folder, pages):
    """Links to files or places that are not there. Where a link leads elsewhere, nobody is asked whether that is there."""
    faults = []
    for name, page in pages.items():
        for link in set(page.links):
            # A page for what is not there does not know where it is shown: its links begin at the root.
            to = urllib.parse.urlsplit(urllib.parse.urljoin("http://here/" + ("" if name == "404.html" else name), link))
            if to.netloc != "here":
                if to.scheme not in ("https", "data", "mailto"):
                    faults.append(f"{name}: a link to {link}")
                continue
            path = urllib.parse.unquote(to.path).lstrip("/")
            file = f"{path}index.html" if path == "" or path.endswith("/") else path
            if not (folder / file).is_file():
                faults.append(f"{name}: broken link {link}")
            elif to.fragment and file in pages and urllib.parse.unquote(to.fragment) not in pages[file].ids | {"__skip"}:
                faults.append(f"{name}: no such place {link}")
    return faults


def judge_look(tab, name, width, dark, faults):
    where = f"{name} at {width} px, {'dark' if dark else 'light'}"
    wide = tab.run(SIDEWAYS)
    if wide:
        faults.append(f"{where}: scrolls sideways, {wide} px")
    with contextlib.suppress(RuntimeError):
        tab.until(f"({COLOURS}[0] < 0.5) === {str(dark).lower()}", "other colours", SWITCH)
    ground, text = tab.run(COLOURS)
    if (ground > 0.5) == dark or abs(ground - text) < 0.4:
        faults.append(f"{where}: background {ground:.2f}, text {text:.2f}")


def visit(tab, home, name, pictures):
    faults = []
    for width, dark in LOOKS:
        tab.look(width, dark)
        if (width, dark) == LOOKS[0]:
            tab.visit(home + address(name))
        judge_look(tab, name, width, dark, faults)
        if (width, dark) == LOOKS[0]:
            faults += [f"{name}: Markdown is shown as it is written: {one!r}" for one in tab.run(UNREAD)]
        if pictures:
            colour = "dark" if dark else "light"
            tab.picture(pictures / f"{address(name).strip('/').replace('/', '-') or 'index'}-{width}-{colour}.png")
    faults += [f"{name}: {one}" for one in tab.faults]
    tab.faults.clear()
    return faults


def search(tab, home, width):
    faults = []
    for words, page in SEARCHES.items():
        tab.look(width, False)
        tab.visit(home)
        tab.run("[...document.querySelectorAll('.md-search__button, label[for=__search]')].find(one => one.getClientRects().length).click()")
        tab.until("document.activeElement.shadowRoot && document.activeElement.shadowRoot.activeElement", "the field for a search")
        tab.type(words)
        wanted = f"{FOUND}.some(one => one.startsWith('{home}{page}'))"
        try:
            tab.until(wanted, page)
        except RuntimeError:
            faults.append(f"at {width} px the search for {words} finds {tab.run(FOUND)}, and not {page}")
    return faults + tab.faults


def judge(folder, pictures=None, least=50):
    pages = pages_of(folder)
    faults = broken_links(folder, pages)
    if len(pages) < least:
        faults.append(f"only {len(pages)} pages")
    with browser.served(folder) as home, browser.tab(home) as tab:
        for name in pages:
            if name != "404.html":
                faults += visit(tab, home, name, pictures)
        if least > 1:
            for width in WIDTHS:
                faults += search(tab, home, width)
    return len(pages), faults


GOOD = ("<!doctype html><html><head><meta name=viewport content='width=device-width'><link rel=icon href=data:,>"
        "<style>@media (prefers-color-scheme: dark) {{ body {{ background: black; color: white }} }} body {{ background: white }}"
        "@media (prefers-color-scheme: dark) {{ body {{ background: black }} }}</style></head>"
        "<body><p id=here>words</p><a href=#here>here</a>{}</body></html>")
BAD = {
    "<script>console.error('bad')</script>": "console: bad",
    "<script>throw new Error('bad')</script>": "exception: Error: bad",
    "<img src=https://elsewhere.invalid/a.png>": "foreign request: https://elsewhere.invalid/a.png",
    "<a href=gone/>gone</a>": "broken link gone/",
    "<a href=#gone>gone</a>": "no such place #gone",
    "<img src=gone.png>": "answered with 404",
    "<div style='width: 600px'>wide</div>": "at 390 px, light: scrolls sideways, 6",
    "<article><p>says more. 2. Is it alive?</p></article>": "Markdown is shown as it is written",
    "<article><p>one\n* two</p></article>": "Markdown is shown as it is written",
    "<style>body { background: white !important; }</style>": "dark: background 1.00",
}


def self_test():
    for wrong, words in {"": None, **BAD}.items():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "index.html").write_text(GOOD.format(wrong), encoding="utf-8")
            _, faults = judge(folder, least=1)
            if words is None and faults or words and not any(words in one for one in faults):
                sys.exit(f"expected {words!r}, found {faults} on a page with {wrong!r}")
    print(f"{len(BAD)} faults noticed, and none on a good page")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("html", type=pathlib.Path, nargs="?")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--pictures", type=pathlib.Path)
    given = parser.parse_args()
    if given.self_test:
        return self_test()
    count, faults = judge(given.html, given.pictures)
    if faults:
        sys.exit("\n".join(faults))
    print(f"D3: {count} pages at two widths in two colours, {len(SEARCHES)} searches: nothing wrong")


if __name__ == "__main__":
    main()
