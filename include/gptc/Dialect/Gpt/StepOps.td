//===- StepOps.td - the KV cache and rotation of a step ----*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_STEPOPS
#define GPTC_DIALECT_GPT_STEPOPS

include "gptc/Dialect/Gpt/GptOpBase.td"

//===----------------------------------------------------------------------===//
// Stepping ops: the KV cache
//===----------------------------------------------------------------------===//

def Gpt_KVAppendOp : Gpt_PureOp<"kv_append", [AllTypesMatch<["cache", "result"]>, AllTypesMatch<["keys", "values"]>,
                                                 AllTypesMatch<["positions", "sequences"]>]> {
  let summary = "write keys and values of the step's tokens";
  let description = [{
    keys, values [Hkv, T, D]; token t goes to position positions[t] of sequence sequences[t].
    `%c1 = gpt.kv_append %c0, %k, %v at %pos, %seq layer 0 : !gpt.kv_cache<...>, tensor<3x?x64xf32>, tensor<?xi32>`
  }];
  let arguments = (ins Gpt_KVCacheType:$cache, Gpt_Tensor:$keys, Gpt_Tensor:$values, Gpt_Ids:$positions, Gpt_Ids:$sequences, I64Attr:$layer);
  let results = (outs Gpt_KVCacheType:$result);
  let assemblyFormat = [{
    $cache `,` $keys `,` $values `at` $positions `,` $sequences `layer` $layer attr-dict
    `:` qualified(type($cache)) `,` type($keys) `,` type($positions)
  }];
  let hasVerifier = 1;
}

def Gpt_KVReadOp : Gpt_PureOp<"kv_read", [AllTypesMatch<["keys", "values"]>]> {
  let summary = "keys and values of the one sequence that an unfused step runs";
  let description = [{
    [Hkv, S, D], positions 0 .. S - 1 in order. Only the unfused path has it: it runs a ragged batch sequence by sequence.
    `%k, %v = gpt.kv_read %c layer 0 : !gpt.kv_cache<...> -> tensor<3x?x64xf32>`
  }];
  let arguments = (ins Gpt_KVCacheType:$cache, I64Attr:$layer);
  let results = (outs Gpt_Tensor:$keys, Gpt_Tensor:$values);
  let assemblyFormat = "$cache `layer` $layer attr-dict `:` qualified(type($cache)) `->` type($keys)";
  let hasVerifier = 1;
}

def Gpt_RopeTableOp : Gpt_PureOp<"rope_table"> {
  let summary = "cosines and signed sines of every token's angles";
  let description = [{
    [T, 2, D]: row t holds cos by channel, then sin by channel with the sign that the channel's partner takes
    (minus for the first of a pair), so that y = x * cos + partner(x) * sin.
    `%cs = gpt.rope_table %pos <base 1.0e5, pairs half, dim 64> : tensor<?xi32> -> tensor<?x2x64xf32>`
  }];
  let arguments = (ins Gpt_Ids:$positions, Gpt_RopeAttr:$rope);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$positions $rope attr-dict `:` type($positions) `->` type($result)";
  let hasVerifier = 1;
}

def Gpt_RotateOp : Gpt_PureOp<"rotate", [AllTypesMatch<["x", "result"]>]> {
  let summary = "apply a rope_table to [H, T, D]";
  let description = [{
    `rotary` r: only the first r channels of a head rotate.
    `%r = gpt.rotate %x, %cs half : tensor<9x?x64xf32>, tensor<?x2x64xf32>`
    `%r = gpt.rotate %x, %cs half rotary 16 : tensor<9x?x64xf32>, tensor<?x2x64xf32>`
  }];
  let arguments = (ins Gpt_Tensor:$x, Gpt_Tensor:$table, Gpt_RopePairsAttr:$pairs, OptionalAttr<I64Attr>:$rotary);
  let results = (outs Gpt_Tensor:$result);
  let assemblyFormat = "$x `,` $table $pairs (`rotary` $rotary^)? attr-dict `:` type($x) `,` type($table)";
  let hasVerifier = 1;
}

#endif
