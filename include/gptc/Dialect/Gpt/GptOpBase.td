//===- GptOpBase.td - what every file of ops includes ------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_OPBASE
#define GPTC_DIALECT_GPT_OPBASE

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "gptc/Dialect/Gpt/GptAttrs.td"
include "gptc/Dialect/Gpt/GptTypes.td"

// Ranked float tensors (f32 here); leading dimensions may be dynamic.
def Gpt_Tensor : RankedTensorOf<[F32]>;
def Gpt_Ids : 1DTensorOf<[I32]>;
def Gpt_Mask : RankedTensorOf<[F32, I1]>;
def Gpt_Numbers : RankedTensorOf<[F32, I32]>;
def Gpt_Words : RankedTensorOf<[F32, I32, I1]>;
def Gpt_Elementwise : AnyTypeOf<[F32, RankedTensorOf<[F32]>]>;

class Gpt_Op<string mnemonic, list<Trait> traits = []> : Op<Gpt_Dialect, mnemonic, traits>;
class Gpt_PureOp<string mnemonic, list<Trait> traits = []> : Gpt_Op<mnemonic, !listconcat([Pure], traits)>;

#endif
