"""Writes the fuzz targets' seeds: `python3 seeds.py OUT`, a folder for each target in OUT.

They come from the golden data and the lit tests, cut down to a few hundred bytes where a format allows it: small inputs mutate well.
"""
import glob
import io
import json
import os
import struct
import sys

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GOLDEN = os.path.join(TEST, "Golden")
FAMILIES = os.path.join(TEST, "Families")
OUT = sys.argv[1]


def seed(target, data):
    folder = os.path.join(OUT, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"seed-{len(os.listdir(folder)):03}"), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def read(path):
    with open(path, "rb") as f:
        return f.read()


def golden(pattern):
    return sorted(glob.glob(os.path.join(GOLDEN, pattern)))


def families(pattern):
    return sorted(glob.glob(os.path.join(FAMILIES, pattern)))


def safetensors(tensors):
    """tensors: name, dtype, shape, bytes."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def small_safetensors(path):
    """The first tensors of a golden file, every dimension cut to at most 2."""
    whole = read(path)
    size, = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8:8 + size])
    tensors = []
    for name, tensor in header.items():
        if name == "__metadata__" or len(tensors) == 4:
            continue
        begin, end = tensor["data_offsets"]
        elements = 1
        for dimension in tensor["shape"]:
            elements *= dimension
        shape = [min(2, dimension) for dimension in tensor["shape"]]
        kept = (end - begin) // elements
        for dimension in shape:
            kept *= dimension
        tensors.append((name, tensor["dtype"], shape, whole[8 + size + begin:8 + size + begin + kept]))
    return safetensors(tensors)


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf(pairs, tensors):
    """pairs: key, type, bytes; tensors: name, dimensions, type, bytes."""
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)), b""
    for key, kind, value in pairs:
        head += gguf_string(key) + struct.pack("<I", kind) + value
    for name, dimensions, kind, content in tensors:
        head += gguf_string(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, len(data))
        data += content + bytes(-len(content) % 32)
    return head + bytes(-len(head) % 32) + data


def strings(texts):
    return struct.pack("<IQ", 8, len(texts)) + b"".join(map(gguf_string, texts))


def small_model(architecture):
    """One layer of width 4, two heads, one KV head, all weights 0."""
    key = architecture + "."
    pairs = [("general.architecture", 8, gguf_string(architecture))]
    for name, number in (("block_count", 1), ("context_length", 8), ("embedding_length", 4), ("feed_forward_length", 6), ("attention.head_count", 2),
                         ("attention.head_count_kv", 1), ("rope.dimension_count", 2), ("attention.sliding_window", 3)):
        pairs.append((key + name, 4, struct.pack("<I", number)))
    pairs += [(key + name, 6, struct.pack("<f", number)) for name, number in (("attention.layer_norm_rms_epsilon", 1e-5), ("rope.scaling.factor", 2.0))]
    shapes = {"attn_norm": [4], "ffn_norm": [4], "attn_output": [4, 4], "ffn_down": [6, 4]}
    shapes |= {"attn_qkv": [4, 8], "ffn_up": [4, 12]} if architecture == "phi3" else \
        {"attn_q": [4, 4], "attn_k": [4, 2], "attn_v": [4, 2], "ffn_gate": [4, 6], "ffn_up": [4, 6]}
    shapes |= {"attn_q_norm": [2], "attn_k_norm": [2]} if architecture == "qwen3" else {}
    shapes = {f"blk.0.{name}.weight": shape for name, shape in shapes.items()} | {"token_embd.weight": [4, 3], "output_norm.weight": [4]}
    shapes |= {"rope_freqs.weight": [1]} if architecture == "llama" else {}
    one = struct.pack("<f", 1.0)
    return gguf(pairs, [(name, shape, 0, one * (shape[0] * (shape[1] if len(shape) > 1 else 1))) for name, shape in shapes.items()])


def alphabet():
    """GPT-2's printable character of each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in plain]
    table = {byte: chr(byte) for byte in plain}
    table.update({byte: chr(256 + i) for i, byte in enumerate(other)})
    return [table[byte] for byte in range(256)]


LETTERS = alphabet()
MERGES = [("e", "r"), (LETTERS[32], "t"), ("h", "e"), (LETTERS[32] + "t", "he")]
TOKENS = LETTERS + ["".join(pair) for pair in MERGES]
CHAT = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"


def checkpoints():
    for path in golden("*/*.safetensors"):
        seed("safetensors", small_safetensors(path))
    seed("safetensors", safetensors([("empty", "F32", [0, 3], b""), ("scalar", "I64", [], bytes(8)), ("b", "BF16", [1], bytes(2))]))
    for path in golden("*/model.safetensors.index.json"):
        seed("shard-index", read(path)[:400].rsplit(b",", 1)[0] + b"}}")
        seed("shard-index", read(path))
    for path in golden("*/config.json"):
        seed("json", read(path))
        if "/gpt2-hf/" in path or "/llama-hf" in path:
            seed("import", path.split("/")[-2][:1].encode() + read(path))
    for path in families("*/config.json"):
        name = path.split("/")[-2]
        letter = {"gem": "e", "gpt": "x"}.get(name[:3], name[0])
        seed("import", letter.encode() + read(path))
    seed("import", b'a{"architectures": ["EncoderDecoder"], "h": 8, "eps": 1e-5}')
    seed("json", '[1, -2, 3.5e-7, 18446744073709551615, "\\u00e9\\ud83d\\ude00", true, false, null, {"a": {"b": []}}]')
    seed("json", "[" * 70 + "]" * 70)
    scalars = [struct.pack("<" + code, 1) for code in "BbHhIif?"]
    pairs = [(f"scalar.{kind}", kind, value) for kind, value in enumerate(scalars)]
    pairs += [("general.architecture", 8, gguf_string("llama")), ("general.alignment", 4, struct.pack("<I", 32)),
              ("tokens", 9, strings(["a", "b", ""])), ("floats", 9, struct.pack("<IQ2f", 6, 2, 1, 2)),
              ("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ2B", 0, 2, 7, 8)), ("wide", 10, struct.pack("<Q", 2**63)),
              ("signed", 11, struct.pack("<q", -1)), ("real", 12, struct.pack("<d", 0.5))]
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144),
              13: (256, 176), 14: (256, 210), 30: (1, 2)}  # elements and bytes of a block
    tensors = [(f"tensor.{kind}", [elements, 2] if elements > 1 else [2, 3], kind, bytes(i + 1 for i in range(size)) * (2 if elements > 1 else 6))
               for kind, (elements, size) in blocks.items()]
    seed("gguf", gguf(pairs, tensors))
    seed("gguf", gguf(pairs[8:10], tensors[:1]))
    for architecture in ("llama", "qwen2", "qwen3", "phi3"):
        seed("import-gguf", small_model(architecture))
    for path in golden("llama-gguf-*/model.gguf"):
        seed("gguf", read(path)[:1500])
    seed("gguf", read(golden("llama-gguf-q4-1/model.gguf")[0]))


def torch_files():
    sys.path.insert(0, os.path.join(TEST, "Import", "Inputs"))
    import pickletools
    import zipfile
    from torchfile import Tensor, save
    tied = Tensor([2, 3])
    model = {"_orig_mod.wte": tied, "_orig_mod.head": Tensor([3], storage=tied.storage, offset=3)}
    roots = [model, {"model": model, "model_args": {"n_head": 2, "bias": True, "dropout": 0.1, "none": None, "list": [1, (2, "x")]},
                     "optimizer": {"state": {0: {"step": Tensor([])}}}, "best_val_loss": Tensor([], kind="bf16")},
             {"w": Tensor([4, 1], kind="f16"), "i": Tensor([2], kind="i64"), "view": Tensor([2, 2], strides=(1, 2))}]
    path = os.path.join(OUT, "archive.pt")
    for root in roots:
        save(path, root, "m")
        seed("torch-zip", b"z" + read(path))
        with zipfile.ZipFile(path) as archive:
            seed("torch-zip", b"p" + archive.read("m/data.pkl"))
    os.remove(path)
    for path in golden("gpt2-nanogpt-*/ckpt.pt"):
        with zipfile.ZipFile(path) as archive:
            pickled = archive.read("ckpt/data.pkl")
        seed("torch-zip", b"p" + pickled[:1200])
        seed("torch-zip", b"p" + pickletools.optimize(pickled))
    for path in golden("gpt2-llmc-*/model.bin"):
        whole = read(path)
        seed("llmc-bin", whole[:64])
        # The smallest model: every size 1.
        size = 4 if whole[4] == 3 else 2
        seed("llmc-bin", whole[:8] + struct.pack("<6i", 1, 1, 1, 1, 1, 1) + bytes(size * (2 + 12 + 13 + 2)))


def tokenizers():
    vocabulary = {token: i for i, token in enumerate(TOKENS)}
    merges = [" ".join(pair) for pair in MERGES]
    special = {"id": len(TOKENS), "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False,
               "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    config = json.dumps({"bos_token": "<|endoftext|>", "eos_token": {"content": "<|endoftext|>"}, "chat_template": CHAT})
    for pre, form in ((byte_level, merges), ({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
                                             [list(pair) for pair in MERGES])):
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                 "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": form}
        whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [special], "normalizer": None,
                 "pre_tokenizer": pre, "post_processor": byte_level, "decoder": byte_level, "model": model}
        for vocab in (vocabulary, {token: i for i, token in enumerate("abc")}):
            model["vocab"] = vocab
            model["merges"] = form if vocab is vocabulary else []
            special["id"] = len(vocab)
            for ascii in (True, False):
                seed("tokenizer-json", json.dumps(whole, ensure_ascii=ascii, separators=(",", ":")).encode() + b"\0" + config.encode())
    for path in sorted(glob.glob(os.path.join(TEST, "Unit", "Text", "Inputs", "*.json"))):
        whole = json.loads(read(path))
        if "model" not in whole:
            continue
        # The rules, on a small vocabulary.
        mark = "\u2581"
        tokens = ["<unk>", "<s>", "</s>", mark, "h", "e", "he", mark + "he"]
        model = whole["model"]
        if model["type"] == "Unigram":
            model["vocab"] = [[token, -float(i)] for i, token in enumerate(tokens)]
        else:
            model["vocab"] = {token: i for i, token in enumerate(tokens)}
            model["merges"] = [["h", "e"], [mark, "he"]]
            model["byte_fallback"] = False
            model["unk_token"] = "<unk>" if path.endswith(("llama.json", "gemma.json")) else None
        for token in whole["added_tokens"]:
            token["id"] = tokens.index(token["content"]) if token["content"] in tokens else len(tokens) + (token["content"] == "[[u]]")
        seed("tokenizer-json", json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode() + b"\0" + config.encode())
    text = "#version: 0.2\n" + "\n".join(merges) + "\n"
    seed("tokenizer-gpt2", json.dumps({**vocabulary, "<|endoftext|>": len(TOKENS)}, ensure_ascii=False) + "\0" + text)
    seed("tokenizer-gpt2", json.dumps({"h": 0, "e": 1, "he": 2}) + "\0#version: 0.2\nh e\n")
    small = [("1", "h"), ("1", "e"), ("1", "he"), ("3", "<|im_end|>"), ("4", "user"), ("5", "unused"), ("6", "<0x0A>")]
    for pre in ("gpt-2", "smollm", "llama-bpe"):
        lines = [f"t{kind}{token}" for kind, token in small] + ["mh e", f"P{pre}", "b3", "e3", "p4", "x3", "a", "CTemplate"]
        seed("tokenizer-gguf", "\n".join(lines))
    seed("tokenizer-gguf", "\n".join(["t1" + token for token in TOKENS] + ["m" + merge for merge in merges] + ["Pgpt-2", "MGPT2"]))

    for model in ("llama", "t5"):
        lines = ["M" + model]
        for i, (kind, token) in enumerate(small[:6] + [("2", "<unk>"), ("1", "\u2581"), ("1", "\u2581he")]):
            lines += [f"t{kind}{token}", f"s-{i}"]
        seed("tokenizer-gguf", "\n".join(lines + ["b3", "e3", "u6", "Rphi3"]))
        seed("tokenizer-gguf", "\n".join(lines + ["B", "A", "e3", "n"]))

    def string(text):
        return struct.pack("<I", len(text)) + text

    def tokenizer_file(model, pre, tokens, kinds, flags, prefix, scores, strips, merges):
        payload = string(model) + string(pre) + string(b"") + struct.pack("<iiii2BIi", 3, 3, -1, -1 if model == b"bpe" else 0, flags, prefix, 1, 3)
        payload += struct.pack("<I", len(tokens)) + bytes(kinds) + struct.pack(f"<{len(tokens)}I", *map(len, tokens))
        payload += struct.pack("<Q", len(b"".join(tokens))) + b"".join(tokens) + struct.pack(f"<I{len(scores)}f", len(scores), *scores)
        payload += struct.pack("<I", len(strips)) + bytes(strips) + struct.pack("<I", len(merges)) + b"".join(struct.pack("<3I", *m) for m in merges)
        seed("tokenizer-file", b"GPTCTOK2" + bytes(16) + payload)

    tokens, kinds = [b"h", b"e", b"he", b"<|im_end|>", b"user"], [0, 0, 0, 1, 2]
    for pre in (b"gpt2", b"smollm", b"llama3", b"qwen2"):
        tokenizer_file(b"bpe", pre, tokens, kinds, 1 + 8 * (pre == b"qwen2"), 0, [], [0, 0, 0, 2, 0], [(0, 1, 2)])
    all_tokens, all_kinds = tokens + [bytes([i]) for i in range(256)], kinds + [4] * 256
    for model in (b"sentencepiece-bpe", b"unigram"):
        tokenizer_file(model, b"", tokens, kinds, 32, 1, [-1.0, -2.0, -0.5, 0.0, 0.0], [], [])
        tokenizer_file(model, b"", all_tokens, all_kinds, 16 + 4, 1, [-1.0] * len(all_tokens), [], [])
    tokenizer_file(b"sentencepiece-bpe", b"", tokens, kinds, 64, 3, [], [], [(0, 1, 2)])
    tokenizer_file(b"sentencepiece-bpe", b"", all_tokens, all_kinds, 16, 2, [], [], [(0, 1, 2)])
    templates = json.loads(read(os.path.join(TEST, "Unit", "Text", "Inputs", "templates.json")))
    for template in [family["template"] for family in templates["families"]] + [piece[0] for piece in templates["pieces"] + templates["refused"]]:
        seed("chat-template", template.encode() + b"\0 What is it?\n")
    work = json.loads(read(os.path.join(TEST, "Unit", "Text", "Inputs", "template_work.json")))
    for names, operation in work["large"] + work["cheap"]:
        pieces = [work["definitions"][name] for name in names]
        template = "".join(piece["begin"] + piece["repeat"].replace("#", "0") + piece.get("end", "") for piece in pieces)
        statement = operation if operation.startswith(("{%", "{{")) else "{% set x = " + operation + " %}"
        seed("chat-template", (template + "{% for round in [1, 2] %}" + statement + "{% endfor %}").encode())
    for name in ("gpt2", "smollm2"):
        for i, entry in enumerate(json.loads(read(os.path.join(GOLDEN, "tokenizer", name + ".json")))["entries"]):
            content = entry["text"].encode() if "text" in entry else bytes.fromhex(entry["hex"])
            seed("tokenizer-text", bytes([i % 7 + 126 * entry["parse_special"]]) + content)
    seed("tokenizer-text", b"\2<|im_start|>user<user> <|im_end|> 12345 a\xff\xf0\x9f\x98")


def packages():
    def npy(descr, shape, data, version=1):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header.encode() + data

    files = [npy("<f4", "(2, 3)", bytes(24)), npy("<f8", "()", bytes(8)), npy("<i8", "(2,)", bytes(16), 2), npy("|u1", "(3,)", b"\1\2\3")]
    for data in files:
        seed("numpy", data)
    import zipfile
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", method) as out:
            for i, data in enumerate(files):
                out.writestr(zipfile.ZipInfo(f"a{i}.npy"), data, method)
        seed("numpy", archive.getvalue())
    seed("numpy", read(golden("attention/*.npz")[0]))
    seed("package", 'm{"name": "toy", "weights": [{"name": "table"}], "entries": [{"name": "step"}]}')
    seed("package", 'm{"name": "toy", "weights": []}')
    seed("package", "m" + "[" * 2000)
    for letter in (b"w", b"v"):
        seed("package", letter + b"GPTCWT01" + struct.pack("<3Q", 0x1234, 64, 0) + bytes(32))
        seed("package", letter + b"GPTCWT01" + struct.pack("<3Q", 0x1234, 1344, 0) + bytes(1312))


def mlir():
    for path in sorted(glob.glob(os.path.join(TEST, "*", "**", "*.mlir"), recursive=True)):
        for part in read(path).split(b"// -----"):
            lines = [line for line in part.splitlines() if not line.lstrip().startswith(b"//")]
            text = b"\n".join(lines).strip() + b"\n"
            if 1 < len(text) < 3000:
                seed("mlir", text)
    seed("mlir", read(os.path.join(TEST, "..", "docs", "picogpt.mlir")))


def ptx():
    head = ".version 9.0\n.target sm_80\n.address_size 64\n"
    seed("ptx", head + """.file 1 "a.cu"
.visible .entry k(.param .u64 .ptr .align 4 p, .param .align 4 .b8 q[8]) .maxntid 128, 1, 1 .minnctapersm 2
{
.reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .f32 %f<3>;
.shared .align 16 .b8 s[64];
.loc 1 3 5
ld.param.u64 %rd0, [p+0];
L0: mov.u32 %r1, %tid.x;
setp.lt.s32 %p1|%p2, %r1, 32;
@!%p1 bra L0;
.loc 1 4 2, function_name F, inlined_at 1 3 5
fma.rn.f32 %f1, %f1, 0f3F800000, -1.5e2;
st.global.v4.u32 [%rd0+-16], {%r1, %r2, _, 0x10};
bar.sync 0; ret;
}
""")
    seed("ptx", head + """.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .f32 c[3] = {0f3F800000, 1.0, -2};
.const .b64 at = generic(c)+4;
.func (.param .b32 r) f(.param .b32 a);
.visible .entry k() {
{ .param .b32 x; call.uni (x), f, (x); }
T: .branchtargets A, B;
A: B: brx.idx %r0, T;
}
.section .debug_str { F: .b8 65, 0 }
""")
    seed("ptx", head + "/* */ // a\n.weak .func g() { .reg .b16 a, b; mul.wide.u16 %r, a, 0b11; shfl.sync.idx.b32 x|p, y, 0, 31, -1; trap; }")


checkpoints()
torch_files()
tokenizers()
ptx()
packages()
mlir()
