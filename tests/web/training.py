"""Tests of the training view: its curves, and the attention at each checkpoint."""

import base64
import fcntl
import json
import os
import shutil
import urllib.error

import letters
from layout import attributes
from server import Server, nothing_else_happened
from expected import check, digits, entropy, equal, near, picture, post, program, shown


def train(folder):
    """Trains a model and keeps all checkpoints. Takes some seconds."""
    letters.write_letters(folder)
    recipe = letters.recipe({"train": {"updates": 240, "label_smoothing": 0, "log_every": 10},
                         "checkpoint": {"keep": 100},
                         "schedule": {"kind": "constant", "lr": 0.01, "warmup": 1},
                         "valid": {"every": 40, "beam": 1, "tokenize": "none",
                                   "metrics": ["ppl", "bleu"]}})
    recipe["model"]["languages"] = ["en", "de"]
    recipe["model"]["tied"] = "output"  # words of source and target each have their own vectors
    with open(f"{folder}/train.yml", "w") as file:
        json.dump(recipe, file)
    program("train", "-c", f"{folder}/train.yml", "-o", f"{folder}/run", "--data", folder,
            "--threads", "1")
    program("average", "-o", f"{folder}/past", f"{folder}/run/checkpoints/"
            "checkpoint-00000080.safetensors")
    with open(f"{folder}/run/metrics.jsonl") as file:
        return [json.loads(line) for line in file]


def curves_are_drawn(page, lines):
    """Checks the positions of dots, the ends of the axis, the chosen update, a colour for each kind."""
    for name in ("loss", "bleu", "ppl"):
        curve = f".curve[data-name={name}]"
        dots = attributes(page, f"{curve} circle", "cx", "cy", "data-update", "data-value", "fill",
                          "data-kind")
        low, high = (f(dots, key=lambda dot: dot[4]) for f in (min, max))
        last = max(dot[3] for dot in dots)
        scale = (low[2] - high[2]) / (high[4] - low[4])
        check(scale > 0, f"{name} is upside down")
        near([d[2] for d in dots], [low[2] - scale * (d[4] - low[4]) for d in dots], name, 0.01)
        right = next(dot[1] for dot in dots if dot[3] == last)
        near([d[1] for d in dots], [54 + d[3] / last * (right - 54) for d in dots], name, 0.01)
        check(right > 200, f"{name} runs to the left")
        texts = [t[0] for t in attributes(page, f"{curve} text")]
        equal(texts, [digits(low[4]), digits(high[4]), f"update {last:g}"], f"the axis of {name}")
        near([n[1] for n in attributes(page, f"{curve} .now", "x1")], [54 + 80 / last
             * (right - 54)], f"the chosen update of {name}", within=0.01)
        kinds = {(dot[6], dot[5]) for dot in dots}
        equal(len({colour for _, colour in kinds}), len({kind for kind, _ in kinds}), "colours")
    wanted = [line["ppl"] for line in lines if line["kind"] == "valid"]
    near(page.numbers(".curve[data-name=ppl] [data-kind=valid]", "value"), wanted, "ppl", 1e-6)
    page.browser.value("document.querySelector('.curve[data-name=loss] [data-kind=train]')"
                       ".dispatchEvent(new MouseEvent('mouseenter'))")
    first = next(line for line in lines if line["kind"] == "train")
    equal(page.text("#read-out"), f"train loss after update {first['update']} = "
          f"{digits(first['loss'])}", "the read-out of a dot")


def both_sides_have_words(page):
    sides = []
    for side in ("source", "target"):
        page.open(text="a b c", view="words", side=side, word="A")
        shown(page, ".word-view")
        reply = post(page, "/v1/neighbours", side=side, words=["A"], count=24)
        sides.append({one["word"]: one["cosine"] for one in reply["words"][0]["neighbours"]})
        equal({one[1]: one[2] for one in attributes(page, ".map-word[data-cosine]", "data-word",
                                                    "data-cosine")}, sides[-1], side)
        said = program("neighbours", "A", "-m", f"{page.folder}/run", "-n", "24", "--json",
                       "--side", side)
        equal({n["word"]: n["cosine"] for n in json.loads(said)["neighbours"]}, sides[-1], side)
    check(sides[0] != sides[1], "both sides have the same words")


def run_is_shown(page, lines):
    page.open(text="a b c d e", view="training", update=80, unit="pieces")
    shown(page, ".past")
    for kind, name in (("train", "loss"), ("valid", "bleu"), ("train", "lr")):
        wanted = [(line["update"], line[name]) for line in lines if line["kind"] == kind]
        dots = f".curve[data-name={name}] [data-kind={kind}]"
        near(page.numbers(dots, "update"), [u for u, _ in wanted], f"updates of {name}")
        near(page.numbers(dots, "value"), [v for _, v in wanted], name, within=1e-6)
    curves_are_drawn(page, lines)
    text = page.text("#translation")
    for row, word in enumerate(text.split()):
        reply = json.loads(program("show", "-m", f"{page.folder}/past", "--target", text,
                                  "--explain", word, "--json", "a b c d e"))
        alpha = next(s["values"] for s in reply["steps"] if s["name"] == "α_tj")
        width = len(alpha)
        got = page.numbers(".past .cells rect", "weight")[row * width:(row + 1) * width]
        near(got, alpha, f"update 80, {word}")
    reply = post(page, "/v1/training/attention", q="a b c d e", translation=text, update=80)
    data = base64.b64decode(reply["attention"][0]["data"])
    width = reply["attention"][0]["cols"]
    rows = [[b / 255 for b in data[at:at + width]] for at in range(0, len(data), width)]
    equal(page.text(".past p"), f"Mean entropy {entropy(rows):.3f} bits per row", "the entropy")
    picture(page, "training-light")
    first = page.numbers(".past .cells rect", "weight")
    updates = page.browser.value("fetch('/v1/training?source=en&target=de').then((r) => r.json())")
    for at in (1, 0):
        page.browser.value(f"(() => {{ const s = document.querySelector('.training .step'); s.value"
                           f" = {at}; s.dispatchEvent(new Event('input')); }})()")
        page.browser.wait("document.querySelector('.past')?.dataset.shown === "
                          f"'{updates['updates'][at]}'")
        check(page.numbers(".past .cells rect", "weight") != first, "another update has the same map")
    page.browser.dark(True)
    page.open(text="a b c d e", view="training", update=80)
    shown(page, ".past")
    picture(page, "training-dark")
    page.browser.dark(False)
    both_sides_have_words(page)
    try:
        post(page, "/v1/training/attention", q="a", translation="A", update=81)
        check(False, "an update that was not kept is returned")
    except urllib.error.HTTPError as error:
        check(error.code == 404 and "was not saved" in error.read().decode(), f"{error}")
    nothing_else_happened(page)


def dots(page):
    return page.numbers(".curve[data-name=loss] [data-kind=train]", "update")


def append_metrics(page, line, update):
    """Appends a line to the metrics of the run."""
    with open(f"{page.folder}/run/metrics.jsonl", "a") as file:
        file.write(json.dumps({**line, "update": update}) + "\n")


def run_is_followed(page, lines):
    """The page draws new data of a running training and keeps the choices of the user."""
    line = [one for one in lines if one["kind"] == "train"][-1]
    files = f"{page.folder}/run/checkpoints/checkpoint-"
    faster = page.browser.call("Page.addScriptToEvaluateOnNewDocument", source=(
        "(() => { const real = setTimeout;"
        " window.setTimeout = (act, wait) => real(act, wait / 25); })()"))
    with open(f"{page.folder}/run/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        page.open(text="a b c d e", view="training", update=80, unit="pieces")
        shown(page, ".past")
        old, weights = dots(page), page.numbers(".past .cells rect", "weight")
        count = page.browser.value("document.querySelector('.training .step').max")
        page.browser.value("document.querySelector('.training .step').focus()")
        chosen = ("(() => { const s = document.activeElement; return [s.className, s.max, s.value,"
                  " s.previousSibling.textContent, document.querySelector('.past').dataset.shown,"
                  " location.hash.includes('update=80')]; })()")
        equal(page.browser.value(chosen), ["step", count, "2", "update 80", "80", True], "at first")
        shutil.copy(f"{files}00000240.safetensors", f"{files}00000280.safetensors")
        append_metrics(page, line, 250)
        page.browser.wait(f"document.querySelector('.training .step').max === '{int(count) + 1}'")
        equal(dots(page), [*old, 250], "updates that are drawn")
        equal(page.browser.value(chosen), ["step", str(int(count) + 1), "2", "update 80", "80",
                                           True], "what was chosen")
        for name in ("00000040", "00000080"):  # as checkpoint.keep does
            os.remove(f"{files}{name}.safetensors")
        append_metrics(page, line, 260)
        page.browser.wait("document.querySelectorAll('.curve[data-name=loss] [data-kind=train]')"
                          f".length === {len(old) + 2}")
        equal(page.browser.value(chosen), ["step", count, "1", "update 80", "80", True], "deleted")
        equal(page.numbers(".past .cells rect", "weight"), weights, "the weights")
        page.open(text="a b c d e", view="training")
        shown(page, ".past")
        equal(page.text(".steps.wide span"), "update 280", "the last one")
        shutil.copy(f"{files}00000240.safetensors", f"{files}00000290.safetensors")
        page.browser.wait("document.querySelector('.past').dataset.shown === '290'")
    rounds = "new Promise((done) => setTimeout(done, 5 * 5000))"
    asks = ("performance.getEntriesByType('resource')"
            ".filter((e) => e.name.includes('training?')).length")
    page.browser.value(rounds)
    before = page.browser.value(asks)
    append_metrics(page, line, 270)
    page.browser.value(rounds)
    equal((page.browser.value(asks), dots(page)), (before, [*old, 250, 260]), "after its end")
    page.browser.call("Page.removeScriptToEvaluateOnNewDocument", **faster)


def training_is_shown(page):
    lines = train(page.folder)
    with Server(page, "--run", f"{page.folder}/run"):  # the recipe states its languages
        run_is_shown(page, lines)
        run_is_followed(page, lines)
        nothing_else_happened(page)
