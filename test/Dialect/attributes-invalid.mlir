// RUN: gptc-opt %s -verify-diagnostics -split-input-file

// expected-error @+1 {{[rope-C1] expected a finite base above 1, got 1.0}}
func.func private @base() attributes {a = #gpt.rope<base 1.0, pairs half, dim 4>}

// -----

// An infinite base.
// expected-error @+1 {{[rope-C1] expected a finite base above 1, got 0x7FF0000000000000}}
func.func private @infinite() attributes {a = #gpt.rope<base 0x7FF0000000000000, pairs half, dim 4>}

// -----

// expected-error @+1 {{[rope-C2] expected an even dim between 2 and 1048576, got 63}}
func.func private @odd() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 63>}

// -----

// expected-error @+1 {{[rope-C2] expected an even dim between 2 and 1048576, got 0}}
func.func private @zero() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 0>}

// -----

// A dimension from which an array must not be made.
// expected-error @+1 {{[rope-C2] expected an even dim between 2 and 1048576, got 9223372036854775806}}
func.func private @huge() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 9223372036854775806>}

// -----

// expected-error @+1 {{[rope-C7] expected an even number of rotary channels between 2 and dim 4, got 6}}
func.func private @rotary() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 4, rotary 6>}

// -----

// expected-error @+1 {{[rope-C7] expected an even number of rotary channels between 2 and dim 4, got 3}}
func.func private @rotary_odd() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 4, rotary 3>}

// -----

// expected-error @+1 {{expected pairs half or adjacent, got both}}
func.func private @pairs() attributes {a = #gpt.rope<base 1.0e5, pairs both, dim 4>}

// -----

// expected-error @+1 {{[rope-C3] expected a finite factor of at least 1, got 0.5}}
func.func private @factor() attributes {a = #gpt.llama3<factor 0.5, low 1.0, high 4.0, original 8192>}

// -----

// expected-error @+1 {{[rope-C3] expected a finite high frequency factor above the low one, got 1.0}}
func.func private @high() attributes {a = #gpt.llama3<factor 8.0, low 1.0, high 1.0, original 8192>}

// -----

// expected-error @+1 {{[rope-C3] expected an original context of at least 1, got 0}}
func.func private @original() attributes {a = #gpt.llama3<factor 8.0, low 1.0, high 4.0, original 0>}

// -----

// expected-error @+1 {{[kv_cache-C1] expected page between 1 and 2147483647, got 0}}
func.func private @page(!gpt.kv_cache<2 x 3 x 4, page 0, f32>)

// -----

// expected-error @+1 {{[kv_cache-C1] expected heads between 1 and 2147483647, got -3}}
func.func private @cache_heads(!gpt.kv_cache<2 x -3 x 4, page 16, f32>)

// -----

// expected-error @+1 {{[kv_cache-C2] expected element type f32, bf16 or f16, got 'i8'}}
func.func private @element(!gpt.kv_cache<2 x 3 x 4, page 16, i8>)

// -----

// expected-error @+1 {{[attr-C1] unknown attribute 'gpt.contex' on a module; did you mean 'gpt.context'?}}
module attributes {gpt.contex = 32 : i64} {}

// -----

// expected-error @+1 {{[attr-C1] unknown attribute 'gpt.temperature' on a module; expected gpt.name, gpt.checkpoint,}}
module attributes {gpt.temperature = 1 : i64} {}

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.context' to be an i64 of at least 1, got 0 : i64}}
module attributes {gpt.context = 0 : i64} {}

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.eos' to be an i64 of at least 0, got -1 : i64}}
module attributes {gpt.eos = -1 : i64} {}

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.extra_ends' to be an array of i64 of at least 0}}
module attributes {gpt.extra_ends = array<i64: 1, -2>} {}

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.name' to be a string that is not empty, got ""}}
module attributes {gpt.name = ""} {}

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.stored' to be a #gpt.stored attribute, got "f"}}
ml_program.global private @w(#ml_program.extern : tensor<4xf32>) : tensor<4xf32> {gpt.stored = "f"}

// -----

// expected-error @+1 {{[attr-C1] unknown attribute 'gpt.storde' on a global; did you mean 'gpt.stored'?}}
ml_program.global private @w(#ml_program.extern : tensor<4xf32>) : tensor<4xf32> {gpt.storde = #gpt.stored<"f", "w", f32>}

// -----

// expected-error @+1 {{unknown attribute 'gpt.name' on 'func.func'; no gpt attribute stands there}}
func.func private @on_function() attributes {gpt.name = "x"}

// -----

// expected-error @+1 {{[attr-C1] unknown attribute 'gpt.results' on result 0; did you mean 'gpt.result'?}}
func.func private @on_result() -> (tensor<4xf32> {gpt.results = "logits"})

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.element' to be bf16 or f16, got f32}}
func.func private @element_of(tensor<4xf32> {gpt.element = f32})

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.element' to be bf16 or f16, got "bf16"}}
func.func private @element_of() -> (tensor<4xf32> {gpt.element = "bf16"})

// -----

// expected-error @+1 {{[attr-C2] expected 'gpt.storage' to be one of "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", got "q3"}}
func.func private @storage(tensor<4xf32> {gpt.storage = "q3"})

// -----

// expected-error @+1 {{[rope-C8] expected finite factors of at least 0.001, got 0.0}}
func.func private @zero_factor() attributes {a = #gpt.rope_factors<1.0, 0.0>}

// -----

// A frequency whose angles no sine is exact for.
// expected-error @+1 {{[rope-C8] expected finite factors of at least 0.001, got 1.0e-20}}
func.func private @tiny_factor() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 4, scaling #gpt.rope_factors<1.0e-20>>}

// -----

// expected-error @+1 {{[rope-C8] expected finite factors of at least 0.001, got 9.0e-4}}
func.func private @small_factor() attributes {a = #gpt.rope_factors<0.001, 0.0009>}

// -----

// expected-error @+1 {{[rope-C8] expected one factor or more, got none}}
func.func private @no_factor() attributes {a = #gpt.rope_factors<>}

// -----

// expected-error @+1 {{[rope-C8] expected one factor, or one for each of 2 frequencies, got 3}}
func.func private @factors() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 4, scaling #gpt.rope_factors<1.0, 2.0, 3.0>>}

// -----

// expected-error @+1 {{[rope-C8] expected the scaling #gpt.llama3 or #gpt.rope_factors, got 4 : i64}}
func.func private @scaling() attributes {a = #gpt.rope<base 1.0e5, pairs half, dim 4, scaling 4>}

// -----

// expected-error @+1 {{[stored-C1] expected the storage of a checkpoint, f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1 or q2_k to q6_k, got i8x4, which only packages have}}
func.func private @packed() attributes {a = #gpt.stored<"m.gguf", "w", i8x4>}

// -----

// expected-error @+1 {{[stored-C2] expected a weight that the host hands over to be f32, f16, bf16, q8_0, q4_0 or q4_1, got q4_k, which only files have}}
func.func private @handed() attributes {a = #gpt.stored<"", "w", q4_k>}

// -----

// expected-error @+1 {{[stored-C3] expected the name of a file in the folder of gpt.checkpoint, without a path, got "other/file"}}
func.func private @folder() attributes {a = #gpt.stored<"other/file", "w", f32>}

// -----

// expected-error @+1 {{[stored-C3] expected the name of a file in the folder of gpt.checkpoint, without a path, got "/etc/passwd"}}
func.func private @absolute() attributes {a = #gpt.stored<"/etc/passwd", "w", f32>}

// -----

// expected-error @+1 {{[stored-C3] expected the name of a file in the folder of gpt.checkpoint, without a path, got ".."}}
func.func private @above() attributes {a = #gpt.stored<"..", "w", f32>}

// -----

// expected-error @+1 {{[stored-C3] expected the name of a file in the folder of gpt.checkpoint, without a path, got "m\00.gguf"}}
func.func private @null() attributes {a = #gpt.stored<"m\00.gguf", "w", f32>}

// -----

// expected-error @+1 {{[stored-C3] expected a file name of at most 255 bytes, got 256}}
func.func private @long() attributes {a = #gpt.stored<"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "w", f32>}

// -----

// expected-error @+1 {{[stored-C4] expected the name of a tensor, got none}}
func.func private @nameless() attributes {a = #gpt.stored<"m.gguf", "", f32>}

// -----

// Nor of one that the host hands over.
// expected-error @+1 {{[stored-C4] expected the name of a tensor, got none}}
func.func private @nobody() attributes {a = #gpt.stored<"", "", f32>}
