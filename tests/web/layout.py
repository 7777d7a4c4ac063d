"""Tests of positions and colours in the drawings against the numbers that they show. The sentence
and its translation have different numbers of words, in a different order."""

import json
import re

from expected import (STEP, Expected, Reply, by_words, check, equal, flat, near, pixels, saved_as,
                      translate)

TURNED = "The old man has never seen the sea."
PAPER = (20, 27, 38)  # background of the dark theme
BREWER = ("ffffff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b")
VIRIDIS = ("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30",
           "fde725")


def blend(stops, share):
    """The colour at the fraction `share` of a scale of stops."""
    place = max(0.0, min(1.0, share)) * (len(stops) - 1)
    at = min(len(stops) - 2, int(place))
    low, high = ([int(stop[i:i + 2], 16) for i in (0, 2, 4)] for stop in stops[at:at + 2])
    return [a + (b - a) * (place - at) for a, b in zip(low, high)]


def rgb(text):
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


def light(colour):
    """Relative luminance as defined by WCAG."""
    parts = [x / 255 for x in colour]
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# The text of a label in JavaScript: its title if it is cut because the letters are wide.
FULL_TEXT = "(node.querySelector('title') ?? node).textContent"


def attributes(page, selector, *names):
    """The text and these attributes of each element; numeric attributes as numbers."""
    rows = page.browser.value(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => [{FULL_TEXT},"
        f" ...{json.dumps(names)}.map((name) => node.getAttribute(name))])")
    number = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
    return [[row[0], *(float(x) if x and number.fullmatch(x) else x for x in row[1:])]
            for row in rows]


def colours_are(page, stops, gamma=1.0, selector=".cells rect"):
    """Checks that cells have the colours of their weights."""
    for _, weight, fill in attributes(page, selector, "data-weight", "fill"):
        near(rgb(fill), blend(stops, weight ** gamma), f"the colour of {weight}", within=1.1)


def a_map_is_drawn(page):
    expected = Reply(page, TURNED)
    page.open(text=TURNED)
    rows, cols = (expected.json[side]["words"] for side in ("target", "source"))
    check(len(rows) != len(cols), "the sentence and its translation have equally many words")
    cells = attributes(page, ".cells rect", "x", "y", "width", "data-weight", "aria-label")
    near([c[4] for c in cells], flat(expected.words()), "weights")
    left, top, size = cells[0][1:4]
    for k, (_, x, y, width, weight, label) in enumerate(cells):
        i, j = divmod(k, len(cols))
        near((x, y, width), (left + j * size, top + i * size, size), f"cell {i}, {j}", within=0.01)
        text = label.rsplit(" = ", 1)
        equal(text[0], f"{rows[i]} \u2192 {cols[j]}", f"the label of cell {i}, {j}")
        near([float(text[1])], [weight], "the label", within=6e-4)
    for name, words, selector, attribute, first in (
            ("columns", cols, "[data-col]", "x", left), ("rows", rows, "[data-row]", "y", top)):
        found = attributes(page, ".names " + selector, attribute)
        equal([one[0] for one in found], words, f"names of {name}")
        near([one[1] for one in found], [first + (k + 0.5) * size + (4 if attribute == "y" else 0)
                                         for k in range(len(words))], f"positions of {name}", 0.01)
    for text, x, y in attributes(page, ".cells text", "x", "y"):
        j, i = int((x - left) / size), int((y - top) / size)
        near([float(text)], [cells[i * len(cols) + j][4]], f"the number in cell {i}, {j}",
             within=0.0051)
    wanted = sum(weight >= 0.01 for weight in flat(expected.words()))
    equal(len(attributes(page, ".cells text")), wanted, "numbers in cells")
    dots = attributes(page, ".dots circle", "cx", "cy")
    wanted = [row.index(max(row)) for row in expected.words()]
    equal([(int((y - top) / size), int((x - left) / size)) for _, x, y in dots],
          list(enumerate(wanted)), "dots of the largest weights")
    lines = attributes(page, ".heat-map line", "x1", "y1", "x2", "y2")
    right, bottom = left + len(cols) * size, top + len(rows) * size
    near(flat(line[1:] for line in lines), [right - size, top, right - size, bottom, left,
                                            bottom - size, right, bottom - size],
         "lines before </s>", within=0.01)
    sums = attributes(page, ".sum", "data-sum")
    near([float(s[0].split()[1]) for s in sums], [s[1] for s in sums], "shown sums", within=0.0051)


def self_attention_has_its_names(page):
    asked = Reply(page, TURNED)
    pieces = [p if len(p) == 1 else p.replace("\u2581", "") for p in asked.json["target"]["tokens"]]
    for kind, unit, names in (("decoder", "pieces", ["<s>", *pieces[:-1]]),
                              ("encoder", "words", asked.json["source"]["words"])):
        page.open(text=TURNED, kind=kind, layer=1, head=0, unit=unit)
        for side in ("row", "col"):
            equal([n[0] for n in attributes(page, f".names [data-{side}]")], names, kind)
    page.open(text=TURNED, kind="decoder", layer=1, head=0)
    inputs = [0, *(at + 1 for at in asked.rows[:-1])]
    weights = Expected(TURNED).maps("decoder", 1, 0)[0]["data"]
    near(page.numbers(".cells rect", "weight"), flat(by_words(weights, inputs, inputs)), "words",
         within=0.006)


def colours_show_the_weights(page):
    page.open(text=TURNED)
    colours_are(page, BREWER)
    page.open(text=TURNED, gamma=0.5)
    colours_are(page, BREWER, 0.5)
    page.open(text=TURNED, palette="viridis", gamma=0.5)
    colours_are(page, VIRIDIS, 0.5)
    page.open(text=TURNED, theme="dark", gamma=0.5)
    cells = sorted((weight, light(rgb(fill))) for _, weight, fill in
                   attributes(page, ".cells rect", "data-weight", "fill"))
    shades = [shade for _, shade in cells]
    equal(shades, sorted(shades), "dark: larger weights are lighter")
    check(shades[0] - light(PAPER) < 0.05 and shades[-1] > 0.4, f"dark: from {shades[0]} to "
          f"{shades[-1]}")
    for theme in ("light", "dark"):
        page.open(text=TURNED, theme=theme, gamma=0.5)
        pairs = page.browser.value(
            "[...document.querySelectorAll('.cells text')].map((text) =>"
            " [getComputedStyle(text).fill, text.previousSibling.getAttribute('fill')])")
        worst = min(contrast(rgb(a), rgb(b)) for a, b in pairs)
        check(worst > 3, f"{theme}: a number on its cell has contrast {worst:.2f}")
        style = page.browser.value(
            "['--paper', '--card', '--ink', '--soft', '--accent', '--mark'].map((name) =>"
            " getComputedStyle(document.body).getPropertyValue(name).trim())")
        paper, card, *inks = ([int(c[i:i + 2], 16) for i in (1, 3, 5)] for c in style)
        for name, ink in zip(("ink", "soft", "accent", "mark"), inks):
            for ground in (paper, card):
                least = 3 if name == "mark" else 4.5
                check(contrast(ink, ground) >= least,
                      f"{theme}: {name} has contrast {contrast(ink, ground):.2f}")
        check((light(card) < 0.1) == (theme == "dark"), f"{theme}: cards of {card}")


def hovering_marks_row_and_column(page):
    page.open(text=TURNED)
    cols = len(attributes(page, ".names [data-col]"))
    row, col = 5, 7
    box = page.browser.value(
        f"(() => {{ const b = document.querySelectorAll('.cells rect')[{row * cols + col}]"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
    page.browser.move(*box)
    cell = attributes(page, ".cells rect", "x", "y", "data-weight")[row * cols + col]
    across, down = attributes(page, ".cross-hair rect", "x", "y")
    near([across[2], down[1]], [cell[2], cell[1]], "the cross-hair", within=0.01)
    names = ("Meer", "sea.")
    equal([n[0] for n in attributes(page, ".names .on")], list(reversed(names)), "names marked")
    equal(page.text("#read-out"), f"{names[0]} \u2192 {names[1]} = {cell[3]:.3f}", "the read-out")
    page.browser.move(3, 3)
    equal(attributes(page, ".cross-hair rect"), [], "the cross-hair after the mouse has left")
    # A click pins the cell, even when its colour changes; a second click releases it.
    for wanted in (2, 0):
        page.browser.click(*box)
        page.browser.move(3, 3)
        page.browser.value("(() => { const g = document.querySelector('#gamma'); g.value ="
                           " Number(g.value) + 0.05; g.dispatchEvent(new Event('input')); })()")
        equal(len(attributes(page, ".cross-hair rect")), wanted, "lines of the pinned cross-hair")


def lines_join_words(page):
    words = Reply(page, TURNED).words()
    page.open(text=TURNED, view="lines", hide=0.1)
    places = {side: [n[2] - 4 for n in attributes(page, f".lines text[data-{side}]", "x", "y")]
              for side in ("row", "col")}
    asked = Reply(page, TURNED).json
    for side, name in (("row", "target"), ("col", "source")):
        equal([n[0] for n in attributes(page, f".lines text[data-{side}]")], asked[name]["words"],
              f"names of {name}")
    paths = attributes(page, ".lines path", "d", "data-row", "data-col", "stroke-width")
    check(len(paths) > 8, f"only {len(paths)} lines")
    for _, d, i, j, width in paths:
        x1, y1, *_, x2, y2 = (float(x) for x in re.findall(r"-?[\d.]+", d))
        weight = words[int(i)][int(j)]
        check(weight >= 0.1 - STEP and x1 < x2, f"a line of {weight} from {x1} to {x2}")
        near((y1, y2), (places["col"][int(j)], places["row"][int(i)]), f"line {i}, {j}", 0.01)
        near([width], [9 * weight], "its width", within=9 * STEP)
    page.browser.value("document.querySelector('.lines text[data-col=\"7\"]').dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    faint = page.browser.value("[...document.querySelectorAll('.lines path')].map((p) =>"
                               " [Number(p.dataset.col), p.style.strokeOpacity])")
    equal([opacity for _, opacity in faint], ["" if j == 7 else "0.04" for j, _ in faint],
          "lines of other words")
    page.open(text=TURNED, view="lines", hide=0.1, layer=1)
    for head in range(4):
        group = f".lines g:nth-of-type({head + 1})"
        wanted = flat(Reply(page, TURNED).words(layer=1, head=head))
        got = page.numbers(f"{group} path", "weight")
        check(all(any(abs(w - v) <= 2 * STEP for v in wanted) for w in got), f"head {head}")
        check(abs(len(got) - sum(w >= 0.1 for w in wanted)) <= 1, f"lines of head {head}")
    strokes = [g[1] for g in attributes(page, ".lines g", "stroke")]
    equal(len(set(strokes)), 4, f"colours of heads {strokes}")


def heads_are_small_maps(page):
    page.open(text=TURNED, view="heads", gamma=0.5, layer=1, head=2)
    asked = Reply(page, TURNED)
    for place, picture in enumerate(pixels(page, ".heads canvas")):
        wanted = flat(asked.words(layer=place // 4, head=place % 4))
        near(flat(picture), flat(blend(BREWER, w ** 0.5) for w in wanted), f"head {place}", 2.5)
    equal([[x[1], x[2]] for x in attributes(page, ".heads .chosen", "data-layer", "data-head")],
          [[1, 2]], "the chosen head")
    spans = attributes(page, ".heads button", "data-entropy", "data-distance", "data-diagonality",
                       "data-end", "aria-label")
    for text, entropy, distance, diagonality, end, label in spans:
        wanted = re.fullmatch(r"(\S+) bits(\S+) words from diagonaldiagonal (\S+?)"
                              r"(\d+) % at </s>", text)
        check(wanted, text)
        both = [float(x) for x in re.fullmatch(
            r"layer \d, head \d: (\S+) bits, (\S+) words from diagonal, diagonal (\S+), "
            r"(\d+) % at </s>",
            label).groups()]
        near(both, (entropy, distance, diagonality, 100 * end), label, within=0.51)
        near([float(x) for x in wanted.groups()[:2]], (entropy, distance), text, within=0.051)
    weights = Expected(TURNED).words(layer=1, head=0)
    rows, cols = len(weights), len(weights[0])
    off = sum(w * abs(j - i * (cols - 1) / (rows - 1)) for i, row in enumerate(weights)
              for j, w in enumerate(row)) / rows
    near([spans[4][2]], [off], "distance from the diagonal", within=0.06)


def a_tree_is_drawn(page):
    page.open(text=TURNED, view="beam")
    beam = {n["id"]: n for n in Reply(page, TURNED).json["beam"]}
    nodes = page.browser.value(
        "Object.fromEntries([...document.querySelectorAll('.tree [data-id]')].map((g) => {"
        " const [a, b] = g.querySelectorAll('text'); return [g.dataset.id, [a.textContent,"
        " b.textContent, Number(a.getAttribute('x')), Number(a.getAttribute('y')) - 4,"
        " g.querySelector('title').textContent]]; }))")
    ends = {}
    for _, d, won in attributes(page, ".tree path", "d", "class"):
        x1, y1, *_, x2, y2 = (float(x) for x in re.findall(r"-?[\d.]+", d))
        ends[(x2 + 4, y2)] = (x1, y1, won)
    winners = 0
    for number, one in beam.items():
        token, said, x, y, title = nodes[str(number)]
        above = nodes[str(one["parent"])]
        rank = f" #{one['rank'] + 1}" if "rank" in one else ""
        near([float(said.split(" ")[0])], [one["score"]], f"score of {token}", within=0.051)
        equal(said[said.find(" "):] if " " in said else "", rank, f"rank of {token}")
        check(f"log p = {one['score']:.3f}"[:-1] in title, title)
        x1, y1, won = next(ends[end] for end in ends
                           if abs(end[0] - x) < 0.1 and abs(end[1] - y) < 0.1)
        near([y1], [above[3]], f"the edge to {token} begins at {above[0]}", within=0.1)
        check(above[2] < x1 < x, f"the edge to {token} from {x1}, {above[0]} at {above[2]}")
        winners += won == "won"
    best = next(n for n in beam.values() if n.get("rank") == 0)
    equal(winners, best["step"], "thick edges")
    for one in beam.values():
        for other in beam.values():
            same = one["parent"] == other["parent"] and "rank" not in one and "rank" not in other
            won = 20 in (nodes[str(one["id"])][3], nodes[str(other["id"])][3])
            if same and not won and one["score"] > other["score"]:
                check(nodes[str(one["id"])][3] < nodes[str(other["id"])][3], "order of branches")


def the_player_shows_its_step(page):
    asked = Reply(page, TURNED).json
    page.open(text=TURNED, view="player", step=3)
    piece = asked["target"]["tokens"][3].replace("\u2581", "")
    equal([n[0] for n in attributes(page, ".target .now")], [piece], "the piece being written")
    equal(len(attributes(page, ".target .later")), len(asked["target"]["tokens"]) - 4, "later")
    check(attributes(page, ".top .written")[0][0].startswith(piece), "the row of the written piece")
    shares = page.browser.value("[...document.querySelectorAll('.top tr')].map((tr) =>"
                                " [parseFloat(tr.querySelector('.bar').style.width) / 100,"
                                " Number(tr.querySelector('[data-p]').dataset.p)])")
    near([a for a, _ in shares], [b for _, b in shares], "bars of probabilities", within=1e-4)
    near([b for _, b in shares], [p for _, p in asked["steps"][3]["topk"]], "probabilities", 1e-4)
    words = page.browser.value("[...document.querySelectorAll('.source bdi')].map((n) =>"
                               " [Number(n.dataset.weight), n.style.background])")
    for weight, background in words:
        near(rgb(background), blend(BREWER, weight ** 0.7), f"the word of {weight}", within=1.5)
    bars = attributes(page, ".mechanism .weight", "height", "y", "data-weight")
    near([b[1] for b in bars], [100 * b[3] for b in bars], "heights of bars", within=0.01)
    page.browser.value("document.querySelectorAll('.source bdi')[7].dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    read = page.text("#read-out")
    source = asked["source"]["tokens"][7].replace("\u2581", "")
    equal(read, f"{piece} \u2192 {source} = {words[7][0]:.3f}", "the read-out")
    step = "Number(new URLSearchParams(location.hash.slice(1)).get('step'))"
    for act, wanted in (
            ("document.querySelector('[aria-label=\"One step on\"]').click()", 4),
            ("document.querySelector('[aria-label=\"One step back\"]').click()", 3),
            ("document.querySelector('.target [data-row=\"6\"]').click()", 6),
            ("(() => { const s = document.querySelector('input.step'); s.value = 2;"
             " s.dispatchEvent(new Event('input')); })()", 2)):
        page.browser.value(act)
        equal(page.browser.value(step), wanted, act)
    page.browser.press("ArrowLeft")
    equal(page.browser.value(step), 1, "the step after \u2190")


def gold_links_are_squares(page):
    page.open(text=TURNED, gold="0-0 7-5 6?4")
    cols = len(attributes(page, ".names [data-col]"))
    cells = attributes(page, ".cells rect", "x", "y")
    squares = attributes(page, ".gold rect", "x", "y", "data-link", "stroke-dasharray")
    for (_, x, y, link, dashes), sure in zip(squares, (True, True, False)):
        j, i = (int(n) for n in link.split("-"))
        near((x, y), [place + 3 for place in cells[i * cols + j][1:]], f"square {link}", 0.01)
        equal(dashes is None, sure, f"{link} is sure")
    page.open(text=TURNED, gold="0-0", unit="pieces")
    equal(attributes(page, ".gold rect"), [], "squares over pieces")
    page.open(text=TURNED, gold="0-0 x")
    check("not understood: x" in page.text("#stage"), page.text("#stage")[:80])


def links_are_the_programs(page):
    page.open(text=TURNED)
    wanted = translate(TURNED, "--alignment").split(" ||| ")[1]
    equal(saved_as(page, "pharaoh").decode().strip(), wanted, "Pharaoh's links")
    # A head with the largest weight on </s> for some word: the end symbol gets no link.
    asked = Reply(page, TURNED)
    layer, head = next(
        (m["layer"], m["head"]) for m in asked.json["attention"] if m["kind"] == "cross" and any(
            max(row) == row[-1] for row in asked.words(layer=m["layer"], head=m["head"])[:-1]))
    page.open(text=TURNED, layer=layer, head=head)
    words = asked.words(layer=layer, head=head)
    links = [f"{row.index(max(row[:-1]))}-{i}" for i, row in enumerate(words[:-1])]
    equal(saved_as(page, "pharaoh").decode().split(), links, "links of one head")


SHIPPED = [a_map_is_drawn, self_attention_has_its_names, colours_show_the_weights,
           hovering_marks_row_and_column, lines_join_words, heads_are_small_maps, a_tree_is_drawn,
           the_player_shows_its_step, gold_links_are_squares, links_are_the_programs]
