"""Whole blocks of models, whose weights the host gives, at -O0 and -O2, against numpy."""
import os

import numpy as np

from fusion_numpy import ACTIVATIONS, Numbers, attend, heads, layer_norm, merged, rope
from harness import HERE, compiled, main, manifest, written
from package import Package

BLOCKS = os.path.join(HERE, "..", "Fusion")


class Blocks(Numbers):
    """The blocks of test/Fusion, as packages with weights from the host: -O2, -O0 and numpy agree."""
    options = (2,), (0,)

    def block(self, name, weights, reference, gemms, edit=lambda text: text):
        tokens = np.random.default_rng(3).integers(0, 96, 21).tolist()
        expected = reference(np.array(tokens), {key: np.float64(w) for key, w in weights.items()})
        with open(os.path.join(BLOCKS, f"block-{name}.mlir"), encoding="utf-8") as f:
            mlir = written(edit(f.read()))
        for level, *more in self.options:
            folder = compiled(mlir, level, *more)
            with Package(folder).open(weights) as model, model.session(sequences=4, tokens=84) as session:
                self.close(session.step(tokens), expected, 5e-5)
                session.step(tokens[:13])
                self.close(session.step(tokens[13:], range(13, 21)), expected[13:], 5e-5)
                self.close(session.step(tokens[20:], [20]), expected[20:], 5e-5)
                self.close(session.step(tokens * 4, [*range(21)] * 4, np.repeat(range(4), 21)), np.tile(expected, (4, 1)), 5e-5)
            kinds = {kernel["name"]: kernel["kind"] for kernel in manifest(folder)["kernels"]}
            called = [kinds[call["kernel"]] for call in manifest(folder)["entries"][0]["calls"]]
            if level:
                self.assertEqual((called.count("gemm"), called.count("attention"), called.count("elementwise")), gemms, called)

    def weights(self, shapes):
        return {name: self.random(*shape, seed=i) * (0.2 if len(shape) > 1 else 1) for i, (name, shape) in enumerate(shapes.items())}

    def test_nanogpt(self):
        w = self.weights({"wte": (96, 64), "wpe": (32, 64), "g": (64,), "b": (64,), "c_attn": (192, 64), "c_attn_b": (192,), "c_proj": (64, 64),
                          "c_fc": (256, 64), "c_fc_b": (256,), "mlp_proj": (64, 256)})

        def reference(tokens, w):
            norm = lambda x: layer_norm(x, 1e-5, w["g"], w["b"])
            x = w["wte"][tokens] + w["wpe"][:len(tokens)]
            q, k, v = (heads(part, 4) for part in np.split(norm(x) @ w["c_attn"].T + w["c_attn_b"], 3, -1))
            x = x + merged(attend(q, k, v, 0.25)[2]) @ w["c_proj"].T + w["b"]
            x = x + ACTIVATIONS["gpt.gelu erf {}"](norm(x) @ w["c_fc"].T + w["c_fc_b"]) @ w["mlp_proj"].T + w["b"]
            return norm(x) @ w["wte"].T

        self.block("nanogpt", w, reference, (5, 1, 1))

    LLAMA = {"emb": (96, 64), "attn_norm": (64,), "ffn_norm": (64,), "wq": (64, 64), "wk": (64, 32), "wv": (32, 64), "wo": (64, 64), "w1": (160, 64),
             "w2": (64, 160), "w3": (160, 64)}

    @staticmethod
    def llama(tokens, w):
        norm = lambda x, g: x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * w[g]
        at = np.arange(len(tokens))
        x = w["emb"][tokens]
        n = norm(x, "attn_norm")
        q, k = (rope(heads(n @ w[name], count), at, 5e5, "half", 16) for name, count in (("wq", 4), ("wk", 2)))
        v = n @ w["wv"].T
        x = x + merged(attend(q, k, heads(v, 2), 0.25)[2]) @ w["wo"].T
        if "wx" in w:
            x = x + merged(k) @ w["wx"].T + 0.5 * n @ w["wk"] @ w["wx"].T + v @ w["wx"].T
        n = norm(x, "ffn_norm")
        x = x + (ACTIVATIONS["gpt.silu {}"](n @ w["w1"].T) * (n @ w["w3"].T)) @ w["w2"].T
        return norm(x, "attn_norm") @ w["emb"].T

    def test_llama(self):
        self.block("llama", self.weights(self.LLAMA), self.llama, (5, 1, 0))

    # B19 in a step: keys before and after the rope, and values, go to the cache and to another projection.
    def test_keys_and_values_with_other_users(self):
        def edit(text):
            text = text.replace("  func.func @forward", "  ml_program.global private @wx(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>\n  func.func @forward")
            return text.replace("    %x1 = arith.addf %a, %x : tensor<?x64xf32>", """
    %wx = ml_program.global_load_const @wx : tensor<64x32xf32>
    %km = gpt.merge_heads %kr : tensor<2x?x16xf32> -> tensor<?x32xf32>
    %kx = gpt.linear %km, %wx : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    %k0 = gpt.linear %k, %wx : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    %k0x = gpt.scale %k0 by 0.5 : tensor<?x64xf32>
    %vx = gpt.linear %v, %wx : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    %xk = arith.addf %x, %kx : tensor<?x64xf32>
    %xkk = arith.addf %xk, %k0x : tensor<?x64xf32>
    %xkv = arith.addf %xkk, %vx : tensor<?x64xf32>
    %x1 = arith.addf %a, %xkv : tensor<?x64xf32>""")

        self.block("llama", self.weights({**self.LLAMA, "wx": (64, 32)}), self.llama, (8, 1, 0), edit)

    def test_gptj(self):
        w = self.weights({"wte": (96, 64), "g": (64,), "b": (64,), "q_proj": (64, 64), "k_proj": (64, 64), "v_proj": (64, 64), "out_proj": (64, 64),
                          "fc_in": (256, 64), "fc_in_b": (256,), "fc_out": (64, 256), "head_b": (96,)})

        def reference(tokens, w):
            norm = lambda x: layer_norm(x, 1e-5, w["g"], w["b"])
            at = np.arange(len(tokens))
            x = w["wte"][tokens]
            n = norm(x)
            q, k = (rope(heads(n @ w[name].T, 4), at, 1e4, "adjacent", 8) for name in ("q_proj", "k_proj"))
            attention = merged(attend(q, k, heads(n @ w["v_proj"].T, 4), 0.25)[2]) @ w["out_proj"].T
            x = x + attention + ACTIVATIONS["gpt.gelu tanh {}"](n @ w["fc_in"].T + w["fc_in_b"]) @ w["fc_out"].T + w["b"]
            return norm(x) @ w["wte"].T + w["head_b"]

        self.block("gptj", w, reference, (5, 1, 0))

    def test_annotated_transformer(self):
        w = self.weights({"wq": (64, 64), "wk": (64, 64), "wv": (64, 64), "wo": (64, 64), "w1": (256, 64), "w2": (64, 256), "b": (64,), "b1": (256,), "a_2": (64,)})
        x = self.random(11, 64, seed=50)
        mask = np.where(np.random.default_rng(4).random((11, 11)) < 0.3, -1e9, 0).astype(np.float32)
        np.fill_diagonal(mask, 0)
        d = {name: np.float64(array) for name, array in w.items()}
        q, k, v = (heads(np.float64(x) @ d[name].T + d["b"], 8) for name in ("wq", "wk", "wv"))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(8) + np.float64(mask)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        norm = lambda y: layer_norm(y, 1e-6, d["a_2"], d["b"])
        x1 = norm(np.float64(x) + merged(weights @ v) @ d["wo"].T + d["b"])
        expected = norm(x1 + np.maximum(x1 @ d["w1"].T + d["b1"], 0) @ d["w2"].T + d["b"])
        for level, *more in self.options:
            folder = compiled(os.path.join(BLOCKS, "block-annotated-transformer.mlir"), level, *more)
            with Package(folder).open(w) as model, model.session() as session:
                self.close(session.run("layer", {"x": x, "mask": mask}, ["y"])["y"], expected, 5e-5)


if __name__ == "__main__":
    main()
