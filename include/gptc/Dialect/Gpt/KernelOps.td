//===- KernelOps.td - outlined kernels and their calls -----*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_KERNELOPS
#define GPTC_DIALECT_GPT_KERNELOPS

include "gptc/Dialect/Gpt/GptOpBase.td"

//===----------------------------------------------------------------------===//
// Kernels: outlined, de-duplicated, called in a straight line
//===----------------------------------------------------------------------===//

def Gpt_KernelOp : Gpt_Op<"kernel", [IsolatedFromAbove, FunctionOpInterface, Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "one generated kernel: a single op (besides constants) and its schedule";
  let description = [{
    Arguments are the op's operands in order; weight arguments carry `gpt.storage` (a string attribute). Results are the op's.
    An argument or result that a GPU keeps in 16 bits carries `gpt.element`, bf16 or f16; gpt-narrow-values sets it.
    `gpt.kernel @gemm_k64_n192_bias(%x: tensor<?x64xf32>, %w: tensor<192x64xf32> {gpt.storage = "f32"}) -> tensor<?x192xf32> { ... }`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The op that the kernel computes (the only one besides constants and the terminator).
    ::mlir::Operation *kernelOp();
  }];
}

def Gpt_ReturnOp : Gpt_PureOp<"return", [Terminator, ReturnLike, HasParent<"KernelOp">]> {
  let summary = "end of a kernel";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Gpt_CallOp : Gpt_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call of a kernel";
  let description = [{
    `layer`: the layer of the KV cache that the kernel works on (its body says layer 0, so that one kernel serves all).
    `%y = gpt.call @gemm_k64_n192_bias(%x, %w) : (tensor<?x64xf32>, tensor<192x64xf32>) -> tensor<?x192xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$args, OptionalAttr<I64Attr>:$layer);
  let results = (outs Variadic<AnyType>:$outs);
  let assemblyFormat = "$kernel `(` $args `)` attr-dict `:` functional-type($args, $outs)";
}

#endif
