"""Expected values from the program and its service, and functions to compare the page with them."""

import base64
import glob
import json
import math
import os
import subprocess
import time
import urllib.request

FOVEA = os.environ["FOVEA"]
HOME = os.environ.get("FOVEA_HOME") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
VIEWS = ("map", "player", "lines", "heads", "beam", "whatif", "compare", "inside", "positions",
         "words", "training")
SENTENCE = "A small dog runs through the snow."
STEP = 1 / 510 + 1e-4  # error of a weight that is sent as a byte and shown with four digits


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


def equal(got, wanted, what):
    check(got == wanted, f"{what}: {got!r} instead of {wanted!r}")


def near(got, wanted, what, within=STEP):
    check(len(got) == len(wanted), f"{what}: {len(got)} numbers instead of {len(wanted)}")
    for i, (a, b) in enumerate(zip(got, wanted)):
        check(abs(a - b) <= within, f"{what}: number {i} is {a} instead of {b}")


def translate(text, *options):
    command = [FOVEA, "translate", "-q", *options]
    return subprocess.run(command, input=text + "\n", stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def program(*arguments):
    """The standard output of the program."""
    return subprocess.run([FOVEA, *arguments, "-q"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def digits(x):
    """A number in the format of the page."""
    size = abs(x)
    if size != 0 and (size < 0.001 or size >= 10000):
        return f"{x:.2e}".replace("e-0", "e-").replace("e+0", "e+")
    return f"{x:.{3 if size < 10 else 2 if size < 100 else 1}f}"


def column_digits(numbers):
    """A column of numbers in the format of the page: all have the digits of the largest."""
    size = max(map(abs, numbers)) or 1
    if size < 0.001 or size >= 10000:
        return [f"{x:.2e}".replace("e-0", "e-").replace("e+0", "e+") for x in numbers]
    return [f"{x:.{3 if size < 10 else 2 if size < 100 else 1}f}" for x in numbers]


def by_words(weights, rows, cols):
    """Weights of words: the mean over the pieces of a row, the sum over the pieces of a column."""
    sums = [[0.0] * (max(cols) + 1) for _ in range(max(rows) + 1)]
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            sums[rows[i]][cols[j]] += weight / rows.count(rows[i])
    return sums


def word_places(pieces):
    """The word number of each piece, by the blank marks of SentencePiece; </s> is a word."""
    places, at = [], -1
    for piece in pieces:
        at += piece.startswith("\u2581") or piece == "</s>"
        places.append(at)
    return places


def mean(maps):
    chosen = [m["data"] for m in maps]
    return [[sum(column) / len(chosen) for column in zip(*rows)] for rows in zip(*chosen)]


class Expected:
    """The attention of a sentence from `fovea translate --attention`."""

    def __init__(self, text):
        self.json = json.loads(translate(text, "--attention", "--format", "jsonl"))
        self.rows = word_places(self.json["tokens"])
        self.cols = word_places(self.json["source_tokens"])

    def maps(self, kind="cross", layer=None, head=None):
        return [m for m in self.json["attention"] if m["kind"] == kind
                and layer in (None, m["layer"]) and head in (None, m["head"])]

    def words(self, **choice):
        return by_words(mean(self.maps(**choice)), self.rows, self.cols)


def flat(rows):
    return [weight for row in rows for weight in row]


def entropy(rows):
    return -sum(w * math.log2(w) for w in flat(rows) if w > 0) / len(rows)


def post(page, path, **body):
    """The reply of the service to a POST request."""
    body = {"source": "en", "target": "de", **body}
    request = urllib.request.Request(page.url + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def ask_service(page, text, **fields):
    wanted = {"q": text, "attention": True, "beam_size": 4, "n_best": 4, **fields}
    return post(page, "/translate", **wanted)["attention"][0]


class Reply:
    """The attention of a sentence from the service, optionally with changes such as a prefix."""

    def __init__(self, page, text=SENTENCE, **fields):
        self.json = ask_service(page, text, **fields)
        self.rows, self.cols = (self.json[side]["word_of"] for side in ("target", "source"))

    def words(self, kind="cross", layer=None, head=None):
        chosen = []
        for m in self.json["attention"]:
            named = layer in (None, m["layer"]) and head in (None, m["head"])
            if m["kind"] != kind or not named:
                continue
            data, cols = base64.b64decode(m["data"]), m["cols"]
            chosen.append({"data": [[b / 255 for b in data[at:at + cols]]
                                    for at in range(0, len(data), cols)]})
        return by_words(mean(chosen), self.rows, self.cols)


def picture(page, name):
    folder = os.environ.get("FOVEA_PICTURES")
    if folder:
        page.browser.picture(f"{folder}/{name}.png")


ENDINGS = {"pharaoh": "align.txt", "latex": "tex", "embed": "html"}
saves = iter(range(10 ** 6))


def saved_as(page, form, act=None):
    """The bytes that the page saves in this format, by a click on its button or by `act`."""
    folder = f"{page.folder}/saved-{next(saves)}"
    page.browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=folder)
    act() if act else page.click(f"[data-save={form}]")
    for _ in range(1500):
        for path in glob.glob(f"{folder}/*-*.{ENDINGS.get(form, form)}"):  # named SENTENCE-VIEW
            with open(path, "rb") as file:
                if data := file.read():  # the browser creates the file empty
                    return data
        time.sleep(0.02)
    raise Failed(f"{form} was not saved")


def pixels(page, selector):
    """The colours of each canvas, row by row."""
    found = page.browser.value(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((c) => {{"
        " const copy = document.createElement('canvas'); copy.width = c.width; copy.height ="
        " c.height; const pen = copy.getContext('2d', { willReadFrequently: true });"
        " pen.drawImage(c, 0, 0); return [...pen.getImageData(0, 0, c.width, c.height).data]; })")
    return [[data[at:at + 3] for at in range(0, len(data), 4)] for data in found]


def few_elements(page, view, most=20000):
    """Checks that a view is fast: counts its elements, since times depend on the machine."""
    count = page.browser.value("document.querySelectorAll('#stage *').length")
    check(0 < count < most, f"{view} has {count} elements")


def shown(page, selector):
    """Waits until a view has drawn the reply of the service."""
    page.browser.wait(f"document.querySelector('{selector}')?.dataset.shown !== undefined")
