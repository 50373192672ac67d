// The body of a tier: everything that depends on the instruction set, in the namespace of the file that includes it.

#include "simd.h"

#include "elementwise.h"

#include "linear.h"

#include "attention.h"

#if defined(KAIWA_AMX)
#include "bf16_tiles.h"

#include "attention_tiles.h"
#endif

#include "delta_rule.h"

#include "peak.h"

const Kernels* table(std::string_view name) {
  static const Kernels kernels = {
      name,     rms_norm,        quantize,  gate, softcap_row, sum_exponentials, add_rows,
      {panel<Format::F32>, panel<Format::F16>, panel<Format::BF16>, panel<Format::Q8_0>, panel<Format::Q4_0>,
       panel<Format::Q4_1>, panel<Format::Q5_0>, panel<Format::Q5_1>, panel<Format::Q4_K>, panel<Format::Q5_K>,
       panel<Format::Q6_K>, panel<Format::Q2_K>, panel<Format::Q3_K>, panel<Format::IQ4_NL>, panel<Format::IQ4_XS>,
       panel<Format::MXFP4>, panel<Format::Int8>, panel<Format::Int4>, panel<Format::Float8>, panel<Format::Table4>},
#if defined(KAIWA_AMX)
      {nullptr, nullptr, tiled_panels<Format::BF16>, tiled_panels<Format::Q8_0>, tiled_panels<Format::Q4_0>,
       tiled_panels<Format::Q4_1>, tiled_panels<Format::Q5_0>, tiled_panels<Format::Q5_1>, tiled_panels<Format::Q4_K>,
       tiled_panels<Format::Q5_K>, tiled_panels<Format::Q6_K>, tiled_panels<Format::Q2_K>, tiled_panels<Format::Q3_K>,
       tiled_panels<Format::IQ4_NL>, tiled_panels<Format::IQ4_XS>, tiled_panels<Format::MXFP4>, tiled_panels<Format::Int8>,
       tiled_panels<Format::Int4>, nullptr, nullptr},
      fill_tiles,
#else
      {}, nullptr,
#endif
      attend,
#if defined(KAIWA_AMX)
      attend_tiles, sizeof(AttentionTiles) / sizeof(InputTile),
#else
      nullptr, 0,
#endif
      merge_attention, store_half, store_scaled_bytes, delta_rule, multiply_bytes,
  };
  return &kernels;
}
