"""Tests of small models, one per mechanism: the states of each mechanism are drawn correctly, and
models can be distinguished."""

import base64
import math
import re

from layout import BREWER, attributes, colours_are
from expected import SENTENCE, Reply, ask_service, check, equal, flat, near

TEXT = "a b c d"
BASE = 118  # y of the base line of the bars, in points
NOTES = {"dot": "again at each step", "local-m": "moves by one word", "local-p": "predicts a "
         "position p", "hard-argmax": "One piece is chosen", "forward": "one word behind it",
         "window": "middle of a soft window", "static": "the same at every step",
         "location": "does not use the words"}


class Step:
    """The drawing of a step: positions of words, and the reply of the service."""

    def __init__(self, page, name, row):
        reply = ask_service(page, SENTENCE, model=name)
        self.extra, self.page, self.row = reply["extra"], page, row
        self.rows, self.cols = (len(reply[side]["tokens"]) for side in ("target", "source"))
        page.open(text=SENTENCE, model=name, view="player", step=row)
        self.middles = [n[1] for n in attributes(page, ".mechanism [data-col]", "x")]
        self.step = self.middles[1] - self.middles[0]

    def x(self, place):
        return self.middles[0] + place * self.step

    def lines(self, name):
        return [line[1] for line in attributes(self.page, f".mechanism .{name}", "x1")]


def window_is_drawn(step):
    p, half = step.extra["p_t"][step.row] - 1, step.extra["window"]
    middle = math.floor(p + 0.5)
    low, high = max(0, middle - half), min(step.cols - 1, middle + half)
    _, left, width = attributes(step.page, ".mechanism .window", "x", "width")[0]
    near((left, width), (step.x(low) - step.step / 2, (high - low + 1) * step.step), "window", 0.1)
    near(step.lines("position"), [step.x(p)], "p", within=0.1)
    equal(attributes(step.page, ".mechanism text.soft")[0][0], f"p_t = {p + 1:.2f}", "the text of p")
    equal(attributes(step.page, ".mechanism .reach")[0][0], f"\u00b1 D = {half}", "the text of D")
    check(step.page.browser.value("Boolean(document.querySelector('.weight:last-of-type')"
                                  ".compareDocumentPosition(document.querySelector('.position'))"
                                  " & Node.DOCUMENT_POSITION_FOLLOWING)"), "p is behind the bars")


def gaussian_is_drawn(step):
    p, sigma = step.extra["p_t"][step.row] - 1, step.extra["sigma"]
    points = [[float(x) for x in point.split(",")] for point in
              attributes(step.page, ".gaussian", "points")[0][1].split()]
    check(len(points) > 40, f"a curve of {len(points)} points")
    for x, y in points:
        place = (x - step.middles[0]) / step.step
        near([y], [BASE - 100 * math.exp(-(place - p) ** 2 / (2 * sigma ** 2))],
             f"the Gaussian at {place:.2f}", within=0.6)


def service_agrees(page, name, steps):
    """Checks that the service sends the same numbers of step 1 as `fovea show --explain`."""
    reply = ask_service(page, TEXT, model=name)
    extra, cols = reply["extra"], len(reply["source"]["tokens"])
    weights = base64.b64decode(reply["attention"][0]["data"])
    if name.startswith("local"):
        near([extra["p_t"][1]], steps["p_t"], "p of step 1", within=1e-4)
        with open(f"{page.folder}/out/{name}/config.yml", encoding="utf-8") as file:
            half = int(re.search(r"\bwindow: (\d+)", file.read()).group(1))
        equal(extra["window"], half, "words on each side of p")
        if name == "local-p":
            near([extra["sigma"]], [half / 2], "the width of the Gaussian", within=1e-6)
    if name == "window":
        each = len(extra["kappa"]) // len(reply["target"]["tokens"])
        near(extra["kappa"][each:2 * each], steps["\u03ba_t"], "\u03ba of step 1", within=1e-3)
    if name == "hard-argmax":
        soft = base64.b64decode(extra["soft"])[cols:2 * cols]
        near([b / 255 for b in soft], steps["softmax"], "the distribution of step 1")
    if name == "forward":  # the frontier is one word before the last attended word
        focus = [max(range(cols), key=lambda j: weights[at + j])
                 for at in range(0, len(weights), cols)]
        equal(extra["frontier"], [0, *(max(0, j - 1) for j in focus[:-1])], "the frontier")


def states_are_drawn_in_place(page):
    """Uses models of the gallery, which attend to different words at different steps."""
    for row in (0, 3):
        for name in ("local-p", "local-m"):
            step = Step(page, name, row)
            window_is_drawn(step)
            if name == "local-p":
                gaussian_is_drawn(step)
        step = Step(page, "window", row)
        each = len(step.extra["kappa"]) // step.rows
        kappas = step.extra["kappa"][row * each:(row + 1) * each]
        near(step.lines("kappa"), [step.x(k - 1) for k in kappas], "\u03ba", within=0.1)
        names = " ".join(text[0] for text in attributes(page, ".mechanism text.soft"))
        equal(names.count("\u03ba"), each, f"names of \u03ba in {names}")
        step = Step(page, "forward", row)
        near(step.lines("frontier"), [step.x(step.extra["frontier"][row]) - step.step / 2],
             "the frontier", within=0.1)
        equal(attributes(page, ".mechanism text.soft")[0][0], "frontier", "its name")
        step = Step(page, "hard-argmax", row)
        soft = [b / 255 for b in base64.b64decode(step.extra["soft"])]
        soft = soft[row * step.cols:(row + 1) * step.cols]
        near(page.numbers(".soft-weight", "weight"), soft, "the distribution", within=1e-4)
        bars = attributes(page, ".mechanism .soft-weight", "height", "y")
        near([b[1] for b in bars], [100 * w for w in soft], "its outlines", within=0.01)
        chosen = page.numbers(".mechanism .weight", "weight")
        check(soft[chosen.index(1)] >= max(soft) - 1 / 255, f"chosen {chosen} of {soft}")
    for name, words in NOTES.items():
        page.open(text=SENTENCE, model=name, view="player")
        check(words in page.text(".player .note"), f"{name}: {page.text('.player .note')}")


def the_axis_has_a_scale(page):
    """The heights of bars match the axis, which is the same at all steps; the largest has a number."""
    for name in ("static", "location", "hard-argmax"):
        reply = ask_service(page, SENTENCE, model=name)
        most = max(base64.b64decode(reply["attention"][0]["data"])) / 255
        full = next((x for x in (0.1, 0.2, 0.5) if most <= x), 1)
        for row in (0, 2):
            page.open(text=SENTENCE, model=name, view="player", step=row)
            scale = [float(text[0]) for text in attributes(page, ".mechanism .scale")]
            equal(scale, [0, full / 2, full], f"the axis of {name}, whose largest is {most}")
            bars = attributes(page, ".mechanism .weight", "height", "data-weight")
            near([b[1] for b in bars], [100 * b[2] / full for b in bars], "bars", within=0.02)
            near([float(page.text(".mechanism .largest"))], [max(b[2] for b in bars)],
                 "the largest weight", within=0.0051)


def two_maps_are_compared(page):
    """Each map shows the weights of its model, with the same contrast; hovering marks both maps."""
    page.open(text=TEXT, model="window", other="static", view="compare", gamma=0.5)
    page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
    wanted = [Reply(page, TEXT, model=name) for name in ("window", "static")]
    check(flat(wanted[0].words()) != flat(wanted[1].words()), "both models have the same weights")
    for at, (name, asked) in enumerate(zip(("window", "static"), wanted)):
        panel = f".pair > div:nth-child({at + 1})"
        near(page.numbers(f"{panel} .cells rect", "weight"), flat(asked.words()), name)
        colours_are(page, BREWER, 0.5, f"{panel} .cells rect")
        equal((page.text(f"{panel} h2"), page.text(f"{panel} p")),
              (f"{name} ({name})", asked.json["target"]["text"]), "the heading")
    page.browser.move(*page.browser.value(
        "(() => { const b = document.querySelectorAll('.cells rect')[1].getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"))
    marked = page.browser.value("[...document.querySelectorAll('.heat-map')].map((map) =>"
                                " map.querySelectorAll('.cross-hair rect').length)")
    equal(marked, [2, 2], "lines of both cross-hairs")
    page.open(text=TEXT, model="window", view="compare")
    page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
    equal(page.text(".pair > div:nth-child(2) h2"), "global (global)", "the first other model")


def models_have_distinct_names(page):
    page.open(text=TEXT, model="window", view="compare")
    lists = page.browser.value("['model', 'other'].map((id) => [...document.querySelectorAll("
                               "`#${id} option`)].map((option) => option.value))")
    twins = ["en-de: hard-sample", "de-en: hard-sample"]
    equal([name for name in lists[0] if "hard-sample" in name], twins, "models with the same name")
    equal([name for name in lists[1] if "hard-sample" in name], twins[:1], "models to compare with")
    texts = [option[0] for option in attributes(page, "#model option")]
    for text in ("local-p (additive)", "window", "none"):
        check(any(one.endswith(f": {text}") for one in texts), f"no {text} in {texts}")
    page.open(text=TEXT, model=twins[1])
    asked = Reply(page, TEXT, model="hard-sample", source="de", target="en")
    near(page.numbers(".cells rect", "weight"), flat(asked.words()), "the second model with the same name")
    page.open(text=TEXT, model="none")
    check(page.text("#stage").startswith("This model has no attention to show"), "none")
    page.click("[data-view=beam]")
    page.browser.wait("document.querySelectorAll('.tree [data-id]').length > 5")
    page.browser.value("[...document.querySelectorAll('.tree .lost')].at(-1).dispatchEvent("
                       "new MouseEvent('click'))")
    page.browser.wait("document.querySelector('.search').dataset.state === 'done'"
                      " && document.querySelector('.tree .forced') !== null")
    equal(page.browser.value("[...document.querySelectorAll('[data-save]')].filter((b) => !b.hidden)"
                             ".map((b) => b.dataset.save)"), ["svg", "png", "embed"], "formats")
    page.open(text=TEXT, model="window", other="none", view="compare")
    page.browser.wait("document.querySelectorAll('.pair > div').length === 2")
    check("no attention" in page.text(".pair > div:nth-child(2)"), "none next to another model")
    page.open(text=TEXT, model="global", view="positions")
    page.browser.wait("document.querySelector('.positions').dataset.shown !== undefined")
    check("adds no positions" in page.text(".positions"), page.text(".positions"))


SHIPPED = [states_are_drawn_in_place, the_axis_has_a_scale]
TRAINED = [two_maps_are_compared, models_have_distinct_names]
