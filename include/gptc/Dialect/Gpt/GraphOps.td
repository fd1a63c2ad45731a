//===- GraphOps.td - a model as a paper would write it -----*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_GRAPHOPS
#define GPTC_DIALECT_GPT_GRAPHOPS

include "gptc/Dialect/Gpt/GptOpBase.td"

//===----------------------------------------------------------------------===//
// Graph ops: tokens and positions
//===----------------------------------------------------------------------===//

def Gpt_EmbeddingOp : Gpt_PureOp<"embedding"> {
  let summary = "rows of a table";
  let description = [{
    result[t, :] = table[ids[t], :]. Also used for learned positions.
    `%x = gpt.embedding %wte, %tokens : tensor<257x64xf32>, tensor<?xi32> -> tensor<?x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$table, Gpt_Ids:$ids);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` type($table) `,` type($ids) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_PositionsOp : Gpt_PureOp<"positions", [SameOperandsAndResultType]> {
  let summary = "the positions 0, 1, ... of a sequence of tokens";
  let description = [{ `%pos = gpt.positions %tokens : tensor<?xi32>` }];
  let arguments = (ins Gpt_Ids:$ids);
  let results = (outs Gpt_Ids:$result);
  let assemblyFormat = "$ids attr-dict `:` type($ids)";
}

def Gpt_SelectRowsOp : Gpt_PureOp<"select_rows"> {
  let summary = "chosen rows of a sequence";
  let description = [{
    result[r, :] = x[rows[r], :]. Stepping puts it before the LM head so that only wanted rows are computed.
    `%y = gpt.select_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Ids:$rows);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `,` $rows attr-dict `:` type($x) `,` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Graph ops: linear algebra
//===----------------------------------------------------------------------===//

def Gpt_LinearOp : Gpt_PureOp<"linear"> {
  let summary = "y = x W^T + b";
  let description = [{
    Weights are [out, in]; with `in_out` they are [in, out] (GPT-2's Conv1D). Leading dimensions of x are rows.
    `%y = gpt.linear %x, %w bias %b in_out : tensor<?x64xf32>, tensor<64x192xf32>, tensor<192xf32> -> tensor<?x192xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$weight, Optional<Gpt_Tensor>:$bias, UnitAttr:$in_out);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` $bias^)? (`in_out` $in_out^)? attr-dict
    `:` type($x) `,` type($weight) (`,` type($bias)^)? `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Input and output features.
    int64_t inFeatures() { return getWeight().getType().getDimSize(getInOut() ? 0 : 1); }
    int64_t outFeatures() { return getWeight().getType().getDimSize(getInOut() ? 1 : 0); }
  }];
}

def Gpt_MatmulOp : Gpt_PureOp<"matmul"> {
  let summary = "product of two activations, head by head";
  let description = [{
    a [H, M, K], b [H / groups, K, N] ([H / groups, N, K] with transpose_b), result [H, M, N]. Head h of a meets head
    h / groups of b (grouped-query attention, arXiv:2305.13245). More leading batch dimensions must be equal.
    `%s = gpt.matmul %q, %k transpose_b groups 3 : tensor<9x?x64xf32>, tensor<3x?x64xf32> -> tensor<9x?x?xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$a, Gpt_Tensor:$b, UnitAttr:$transpose_b, DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_b` $transpose_b^)? (`groups` $groups^)? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Gpt_SplitOp : Gpt_PureOp<"split"> {
  let summary = "cut the last dimension into consecutive parts";
  let description = [{
    `%q, %k, %v = gpt.split %qkv : tensor<?x192xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Variadic<Gpt_Tensor>:$parts);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($parts)";
  let hasVerifier = 1;
}

def Gpt_SplitHeadsOp : Gpt_PureOp<"split_heads"> {
  let summary = "[T, H*D] to [H, T, D]";
  let description = [{ `%h = gpt.split_heads %q : tensor<?x576xf32> -> tensor<9x?x64xf32>` Leading batch dimensions stay in front. }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Gpt_MergeHeadsOp : Gpt_PureOp<"merge_heads"> {
  let summary = "[H, T, D] to [T, H*D]";
  let description = [{ `%c = gpt.merge_heads %o : tensor<9x?x64xf32> -> tensor<?x576xf32>` }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Gpt_HeadPartOp : Gpt_PureOp<"head_part"> {
  let summary = "the same part of every head of a packed weight or bias";
  let description = [{
    Dimension `axis` is cut into heads of `of` indices; of each, `take` indices from `from` on are kept, in order. So the
    queries of a projection that packs q, k and v head by head (GPT-NeoX, BLOOM, Falcon) are a weight of their own.
    `%wq = gpt.head_part %w axis 0 from 0 take 16 of 48 : tensor<192x64xf32> -> tensor<64x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, I64Attr:$axis, I64Attr:$from, I64Attr:$take, I64Attr:$of);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `axis` $axis `from` $from `take` $take `of` $of attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Graph ops: norms, activations, attention pieces
//===----------------------------------------------------------------------===//

def Gpt_LayerNormOp : Gpt_PureOp<"layer_norm"> {
  let summary = "layer normalisation over the last dimension (arXiv:1607.06450)";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * gamma + beta, var the mean of squared deviations.
    `%n = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>`

    With `sample` as The Annotated Transformer has it: y = (x - mean) / (std + eps) * gamma + beta, std the sample standard
    deviation, whose sum of squared deviations is divided by one less than their number.
    `%n = gpt.layer_norm %x, %a, %b sample eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$gamma, Optional<Gpt_Tensor>:$beta, F64Attr:$eps, UnitAttr:$sample);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// As the norm of a fused_gemm.
    ::gptc::gpt::NormKind kind() { return getSample() ? NormKind::Sample : NormKind::Layer; }
  }];
}

def Gpt_RmsNormOp : Gpt_PureOp<"rms_norm"> {
  let summary = "root-mean-square normalisation over the last dimension (arXiv:1910.07467)";
  let description = [{
    y = x / sqrt(mean(x^2) + eps) * gamma. `%n = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x576xf32>, tensor<576xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$gamma, F64Attr:$eps);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_RopeOp : Gpt_PureOp<"rope", [AllTypesMatch<["x", "result"]>]> {
  let summary = "rotary position embedding of every head";
  let description = [{
    x [H, T, D]; pair (a, b) of channels becomes (a cos - b sin, b cos + a sin), the angle position * inverse frequency
    computed in double from the integer position.
    `%r = gpt.rope %x, %pos <base 1.0e5, pairs half, dim 64> : tensor<9x?x64xf32>, tensor<?xi32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Ids:$positions, Gpt_RopeAttr:$rope);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `,` $positions $rope attr-dict `:` type($x) `,` type($positions)";
  let hasVerifier = 1;
}

def Gpt_ScaleOp : Gpt_PureOp<"scale", [SameOperandsAndResultType]> {
  let summary = "every element times a constant";
  let description = [{ The factor is rounded to f32 once. `%ss = gpt.scale %s by 0.125 : tensor<9x?x?xf32>` }];
  let arguments = (ins Gpt_Tensor:$x, F64Attr:$factor);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_BroadcastOp : Gpt_PureOp<"broadcast"> {
  let summary = "the same numbers along further dimensions";
  let description = [{
    The dimensions of x are the last ones of the result, each equal or 1, which serves all. `like` gives the sizes only:
    those of one tensor, or those that several have together in the same sense.
    `%t = gpt.broadcast %temperature like %s : tensor<1x1xf32>, tensor<9x?x?xf32> -> tensor<9x?x?xf32>`
    `%i = gpt.broadcast %rows like %rows, %columns : tensor<?x1xi32>, tensor<?x1xi32>, tensor<?xi32> -> tensor<?x?xi32>`
  }];
  let arguments = (ins Gpt_Words:$x, Variadic<Gpt_Words>:$like);
  let results = (outs Gpt_Words:$result);
  let assemblyFormat = "$x `like` $like attr-dict `:` type($x) `,` type($like) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_SoftcapOp : Gpt_PureOp<"softcap", [SameOperandsAndResultType]> {
  let summary = "cap * tanh(x / cap), of a tensor or of a scalar in an epilogue (Gemma 2, arXiv:2408.00118)";
  let description = [{ `%c = gpt.softcap %s at 50.0 : tensor<8x?x?xf32>` }];
  let arguments = (ins Gpt_Elementwise:$x, F64Attr:$cap);
  let results = (outs Gpt_Elementwise:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_AlibiOp : Gpt_PureOp<"alibi", [SameOperandsAndResultType]> {
  let summary = "a penalty for distance, linear with a slope for each head (arXiv:2108.12409)";
  let description = [{
    s [..., H, Sq, Sk], aligned bottom-right as causal_mask: score (h, i, j) gets slopes[h] * (j - (i + Sk - Sq)) more.
    `%b = gpt.alibi %s slopes [0.0625, 0.00390625] : tensor<2x?x?xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$s, DenseF64ArrayAttr:$slopes);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_CausalMaskOp : Gpt_PureOp<"causal_mask", [SameOperandsAndResultType]> {
  let summary = "hide later keys from earlier queries, and keys further back than a window";
  let description = [{
    s [..., Sq, Sk], aligned bottom-right: score (i, j) becomes -inf when j > i + Sk - Sq; with `window` w also when
    j <= i + Sk - Sq - w, so that a query sees w keys, its own included.
    `%m = gpt.causal_mask %s window 256 : tensor<9x?x?xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$s, OptionalAttr<I64Attr>:$window);
  let results = (outs Gpt_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$s),
                            [{ build($_builder, $_state, type, s, ::mlir::IntegerAttr()); }]>];
  let assemblyFormat = "$s (`window` $window^)? attr-dict `:` type($s)";
  let hasVerifier = 1;
}

def Gpt_MaskOp : Gpt_PureOp<"mask", [AllTypesMatch<["s", "result"]>]> {
  let summary = "hide keys by an additive (f32) or boolean (i1, true = visible) mask";
  let description = [{
    s [..., Sq, Sk]; the mask's dimensions are the last ones of s, each equal or 1: [Sq, Sk] for all heads, [Sk] or
    [1, Sk] for keys that are padding. A hidden score becomes -inf, or the number after `fill` (boolean masks only).
    `%m = gpt.mask %s, %k : tensor<9x?x?xf32>, tensor<?x?xf32>`
    `%m = gpt.mask %s, %k fill -1.0e9 : tensor<9x?x?xf32>, tensor<?xi1>`
  }];
  let arguments = (ins Gpt_Tensor:$s, Gpt_Mask:$mask, OptionalAttr<F64Attr>:$fill);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Gpt_SoftmaxOp : Gpt_PureOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "softmax over the last dimension; a row with every key hidden is 0";
  let description = [{ `%p = gpt.softmax %m : tensor<9x?x?xf32>` }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Gpt_LogSoftmaxOp : Gpt_PureOp<"log_softmax", [SameOperandsAndResultType]> {
  let summary = "logarithm of the softmax over the last dimension";
  let description = [{
    Log-probabilities of logits; finite where a probability is too small for f32.
    `%l = gpt.log_softmax %logits : tensor<?x50257xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Gpt_ArgmaxOp : Gpt_PureOp<"argmax"> {
  let summary = "index of the largest number along the last dimension, the lowest of equal ones";
  let description = [{ `%t = gpt.argmax %logits : tensor<?x50257xf32> -> tensor<?xi32>` }];
  let arguments = (ins Gpt_Tensor:$x);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_GeluOp : Gpt_PureOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "GELU, of a tensor or of a scalar in an epilogue";
  let description = [{ `%y = gpt.gelu tanh %x : tensor<?x256xf32>` }];
  let arguments = (ins Gpt_Elementwise:$x, Gpt_GeluKindAttr:$kind);
  let results = (outs Gpt_Elementwise:$result);
  let assemblyFormat = "`` $kind $x attr-dict `:` type($x)";
}

def Gpt_SiluOp : Gpt_PureOp<"silu", [SameOperandsAndResultType]> {
  let summary = "x * sigmoid(x), of a tensor or of a scalar in an epilogue";
  let description = [{ `%y = gpt.silu %x : tensor<?x1536xf32>` }];
  let arguments = (ins Gpt_Elementwise:$x);
  let results = (outs Gpt_Elementwise:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Gpt_DropoutOp : Gpt_PureOp<"dropout", [SameOperandsAndResultType]> {
  let summary = "dropout as the training graph has it; the identity at inference";
  let description = [{ `%y = gpt.dropout %x p 0.1 : tensor<?x64xf32>` }];
  let arguments = (ins Gpt_Tensor:$x, F64Attr:$p);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif
