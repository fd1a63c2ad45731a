//===- math.cuh - exp, log, tanh, erf, GELU, SiLU, sine as polynomials ----===//
//
// The formulas of the CPU target, with its error bounds: relative unless said
// otherwise, for every finite f32 input; NaN in gives NaN out. Every fused
// multiply-add is written as one. No fast-math: with it, or if nvcc were to
// contract more (-fmad=true), the bounds would not hold to the bit.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace gptc {

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln2/2; exp(r) by its Taylor
// polynomial of degree 7. Error below 1.2e-7. 0 below -87.33 (no denormals),
// +inf above 88.72.
__device__ inline float exp_f32(float x) {
  // 1.5 * 2^23: adding it rounds to an integer in the low mantissa bits.
  const float shifter = 12582912.0f;
  float t = fmaf(x, 1.44269504088896341f, shifter);
  float n = t - shifter;
  // ln 2 in two parts, the first exact in 15 bits.
  float r = fmaf(n, -0.693145751953125f, x);
  r = fmaf(n, -1.42860682030941723212e-6f, r);
  float p = 1.0f / 5040;
  p = fmaf(p, r, 1.0f / 720);
  p = fmaf(p, r, 1.0f / 120);
  p = fmaf(p, r, 1.0f / 24);
  p = fmaf(p, r, 1.0f / 6);
  p = fmaf(p, r, 0.5f);
  p = fmaf(p, r, 1.0f);
  p = fmaf(p, r, 1.0f);
  int power = (__float_as_int(t) - 0x4B400000) << 23;
  float y = __int_as_float(__float_as_int(p) + power);
  y = x < -87.33f ? 0.0f : y;
  y = x > 88.72f ? __int_as_float(0x7f800000) : y;
  return x != x ? x : y;
}

// log(x) = n ln 2 + log(m), x = 2^n m, m in [sqrt(1/2), sqrt(2)); with
// s = (m - 1) / (m + 1), |s| <= 0.172, log(m) = 2 atanh(s) by its Taylor
// polynomial of degree 9 (remainder 1e-9 of it). Error below 1.8e-7. +inf and
// NaN stay; 0 gives -88; x is a normal number or 0, not below.
__device__ inline float log_f32(float x) {
  int bits = __float_as_int(x);
  int n = (bits - 0x3F3504F3) >> 23; // from the bits of sqrt(1/2) on
  float m = __int_as_float(bits - (n << 23)), k = float(n);
  float s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
  float p = 2.0f / 9;
  p = fmaf(p, s2, 2.0f / 7);
  p = fmaf(p, s2, 2.0f / 5);
  p = fmaf(p, s2, 2.0f / 3);
  // ln 2 in two parts, the first exact in 15 bits.
  float low = fmaf(k, 1.42860682030941723212e-6f, s * s2 * p);
  float y = fmaf(k, 0.693145751953125f, fmaf(s, 2.0f, low));
  return x < __int_as_float(0x7f800000) ? y : x;
}

// 1 / (1 + exp(-x)): error below 3e-7, also in the far negative tail.
__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// 1 - 2 / (exp(2x) + 1); a Taylor polynomial below 0.25, where that would
// cancel. Absolute error below 2e-7.
__device__ inline float tanh_f32(float x) {
  float big = 1.0f - 2.0f / (exp_f32(x * 2.0f) + 1.0f);
  float x2 = x * x;
  float p = 62.0f / 2835;
  p = fmaf(p, x2, -17.0f / 315);
  p = fmaf(p, x2, 2.0f / 15);
  p = fmaf(p, x2, -1.0f / 3);
  p = fmaf(p, x2, 1.0f);
  return x2 < 0.0625f ? x * p : big;
}

// erfc(z), z >= 0: t exp(-z^2 + P(t)), t = 1 / (1 + z/2); Chebyshev fit of
// Press et al., Numerical Recipes, 6.2: 1.2e-7 plus the rounding of the
// exponent (z^2 ulp).
__device__ inline float erfc_f32(float z) {
  float t = 1.0f / fmaf(z, 0.5f, 1.0f);
  float p = 0.17087277f;
  p = fmaf(p, t, -0.82215223f);
  p = fmaf(p, t, 1.48851587f);
  p = fmaf(p, t, -1.13520398f);
  p = fmaf(p, t, 0.27886807f);
  p = fmaf(p, t, -0.18628806f);
  p = fmaf(p, t, 0.09678418f);
  p = fmaf(p, t, 0.37409196f);
  p = fmaf(p, t, 1.00002368f);
  p = fmaf(p, t, -1.26551223f);
  return t * exp_f32(fmaf(-z, z, p));
}

// Absolute error below 3e-7; a Taylor polynomial near 0.
__device__ inline float erf_f32(float x) {
  float tail = 1.0f - erfc_f32(fabsf(x));
  tail = x < 0.0f ? -tail : tail;
  const float k = 1.1283791670955126f; // 2 / sqrt(pi)
  float x2 = x * x;
  float p = k / 216;
  p = fmaf(p, x2, -k / 42);
  p = fmaf(p, x2, k / 10);
  p = fmaf(p, x2, -k / 3);
  p = fmaf(p, x2, k);
  return x2 < 0.0625f ? x * p : tail;
}

// -FLT_MAX instead of -inf, so that x * 0 is -0 there.
__device__ inline float above_infinity(float x) {
  return x < -3.4028234663852886e38f ? -3.4028234663852886e38f : x;
}

__device__ inline float gelu_erf(float x) {
  x = above_infinity(x);
  float tail = 0.5f * erfc_f32(fabsf(x) * 0.70710678118654752f);
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

// (1 + tanh u) / 2 = sigmoid(2u) keeps the negative tail's relative accuracy.
__device__ inline float gelu_tanh(float x) {
  x = above_infinity(x);
  const float c = 1.5957691216057308f; // 2 sqrt(2 / pi)
  return x * sigmoid(x * fmaf(x * x, 0.044715f * c, c));
}

__device__ inline float gelu_quick(float x) {
  x = above_infinity(x);
  return x * sigmoid(x * 1.702f);
}

__device__ inline float silu(float x) {
  x = above_infinity(x);
  return x * sigmoid(x);
}

// -cap at -inf. Absolute error below 3e-7 of the cap.
__device__ inline float softcap(float x, float cap) {
  return cap * tanh_f32(x / cap);
}

/// As arith.maximumf and arith.minimumf: NaN if either is.
__device__ inline float maximum(float x, float y) {
  return x != x ? x : y < x ? x : y;
}
__device__ inline float minimum(float x, float y) {
  return x != x ? x : x < y ? x : y;
}

// Argument reduced by pi/2 in three parts (Cody and Waite; exact products for
// |n| < 2^20), then Taylor polynomials on |r| <= pi/4: absolute error below
// 1e-15 for |x| <= 2^20.
__device__ inline void sin_cos(double x, double &sine, double &cosine) {
  const double shifter = 6755399441055744.0; // 1.5 * 2^52
  double t = fma(x, 0.63661977236758134308, shifter);
  double n = t - shifter;
  double r = fma(n, -1.57079632673412561417, x);
  r = fma(n, -6.07710050630396597660e-11, r);
  r = fma(n, -2.02226624879595063154e-21, r);
  double r2 = r * r;
  double s = -1.0 / 1307674368000.0; // 15!
  s = fma(s, r2, 1.0 / 6227020800.0);
  s = fma(s, r2, -1.0 / 39916800);
  s = fma(s, r2, 1.0 / 362880);
  s = fma(s, r2, -1.0 / 5040);
  s = fma(s, r2, 1.0 / 120);
  s = fma(s, r2, -1.0 / 6);
  s = fma(s, r2, 1.0);
  s = r * s;
  double c = 1.0 / 20922789888000.0; // 16!
  c = fma(c, r2, -1.0 / 87178291200.0);
  c = fma(c, r2, 1.0 / 479001600);
  c = fma(c, r2, -1.0 / 3628800);
  c = fma(c, r2, 1.0 / 40320);
  c = fma(c, r2, -1.0 / 720);
  c = fma(c, r2, 1.0 / 24);
  c = fma(c, r2, -0.5);
  c = fma(c, r2, 1.0);
  long long quadrant = __double_as_longlong(t);
  bool swap = quadrant & 1;
  sine = swap ? c : s;
  cosine = swap ? s : c;
  sine = quadrant & 2 ? -sine : sine;
  cosine = (quadrant + 1) & 2 ? -cosine : cosine;
}

} // namespace gptc
