//===- GptDialect.td - the gpt dialect ---------------------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_DIALECT
#define GPTC_DIALECT_GPT_DIALECT

include "mlir/IR/OpBase.td"

def Gpt_Dialect : Dialect {
  let name = "gpt";
  let cppNamespace = "::gptc::gpt";
  let summary = "what GPTs say: embeddings, attention, norms, and the fused kernels made of them";
  let description = [{
    Graph ops write a model as a paper would; fused ops are what kernels compute. Sequences are packed [T, C], heads
    [H, T, D], weights `ml_program.global`s with a `gpt.stored` attribute. docs/Semantics.md defines every op.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::ml_program::MLProgramDialect",
                           "::mlir::func::FuncDialect", "::mlir::math::MathDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif
