//===- GptTypes.td - types of the gpt dialect --------------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_TYPES
#define GPTC_DIALECT_GPT_TYPES

include "mlir/IR/AttrTypeBase.td"
include "gptc/Dialect/Gpt/GptDialect.td"

def Gpt_KVCacheType : TypeDef<Gpt_Dialect, "KVCache"> {
  let mnemonic = "kv_cache";
  let summary = "paged keys and values of every layer, threaded through SSA and written in place";
  let description = [{
    `!gpt.kv_cache<30 x 3 x 64, page 64, f32>`: layers x KV heads x head size. A page holds `page` consecutive positions
    counted from 0; it is attention's key block. Elements are kept as f32, bf16 or f16. A value of this type has one user that writes it.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$headDim, "int64_t":$page, "::mlir::Type":$element);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
