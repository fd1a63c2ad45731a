"""Attention in the cases of public bug reports, B01 to B07, with their numbers, for any target, level and precision: functions that a test
compiles together (cases.check_all), and a model whose cache holds what must not be seen."""
import numpy as np

from attention_graphs import CAUSAL, attention_text, inf, one_head
from cases import Case, tensor
from harness import compiled, written
from package import Package

LENGTHS = (1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 1023, 1025, 4095)
HEAD_SIZES = (1, 8, 40, 46, 64, 72, 80, 88, 96, 100, 112, 128, 160, 192, 256)
GROUPS = ((6, 2), (8, 1), (12, 2), (32, 8), (12, 3), (4, 4))


def case(test, heads, kv_heads, sq, sk, d, middle, check, more=None):
    inputs = {"q": tensor((heads, sq, d)), "k": tensor((kv_heads, sk, d)), "v": tensor((kv_heads, sk, d)), **(more or {})}

    def checked(entry):
        test.fused(entry, entry.level)
        check(lambda **arrays: entry(**arrays)["out"])
    return Case(inputs, {}, attention_text(heads, kv_heads, sq, sk, d, middle, last="%m" if "%m =" in middle else "%s"), {"out": tensor((heads, sq, d))}, checked)


def causal_is_aligned_bottom_right(test):  # B01
    def check(run):
        for sq, sk in (2, 5), (1, 5), (5, 5), (5, 2), (3, 128), (64, 65), (65, 64), (127, 129):
            got = run(q=np.zeros((1, sq, 1)), k=np.ones((1, sk, 1)), v=np.arange(sk).reshape(1, sk, 1))
            test.close(got.ravel(), [max(i + sk - sq, 0) / 2 for i in range(sq)])
    return [case(test, 1, 1, "?", "?", 1, CAUSAL, check)]


def lengths_that_are_no_tiles(test):  # B02 a, b
    def check(run):
        for sk in LENGTHS:
            for sq in (1, min(sk, 65)):
                q, ones = np.zeros((1, sq, 1)), np.ones((1, sk, 1))
                test.close(run(q=q, k=ones, v=ones), np.ones((1, sq, 1)), 1e-6)
                test.close(run(q=q - 40, k=ones, v=ones), np.ones((1, sq, 1)), 1e-6)
    return [case(test, 1, 1, "?", "?", 1, "", check)]


def hidden_rows_and_tiles(test):  # B03
    def of(boolean):
        def check(run):
            def hidden(mask):
                mask = np.array(mask)
                sq, sk = mask.shape
                given = mask if boolean else np.where(mask, 0, -inf)
                return run(q=np.zeros((1, sq, 1)), k=np.ones((1, sk, 1)), v=np.arange(sk).reshape(1, sk, 1), mask=given).ravel()
            test.close(hidden([[True] * 3, [False] * 3, [True] * 3]), [1, 0, 1])
            test.close(hidden(np.arange(128)[None] >= 64), [95.5])
            test.close(hidden(np.arange(65)[None] == 64), [64])
        kind = tensor(("?", "?"), "i1" if boolean else "f32")
        return case(test, 1, 1, "?", "?", 1, "    %m = gpt.mask %s, %mask : !s, " + kind, check, {"mask": kind})
    return [of(False), of(True)]


def scores_out_of_range(test, precision):  # B05
    def narrow(run):
        if precision != "f16":  # 133120 is no f16
            big = np.full((1, 1, 64), 133120)
            test.assertTrue(np.all(run(q=big, k=big, v=big) == 133120))
            # Scores 1e4 apart.
            one = np.eye(64)[:1, None]
            got = run(q=8e4 * one, k=np.concatenate([0 * one, one, -one], 1), v=np.ones(64) * [[[3], [7], [5]]])
            test.assertEqual(np.unique(got).tolist(), [7])
        # A number of all precisions but bf16, which rounds it to 59904; no sum is above it.
        got = run(q=np.ones((1, 1, 64)), k=np.ones((1, 4, 64)), v=np.full((1, 4, 64), 60000))
        test.assertTrue(np.all(got == (59904 if precision == "bf16" else 60000)), got)

    def wide(run):  # products of 8388608, 741455 once scaled
        keys = np.full((1, 2, 128), 256)
        test.close(run(q=np.full((1, 1, 128), 256), k=keys, v=keys * 0 + [[1], [3]]), np.full((1, 1, 128), 2.0))
    return [case(test, 1, 1, "?", "?", d, f"    %m = gpt.scale %s by {d ** -0.5!r} : !s", check) for d, check in ((64, narrow), (128, wide))]


def head_sizes(test, precision, sizes):  # B06
    within = {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}[precision]

    def of(d):
        def check(run):
            k = np.stack([np.full(d, d ** -0.5), np.zeros(d)])[None]
            v = np.stack([np.zeros(d), np.ones(d)])[None]
            # V is 1 and 0 the other way round, so that padding would show too.
            test.close(run(q=np.ones((1, 1, d)), k=k, v=v), np.full((1, 1, d), 1 - 0.7310586), within)
            test.close(run(q=np.ones((1, 1, d)), k=k, v=1 - v), np.full((1, 1, d), 0.7310586), within)
        return case(test, 1, 1, 1, 2, d, f"    %m = gpt.scale %s by {d ** -0.5!r} : !s", check)
    return [of(d) for d in sizes]


def groups(test, pairs):  # B07
    def of(heads, kv_heads):
        def check(run):
            got = run(q=np.zeros((heads, 1, 1)), k=np.zeros((kv_heads, 1, 1)), v=np.arange(1, kv_heads + 1).reshape(-1, 1, 1))
            test.assertEqual(got.ravel().tolist(), [h // (heads // kv_heads) + 1 for h in range(heads)])
        return case(test, heads, kv_heads, 1, 1, 1, "", check)
    return [of(*pair) for pair in pairs]


def reports(test, level=2, precision="f32"):
    """Every case; of head sizes and groups a few at -O0, whose loops know none, and of head sizes in bf16, which has the kernels of f16."""
    few = level == 0
    sizes = (46, 96) if few else (8, 46, 72, 100, 192, 256) if precision == "bf16" else HEAD_SIZES
    return [*causal_is_aligned_bottom_right(test), *lengths_that_are_no_tiles(test), *hidden_rows_and_tiles(test), *scores_out_of_range(test, precision),
            *head_sizes(test, precision, sizes), *groups(test, ((6, 2), (12, 3)) if few else GROUPS)]


def stale_keys(test, level, *options):
    """B02 d: what pages held before a sequence was cut back, NaN and infinity, enters no sum; the mean of the values 0, 1 and 2 is 1."""
    # Tokens 0, 1 and 2 are their numbers; 3 and 4 are what must not be seen.
    one = np.eye(16, dtype=np.float32)
    weights = {"emb": np.repeat(np.float32([[0], [1], [2], [np.nan], [inf]]), 16, 1), "wq": 0 * one, "wk": one, "wv": one, "head": one[:5]}
    with Package(compiled(written(one_head("stale", 256, 5, 16)), level, *options)).open(weights) as model, model.session(sequences=2, pages=4) as session:
        for bad in ([3] * 100 + [4] * 28, [4, 3] * 64):
            for sequence in (0, 1):  # pages go from one sequence to the other
                session.step(bad, sequences=[sequence] * 128, rows=[])
                logits = session.step([0, 1, 2], sequences=[sequence] * 3)
                test.close(logits, np.repeat([[0], [0.5], [1]], 5, 1), 1e-6)
                test.close(session.step([0], positions=[3], sequences=[sequence]), np.full((1, 5), 0.75), 1e-6)
                # Many tokens go another way there; they end in the middle of a page.
                session.step(bad, sequences=[sequence] * 128, rows=[])
                for rows, means in ((98, 99), [[98 / 99], [1]]), (range(1, 100, 2), [[1]] * 50):
                    logits = session.step([0, 2] * 50, sequences=[sequence] * 100, rows=rows)
                    test.close(logits, np.repeat(means, 5, 1), 1e-6)
