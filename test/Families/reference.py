"""What the cases of every family share: tiny random checkpoints, and the logits that transformers computes from the files on disk.

A case is a folder in the format of test/Golden (case.json, the checkpoint, logits_N.npy). transformers reads the written files back and computes
in float64; where its code asks for float32 (norms, softmax, rotary tables) it gets float64 too.
"""
import contextlib, copy, json, os, re, shutil
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 2e-4
LENGTHS = (1, 12, 33)
GREEDY, AMBIGUOUS = 12, 0.01
LEAST_CHANGE = 1e-2  # what a mistake must move the largest logit by, to be one that the case can find


@contextlib.contextmanager
def float64():
    """Everything that asks for float32 computes in float64."""
    names = {n: getattr(torch, n) for n in ("float32", "float")}
    to_float, default = torch.Tensor.float, torch.get_default_dtype()
    try:
        for n in names:
            setattr(torch, n, torch.float64)
        torch.Tensor.float = torch.Tensor.double
        torch.set_default_dtype(torch.float64)
        yield
    finally:
        for n, dtype in names.items():
            setattr(torch, n, dtype)
        torch.Tensor.float = to_float
        torch.set_default_dtype(default)


def folder_of(name):
    """The empty folder of a case."""
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def random_state(config, seed):
    """{name: float32 tensor} for transformers' model of `config` (a dict), at a scale where mistakes show. A tied head is left out."""
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**copy.deepcopy(config)))  # it fills in what is absent
    draw = torch.Generator().manual_seed(seed)
    tied = set(getattr(model, "all_tied_weights_keys", None) or {})
    state = {}
    for name, tensor in model.state_dict().items():
        if name in tied:
            continue
        noise = torch.randn(tensor.shape, generator=draw, dtype=torch.float32)
        if tensor.dim() == 1:
            state[name] = 0.4 * noise + (1 if name.endswith("weight") else 0)
        elif "embed" in name or ".wte" in name:
            state[name] = 0.05 * noise  # small, so that the epsilon of the first norm counts
        else:
            state[name] = noise * (2.0 / tensor.shape[-1] ** 0.5)
    return state


def write_folder(path, config, state, dtype=torch.float32):
    """A Hugging Face folder of one safetensors file."""
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
        f.write("\n")
    save_file({n: t.to(dtype).contiguous() for n, t in state.items()}, os.path.join(path, "model.safetensors"), metadata={"format": "pt"})
    os.chmod(os.path.join(path, "model.safetensors"), 0o644)


def load(path, **edits):
    """transformers' model of a folder in float64, with keys of its config.json replaced."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        config = AutoConfig.for_model(**{**json.load(f), **copy.deepcopy(edits)})
    model, info = AutoModelForCausalLM.from_pretrained(path, config=config, dtype=torch.float64, attn_implementation="eager",
                                                       output_loading_info=True)
    wrong = {k: v for k, v in info.items() if v and k in ("missing_keys", "unexpected_keys", "mismatched_keys")}
    assert not wrong, wrong
    with float64():
        for module in model.modules():
            if hasattr(module, "inv_freq"):  # a buffer that is computed, not stored
                module.__init__(module.config)
    return model.eval()


def logits_of(model, ids):
    """[T, V] float64."""
    with torch.no_grad(), float64():
        out = model(torch.tensor([ids]), use_cache=False).logits[0]
    assert out.dtype is torch.float64
    return out.numpy()


def greedy_of(model, ids, context):
    ids, tokens, gaps = list(ids), [], []
    for _ in range(min(GREEDY, context - len(ids))):
        last = logits_of(model, ids)[-1]
        first, second = np.argsort(last)[::-1][:2]
        tokens.append(int(first))
        gaps.append(round(float(last[first] - last[second]), 5))
        ids.append(tokens[-1])
    return {"tokens": tokens, "gap": gaps, "ambiguous_at": [i for i, g in enumerate(gaps) if g < AMBIGUOUS]}


def finish(path, source, tests, files, vocab, context, broken, seed=1):
    """Computes logits from the Hugging Face folder `source` and writes case.json and logits_N.npy into `path`. `broken`: {what: edits of config.json},
    mistakes that the case must be able to find."""
    draw = np.random.default_rng(seed)
    model, prompts = load(source), []
    for i, length in enumerate(n for n in LENGTHS if n <= context):
        ids = [int(x) for x in draw.integers(0, vocab, length)]
        out = logits_of(model, ids)
        np.save(os.path.join(path, f"logits_{i}.npy"), out.astype(np.float32))
        prompts.append({"ids": ids, "length": length, "logits": f"logits_{i}.npy", "greedy": greedy_of(model, ids, context)})
    changes = {what: float(f"{np.abs(logits_of(load(source, **edits), ids) - out).max():.3g}") for what, edits in broken.items()}
    weak = {what: x for what, x in changes.items() if x < LEAST_CHANGE}
    assert not weak, weak
    case = {"name": os.path.basename(path), "kind": "logits", "tests": tests, "files": files,
            "reference": f"transformers {transformers.__version__} {type(model).__name__} in float64 (PyTorch {torch.__version__}), read back from the files; logits rounded to float32",
            "tolerance": TOLERANCE, "logit_spread": {"std": round(float(out.std()), 3), "max_abs": round(float(np.abs(out).max()), 3)},
            "prompts": prompts, "changes_when_broken": changes}
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as f:
        lines = json.dumps(case, indent=1)
        f.write(re.sub(r"\[[^][{}]*\]", lambda list: " ".join(list[0].split()), lines) + "\n")  # lists of numbers on one line


def hf_case(name, config, tests, broken, dtype=torch.float32, seed=1):
    """A case of one Hugging Face folder."""
    path = folder_of(name)
    write_folder(path, config, random_state(config, seed), dtype)
    finish(path, path, tests, ["config.json", "model.safetensors"], config["vocab_size"], config["max_position_embeddings"], broken, seed)
