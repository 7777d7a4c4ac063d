#!/usr/bin/env python3
"""The speed of CTranslate2 on the shape of `fovea bench decode --model base`: translations of
random words with random weights, one JSON line per figure.

  THREADS=2 PRECISION=int8 python3 bench/ctranslate2_speed.py

THREADS (2) and PRECISION (f32; or int8) come from the environment. Sentences have 28 words, and
every hypothesis has 32: </s> is not allowed before. Threads are used in two ways: all for one batch
of all sentences, or each for a separate batch. The times do not include creating and loading the
model, and one warm-up translation.
"""
import json, os, random, statistics, tempfile, time

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

WORDS, SIZE, INNER, HEADS, LAYERS = 32000, 512, 2048, 8, 6
LENGTH, NEW_WORDS = 28, 32
SHAPES = [(32, 4), (32, 1), (1, 4), (1, 1)]  # sentences, beam
PRECISION = os.environ.get("PRECISION", "f32")
THREADS = int(os.environ.get("THREADS", "2"))


def fill_linear(spec, outputs, inputs, chance):
    limit = np.sqrt(6 / (inputs + outputs))
    spec.weight = chance.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
    spec.bias = np.zeros(outputs, np.float32)


def fill_norm(spec):
    spec.gamma, spec.beta = np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32)


def fill_layer(layer, chance):
    attentions = [layer.self_attention] + ([layer.attention] if hasattr(layer, "attention") else [])
    for attention in attentions:
        fill_norm(attention.layer_norm)
        # Self-attention: W_Q, W_K and W_V as one matrix, then W_O. Cross-attention: W_Q, then W_K
        # and W_V, then W_O.
        sizes = [3, 1] if len(attention.linear) == 2 else [1, 2, 1]
        for linear, size in zip(attention.linear, sizes):
            fill_linear(linear, size * SIZE, SIZE, chance)
    fill_norm(layer.ffn.layer_norm)
    fill_linear(layer.ffn.linear_0, INNER, SIZE, chance)
    fill_linear(layer.ffn.linear_1, SIZE, INNER, chance)


def write_model(folder):
    chance = np.random.default_rng(1)
    spec = TransformerSpec.from_config(LAYERS, HEADS, pre_norm=False)
    embeddings = chance.normal(0, SIZE ** -0.5, (WORDS, SIZE)).astype(np.float32)
    spec.encoder.embeddings[0].weight = embeddings
    spec.decoder.embeddings.weight = embeddings
    spec.decoder.projection.weight = embeddings
    spec.decoder.projection.bias = np.zeros(WORDS, np.float32)
    for layer in [*spec.encoder.layer, *spec.decoder.layer]:
        fill_layer(layer, chance)
    words = ["<unk>", "<s>", "</s>"] + [str(i) for i in range(3, WORDS)]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.validate()
    spec.optimize(quantization="int8" if PRECISION == "int8" else None)
    spec.save(folder)


def measure(translator, batches, sentences, beam):
    chance = random.Random(1)
    source = [[str(chance.randrange(4, WORDS)) for _ in range(LENGTH - 1)] + ["</s>"]
              for _ in range(sentences)]

    def translate():
        return translator.translate_batch(source, beam_size=beam,
                                          max_batch_size=-(-sentences // batches),
                                          min_decoding_length=NEW_WORDS,
                                          max_decoding_length=NEW_WORDS)

    lengths = {len(result.hypotheses[0]) for result in translate()}
    assert lengths == {NEW_WORDS}, lengths
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        translate()
        seconds.append(time.perf_counter() - begin)
    rate = [round(sentences * NEW_WORDS / s) for s in sorted(seconds, reverse=True)]
    print(json.dumps({
        "figure": "decode", "model": "base", "peer": f"CTranslate2 {ctranslate2.__version__}",
        "precision": PRECISION, "batches_at_once": batches, "B": sentences, "beam": beam,
        "tok_s": rate[1], "spread": [rate[0], rate[2]],
        "latency_ms": round(1000 * statistics.median(seconds), 1)}), flush=True)


with tempfile.TemporaryDirectory() as folder:
    write_model(folder)
    for batches in sorted({1, THREADS}):
        translator = ctranslate2.Translator(
            folder, compute_type="int8" if PRECISION == "int8" else "float32",
            inter_threads=batches, intra_threads=THREADS // batches)
        for sentences, beam in SHAPES:
            measure(translator, batches, sentences, beam)
