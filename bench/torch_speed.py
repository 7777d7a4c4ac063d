#!/usr/bin/env python3
"""Speed of PyTorch on the Transformer shapes of `fovea bench`, and of MarianMT in Hugging Face
transformers on the shape of `fovea bench decode --model base`: random words, one JSON line per
figure.

  DEVICE=cpu THREADS=2 PRECISION=bf16 python3 bench/torch_speed.py tiny small hf
  python3 bench/torch_speed.py tiny small iwslt base rnn hf     # on a GPU

DEVICE (cuda), THREADS (all) and PRECISION (bf16; or f32) come from the environment. Every training
shape is measured eagerly and with torch.compile (COMPILE=0: eagerly only; COMPILE=max-autotune:
also in that mode, after minutes of tuning). QUICK=1 makes one update with a few sentences, to test
the script. `versions` prints only versions.

tiny:  4 + 4 layers of 128, inner 256, 4 heads, 10,000 words, dropout 0.3, 256 sentences of up to 16
small: 3 + 3 layers of 256, inner 1,024, 4 heads, 8,000 words, 256 sentences of up to 20 words
iwslt: 6 + 6 layers of 512, inner 1,024, 4 heads, 10,000 words, dropout 0.3, up to 32 words, 512
       sentences on a GPU, 64 on a CPU
base:  6 + 6 layers of 512, inner 2,048, 8 heads, 32,000 words, up to 32 words, 768 sentences on a
       GPU, 32 on a CPU
rnn:   RNNsearch of torch_rnn.py, 80 and 512 sentences of up to 32 words
hf:    MarianMT of the base shape, 28 words in, 32 words out, float16 on a GPU, float32 on a CPU

Transformers are post-norm with sinusoidal positions, one embedding for both sides and the output,
scaled_dot_product_attention, label smoothing 0.1, gradients clipped at 1, fused Adam.
"""
import importlib.metadata, json, math, os, sys, time

import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_rnn

DEVICE = os.environ.get("DEVICE", "cuda")
BF16 = os.environ.get("PRECISION", "bf16") == "bf16"
COMPILE = os.environ.get("COMPILE", "1")
QUICK = os.environ.get("QUICK") == "1"
ON_GPU = DEVICE == "cuda"
torch.set_float32_matmul_precision("high")  # TF32 for operations that autocast leaves in float32


class Attention(nn.Module):
    """Multi-head attention; keys and values come from `memory`, or from the queries' own words."""

    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key_value = nn.Linear(size, size), nn.Linear(size, 2 * size)
        self.output = nn.Linear(size, size)

    def forward(self, x, memory, mask=None, causal=False):
        def split(y):  # [B, T, D] → [B, heads, T, D / heads]
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = self.key_value(memory).chunk(2, -1)
        read = F.scaled_dot_product_attention(split(self.query(x)), split(key), split(value),
                                              attn_mask=mask, is_causal=causal)
        return self.output(read.transpose(1, 2).flatten(2))


class SelfAttention(Attention):
    """The same with one product for queries, keys and values."""

    def __init__(self, size, heads):
        nn.Module.__init__(self)
        self.heads = heads
        self.all, self.output = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x, mask=None, causal=False):
        query, key, value = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                             for y in self.all(x).chunk(3, -1))
        read = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)
        return self.output(read.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, size, inner, heads, dropout, decoder):
        super().__init__()
        self.own, self.own_norm = SelfAttention(size, heads), nn.LayerNorm(size)
        self.cross = Attention(size, heads) if decoder else None
        self.cross_norm = nn.LayerNorm(size) if decoder else None
        self.up, self.down = nn.Linear(size, inner), nn.Linear(inner, size)
        self.norm, self.drop = nn.LayerNorm(size), nn.Dropout(dropout)

    def forward(self, x, mask, memory=None):
        decoder = self.cross is not None
        own = self.own(x, causal=True) if decoder else self.own(x, mask=mask)
        x = self.own_norm(x + self.drop(own))
        if decoder:
            x = self.cross_norm(x + self.drop(self.cross(x, memory, mask=mask)))
        return self.norm(x + self.drop(self.down(self.drop(F.relu(self.up(x))))))


class Transformer(nn.Module):
    def __init__(self, words, size, inner, heads, layers, dropout=0.1, longest=512):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        nn.init.normal_(self.embedding.weight, std=size ** -0.5)
        self.encoder = nn.ModuleList(Block(size, inner, heads, dropout, False)
                                     for _ in range(layers))
        self.decoder = nn.ModuleList(Block(size, inner, heads, dropout, True)
                                     for _ in range(layers))
        self.drop = nn.Dropout(dropout)
        angles = torch.arange(longest)[:, None] * torch.exp(
            torch.arange(0, size, 2) * (-math.log(10000) / size))
        positions = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("positions", positions)

    def embed(self, words):
        scaled = self.embedding(words) * self.embedding.embedding_dim ** 0.5
        return self.drop(scaled + self.positions[:words.shape[1]])

    def forward(self, source, keep, target, labels):
        mask = keep[:, None, None]
        memory, y = self.embed(source), self.embed(target)
        for block in self.encoder:
            memory = block(memory, mask)
        for block in self.decoder:
            y = block(y, mask, memory)
        logits = F.linear(y, self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0,
                               label_smoothing=0.1)


def train(name, words, sizes, sentences, longest, mode):
    torch.manual_seed(0)
    model = Transformer(words, **sizes).to(DEVICE).train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    forward = model if mode == "eager" else torch.compile(
        model, mode=None if mode == "compiled" else mode)
    batches = torch_rnn.random_batches(words, sentences, longest)

    def update(i):
        *batch, count = batches[i % len(batches)]
        with torch.autocast(DEVICE, torch.bfloat16, enabled=BF16):
            cost = forward(*batch)
        cost.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        adam.step()
        adam.zero_grad(set_to_none=True)
        return count

    begin = time.time()
    for i in range(1 if QUICK else 6):
        update(i)
    torch_rnn.wait()
    warm, rates = time.time() - begin, []
    updates = 1 if QUICK else 30 if ON_GPU else 3
    for _ in range(3):
        begin = time.time()
        count = sum(update(i) for i in range(updates))
        torch_rnn.wait()
        rates.append(count / (time.time() - begin))
    rates.sort()
    print(json.dumps({
        "figure": "train", "model": name, "peer": f"PyTorch {torch.__version__} {mode}",
        "precision": "bf16" if BF16 else "f32", "B": sentences, "S": longest,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tgt_tok_s": round(rates[1]), "spread": [round(rates[0]), round(rates[2])],
        "warm_s": round(warm, 1)}), flush=True)


def decode():
    import transformers
    end, pad = 0, 31999
    config = transformers.MarianConfig(
        vocab_size=32000, d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
        decoder_ffn_dim=2048, max_position_embeddings=512, activation_function="swish",
        scale_embedding=True, static_position_embeddings=True,
        share_encoder_decoder_embeddings=True, eos_token_id=end, pad_token_id=pad,
        decoder_start_token_id=pad, forced_eos_token_id=None)
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).to(DEVICE).eval()
    if ON_GPU:
        model = model.half()
    length, new_words = 28, 32
    for sentences in [1] if QUICK else [1, 64, 512] if ON_GPU else [1, 32]:
        for beam in [1, 4]:
            source = torch.randint(4, 31000, (sentences, length), device=DEVICE)

            def translate():
                model.generate(source, attention_mask=torch.ones_like(source), num_beams=beam,
                               do_sample=False, min_new_tokens=new_words,
                               max_new_tokens=new_words)
                torch_rnn.wait()

            translate()
            seconds = []
            for _ in range(3):
                begin = time.time()
                translate()
                seconds.append(time.time() - begin)
            seconds.sort()
            print(json.dumps({
                "figure": "decode", "model": "base",
                "peer": f"HF transformers {transformers.__version__}, PyTorch {torch.__version__}",
                "precision": "f16" if ON_GPU else "f32", "B": sentences, "beam": beam,
                "tok_s": round(sentences * new_words / seconds[1]),
                "latency_ms": round(1000 * seconds[1], 1)}), flush=True)


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def print_versions():
    print(json.dumps({
        "figure": "versions", "python": sys.version.split()[0],
        **{package: version(package) for package in ["torch", "transformers", "ctranslate2"]},
        "onednn": torch.__config__.show().partition("oneDNN) v")[2].partition(" ")[0] or None,
        "cuda": torch.version.cuda,
        "device": torch.cuda.get_device_name() if ON_GPU else "cpu"}), flush=True)


TINY = dict(size=128, inner=256, heads=4, layers=4, dropout=0.3)
SMALL = dict(size=256, inner=1024, heads=4, layers=3)
IWSLT = dict(size=512, inner=1024, heads=4, layers=6, dropout=0.3)
BASE = dict(size=512, inner=2048, heads=8, layers=6)
SHAPES = {"tiny": (10000, TINY, 256, 16), "small": (8000, SMALL, 256, 20),
          "iwslt": (10000, IWSLT, 512 if ON_GPU else 64, 32),
          "base": (32000, BASE, 768 if ON_GPU else 32, 32)}
MODES = {"0": ["eager"], "1": ["eager", "compiled"]}.get(COMPILE, ["eager", "compiled", COMPILE])

if __name__ == "__main__":
    asked = sys.argv[1:] or ["versions", *SHAPES, "rnn", "hf"]
    for what in asked:
        if what == "versions":
            print_versions()
        elif what == "hf":
            decode()
        elif what == "rnn":
            for sentences in [80, 512]:
                torch_rnn.train("rnnsearch", torch_rnn.RNNsearch, sentences, 32, False)
        else:
            words, sizes, sentences, longest = SHAPES[what]
            for mode in MODES:
                train(what, words, sizes, 4 if QUICK else sentences, longest, mode)
