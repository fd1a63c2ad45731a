"""PyTorch: a plain module on a KV cache of fixed size, eager or compiled (torch.compile, weights frozen and packed)."""
REQUIREMENTS = ["torch"]
SETTINGS = {"gpt2": ["eager-f32", "eager-bf16", "compile-f32", "compile-bf16"]}


def Peer(request):
    import torch
    import torch.nn.functional as F
    import gpt2
    from worker import Stepper
    mode, kind = request["setting"].split("-")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
    H, D, room = gpt2.HEADS, gpt2.WIDTH // gpt2.HEADS, request["prompt"] + request["decode"]

    class Gpt2(torch.nn.Module):
        def __init__(self, arrays):
            super().__init__()
            for name, array in arrays.items():
                value = torch.from_numpy(array.T.copy() if ".c_" in name and array.ndim == 2 else array.copy()).to(dtype)
                self.register_parameter(name.replace(".", "_"), torch.nn.Parameter(value, requires_grad=False))

        def linear(self, x, name):
            return F.linear(x, getattr(self, name + "_weight"), getattr(self, name + "_bias"))

        def norm(self, x, name):
            return F.layer_norm(x, x.shape[-1:], getattr(self, name + "_weight"), getattr(self, name + "_bias"), gpt2.EPSILON)

        def forward(self, ids, positions, mask, caches):
            """mask: None where the caches are empty; else which of their places the token sees."""
            x = F.embedding(ids, self.wte_weight) + F.embedding(positions, self.wpe_weight)
            count = ids.shape[1]
            for i in range(gpt2.LAYERS):
                p = f"h_{i}_"
                q, k, v = (part.view(1, count, H, D).transpose(1, 2) for part in self.linear(self.norm(x, p + "ln_1"), p + "attn_c_attn").split(gpt2.WIDTH, -1))
                keys, values = caches[i]
                keys.index_copy_(2, positions[0], k)
                values.index_copy_(2, positions[0], v)
                if mask is not None:
                    heads = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
                else:
                    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.linear(heads.transpose(1, 2).reshape(1, count, -1), p + "attn_c_proj")
                x = x + self.linear(F.gelu(self.linear(self.norm(x, p + "ln_2"), p + "mlp_c_fc"), approximate="tanh"), p + "mlp_c_proj")
            return F.linear(self.norm(x[:, -1:], "ln_f"), self.wte_weight)

    class Torch(Stepper):
        version = "PyTorch " + torch.__version__
        settings = f"{mode}, {kind}, KV cache of {room} places"

        def __init__(self):
            torch.set_num_threads(request["threads"])
            self.model = Gpt2(gpt2.read(request["model"])).eval()
            self.caches = [tuple(torch.zeros(1, H, room, D, dtype=dtype) for _ in "kv") for _ in range(gpt2.LAYERS)]
            if mode == "compile":
                from torch._inductor import config
                config.freezing = True
                self.call = torch.compile(self.model, dynamic=False)
            else:
                self.call = self.model

        def step(self, tokens, position):
            with torch.no_grad():
                ids, positions = torch.tensor([tokens]), torch.arange(position, position + len(tokens))[None]
                mask = None if position == 0 else (torch.arange(room) <= position).view(1, 1, 1, room)
                return self.call(ids, positions, mask, self.caches)[0, 0].float().numpy()

    return Torch()
