"""Tests of the explanations on the page: the word with the largest weight, the terms of a score, the
owner of a row, what a mean omits, how layers and heads are numbered, and names."""

import base64
import itertools
import json
import re

from controls import address, choose, ready_after
from layout import TURNED, attributes, contrast, rgb
from expected import (SENTENCE, Reply, ask_service, by_words, check, equal, flat, mean, near, post,
                      shown)

# The mechanisms and scores of the gallery, and the factors of each score.
FACTORS = {"additive": ["v", "tanh"], "concat": ["v", "tanh"], "dot": ["s_t", "h_j"],
           "general": ["s_t", "W h_j"], "scaled-dot": ["s_t", "h_j"], "location": ["s_t", "w_j"],
           "window": ["φ_tjk"], "local-m": None, "local-p": None, "hard-argmax": None,
           "hard-sample": None, "forward": None, "static": None}
# Machado, Oliveira, Fernandes 2009: colour vision without one kind of cone, in linear RGB.
BLIND = {"protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                        (-0.003882, -0.048116, 1.051998)),
         "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                          (-0.011820, 0.042940, 0.968881)),
         "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                        (0.004733, 0.691367, 0.303900))}
# Holds the timers of the step player. tick() calls them and returns their number.
HELD_TIMERS = """(() => { const { setTimeout: later, clearTimeout: forget } = window;
  const held = new Map(); let last = 1e9;
  window.setTimeout = (act, wait) => (wait === 900 ? (held.set(++last, act), last)
    : later(act, wait));
  window.clearTimeout = (id) => (held.delete(id) ? undefined : forget(id));
  window.tick = () => { const all = [...held.values()]; held.clear();
    for (const act of all) act(); return all.length; }; })()"""


def inside(page, **state):
    page.open(view="inside", **{"text": SENTENCE, **state})
    shown(page, ".inside")


def visible(page, selector):
    return page.browser.value(f"[...document.querySelectorAll({json.dumps(selector)})].filter("
                              "(node) => node.getClientRects().length > 0).length")


def steps_of(page, model, row):
    reply = post(page, "/v1/explain", q=SENTENCE, model=model, beam_size=4, row=row)
    return reply["pieces"], {step["name"]: step for step in reply["steps"]}


def windows_differ_from_weights(page):
    """Tests Graves' window: the strongest word, φ and its share, and the weighted sum."""
    for row in range(3):
        inside(page, model="window", step=row)
        _, steps = steps_of(page, "window", row)
        phi = steps["φ_tj"]["values"]
        best = phi.index(max(phi))
        equal({one[1] for one in attributes(page, ".inside-words .chosen", "data-col")}, {best},
              f"the word that is marked at step {row}")
        total = sum(phi)
        near(steps["share"]["values"], [x / total for x in phi], "φ as shares", within=1e-6)
        text = page.text(".inside")
        check(f"Σ_j φ_tj = {total:.3f}" in text, f"no sum {total:.3f} in {text[:600]}")
        check("c_t = Σ_j φ_tj h_j" in text and "α_tj" not in text, "names of the weights")
    page.open(text=SENTENCE, model="window", unit="pieces")
    width = len(attributes(page, ".names [data-col]"))
    near(page.numbers(".cells rect", "weight")[2 * width:3 * width], [x / total for x in phi],
         "the map shows shares")
    page.open(text=SENTENCE, model="window", view="player")
    check("need not sum to 1" in page.text(".player .note"), page.text(".player .note"))


def every_score_is_multiplied_out(page):
    """A click on a row shows the terms of its score, for each mechanism and score."""
    for model, wanted in FACTORS.items():
        inside(page, model=model, step=1)
        pieces, steps = steps_of(page, model, 1)
        summed = next((s for s in steps.values() if "factors" in s), None)
        check(summed, f"{model}: no step is a sum of products")
        check(wanted in (None, summed["factors"]), f"{model}: factors {summed['factors']}")
        for col in (0, 2):
            page.click(f".inside-words tr[data-col='{col}']")
            page.browser.wait("document.querySelector('.inside')?.dataset.shown === "
                              f"'[\"cross\",0,0,1,{col}]'")
            product = page.numbers(".product", "sum")
            near(product, [summed["values"][col]], f"{model}: {summed['name']} of word {col}",
                 within=1e-3 * max(1, abs(summed["values"][col])))
            rows = [row[0] for row in attributes(page, ".product th")]
            equal(rows[:len(summed["factors"])], summed["factors"], f"{model}: factors")
            check(pieces[col].replace("\u2581", "") in page.text(".product .formula"), "the word")
            chain = page.text(".product .numbers")
            check(chain.startswith(f"{summed['name']} = "), f"{model}: {chain}")
            weight = next(s for s in reversed(steps.values()) if s.get("weights"))
            value = float(chain.rsplit(" = ", 1)[1])
            check(f"{weight['name']} = " in chain, f"{model}: no weight in {chain}")
            near([value], [weight["values"][col]], f"{model}: the end of {chain}", within=6e-4)


def a_row_of_self_attention_has_one_name(page):
    """The map and the explanation name a row by its query; a word of the translation marks its row."""
    for kind, row, col in (("decoder", 3, 1), ("encoder", 2, 4)):
        page.open(text=SENTENCE, kind=kind, layer=0, head=0, unit="pieces")
        names = [[n[0] for n in attributes(page, f".names [data-{side}]")] for side in ("row", "col")]
        equal(names[0], names[1], f"{kind}: queries and keys")
        weights = page.numbers(".cells rect", "weight")
        box = page.browser.value(
            f"(() => {{ const b = document.querySelectorAll('.cells rect')"
            f"[{row * len(names[1]) + col}].getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        page.browser.click(*box)
        check(page.text("#read-out").startswith(f"{names[0][row]} → {names[1][col]} = "),
              page.text("#read-out"))
        equal(page.text("#read-out .how"), "Explain this weight", "the offered action")
        page.click(".how")
        shown(page, ".inside")
        equal([n[0] for n in attributes(page, ".asking .now")], [names[0][row]], f"{kind}: the query")
        reply = post(page, "/v1/explain", q=SENTENCE, beam_size=4, kind=kind, row=row)
        alpha = next(s["values"] for s in reply["steps"] if s.get("weights"))
        near([weights[row * len(names[1]) + col]], [alpha[col]], f"{kind}: the weight")
    page.open(text=SENTENCE, kind="decoder", layer=0, head=0)
    page.browser.value("document.querySelectorAll('#translation bdi')[2].dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    equal([n[0] for n in attributes(page, ".names .beside .on")], ["Hund"], "the row of a word")
    equal([n[0] for n in attributes(page, "#translation .on")], ["Hund"], "the word of a row")


def masked_cells_are_crossed(page):
    for unit in ("pieces", "words"):
        page.open(text=SENTENCE, kind="decoder", layer=0, head=0, unit=unit)
        count = len(attributes(page, ".names [data-col]"))
        lines = attributes(page, ".masked-cells", "d")[0][1].count("M")
        equal(lines, count * (count - 1) // 2, f"cells above the diagonal, in {unit}")
        check("masked" in page.text("#stage .note"), page.text("#stage .note"))
        labels = [c[1] for c in attributes(page, ".cells rect", "aria-label")]
        equal(sum(label.endswith("= masked") for label in labels), lines, "labels")
    page.open(text=SENTENCE)
    equal(attributes(page, ".masked-cells"), [], "masked cells of cross-attention")


def lines_say_who_attends(page):
    for kind, wanted in (("cross", "while generating"), ("encoder", "attending from"),
                         ("decoder", "attending from")):
        page.open(text=SENTENCE, view="lines", kind=kind, layer=0)
        equal([n[0] for n in attributes(page, ".lines text.soft")], ["attended to", wanted], kind)


def kinds_have_their_names(page):
    page.open(text=SENTENCE)
    equal([o[0] for o in attributes(page, "#kind option", "value")],
          ["Cross-attention", "Encoder self-attention", "Decoder self-attention (masked)"], "kinds")


def hard_attention_shows_its_choices(page):
    """By default, each piece has one position; in words, a note explains the mean."""
    for model in ("hard-argmax", "hard-sample"):
        page.open(text=TURNED, model=model)
        weights = page.numbers(".cells rect", "weight")
        equal(set(weights), {0, 1}, f"{model}: weights")
        equal(page.browser.value("document.querySelector('[data-unit=pieces]').ariaPressed"), "true",
              "the unit that is marked")
        equal("unit" in address(page), False, "a unit in the address without a choice of the user")
        page.click("[data-unit=words]")
        check("mean of their choices" in page.text("#stage .note"), page.text("#stage"))
        near(page.numbers(".cells rect", "weight"), flat(Reply(page, TURNED, model=model).words()),
             f"{model}: words")
    page.open(text=TURNED, model="additive")
    equal(page.browser.value("document.querySelector('[data-unit=words]').ariaPressed"), "true",
          "the unit of soft attention")


def maps_of(reply, kind="cross"):
    found = {}
    for m in reply["attention"]:
        if m["kind"] == kind:
            data = base64.b64decode(m["data"])
            found[m["layer"], m["head"]] = [[b / 255 for b in data[at:at + m["cols"]]]
                                            for at in range(0, len(data), m["cols"])]
    return found


def means_omit_muted_heads(page):
    muted = {"kind": "cross", "layer": 1, "head": 2}
    reply = ask_service(page, SENTENCE, mask_heads=[muted])
    maps = maps_of(reply)
    equal(set(flat(maps[1, 2])), {0}, "weights of the muted head")
    rest = mean([{"data": m} for place, m in maps.items() if place != (1, 2)])
    words = by_words(rest, reply["target"]["word_of"], reply["source"]["word_of"])
    page.open(text=SENTENCE, view="whatif", mute="cross.1.2")
    page.browser.wait("document.querySelector('.what-if').dataset.state === 'done'")
    near(page.numbers(".now .cells rect", "weight"), flat(words), "the mean of the others")
    equal(attributes(page, ".changes button")[0][0], "Muted: Cross-attention, layer 2, head 3 ×",
          "the label of the muted head")


def models_without_attention_show_no_empty_boxes(page):
    """The search has no box for a map, and the other views do not offer saving."""
    page.open(text=SENTENCE, model="none", view="beam")
    page.browser.wait("document.querySelector('.search').dataset.state === 'done'")
    equal(visible(page, ".hover-map"), 0, "boxes for a map")
    check("attended" not in page.text(".search .note"), page.text(".search .note"))
    check(visible(page, "[data-save=svg]"), "the tree can be saved")
    for view in ("map", "player", "lines", "heads", "whatif"):
        page.click(f"[data-view={view}]")
        check(page.text("#stage").startswith("This model has no attention"), page.text("#stage"))
        equal(visible(page, "[data-save]"), 0, f"buttons for saving in {view}")


def another_sentence_makes_the_old_one_stale(page):
    page.open(text=SENTENCE)
    look = ("['#translation', '#stage'].map((name) =>"
            " Number(getComputedStyle(document.querySelector(name)).opacity))")
    equal((page.browser.value(look), visible(page, "#outdated")), ([1, 1], 0), "at first")
    choose(page, "text", TURNED, "input")
    opacity = page.browser.value(look)
    check(max(opacity) < 0.6, f"the old result has opacity {opacity}")
    check(visible(page, "#outdated") and "previous sentence" in page.text("#outdated"), "the note")
    choose(page, "text", SENTENCE, "input")
    equal((page.browser.value(look), visible(page, "#outdated")), ([1, 1], 0), "typed back")
    choose(page, "text", TURNED, "input")
    page.browser.value("document.querySelector('#text').focus()")
    ready_after(page, lambda: page.browser.press("Enter"))
    equal((page.browser.value(look), visible(page, "#outdated")), ([1, 1], 0), "translated")


def steps_are_played(page):
    page.open(text=SENTENCE, view="player")
    page.browser.value(HELD_TIMERS)
    last = page.browser.value("Number(document.querySelector('input.step').max)")
    step = "Number(document.querySelector('input.step').value)"
    equal(page.text(".steps .play"), "Play", "the button")
    page.click(".steps .play")
    for at in range(last):
        equal((page.browser.value(step), page.text(".steps .play")), (at, "Pause"), "while it plays")
        equal(page.browser.value("window.tick()"), 1, "timers")
    equal((page.browser.value(step), page.text(".steps .play")), (last, "Play"), "at the end")
    equal(address(page).get("step"), str(last), "the address at the end")
    equal(page.browser.value("window.tick()"), 0, "timers at the end")
    page.click(".steps .play")  # starts again from the first step
    page.browser.value("window.tick()")
    equal(page.browser.value(step), 1, "the second step")
    page.click(".steps .play")
    equal((page.text(".steps .play"), page.browser.value("window.tick()"), page.browser.value(step)),
          ("Play", 0, 1), "paused")
    page.click("[aria-label='One step on']")
    equal(page.browser.value(step), 2, "one step on")
    page.click(".steps .play")
    page.click("[data-view=map]")
    page.browser.value("window.tick()")
    equal((address(page).get("step"), page.browser.value("window.tick()")), ("2", 0),
          "another view stops it")


def positions_that_are_absent(page):
    """Without positions, a Transformer ignores the order of words; a recurrent model does not."""
    for kind, wanted, other in (("transformer", "does not depend on the order", "knows their order"),
                                ("recurrent", "knows their order", "does not depend")):
        held = page.browser.call("Page.addScriptToEvaluateOnNewDocument", source=(
            "(() => { const real = window.fetch; window.fetch = async (path, how) => {"
            " if (path.startsWith('/v1/positions')) return new Response(JSON.stringify("
            "{ kind: 'none', rows: 0, size: 0, data: '' }));"
            " const reply = await real(path, how); if (path !== '/v1/models') return reply;"
            " const list = await reply.json(); return new Response(JSON.stringify(list.map((m) =>"
            f" ({{ ...m, type: '{kind}' }})))); }}; }})()"))
        page.open(text=SENTENCE, view="positions")
        shown(page, ".positions")
        text = page.text(".positions .note")
        check(wanted in text and other not in text, f"{kind}: {text}")
        page.browser.call("Page.removeScriptToEvaluateOnNewDocument", **held)


def layers_and_heads_count_from_one(page):
    """The page counts from 1. The address, the files and the API count from 0."""
    page.open(text=SENTENCE, layer=1, head=2)
    for name, count in (("layer", 2), ("head", 4)):
        numbered = [o for o in attributes(page, f"#{name} option", "value") if o[1] >= 0]
        equal([(o[0], o[1]) for o in numbered], [(str(i + 1), i) for i in range(count)], name)
        equal(page.browser.value(f"document.querySelector('#{name}').selectedOptions[0]"
                                 ".textContent"), {"layer": "2", "head": "3"}[name], "the choice")
    page.click("[data-view=heads]")
    equal([n[0] for n in attributes(page, ".heads .name")],
          ["head 1", "head 2", "head 3", "head 4", "layer 1", "layer 2"], "names of heads")
    page.open(text=SENTENCE, view="lines", layer=1)
    equal([n[0] for n in attributes(page, ".squares button")],
          ["head 1", "head 2", "head 3", "head 4"], "the legend")
    inside(page, layer=1, head=2)
    check("layer 2, head 3" in page.text(".inside .note"), page.text(".inside .note"))
    page.open(text=SENTENCE, view="whatif")
    page.browser.wait("document.querySelector('.what-if').dataset.state === 'done'")
    equal([b[0] for b in attributes(page, "[data-head^='cross.0.']")], ["1", "2", "3", "4"],
          "heads to mute")


def sums_and_numbers_are_exact(page):
    """Shown sums of rows are 1 despite rounding. Rows of local-p have smaller sums and show them."""
    long = " ".join(["the old man told the children a story about a brave dog ,"] * 4) + " ."
    for text, more in ((SENTENCE, {}), (long, {"layer": 0, "head": 0, "unit": "pieces"}),
                       (TURNED, {"model": "window"})):
        page.open(text=text, **more)
        equal({s[0] for s in attributes(page, ".sum")}, {"Σ 1.00"}, f"sums of {text[:20]}")
    page.open(text=SENTENCE, model="local-p", unit="pieces")
    sums = ask_service(page, SENTENCE, model="local-p")["attention"][0]["sums"]
    check(min(sums) < 0.99, f"local-p's rows sum to {sums}")
    equal([s[0] for s in attributes(page, ".sum")], [f"Σ {x:.2f}" for x in sums], "local-p's sums")
    page.open(text=SENTENCE, head=-2)
    equal(attributes(page, ".sum"), [], "sums of a maximum, which is not a distribution")
    page.open(text=SENTENCE)
    texts = [t[0] for t in attributes(page, ".cells text")]
    check(texts and all(t[0] in "01" and len(t) == 4 for t in texts), f"numbers {texts}")
    page.open(text=SENTENCE, view="player")
    texts = [t[0] for t in attributes(page, ".source small")]
    check(texts and all(t[0] in "01" and len(t) == 4 for t in texts), f"numbers {texts}")
    inside(page, model="additive", step=2)
    check(re.fullmatch(r"e_tj = [\d.]+;  α_tj = exp\([\d.]+\) ÷ \S+ = [\d.]+",
                       page.text(".product .numbers")), page.text(".product .numbers"))
    columns = page.browser.value(
        "[...document.querySelectorAll('.inside-words')].flatMap((table) => { const rows ="
        " [...table.querySelectorAll('tr[data-col]')].map((tr) => [...tr.querySelectorAll("
        "'.number')].map((td) => td.textContent)); return (rows[0] ?? []).map((_, k) =>"
        " rows.map((row) => row[k])); })")
    for column in columns:
        forms = {("e" in text, len(text.split(".")[1])) for text in column if "e" not in text}
        check(len(columns) > 1 and len(forms) == 1, f"numbers of one column: {column}")


def lab(colour):
    """CIE L*a*b* of linear RGB."""
    rows = ((.4124564, .3575761, .1804375), (.2126729, .7151522, .0721750),
            (.0193339, .1191920, .9503041))
    parts = [sum(a * b for a, b in zip(row, colour)) / white
             for row, white in zip(rows, (.95047, 1, 1.08883))]
    x, y, z = (t ** (1 / 3) if t > .008856 else 7.787 * t + 16 / 116 for t in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colours_are_distinguishable(page):
    """Tests the colours of heads, also for colour-blind users, and those of gold links and cross-hair."""
    page.open(text=SENTENCE, gold="0-0")
    heads = page.browser.value("import('/web/colours.js').then((m) => m.HEADS)")
    equal(len(set(heads)), 8, f"colours of heads {heads}")
    linear = [[(x / 255 / 12.92 if x <= 10 else ((x / 255 + .055) / 1.055) ** 2.4)
               for x in (int(c[i:i + 2], 16) for i in (1, 3, 5))] for c in heads]
    for name, rows in BLIND.items():
        seen = [lab([max(0, min(1, sum(a * b for a, b in zip(row, c)))) for row in rows])
                for c in linear]
        for (i, a), (j, b) in itertools.combinations(enumerate(seen), 2):
            apart = sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5
            check(apart > 15, f"{name}: {heads[i]} and {heads[j]} have distance {apart:.1f}")
    for theme in ("light", "dark"):
        page.open(text=SENTENCE, gold="0-0", theme=theme)
        page.browser.value("document.querySelector('.heat-map').dispatchEvent(new MouseEvent("
                           "'mousemove', (({ x, y }) => ({ clientX: x + 3, clientY: y + 3 }))("
                           "document.querySelector('.cells rect').getBoundingClientRect())))")
        stroke = "getComputedStyle(document.querySelector('%s')).stroke"
        square, hair = (rgb(page.browser.value(stroke % name)) for name in
                        (".gold rect", ".cross-hair rect"))
        far = max(abs(a - b) for a, b in zip(square, hair))
        check(far > 100, f"{theme}: a square is {square}, the cross-hair {hair}")
        card = rgb(page.browser.value("getComputedStyle(document.querySelector('#stage'))"
                                      ".backgroundColor"))
        check(contrast(square, card) > 3, f"{theme}: a square of {square} on {card}")


def forward_attention_may_go_back_a_little(page):
    page.open(text=SENTENCE, model="forward", view="player")
    text = page.text(".player .note")
    check("does not go back" not in text and "one word behind" in text, text)


def tabs_stay_where_they_are(page):
    page.open(text=SENTENCE)
    places = "[...document.querySelectorAll('#views button')].map((b) => b.getBoundingClientRect().x)"
    before = page.browser.value(places)
    for view in ("lines", "training"):
        page.click(f"[data-view={view}]")
        near(page.browser.value(places), before, f"tabs when {view} is chosen", within=0.01)


SHIPPED = [windows_differ_from_weights, every_score_is_multiplied_out,
           a_row_of_self_attention_has_one_name, masked_cells_are_crossed, lines_say_who_attends,
           kinds_have_their_names, hard_attention_shows_its_choices,
           means_omit_muted_heads, models_without_attention_show_no_empty_boxes,
           another_sentence_makes_the_old_one_stale, steps_are_played, positions_that_are_absent,
           layers_and_heads_count_from_one, sums_and_numbers_are_exact, colours_are_distinguishable,
           forward_attention_may_go_back_a_little, tabs_stay_where_they_are]
