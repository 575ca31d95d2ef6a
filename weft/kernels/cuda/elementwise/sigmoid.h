#pragma once

namespace weft::kernels::cuda {

// 1 / (1 + e^-x) within 3 units in the last place, without branches. e^-x is bounded, so that the
// reciprocal is a normal number; beyond the bound the result is zero. One Newton step makes the
// machine's estimate of the reciprocal good to the last place.
__device__ inline float sigmoid(float x) {
  constexpr float kMost = 87.0f;
  const float y = 1.0f + expf(-x > kMost ? kMost : -x);  // NaN stays
  float estimate;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(y));
  const float exact = fmaf(estimate, fmaf(-y, estimate, 1.0f), estimate);
  return -x > kMost ? 0.0f : exact;
}

}  // namespace weft::kernels::cuda
