"""Writes what torch.save writes, with Python's own pickle and zipfile: no PyTorch needed.

    save(path, root)          root: dicts, lists, numbers and Tensor(...)
    torchfile.py KIND PATH [EDIT...]

KIND: nanogpt (a checkpoint), mingpt (a state dict with mask buffers), hf (a state dict under transformers' names); all weights are zero. Or a .safetensors
file: a state dict of its tensors. EDIT:
  KEY=JSON      set one of the model_args (n_layer, n_head, n_embd, block_size, vocab_size, bias); KEY= removes it
  NAME:[2,3]    give a tensor this shape (added if it is new); NAME: removes it; NAME:i64 stores it as integers
  NAME:T        store it transposed, as a view
  @NAME         a root of another kind: module, system, list, empty
  FILE@TEXT     write a file beside it
"""
import collections
import io
import json
import math
import os
import pickle
import struct
import sys
import types
import zipfile

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
TYPES = {"f32": ("FloatStorage", 4), "f16": ("HalfStorage", 2), "bf16": ("BFloat16Storage", 2), "i64": ("LongStorage", 8)}


def function(module, name):
    made = types.FunctionType((lambda *_: None).__code__, {}, name)
    made.__module__, made.__qualname__ = module.__name__, name
    setattr(module, name, made)
    return made


REBUILD = function(utils, "_rebuild_tensor_v2")
STORAGES = {kind: function(torch, name) for kind, (name, _) in TYPES.items()}


class Storage:
    def __init__(self, kind, data):
        self.kind, self.data = kind, data


class Tensor:
    """`data`: bytes, row-major; the same Storage for tensors that share one."""

    def __init__(self, shape, data=None, kind="f32", storage=None, offset=0, strides=None):
        self.shape, self.offset = tuple(shape), offset
        self.strides = strides or tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))
        self.storage = storage or Storage(kind, bytes(math.prod(shape) * TYPES[kind][1]) if data is None else data)

    def __reduce__(self):
        return REBUILD, (self.storage, self.offset, self.shape, self.strides, False, collections.OrderedDict())


def save(path, root, folder="archive"):
    storages, out = [], io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            if not isinstance(value, Storage):
                return None
            if value not in storages:
                storages.append(value)
            size = TYPES[value.kind][1]
            return "storage", STORAGES[value.kind], str(storages.index(value)), "cpu", len(value.data) // size

    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        Pickler(out, protocol=2).dump(root)
    finally:
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/data.pkl", out.getvalue())
        archive.writestr(f"{folder}/byteorder", "little")
        archive.writestr(f"{folder}/version", "3\n")
        for i, storage in enumerate(storages):
            archive.writestr(f"{folder}/data/{i}", storage.data)


def shapes(args, prefix="transformer.", in_out=False):
    c, bias = args.get("n_embd", 8), args.get("bias", True)
    linear = lambda i, o: [i, o] if in_out else [o, i]
    made = {prefix + "wte.weight": [args.get("vocab_size", 11), c], prefix + "wpe.weight": [args.get("block_size", 16), c]}
    for i in range(args.get("n_layer", 1)):
        h = f"{prefix}h.{i}."
        for name, shape, size in (("ln_1", [c], c), ("attn.c_attn", linear(c, 3 * c), 3 * c), ("attn.c_proj", linear(c, c), c), ("ln_2", [c], c),
                                  ("mlp.c_fc", linear(c, 4 * c), 4 * c), ("mlp.c_proj", linear(4 * c, c), c)):
            made[f"{h}{name}.weight"] = shape
            if bias:
                made[f"{h}{name}.bias"] = [size]
    made[prefix + "ln_f.weight"] = [c]
    if bias:
        made[prefix + "ln_f.bias"] = [c]
    return made


def copied(path):
    """The tensors of a safetensors file."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: Tensor(t["shape"], data[slice(*t["data_offsets"])], t["dtype"].lower()) for name, t in header.items()}


def main():
    kind, path, edits = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    args = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 16, "vocab_size": 11, "bias": True, "dropout": 0.0}
    for edit in [e for e in edits if "=" in e and "@" not in e]:
        key, value = edit.split("=", 1)
        args.pop(key, None)
        if value:
            args[key] = json.loads(value)
    if kind.endswith(".safetensors"):
        tensors = copied(kind)
    else:
        tensors = {name: Tensor(shape) for name, shape in shapes(args, "" if kind == "hf" else "transformer.", kind == "hf").items()}
    tokens = tensors.get("transformer.wte.weight")
    if kind == "nanogpt":
        tensors["lm_head.weight"] = Tensor(tokens.shape, storage=tokens.storage)
    if kind == "mingpt":
        tensors["transformer.h.0.attn.bias"] = Tensor([1, 1, 16, 16])
        tensors["lm_head.weight"] = Tensor(tokens.shape, struct.pack("<f", 1) * math.prod(tokens.shape))
    root = tensors if kind != "nanogpt" else {"model": tensors, "optimizer": {"state": {0: {"step": Tensor([])}}}, "model_args": args, "iter_num": 5}
    for edit in [e for e in edits if "=" not in e or "@" in e]:
        if edit.startswith("@"):
            root = {"module": {"model": types.SimpleNamespace(), **tensors}, "list": [1], "empty": {"model": {}}, "system": Call()}[edit[1:]]
        elif "@" in edit:
            name, text = edit.split("@", 1)
            with open(os.path.join(os.path.dirname(path), name), "w", encoding="utf-8") as f:
                f.write(text)
        else:
            name, what = edit.rsplit(":", 1)
            if not what:
                del tensors[name]
            elif what == "T":
                shape = tensors[name].shape
                tensors[name] = Tensor(shape, storage=tensors[name].storage, strides=(1, shape[0]))
            elif what in TYPES:
                tensors[name] = Tensor(tensors[name].shape, kind=what)
            else:
                tensors[name] = Tensor(json.loads(what))
    save(path, root)


class Call:
    def __reduce__(self):
        return os.system, ("true",)


if __name__ == "__main__":
    main()
