// RUN: gptc-opt %s -verify-diagnostics -split-input-file

// expected-error @+1 {{[kernel-C1] expected the body to end in gpt.return}}
gpt.kernel @no_return(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = gpt.silu %x : tensor<?x8xf32>
  llvm.unreachable
}

// -----

// expected-error @+1 {{[kernel-C2] expected to return ('tensor<?x8xf32>'), got ()}}
gpt.kernel @returns(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = gpt.silu %x : tensor<?x8xf32>
  // expected-note @+1 {{returned here}}
  gpt.return
}

// -----

// expected-error @+1 {{[kernel-C3] expected one op besides constants, got another one, gpt.silu}}
gpt.kernel @two(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-note @+1 {{the first one is here}}
  %0 = gpt.silu %x : tensor<?x8xf32>
  %1 = gpt.silu %0 : tensor<?x8xf32>
  gpt.return %1 : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{[kernel-C3] expected one op besides constants, got none}}
gpt.kernel @none(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  gpt.return %x : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{unknown attribute 'gpt.dim' on a kernel; did you mean 'gpt.dims'?}}
gpt.kernel @attribute(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {gpt.dim = []} {
  %0 = gpt.silu %x : tensor<?x8xf32>
  gpt.return %0 : tensor<?x8xf32>
}

// -----

func.func @no_kernel(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[call-C1] expected the name of a gpt.kernel, got @no_kernel}}
  gpt.call @no_kernel(%x) : (tensor<?x8xf32>) -> ()
  return
}

// -----

// expected-note @+1 {{the kernel is defined here}}
gpt.kernel @silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = gpt.silu %x : tensor<?x8xf32>
  gpt.return %0 : tensor<?x8xf32>
}
func.func @operands(%x: tensor<?x9xf32>) {
  // expected-error @+1 {{[call-C2] expected operands ('tensor<?x8xf32>'), got ('tensor<?x9xf32>')}}
  %0 = gpt.call @silu(%x) : (tensor<?x9xf32>) -> tensor<?x8xf32>
  return
}

// -----

// expected-note @+1 {{the kernel is defined here}}
gpt.kernel @silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = gpt.silu %x : tensor<?x8xf32>
  gpt.return %0 : tensor<?x8xf32>
}
func.func @results(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[call-C2] expected results ('tensor<?x8xf32>'), got ()}}
  gpt.call @silu(%x) : (tensor<?x8xf32>) -> ()
  return
}
