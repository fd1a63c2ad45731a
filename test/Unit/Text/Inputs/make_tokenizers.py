"""Writes the tokenizer fixtures beside it, with the ids that the reference implementations give.

    python3 make_tokenizers.py         needs tokenizers, sentencepiece, llama-cpp-python and gguf from PyPI

Each NAME.json or NAME.gguf is a tiny tokenizer trained here. expected.json has for each of them some texts with their ids, and for
texts made by a random generator (the same in ReferenceTest.cpp) a checksum of their ids. References: Hugging Face's tokenizers for
tokenizer.json files, llama.cpp for GGUF files of model "llama", SentencePiece for those of model "t5".
"""
import io
import json
import os

import gguf
import llama_cpp
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    "The river runs past the old mill, and the miller's daughter counts the boats that pass under the bridge.",
    "It's 12 o'clock; we'll meet at 1234 Main Street, won't we? They've said so, and I'd rather not be late.",
    "Ein kleiner Vogel sitzt im Apfelbaum und singt. Über den Dächern liegt schon der Schnee, und es ist kalt.",
    "Le garçon a mangé trois pommes à l'école; déjà la forêt était pleine de bruits étranges.",
    "В начале лета дети играют у реки и считают лодки. 我们在河边看船，孩子们很高兴。 今日はとても寒いです。",
    "for (int i = 0; i < 10; ++i) {\n    total += values[i];\n}\nreturn total;\n\n",
    "A tokenizer cuts text into tokens; tokens are numbers, and numbers are what the model reads and writes.",
] * 4

HERE = os.path.dirname(os.path.abspath(__file__))

# What the random texts are made of.
PIECES = [
    " ", "  ", "    ", "\n", "\n\n", "\t", "\r\n", "a", "the", " the", "The river", " runs", " miller's", "'s", "'LL", "it's", "won't", "12", "1234567", "3.14", " 1",
    "\u00bd", "\u0663\u0664", "!", "...", "?!", " (", ")", "{\n", "++i;", "\u00e9", "e\u0301", "\u00dc", "U\u0308", "a\u0323\u0307", "\u1e69", "\u00e4\u0301",
    "\u0434\u0435\u0442\u0438", " \u0440\u0435\u043a\u0438", "\u0439", "\u0438\u0306", "\u6211\u4eec", "\u8239\uff0c", "\u3067\u3059", "\u304b\u3099", "\ud55c", "\u1112\u1161\u11ab",
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u00a0", "\u2028", "\u3000", "\u200b", "\ufeff", "\u2581", " \u2581", "\u2581\u2581",
    "\x00", "\x01", "\x7f", "<s>", "</s>", "<unk>", "<|x|>", "<x", "[[u]]", "<0x0A>", "\u212b", "\u03a9", "\u2126", "\u0915\u094d\u0937", "\u05d0\u05b8", "\u0e01\u0e33", "zq", "QZ", "\u017f",
]


class SplitMix64:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31


def texts(count, seed):
    random = SplitMix64(seed)
    for _ in range(count):
        yield "".join(PIECES[random.next() % len(PIECES)] for _ in range(1 + random.next() % 12))


def checksum(ids):
    value = 0x811C9DC5  # FNV-1a, 32 bits
    for token in ids:
        for byte in token.to_bytes(4, "little"):
            value = (value ^ byte) * 0x01000193 % 2**32
    return value


def cases(encode, special, plain=("<s>a</s>", "a<|x|>")):
    """encode(text, special) -> ids; `plain` are texts to be read without special tokens."""
    chosen = ["", " ", "Hello world", " Hello  world ", "The river runs.", "it's 12345", "<s>a</s> b", "x <|x|> y[[u]] z", "a\u2581b", "e\u0301\u00e9"] + PIECES
    return {
        "examples": [[text, special, encode(text, special)] for text in chosen] + [[text, False, encode(text, False)] for text in plain],
        "special": special,
        "checksums": "".join(f"{checksum(encode(text, special)):08x}" for text in texts(1000, 11)),
    }


def hugging_face(name, tokenizer, **options):
    tokenizer.save(os.path.join(HERE, name + ".json"), pretty=False)

    def encode(text, special):
        tokenizer.encode_special_tokens = not special
        return tokenizer.encode(text, add_special_tokens=False).ids

    return cases(encode, True, **options)


def train(tokenizer, vocab=400, **options):
    trainer = trainers.BpeTrainer(vocab_size=vocab, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"], **options)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|x|>", normalized=False)])
    tokenizer.add_tokens([AddedToken("[[u]]", normalized=False)])
    return tokenizer


def with_byte_tokens(tokenizer):
    """The same with tokens for all bytes, and byte_fallback."""
    state = json.loads(tokenizer.to_str())
    model = state["model"]
    added = {token["content"] for token in state["added_tokens"]}
    kept = [token for token in sorted(model["vocab"], key=model["vocab"].get) if token not in added - {"<unk>", "<s>", "</s>"}]
    order = kept[:3] + [f"<0x{byte:02X}>" for byte in range(256)] + kept[3:]
    model["vocab"] = {token: i for i, token in enumerate(order)}
    model["byte_fallback"] = True
    for token in state["added_tokens"]:
        if token["content"] not in model["vocab"]:
            token["id"] = len(model["vocab"]) + ["<|x|>", "[[u]]"].index(token["content"])
    return Tokenizer.from_str(json.dumps(state))


def llama_style():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    train(tokenizer, 350)
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return with_byte_tokens(tokenizer)


def gemma_style():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    train(tokenizer, 330)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return with_byte_tokens(tokenizer)


def metaspace(scheme, split, fuse):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme, split=split)
    return train(tokenizer, 220)


def unigram(scheme):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(vocab_size=220, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>")
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|x|>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("[[u]]", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return tokenizer


SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(numbers, nfc, ignore_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT % numbers), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|x|>", rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("[[u]]", normalized=False)])
    return tokenizer


def sentencepiece_model(kind, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in CORPUS for line in text.splitlines() if line]), model_writer=out, model_type=kind,
        normalization_rule_name="identity", remove_extra_whitespaces=False, user_defined_symbols=["[[u]]"], control_symbols=["<|x|>"], minloglevel=2,
        num_threads=1, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


def write_gguf(name, model, processor):
    path = os.path.join(HERE, name + ".gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    count = processor.vocab_size()
    writer.add_token_list([processor.id_to_piece(i).encode() for i in range(count)])
    writer.add_token_scores([processor.get_score(i) for i in range(count)])
    writer.add_token_types([2 if processor.is_unknown(i) else 3 if processor.is_control(i) else 6 if processor.is_byte(i) else
                            4 if processor.id_to_piece(i) == "[[u]]" else 1 for i in range(count)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(True)
    for key, value in (("context_length", 8), ("embedding_length", 8), ("block_count", 1), ("feed_forward_length", 8)):
        writer.add_uint32("llama." + key, value)
    writer.add_uint32("llama.attention.head_count", 1)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama_cpp_cases(name, processor):
    path = write_gguf(name, "llama", processor)
    model = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    return cases(lambda text, special: model.tokenize(text.encode(), add_bos=False, special=special), True)


def sentencepiece_cases(name, processor):
    write_gguf(name, "t5", processor)
    # A user-defined token ends a section here, not in SentencePiece, which knows no special tokens in text either.
    def encode(text, special):
        sections = text.split("[[u]]")
        ids = []
        for i, section in enumerate(sections):
            ids += [processor.piece_to_id("[[u]]")] if i else []
            ids += processor.encode(section)
        return ids
    return cases(encode, False)


expected = {
    "pieces": PIECES,
    "llama": hugging_face("llama", llama_style()),
    "gemma": hugging_face("gemma", gemma_style()),
    "metaspace-first": hugging_face("metaspace-first", metaspace("first", True, True)),
    "metaspace-always": hugging_face("metaspace-always", metaspace("always", False, False)),
    "unigram": hugging_face("unigram", unigram("always"), plain=("a<|x|>",)),  # its model finds <s> in plain text
    "llama3": hugging_face("llama3", byte_level("{1,3}", False, True)),
    "qwen2": hugging_face("qwen2", byte_level("", True, False)),
    "spm-bytes": llama_cpp_cases("spm-bytes", sentencepiece_model("bpe", vocab_size=500, byte_fallback=True)),
    "spm-unigram": sentencepiece_cases("spm-unigram", sentencepiece_model("unigram", vocab_size=175)),
}
with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8") as f:
    f.write("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in expected.items()) + "\n}\n")
