#!/usr/bin/env python3
"""The speed of PyTorch on the recurrent shapes of `fovea bench train`: updates with random words,
one JSON line per figure.

  DEVICE=cpu THREADS=2 PRECISION=bf16 python3 bench/torch_rnn.py rnnsearch luong

DEVICE (cuda), THREADS (all) and PRECISION (bf16; or f32) come from the environment. COMPILE=1
measures torch.compile as well, which unrolls all steps and compiles for many minutes on a CPU.

rnnsearch: Bahdanau et al. 2015: bidirectional GRU of 1,000 units, embeddings of 620, additive
           attention, readout of 620, 30,000 words, 80 sentences of 22 to 32 words.
luong:     Luong et al. 2015 with OpenNMT's sizes: two layers of LSTM of 500 units, embeddings of
           500, general attention, input feeding, dropout 0.3, 30,000 words, 64 sentences of 22
           to 32 words.
"""
import json, os, sys, time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cuda")
BF16 = os.environ.get("PRECISION", "bf16") == "bf16"
if "THREADS" in os.environ:
    torch.set_num_threads(int(os.environ["THREADS"]))


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class RNNsearch(nn.Module):
    def __init__(self, words=30000, embedding=620, size=1000):
        super().__init__()
        self.source, self.target = nn.Embedding(words, embedding), nn.Embedding(words, embedding)
        self.encoder = nn.GRU(embedding, size, bidirectional=True, batch_first=True)
        self.first = nn.Linear(size, size)
        self.U, self.W = nn.Linear(2 * size, size, bias=False), nn.Linear(size, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)
        self.cell = nn.GRUCell(embedding + 2 * size, size)
        self.readout = nn.Linear(size + embedding + 2 * size, embedding)
        self.output = nn.Linear(embedding, words)

    def forward(self, source, keep, target, labels):
        h, last = self.encoder(self.source(source))
        keys, y = self.U(h), self.target(target)
        s, states, contexts = torch.tanh(self.first(last[1])), [], []
        for t in range(target.shape[1]):
            e = self.v(torch.tanh(keys + self.W(s)[:, None])).squeeze(-1)
            alpha = e.masked_fill(~keep, -1e4).softmax(-1)
            c = torch.bmm(alpha[:, None].to(h.dtype), h).squeeze(1)
            s = self.cell(torch.cat([y[:, t], c], -1), s)
            states.append(s)
            contexts.append(c)
        read = torch.cat([torch.stack(states, 1), y, torch.stack(contexts, 1)], -1)
        return loss(self.output(torch.tanh(self.readout(read))), labels)


class Luong(nn.Module):
    def __init__(self, words=30000, size=500, layers=2, dropout=0.3):
        super().__init__()
        self.source, self.target = nn.Embedding(words, size), nn.Embedding(words, size)
        self.encoder = nn.LSTM(size, size, layers, batch_first=True, dropout=dropout)
        self.cells = nn.ModuleList(nn.LSTMCell(2 * size if l == 0 else size, size)
                                   for l in range(layers))
        self.W_a = nn.Linear(size, size, bias=False)
        self.W_c = nn.Linear(2 * size, size, bias=False)
        self.output = nn.Linear(size, words)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source, keep, target, labels):
        h, (last_h, last_c) = self.encoder(self.dropout(self.source(source)))
        h = self.dropout(h)
        keys, y = self.W_a(h), self.dropout(self.target(target))
        states = list(zip(last_h.unbind(0), last_c.unbind(0)))
        fed, read = torch.zeros_like(y[:, 0]), []
        for t in range(target.shape[1]):
            x = torch.cat([y[:, t], fed], -1)
            for l, cell in enumerate(self.cells):
                states[l] = cell(x if l == 0 else self.dropout(x), states[l])
                x = states[l][0]
            e = torch.bmm(keys, x[:, :, None].to(keys.dtype)).squeeze(-1)
            alpha = e.masked_fill(~keep, -1e4).softmax(-1)
            c = torch.bmm(alpha[:, None].to(h.dtype), h).squeeze(1)
            fed = torch.tanh(self.W_c(torch.cat([c, x.to(c.dtype)], -1)))
            read.append(fed)
        return loss(self.output(self.dropout(torch.stack(read, 1))), labels)


def loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)


def random_batches(words, sentences, longest, count=8):
    chance, batches = torch.Generator().manual_seed(1), []
    for _ in range(count):
        source = torch.randint(4, words, (sentences, longest), generator=chance)
        target = torch.randint(4, words, (sentences, longest), generator=chance)
        lengths = torch.randint(int(0.7 * longest), longest + 1, (sentences,), generator=chance)
        keep = torch.arange(longest)[None] < lengths[:, None]
        source[~keep] = 0
        labels = torch.roll(target, -1, 1)
        labels[~keep] = 0
        batches.append([x.to(DEVICE) for x in (source, keep, target, labels)] + [int(keep.sum())])
    return batches


def train(name, make, sentences, longest, compiled):
    torch.manual_seed(0)
    model = make().to(DEVICE).train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    forward = torch.compile(model) if compiled else model
    batches = random_batches(30000, sentences, longest)

    def update(i):
        *batch, words = batches[i % len(batches)]
        with torch.autocast(DEVICE, torch.bfloat16, enabled=BF16):
            cost = forward(*batch)
        cost.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        adam.step()
        adam.zero_grad(set_to_none=True)
        return words

    begin = time.time()
    for i in range(2):
        update(i)
    wait()
    warm, rates, updates = time.time() - begin, [], 30 if DEVICE == "cuda" else 3
    for _ in range(3):
        begin = time.time()
        words = sum(update(i) for i in range(updates))
        wait()
        rates.append(words / (time.time() - begin))
    rates.sort()
    print(json.dumps({
        "figure": "train", "model": name,
        "peer": f"PyTorch {torch.__version__} {'compiled' if compiled else 'eager'}",
        "precision": "bf16" if BF16 else "f32", "B": sentences, "S": longest,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tgt_tok_s": round(rates[1]), "spread": [round(rates[0]), round(rates[2])],
        "warm_s": round(warm, 1)}), flush=True)


SHAPES = {"rnnsearch": (RNNsearch, 80, 32), "luong": (Luong, 64, 32)}

if __name__ == "__main__":
    for what in sys.argv[1:] or SHAPES:
        for compiled in [False, True] if os.environ.get("COMPILE") == "1" else [False]:
            train(what, *SHAPES[what], compiled)
