// Bench of causal attention on a device, as the model calls it.
#pragma once

#include <string>
#include <vector>

#include "weft/measure/device/device_kernels.h"
#include "weft/measure/device/device_rate.h"
#include "weft/measure/device/device_timer.h"

namespace weft::measure {

struct AttentionCase {
  std::string name;  // "32 key/value heads"
  AttentionWork work;
};
// 4 sequences of 4096; 32 heads of 128 with 32 and with 4 key/value heads; latent attention with
// widths 192 and 128.
std::vector<AttentionCase> attention_cases();

struct AttentionRates {
  DeviceRate forward, backward;
};
AttentionRates bench_attention(DeviceTimer& timer,
                               const AttentionCase& attention,
                               const NoteOperation& note);

}  // namespace weft::measure
