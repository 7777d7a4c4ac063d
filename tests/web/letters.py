"""A tiny training task."""


def write_letters(folder):
    """Writes 120 pairs of 2 to 9 letters; the target has the capital letters."""
    with open(f"{folder}/a.src", "w") as source, open(f"{folder}/a.tgt", "w") as target:
        for i in range(120):
            words = [chr(97 + (i * 7 + k * (1 + i % 5)) % 12) for k in range(2 + i % 8)]
            source.write(" ".join(words) + "\n")
            target.write(" ".join(words).upper() + "\n")


def recipe(more):
    return {
        "data": {key: [f"a.{side}"] for key, side in (
            ("train_source", "src"), ("train_target", "tgt"), ("valid_source", "src"),
            ("valid_target", "tgt"), ("test_source", "src"), ("test_target", "tgt"))},
        "vocabulary": {"kind": "words", "size": 0},
        "model": {"type": "recurrent", "encoder_layers": 1, "decoder_layers": 1, "size": 24,
                  "dropout": 0, "max_length": 40},
        "batch": {"tokens": 256}, **more}
