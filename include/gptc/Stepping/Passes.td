//===- Passes.td - passes of the Stepping room -------------*- tablegen -*-===//
#ifndef GPTC_STEPPING_PASSES
#define GPTC_STEPPING_PASSES

include "mlir/Pass/PassBase.td"

def RemoveDropout : Pass<"gpt-remove-dropout"> {
  let summary = "drop dropout: it is the identity at inference";
  let description = [{
    ```mlir
    %y = gpt.dropout %x p 0.1 : tensor<?x64xf32>   // every use of %y becomes %x
    ```
  }];
  let statistics = [Statistic<"numRemoved", "dropouts-removed", "Number of dropouts removed">];
}

def CanonicalizeAttention : Pass<"gpt-canonicalize-attention"> {
  let summary = "bring every spelling of attention's scale, masks and softcap into one";
  let description = [{
    Only between a product with `transpose_b` and a softmax, where no value has another user. Constant factors of
    queries and keys go to the product, through `rope` and `split_heads`; a factor known when running goes to the
    queries; `arith` on scores becomes `scale`, `softcap` and `mask`; a constant mask, or one that compares positions, that is exactly the causal one
    becomes `causal_mask`; a mask that is computed along scores takes its sizes of its own parts. Numbers change by rounding at most, and not at all by factors that are powers of two.

    ```mlir
    %q2 = arith.mulf %q, %half : tensor<9x?x64xf32>
    %s = gpt.matmul %q2, %k transpose_b : ...
    // becomes
    %s = gpt.matmul %q, %k transpose_b : ...
    %t = gpt.scale %s by 0.5 : tensor<9x?x?xf32>
    ```
  }];
  let statistics = [Statistic<"numChanged", "ops-rewritten", "Number of ops on scores brought into their one spelling">];
  let dependentDialects = ["::gptc::gpt::GptDialect", "::mlir::arith::ArithDialect"];
}

def DeriveStep : Pass<"gpt-derive-step", "::mlir::ModuleOp"> {
  let summary = "derive the stepping entry (ragged batch, KV cache) from the stateless @forward";
  let description = [{
    `@forward(tokens) -> logits` becomes `@step(tokens, positions, sequences, rows, cache) -> (logits, cache)`. Keys
    and values of every causal attention over the function's own tokens are appended to the cache and read back
    from it, `gpt.positions` becomes the positions argument, and the results are computed for the wanted rows only. A
    function where some op mixes tokens in another way stays as it is, an entry with named tensors.

    ```mlir
    %c1 = gpt.kv_append %c0, %k, %v at %positions, %sequences layer 0 : ...
    %K, %V = gpt.kv_read %c1 layer 0 : ...
    %s = gpt.matmul %q, %K transpose_b : ...
    ```
  }];
  let options = [
    Option<"pageSize", "page-size", "int64_t", "64", "Positions in a page of the KV cache">,
    Option<"element", "element", "std::string", "\"f32\"", "Element of the KV cache: f32, bf16 or f16">
  ];
  let statistics = [Statistic<"numLayers", "layers-stepped", "Number of attention layers moved onto the KV cache">];
  let dependentDialects = ["::gptc::gpt::GptDialect"];
}

def LowerRope : Pass<"gpt-lower-rope"> {
  let summary = "compute the angles of a rotary embedding once, for every head and layer";
  let description = [{
    ```mlir
    %r = gpt.rope %x, %pos #rope
    // becomes (equal tables are then merged by cse)
    %cs = gpt.rope_table %pos #rope
    %r = gpt.rotate %x, %cs half
    ```
  }];
  let statistics = [Statistic<"numLowered", "ropes-lowered", "Number of rope ops lowered">];
  let dependentDialects = ["::gptc::gpt::GptDialect"];
}

#endif
