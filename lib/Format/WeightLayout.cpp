//===- WeightLayout.cpp - The weight layouts ------------------------------===//
//
// The layouts are described in gptc/Format/WeightLayout.h. This file and the
// packers are compiled twice: into the compiler, and into the runtime of every
// package, which packs the weights that a host hands over. So: no allocation,
// no libm, no libstdc++, no shared state, and only loops that a vectoriser
// understands.
//
// N output features, K input features, NR features in a panel. Source
// pointers may be unaligned: elements are loaded through memcpy.
//
// Refuses (-1): block formats stored [K, N], a K that is no multiple of the
// block, a packed format that the header does not allow, i32, a shifted panel.
//
//===----------------------------------------------------------------------===//
#include "Packers.h"

using namespace gptc::format;

extern "C" uint64_t gptc_panel_bytes(int32_t dtype, int64_t nr, int64_t k) {
  if (dtype == GPTC_PACKED_BF16X2)
    return static_cast<uint64_t>(nr) * static_cast<uint64_t>((k + 1) / 2) * 4;
  if (dtype == GPTC_PACKED_I8X4)
    return static_cast<uint64_t>(nr) *
           static_cast<uint64_t>((k + 3) / 4 * 4 + 4);
  return gptc_source_bytes(dtype == GPTC_PACKED_Q8_0X4 ? GPTC_Q8_0 : dtype, nr,
                           k);
}

extern "C" uint64_t gptc_source_bytes(int32_t dtype, int64_t rows,
                                      int64_t cols) {
  uint64_t count = static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols);
  switch (dtype) {
  case GPTC_F32:
  case GPTC_I32:
    return count * 4;
  case GPTC_F16:
  case GPTC_BF16:
    return count * 2;
  case GPTC_Q8_0:
  case GPTC_Q4_0:
  case GPTC_Q4_1:
    return cols % blockK ? 0 : count / blockK * blockBytes(dtype);
  }
  return 0;
}

extern "C" uint64_t gptc_packed_bytes(const gptc_weight_desc *w) {
  if (w->layout == GPTC_LAYOUT_VECTOR)
    return (static_cast<uint64_t>(w->n) + 63) / 64 * 64 * sizeof(float);
  uint64_t panels = (w->n + w->panel - 1) / w->panel;
  return panels * gptc_panel_bytes(w->packed_dtype, w->panel, w->k);
}

static int packStored(const gptc_weight_desc &w, const char *source,
                      char *out) {
  switch (w.source_dtype) {
  case GPTC_F32:
  case GPTC_F16:
  case GPTC_BF16:
    return packScalars(w, source, out);
  case GPTC_Q8_0:
  case GPTC_Q4_0:
  case GPTC_Q4_1:
    return packBlocks(w, source, out);
  }
  return -1;
}

extern "C" int gptc_pack_weight(const gptc_weight_desc *w, const void *source,
                                void *out) {
  const bool vector = w->layout == GPTC_LAYOUT_VECTOR;
  if (w->shift != 0 && !vector)
    return -1;
  if (vector)
    memset(out, 0, gptc_packed_bytes(w));
  int status = packStored(*w, static_cast<const char *>(source),
                          static_cast<char *>(out));
  if (w->shift != 0)
    for (int64_t i = 0; i < w->n; ++i)
      static_cast<float *>(out)[i] += static_cast<float>(w->shift);
  return status;
}
