// Time of one layer for one micro-batch, split by possible overlap.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::plan {

// Device seconds forward, of input gradients (including recomputation) and of weight gradients.
struct Directions {
  double f = 0, d = 0, w = 0;

  double total() const { return f + d + w; }
};

struct LayerTime {
  Directions before;   // before the dispatch: attention, router, permutation; all of a dense layer
  Directions experts;  // also shared experts, unless they run beside the dispatch
  Directions after;    // after the combine
  double dispatch = 0, combine = 0;     // seconds of one; 0: no communication
  bool dispatch_is_recomputed = false;  // recomputation dispatches the rows again
  Directions tp, cp;                    // exposed: exchanges without concurrent compute (w unused)
  double host_f = 0, host_b = 0;        // launches
  // True: launches per node, by a host that runs ahead of the device.
  bool launches_nodes = false;
  double counts_wait = 0;                          // forward: idle while the host reads row counts
  double products = 0, attention = 0, memory = 0;  // device seconds by kind, all directions

  Directions compute() const;
  // Weight gradients that ZB-H1 delays. If rows travel, the experts' second product is excluded
  // (schedule::may_be_delayed), a third of the experts' share.
  double put_off() const { return compute().w - (dispatch > 0 ? experts.w / 3 : 0); }
};

enum class Recomputed { No, Yes };

// One exchange of a micro-batch's tokens between tensor-parallel ranks: gather or scatter.
double tensor_exchange_seconds(const config::Config& config,
                               const Workload& work,
                               const Hardware& hardware);
// Number of such exchanges of a layer; the backward gathers once more for the weight gradient.
struct TensorExchanges {
  double forward = 0, backward = 0;
};
TensorExchanges tensor_exchanges(const config::ModelConfig& model, std::int64_t layer);
// All context-parallel exchanges in the forward of a layer; the backward has twice the bytes.
double context_exchange_seconds(const config::Config& config,
                                const Workload& work,
                                const Hardware& hardware);

// Equal for all layers of one kind. `whole`: the whole layer is recomputed.
LayerTime layer_time(const config::Config& config,
                     const Workload& work,
                     const Hardware& hardware,
                     std::int64_t layer,
                     Recomputed whole);
// Ends of the model, in the form of a dense layer.
LayerTime embed_time(const config::Config& config, const Workload& work, const Hardware& hardware);
LayerTime head_time(const config::Config& config, const Workload& work, const Hardware& hardware);
// One layer of multi-token prediction with its head.
LayerTime mtp_time(const config::Config& config, const Workload& work, const Hardware& hardware);

// Share of the device that a concurrent dispatch takes. Losing a multiprocessor costs compute less
// than its share, since kernels partly wait for memory; but the transfer also takes memory
// bandwidth.
double transfer_share(const config::ModelConfig& model, const Hardware& hardware);

// Device time, with the exposed exchanges and copies in it.
struct Stretch {
  double total = 0;
  double ep = 0, tp = 0, cp = 0, copy = 0;

  Stretch& operator+=(const Stretch& other);
  Stretch operator-(const Stretch& other) const;
  Stretch operator*(double factor) const;
};

// Time forward and backward with launches, and its exposed parts.
struct PlainTime {
  double forward = 0, backward = 0;  // seconds in total
  double ep = 0, tp = 0, cp = 0, copy = 0, host = 0;
  double total() const { return forward + backward; }

  PlainTime& operator+=(const PlainTime& other);
  PlainTime operator*(double factor) const;
};
// Time of the layer alone: by sums, or from its stretches.
PlainTime plain_time(const config::Config& config, const LayerTime& layer);
PlainTime plain_time(const config::Config& config,
                     const LayerTime& layer,
                     const Stretch& forward,
                     const Stretch& backward);

// One micro-batch's forward layer merged with another's backward, in the order of the interleaving
// pass (schedule/passes/interleave.h).
PlainTime merged_time(const config::Config& config,
                      const LayerTime& layer,
                      const Hardware& hardware);
// Variant from a stretch.
PlainTime merged_time(const config::Config& config, const LayerTime& layer, const Stretch& merged);

}  // namespace weft::plan
