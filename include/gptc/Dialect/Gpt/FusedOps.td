//===- FusedOps.td - what kernels compute ------------------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_FUSEDOPS
#define GPTC_DIALECT_GPT_FUSEDOPS

include "gptc/Dialect/Gpt/GptOpBase.td"

//===----------------------------------------------------------------------===//
// Fused ops: what kernels compute
//===----------------------------------------------------------------------===//

def Gpt_FusedGemmOp : Gpt_Op<"fused_gemm", [AttrSizedOperandSegments, AttrSizedResultSegments, SingleBlock,
                                            IsolatedFromAbove, RecursiveMemoryEffects,
                                            DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "one activation times one or several weights, each accumulator through an epilogue";
  let description = [{
    x [T, K]. *Sections* (default): weights are concatenated along N; section i has its own weight, optional bias, optional
    rope, region and destination. *Lanes* (`lanes`): weights have equal N and one region sees one accumulator of each.
    With `norm` the rows of x go through a layer_norm (also of a sample) or rms_norm with gamma (and beta) of [K] and eps first.

    Region arguments, all f32 scalars, in this order: one accumulator (sections) or one per weight (lanes), each with its
    bias added; then, if the section has a rope: the accumulator of the rotary partner channel, cos, signed sin
    (see rope_table); then one element of each residual. The region holds scalar arith, math and gpt ops and yields one
    value or several.

    A section with append = keys/values writes its first value to the cache (layer `layer`, position positions[t] of
    sequence sequences[t]). Every other value is a result [T, N_i], in order; then comes the cache if there is one.
    Residuals are [T, N], or [N] with the same numbers for every row; they stand beside one section or lanes only.
    ropes[i] is the pairing of section i or unit; the table is `rope_table` [T, 2, D], of whose heads the first `rotary`
    channels rotate, or all.

    With `argmax B` the values of the one section, or of lanes, are not written. Results are the largest of each B
    consecutive columns and its column, [T, P] each, P the number of such blocks; merge_argmax makes tokens of them.
    `%v, %c = gpt.fused_gemm %x : tensor<?x64xf32> argmax 128 section %w : tensor<300x64xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)`
  }];
  let arguments = (ins
    Gpt_Tensor:$x,
    Variadic<Gpt_Tensor>:$weights,
    Variadic<Gpt_Tensor>:$biases,          // as many as has_bias has true
    Variadic<Gpt_Tensor>:$residuals,
    Optional<Gpt_Tensor>:$rope_table,
    Optional<Gpt_Ids>:$positions,
    Optional<Gpt_Ids>:$sequences,
    Optional<Gpt_KVCacheType>:$cache,
    Optional<Gpt_Tensor>:$gamma,
    Optional<Gpt_Tensor>:$beta,
    UnitAttr:$lanes,
    DenseBoolArrayAttr:$in_out,            // one per weight: stored [in, out]
    DenseBoolArrayAttr:$has_bias,          // one per weight
    ArrayAttr:$ropes,                      // one per section: rope_pairs or unit
    ArrayAttr:$appends,                    // one per section: append
    OptionalAttr<I64Attr>:$layer,
    OptionalAttr<I64Attr>:$rotary,         // none: all channels of a head
    OptionalAttr<Gpt_NormKindAttr>:$norm,  // none: x as it is
    OptionalAttr<F64Attr>:$eps,            // of the norm
    OptionalAttr<I64Attr>:$argmax);        // none: all values are results
  let results = (outs Variadic<Gpt_Numbers>:$outputs, Optional<Gpt_KVCacheType>:$cache_result);
  let regions = (region VariadicRegion<SizedRegion<1>>:$epilogues);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t numSections() { return getEpilogues().size(); }
    /// Bias of weight i, or null.
    ::mlir::Value biasOf(unsigned i);
    /// Input features, and output features of weight i.
    int64_t inFeatures();
    int64_t outFeatures(unsigned i);
    /// The sum of the output features of all weights.
    int64_t allOutFeatures();
    /// The pairing of section i, if it has a rope.
    std::optional<::gptc::gpt::RopePairs> ropeOf(unsigned i);
    ::gptc::gpt::Append appendOf(unsigned i);
    /// How many values the epilogue of section i yields.
    unsigned numYields(unsigned i);
    /// How many tensor results section i has.
    unsigned numOutputs(unsigned i);
    /// Columns of the results: N_i, or the number of blocks of an argmax.
    int64_t outColumns(unsigned i);
    /// The tensor results of section i: its values, but the one that it appends; of an argmax, numbers and columns.
    ::mlir::ResultRange outputsOf(unsigned i);
    /// The first of them, or null.
    ::mlir::Value outputOf(unsigned i);
  }];
}

def Gpt_YieldOp : Gpt_PureOp<"yield", [Terminator, ReturnLike, HasParent<"FusedGemmOp">]> {
  let summary = "end of an epilogue";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Gpt_MergeArgmaxOp : Gpt_PureOp<"merge_argmax"> {
  let summary = "the column of a row's largest number, of the largest of its blocks";
  let description = [{
    result[t] = columns[t, p], p what gpt.argmax says of values[t, :]. The two are results of a fused_gemm with argmax.
    `%t = gpt.merge_argmax %v, %c : tensor<?x3xf32>, tensor<?x3xi32> -> tensor<?xi32>`
  }];
  let arguments = (ins Gpt_Tensor:$values, RankedTensorOf<[I32]>:$columns);
  let results = (outs Gpt_Ids:$result);
  let assemblyFormat = "$values `,` $columns attr-dict `:` type($values) `,` type($columns) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_FlashAttentionOp : Gpt_Op<"flash_attention", [AttrSizedOperandSegments, Pure]> {
  let summary = "softmax(scale * q k^T, masked) v without the score matrix (arXiv:2205.14135)";
  let description = [{
    Dense: q [H, Sq, D], k and v [H / groups, Sk, D], result [H, Sq, D]; causal is aligned bottom-right. Batch dimensions
    may stand before. Cached: q [T, H*D] of a ragged batch, keys and values of layer `layer` in the cache up to each
    token's own position, result [T, H*D]. A query that sees no key gives 0.

    A score is scale * q k^T, then softcap, then alibi (a slope for each head), then the masks in the order written (dense
    form only, as gpt.mask; `fill` is that of all boolean ones), then causal with its window; each as the graph op of that
    name says.
    `%o = gpt.flash_attention %q, %k, %v causal scale 0.125 groups 3 : ...`
    `%o = gpt.flash_attention %q, %k, %v mask %m causal window 256 scale 0.125 softcap 50.0 : ... mask tensor<?x?xf32>`
    `%o = gpt.flash_attention %q, %k, %v mask %m, %pad fill -1.0e9 scale 0.125 : ... mask tensor<?x?xf32>, tensor<?xi1>`
    `%o = gpt.flash_attention %q cache %c at %pos, %seq layer 0 causal scale 0.125 alibi [0.25, 0.5] : ...`
  }];
  let arguments = (ins Gpt_Tensor:$q, Optional<Gpt_Tensor>:$k, Optional<Gpt_Tensor>:$v, Optional<Gpt_KVCacheType>:$cache,
                       Optional<Gpt_Ids>:$positions, Optional<Gpt_Ids>:$sequences, Variadic<Gpt_Mask>:$masks,
                       OptionalAttr<I64Attr>:$layer, UnitAttr:$causal, OptionalAttr<I64Attr>:$window, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$softcap, OptionalAttr<DenseF64ArrayAttr>:$alibi,
                       OptionalAttr<F64Attr>:$fill, DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Gpt_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif
