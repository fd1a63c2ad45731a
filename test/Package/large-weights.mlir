// REQUIRES: gptc
// Weights never lie in the object, where more than 2 GiB would be too far away for the linker's relocations, but in a file beside it:
// the library stays small, offsets go past 2^32.
// RUN: rm -rf %t.cpu && gptc %s -o %t.cpu --no-weights
// RUN: FileCheck %s < %t.cpu/manifest.json
// RUN: %python -c "import os, sys; sys.exit(max(os.path.getsize(os.path.join(sys.argv[1], f)) for f in os.listdir(sys.argv[1])) > 1 << 20)" %t.cpu
module attributes {gpt.name = "large"} {
  ml_program.global private @first(#ml_program.extern) : tensor<65536x8192xf32> {gpt.stored = #gpt.stored<"", "first", f32>}
  ml_program.global private @second(#ml_program.extern) : tensor<65536x8192xf32> {gpt.stored = #gpt.stored<"", "second", f32>}
  ml_program.global private @third(#ml_program.extern) : tensor<16x8192xf32> {gpt.stored = #gpt.stored<"", "third", f32>}
  func.func @f(%x: tensor<?x8192xf32>) -> (tensor<?x65536xf32>, tensor<?x65536xf32>, tensor<?x16xf32>) {
    %a = ml_program.global_load_const @first : tensor<65536x8192xf32>
    %b = ml_program.global_load_const @second : tensor<65536x8192xf32>
    %c = ml_program.global_load_const @third : tensor<16x8192xf32>
    %p = gpt.linear %x, %a : tensor<?x8192xf32>, tensor<65536x8192xf32> -> tensor<?x65536xf32>
    %q = gpt.linear %x, %b : tensor<?x8192xf32>, tensor<65536x8192xf32> -> tensor<?x65536xf32>
    %r = gpt.linear %x, %c : tensor<?x8192xf32>, tensor<16x8192xf32> -> tensor<?x16xf32>
    return %p, %q, %r : tensor<?x65536xf32>, tensor<?x65536xf32>, tensor<?x16xf32>
  }
}

// CHECK: "name": "second",
// CHECK: "offset": 2147483712,
// CHECK-NEXT: "bytes": 2147483648
// CHECK: "name": "third",
// CHECK: "offset": 4294967360,
