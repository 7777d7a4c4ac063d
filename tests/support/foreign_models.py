"""Writes small models in the formats of other programs, all with the same random weights.

  python3 tests/support/foreign_models.py SPM FOLDER

SPM is a SentencePiece model. FOLDER/hf is a MarianMT directory of Hugging Face, FOLDER/ct2 a
directory of CTranslate2, FOLDER/package.argosmodel a package of Argos Translate, and FOLDER/m2m an
M2M100 directory with the languages de and en.
"""
import json, math, os, random, shutil, struct, sys, zipfile

D, F, HEADS, LAYERS, POSITIONS = 16, 32, 4, 2, 64


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def spm_pieces(path):
    """The texts of the normal pieces of a SentencePiece model."""
    with open(path, "rb") as file:
        data = file.read()
    pieces = []
    for field, value in fields(data):
        if field == 1:
            piece = dict(fields(value))
            if piece.get(3, 1) == 1:
                pieces.append(piece[1].decode())
    return pieces


def random_matrix(*shape):
    size = 1
    for n in shape:
        size *= n
    scale = 0.1 if len(shape) == 1 else shape[-1] ** -0.5
    return [struct.unpack("<f", struct.pack("<f", random.gauss(0, scale)))[0] for _ in range(size)]


def layer(tensors, name, decoder):
    def put(part, *shape):
        tensors[f"{name}.{part}"] = (shape, random_matrix(*shape))

    def affine(part, rows, columns):
        put(part + ".weight", rows, columns)
        put(part + ".bias", rows)

    def norm(part):
        tensors[f"{name}.{part}.weight"] = ((D,), [1 + x for x in random_matrix(D)])
        put(part + ".bias", D)

    for attention in ["self_attn"] + ["encoder_attn"] * decoder:
        for projection in "q_proj", "k_proj", "v_proj", "out_proj":
            affine(f"{attention}.{projection}", D, D)
        norm(attention + "_layer_norm")
    affine("fc1", F, D)
    affine("fc2", D, F)
    norm("final_layer_norm")


def weights(words, family):
    random.seed(7)
    tensors = {"model.shared.weight": ((words, D), random_matrix(words, D))}
    for stack in "encoder", "decoder":
        for i in range(LAYERS):
            layer(tensors, f"model.{stack}.layers.{i}", stack == "decoder")
        if family == "m2m_100":
            tensors[f"model.{stack}.layer_norm.weight"] = ((D,), [1.0] * D)
            tensors[f"model.{stack}.layer_norm.bias"] = ((D,), [0.0] * D)
    if family == "marian":
        tensors["final_logits_bias"] = ((1, words), random_matrix(words))
    return tensors


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)


def hf_config(model_type, words, **more):
    return dict(model_type=model_type, vocab_size=words, d_model=D, encoder_layers=LAYERS,
                decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
                encoder_ffn_dim=F, decoder_ffn_dim=F, max_position_embeddings=POSITIONS,
                scale_embedding=True, num_beams=1, max_length=24, **more)


def write_marian(folder, spm, pieces):
    os.makedirs(folder)
    vocabulary = ["</s>", "<unk>"] + pieces + ["<pad>"]
    words = len(vocabulary)
    tensors = weights(words, "marian")
    tensors["model.shared.weight"][1][-D:] = [0.0] * D  # the row of <pad>
    write_safetensors(f"{folder}/model.safetensors", tensors)
    write_json(f"{folder}/vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    write_json(f"{folder}/config.json",
               hf_config("marian", words, activation_function="swish", eos_token_id=0,
                         bos_token_id=0, pad_token_id=words - 1, decoder_start_token_id=words - 1,
                         forced_eos_token_id=0, bad_words_ids=[[words - 1]],
                         architectures=["MarianMTModel"]))
    shutil.copy(spm, f"{folder}/source.spm")
    shutil.copy(spm, f"{folder}/target.spm")
    with open(f"{folder}/README.md", "w") as file:
        file.write("---\nlicense: cc-by-4.0\n---\n# A tiny model\n")
    return tensors, vocabulary[:-1]


def sinusoids():
    rows = []
    for position in range(POSITIONS):
        angles = [position / 10000 ** (2 * i / D) for i in range(D // 2)]
        rows += [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
    return rows


def ct2_variables(tensors, words):
    """The variables of CTranslate2 for the tensors of MarianMT, without the row of <pad>."""
    take = lambda name: list(tensors[name][1])
    variables = {"decoder/embeddings/weight": ((words, D), take("model.shared.weight")[:words * D]),
                 "decoder/projection/bias": ((words,), take("final_logits_bias")[:words]),
                 "decoder/start_from_zero_embedding": ((), 1), "decoder/alibi": ((), 0)}
    for stack in "encoder", "decoder":
        variables[f"{stack}/num_heads"] = ((), HEADS)
        variables[f"{stack}/pre_norm"] = ((), 0)
        variables[f"{stack}/activation"] = ((), 2)
        variables[f"{stack}/scale_embeddings"] = ((), 1)
        variables[f"{stack}/position_encodings/encodings"] = ((POSITIONS, D), sinusoids())
        for i in range(LAYERS):
            source, target = f"model.{stack}.layers.{i}", f"{stack}/layer_{i}"

            def fused(name, rows, parts):
                columns = len(tensors[f"{source}.{parts[0]}.weight"][1]) * len(parts) // rows
                for kind, shape in ("weight", (rows, columns)), ("bias", (rows,)):
                    values = sum((take(f"{source}.{part}.{kind}") for part in parts), [])
                    variables[f"{target}/{name}/{kind}"] = (shape, values)

            def norm(name, part):
                variables[f"{target}/{name}/layer_norm/gamma"] = ((D,), take(f"{source}.{part}.weight"))
                variables[f"{target}/{name}/layer_norm/beta"] = ((D,), take(f"{source}.{part}.bias"))

            q, k, v, out = (f"self_attn.{x}_proj" for x in ("q", "k", "v", "out"))
            fused("self_attention/linear_0", 3 * D, [q, k, v])
            fused("self_attention/linear_1", D, [out])
            norm("self_attention", "self_attn_layer_norm")
            if stack == "decoder":
                q, k, v, out = (f"encoder_attn.{x}_proj" for x in ("q", "k", "v", "out"))
                fused("attention/linear_0", D, [q])
                fused("attention/linear_1", 2 * D, [k, v])
                fused("attention/linear_2", D, [out])
                norm("attention", "encoder_attn_layer_norm")
            fused("ffn/linear_0", F, ["fc1"])
            fused("ffn/linear_1", D, ["fc2"])
            norm("ffn", "final_layer_norm")
    return variables


def write_ct2(folder, variables, vocabulary):
    os.makedirs(folder)

    def text(value):
        encoded = value.encode() + b"\0"
        return struct.pack("<H", len(encoded)) + encoded

    out = struct.pack("<I", 6) + text("TransformerSpec") + struct.pack("<II", 7, len(variables))
    for name, (shape, values) in variables.items():
        data = struct.pack("<b", values) if shape == () else struct.pack(f"<{len(values)}f", *values)
        out += text(name) + struct.pack("<B", len(shape)) + struct.pack(f"<{len(shape)}I", *shape)
        out += struct.pack("<BI", 1 if shape == () else 0, len(data)) + data
    aliases = {"decoder/projection/weight": "decoder/embeddings/weight",
               "encoder/embeddings_0/weight": "decoder/embeddings/weight"}
    out += struct.pack("<I", len(aliases))
    for alias, name in aliases.items():
        out += text(alias) + text(name)
    with open(f"{folder}/model.bin", "wb") as file:
        file.write(out)
    write_json(f"{folder}/shared_vocabulary.json", vocabulary)
    write_json(f"{folder}/config.json", {"add_source_bos": False, "add_source_eos": True,
                                         "bos_token": "<s>", "eos_token": "</s>",
                                         "unk_token": "<unk>", "layer_norm_epsilon": None})


def write_package(path, ct2, spm):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name in "model.bin", "shared_vocabulary.json", "config.json":
            package.write(f"{ct2}/{name}", f"translate-en_de/model/{name}")
        package.write(spm, "translate-en_de/sentencepiece.model")
        package.writestr("translate-en_de/metadata.json",
                         json.dumps({"from_code": "en", "to_code": "de"}))
        package.writestr("translate-en_de/README.md", "The model is licensed CC-BY 4.0\n")


def write_m2m(folder, spm, pieces):
    os.makedirs(folder)
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>"] + pieces
    words = len(vocabulary) + 4  # two languages, and two rows without pieces
    write_safetensors(f"{folder}/model.safetensors", weights(words, "m2m_100"))
    write_json(f"{folder}/vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    write_json(f"{folder}/special_tokens_map.json",
               {"additional_special_tokens": ["__de__", "__en__"]})
    write_json(f"{folder}/config.json",
               hf_config("m2m_100", words, activation_function="relu", eos_token_id=2,
                         bos_token_id=0, pad_token_id=1, decoder_start_token_id=2))
    shutil.copy(spm, f"{folder}/sentencepiece.bpe.model")


def main(spm, folder):
    pieces = spm_pieces(spm)
    tensors, vocabulary = write_marian(f"{folder}/hf", spm, pieces)
    write_ct2(f"{folder}/ct2", ct2_variables(tensors, len(vocabulary)), vocabulary)
    write_package(f"{folder}/package.argosmodel", f"{folder}/ct2", spm)
    shutil.copy(spm, f"{folder}/ct2/sentencepiece.model")
    write_m2m(f"{folder}/m2m", spm, pieces)


main(*sys.argv[1:])
