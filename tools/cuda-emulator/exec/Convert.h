// What the files of cvt share.
#ifndef GPTC_CUDA_EMULATOR_EXEC_CONVERT_H
#define GPTC_CUDA_EMULATOR_EXEC_CONVERT_H

#include "Lanes.h"

namespace emu::EMU_LEVEL {

enum ConvertFlag : uint8_t { Saturate = 1, Relu = 2 }; // of Op::mode

// A handler of its own for what most kernels convert, or null.
Handler commonConversion(const Statement &s, Ty to, Ty from, int wideFrom,
                         int wideTo);
// cvt of two f32 to a pair of f16 or bf16.
bool buildPairConversion(Builder &b, const Statement &s, Ty to, Op &op);

} // namespace emu::EMU_LEVEL

#endif // GPTC_CUDA_EMULATOR_EXEC_CONVERT_H
