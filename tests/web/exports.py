"""Tests of saved files: every number and every name, including words with a special meaning in the
file format."""

import base64
import csv
import html
import json
import re
import xml.etree.ElementTree as xml

from layout import BREWER, TURNED, attributes, blend
from expected import Reply, check, equal, flat, near, saved_as

SPECIAL = 'The =SUM(A1) "big, red" a_b {x} 5% & <b> #1 $2 ~ ^ \\dog sleeps.'
SVG = "{http://www.w3.org/2000/svg}"


def drawings_stand_alone(page):
    """The SVG has the positions, words and colours of the page, without its style sheet."""
    page.open(text=TURNED, gamma=0.5)
    root = xml.fromstring(saved_as(page, "svg"))
    names = [node[0] for node in attributes(page, ".heat-map text")]
    equal([t.text for t in root.iter(SVG + "text")], names, "texts")
    check({"12px", "13px", "11px"} & {t.get("font-size") for t in root.iter(SVG + "text")},
          "texts without a size")
    weights = [r for r in root.iter(SVG + "rect") if r.get("data-weight")]
    for rect in weights:
        colour = [int(x) for x in re.findall(r"\d+", rect.get("fill"))]
        near(colour, blend(BREWER, float(rect.get("data-weight")) ** 0.5), "a cell", within=1.1)
    near([float(r.get("data-weight")) for r in weights], flat(Reply(page, TURNED).words()), "SVG")
    paper = next(iter(root))
    equal((paper.tag, paper.get("fill")), (SVG + "rect", "#ffffff"), "what lies below")
    check(not any(n.get("class") or n.get("style") for n in root.iter()), "the SVG needs a style sheet")


def pictures_have_the_drawing(page):
    page.open(text=TURNED)
    png = base64.b64encode(saved_as(page, "png")).decode()
    box = [float(x) for x in page.browser.value(
        "document.querySelector('.heat-map').getAttribute('viewBox')").split()]
    cells = attributes(page, ".cells rect", "x", "y", "data-weight")
    places = [[2 * x + 6, 2 * y + 6] for _, x, y, _ in cells]
    size, colours = page.browser.value(
        f"(async () => {{ const image = new Image(); image.src = 'data:image/png;base64,{png}';"
        " await image.decode(); const c = document.createElement('canvas'); c.width = image.width;"
        " c.height = image.height; const g = c.getContext('2d', { willReadFrequently: true });"
        " g.drawImage(image, 0, 0);"
        f" return [[c.width, c.height], {json.dumps(places)}.map(([x, y]) =>"
        " [...g.getImageData(x, y, 1, 1).data].slice(0, 3))]; })()")
    near(size, (2 * box[2], 2 * box[3]), "points of the PNG", within=1)
    for colour, (_, _, _, weight) in zip(colours, cells):
        near(colour, blend(BREWER, weight), f"the point of a cell of {weight}", within=3)


def tables_have_every_number(page):
    words = Reply(page, TURNED)
    rows, cols = (words.json[side]["words"] for side in ("target", "source"))
    page.open(text=TURNED)
    table = list(csv.reader(saved_as(page, "csv").decode().splitlines()))
    equal(table[0], ["", *cols], "columns of the CSV")
    equal([line[0] for line in table[1:]], rows, "rows of the CSV")
    near([float(x) for line in table[1:] for x in line[1:]], flat(words.words()), "CSV")
    saved = json.loads(saved_as(page, "json"))
    near(flat(saved["weights"]), flat(words.words()), "JSON")
    equal((saved["rows"], saved["columns"], saved["layer"], saved["head"], saved["kind"], saved["unit"]),
          (rows, cols, "mean", "mean", "cross", "words"), "JSON")
    equal((saved["source"], saved["translation"]), (TURNED, words.json["target"]["text"]), "texts")
    tex = saved_as(page, "latex").decode()
    cells = {(int(j), int(i)): int(share) for share, j, i in
             re.findall(r"black!(\d+)!white\] \((\d+), (\d+)\)", tex)}
    shares = flat(words.words())
    near([cells.get((k % len(cols), k // len(cols)), 0) / 100 for k in range(len(shares))], shares,
         "LaTeX", within=0.0071)
    page.open(text=TURNED, layer=1, head=-2, unit="pieces")
    saved = json.loads(saved_as(page, "json"))
    equal((saved["layer"], saved["head"], saved["unit"]), (1, "maximum", "pieces"), "the choice")
    page.open(text=TURNED, layer=0, head=3)
    saved = json.loads(saved_as(page, "json"))
    equal((saved["layer"], saved["head"]), (0, 3), "the choice")
    near(flat(saved["weights"]), flat(words.words(layer=0, head=3)), "JSON of a head")


def names_are_quoted(page):
    """Words that are formulas, quotes or markup in a file format."""
    words = Reply(page, SPECIAL).json["source"]["words"]
    page.open(text=SPECIAL)
    header = next(csv.reader(saved_as(page, "csv").decode().splitlines()))[1:]
    equal(header, ["'" + w if w[0] in "=+-@" else w for w in words], "columns of the CSV")
    check(any(w.startswith("'=") for w in header) and any('"' in w for w in header), f"{header}")
    tex = saved_as(page, "latex").decode()
    names = re.findall(r"rotate=45, anchor=west\] at \(\S+ -0.2\) \{(.*)\};", tex)
    special = {"\\textbackslash{}": "\\", "\\textasciicircum{}": "^", "\\textasciitilde{}": "~",
               "\\textless{}": "<", "\\textgreater{}": ">", **{"\\" + c: c for c in "{}$&#%_"}}
    plain = re.compile("|".join(re.escape(name) for name in special))
    for name, word in zip(names, words):
        check(not re.search(r"[\\{}$&#%_^~<>]", plain.sub("", name)), f"LaTeX has {name}")
        equal(plain.sub(lambda found: special[found.group()], name), word, "a name in LaTeX")
    equal(len(names), len(words), "names in LaTeX")
    snippet = saved_as(page, "embed").decode()
    check(snippet.startswith("<figure>") and "<svg" in snippet and "<script" not in snippet,
          "the snippet")
    caption = re.search(r"<figcaption[^>]*>(.*)</figcaption>", snippet).group(1)
    check("<" not in caption, f"markup in the caption: {caption}")
    equal(html.unescape(caption), f"{SPECIAL} \u2192 {page.text('#translation')}", "the caption")


def changes_are_saved(page):
    """What-if saves the difference, Search saves the displayed tree."""
    page.open(text=TURNED, view="whatif", mask="2")
    page.browser.wait("document.querySelector('.what-if').dataset.state === 'done'")
    table = list(csv.reader(saved_as(page, "csv").decode().splitlines()))
    near([float(x) for line in table[1:] for x in line[1:]],
         page.numbers(".difference .cells rect", "weight"), "the difference", within=1e-4)
    check(min(float(x) for line in table[1:] for x in line[1:]) < -0.1, "no weight has decreased")
    page.open(text=TURNED, view="beam", prefix="\u2581Ein", kind="encoder")
    page.browser.wait("document.querySelector('.search').dataset.state === 'done'")
    begun = Reply(page, TURNED, prefix=["\u2581Ein"])
    saved = json.loads(saved_as(page, "json"))
    equal((saved["translation"], saved["rows"], saved["kind"]),
          (begun.json["target"]["text"], begun.json["target"]["words"], "cross"), "the search")
    near(flat(saved["weights"]), flat(begun.words()), "weights of what was found")
    links = [f"{row.index(max(row[:-1]))}-{i}" for i, row in enumerate(begun.words()[:-1])]
    equal(saved_as(page, "pharaoh").decode().split(), links, "its links")
    page.open(text=TURNED, view="player", kind="encoder")
    saved = json.loads(saved_as(page, "json"))
    equal((saved["kind"], saved["unit"], len(saved["rows"])),
          ("cross", "pieces", len(Reply(page, TURNED).json["target"]["tokens"])), "the player")


SHIPPED = [drawings_stand_alone, pictures_have_the_drawing, tables_have_every_number,
           names_are_quoted, changes_are_saved]
