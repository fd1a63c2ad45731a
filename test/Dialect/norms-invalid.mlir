// RUN: gptc-opt %s -verify-diagnostics -split-input-file

func.func @dynamic(%x: tensor<4x?xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[layer_norm-C1] expected a static last dimension of at least 1, got 'tensor<4x?xf32>'}}
  %0 = gpt.layer_norm %x, %g eps 1.0e-5 : tensor<4x?xf32>, tensor<8xf32>
  return
}

// -----

func.func @gamma(%x: tensor<?x8xf32>, %g: tensor<9xf32>) {
  // expected-error @+1 {{[rms_norm-C2] expected gamma of shape [8], got 'tensor<9xf32>'}}
  %0 = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<?x8xf32>, tensor<9xf32>
  return
}

// -----

func.func @beta(%x: tensor<?x8xf32>, %g: tensor<8xf32>, %b: tensor<8x1xf32>) {
  // expected-error @+1 {{[layer_norm-C2] expected beta of shape [8], got 'tensor<8x1xf32>'}}
  %0 = gpt.layer_norm %x, %g, %b eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @result(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[rms_norm-C3] expected a result of x's type 'tensor<?x8xf32>', got 'tensor<4x8xf32>'}}
  %0 = "gpt.rms_norm"(%x, %g) {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @eps_negative(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[rms_norm-C4] expected an eps from 1.2e-38 to 3.4e38, got -1.0e-5}}
  %0 = gpt.rms_norm %x, %g eps -1.0e-5 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @eps_nan(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[layer_norm-C4] expected an eps from 1.2e-38 to 3.4e38, got 0x7FF8000000000000}}
  %0 = gpt.layer_norm %x, %g eps 0x7FF8000000000000 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @eps_integer(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+2 {{unexpected decimal integer literal for a floating point value}}
  // expected-note @+1 {{add a trailing dot to make the literal a float}}
  %0 = gpt.layer_norm %x, %g eps 1 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @operands(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expected 2 operands, but found 3}}
  %0 = gpt.rms_norm %x, %g, %g eps 1.0e-5 : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[dropout-C1] expected p of at least 0 and below 1, got 1.0}}
  %0 = gpt.dropout %x p 1.0 : tensor<?x8xf32>
  return
}

// -----

func.func @gelu(%x: tensor<?x8xf32>) {
  // expected-error @+2 {{GeluKind to be one of: erf, tanh, quick}}
  // expected-error @+1 {{failed to parse}}
  %0 = gpt.gelu exact %x : tensor<?x8xf32>
  return
}

// -----

func.func @scale(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[scale-C1] expected a factor that is finite in f32, got 1.0e39}}
  %0 = gpt.scale %x by 1.0e39 : tensor<?x8xf32>
  return
}

// -----

func.func @rms_dynamic(%x: tensor<4x0xf32>, %g: tensor<0xf32>) {
  // expected-error @+1 {{[rms_norm-C1] expected a static last dimension of at least 1, got 'tensor<4x0xf32>'}}
  %0 = gpt.rms_norm %x, %g eps 1.0e-5 : tensor<4x0xf32>, tensor<0xf32>
  return
}

// -----

func.func @layer_result(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[layer_norm-C3] expected a result of x's type 'tensor<?x8xf32>', got 'tensor<4x8xf32>'}}
  %0 = "gpt.layer_norm"(%x, %g) {eps = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @eps_is_zero_in_f32(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[rms_norm-C4] expected an eps from 1.2e-38 to 3.4e38, got 1.0e-300}}
  %0 = gpt.rms_norm %x, %g eps 1.0e-300 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

// A denormal number: its reciprocal is infinite.
func.func @eps_is_denormal(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{[layer_norm-C4] expected an eps from 1.2e-38 to 3.4e38, got 1.0e-40}}
  %0 = gpt.layer_norm %x, %g sample eps 1.0e-40 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @cap_is_denormal(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[softcap-C1] expected a cap from 1.2e-38 to 3.4e38, got 1.0e-40}}
  %0 = gpt.softcap %x at 1.0e-40 : tensor<?x8xf32>
  return
}

// -----

func.func @sample_of_one(%x: tensor<?x1xf32>, %g: tensor<1xf32>) {
  // expected-error @+1 {{[layer_norm-C5] expected a last dimension of at least 2 beside sample, got 'tensor<?x1xf32>'}}
  %0 = gpt.layer_norm %x, %g sample eps 1.0e-6 : tensor<?x1xf32>, tensor<1xf32>
  return
}

// -----

func.func @sample_rms(%x: tensor<?x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expected 'eps'}}
  %0 = gpt.rms_norm %x, %g sample eps 1.0e-6 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @log_softmax_rank(%x: tensor<f32>) {
  // expected-error @+1 {{[log_softmax-C1] expected x of rank 1 or more, got 'tensor<f32>'}}
  %0 = gpt.log_softmax %x : tensor<f32>
  return
}

// -----

func.func @softcap(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{[softcap-C1] expected a cap from 1.2e-38 to 3.4e38, got -50.0}}
  %0 = gpt.softcap %x at -50.0 : tensor<?x8xf32>
  return
}

// -----

func.func @argmax_rank(%x: tensor<8xf32>) {
  // expected-error @+1 {{[argmax-C1] expected x of rank 2 or more, got 'tensor<8xf32>'}}
  %0 = gpt.argmax %x : tensor<8xf32> -> tensor<i32>
  return
}

// -----

func.func @argmax_result(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{[argmax-C2] expected a result of shape [4], got 'tensor<8xi32>'}}
  %0 = gpt.argmax %x : tensor<4x8xf32> -> tensor<8xi32>
  return
}
