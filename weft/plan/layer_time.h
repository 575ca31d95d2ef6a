// What one layer of one micro-batch takes, by what may run beside what.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/kernel_work.h"

namespace weft::plan {

// Device seconds forward, of input gradients (with what is made again), and of weight gradients.
struct Directions {
  double f = 0, d = 0, w = 0;

  double total() const { return f + d + w; }
};

struct LayerTime {
  Directions before;   // of the dispatch: attention, router, permutation; all of a dense layer
  Directions experts;  // and, where they do not run beside the dispatch, shared ones
  Directions after;    // of the combine
  double dispatch = 0, combine = 0;  // seconds of one; 0: nothing travels
  bool travels_again = false;        // recomputation brings the rows once more
  Directions tp, cp;                 // exposed: exchanged while nothing is computed (w unused)
  double host_f = 0, host_b = 0;     // launches
  // True: of nodes, by a host that runs ahead of the device.
  bool launches_nodes = false;
  double counts_wait = 0;  // forward, where nothing else runs while the host reads row counts
  double products = 0, attention = 0, memory = 0;  // device seconds by kind, all directions

  Directions compute() const;
  // Of weight gradients, those that ZB-H1 puts off: not the experts' second product where rows
  // travel (schedule::may_wait), which is a third of theirs.
  double put_off() const { return compute().w - (dispatch > 0 ? experts.w / 3 : 0); }
};

enum class Recomputed { No, Yes };

// One exchange of a micro-batch's tokens between tensor-parallel ranks: a gather or a scatter.
double tensor_exchange_seconds(const config::Config& config,
                               const Workload& work,
                               const Hardware& hardware);
// Such exchanges of a layer forward and backward; the backward gathers once more for the weight
// gradient.
struct TensorExchanges {
  double forward = 0, backward = 0;
};
TensorExchanges tensor_exchanges(const config::ModelConfig& model, std::int64_t layer);
// All that context-parallel ranks exchange in the forward of a layer; the backward has twice as
// much.
double context_exchange_seconds(const config::Config& config,
                                const Workload& work,
                                const Hardware& hardware);

// For all layers of one kind it is the same. `is_again`: the whole layer runs again.
LayerTime layer_time(const config::Config& config,
                     const Workload& work,
                     const Hardware& hardware,
                     std::int64_t layer,
                     Recomputed whole);
// Of the ends of the model, as a dense layer is.
LayerTime embed_time(const config::Config& config, const Workload& work, const Hardware& hardware);
LayerTime head_time(const config::Config& config, const Workload& work, const Hardware& hardware);
// One layer of multi-token prediction with its run of the head.
LayerTime mtp_time(const config::Config& config, const Workload& work, const Hardware& hardware);

// What a dispatch beside compute takes of the device. A multiprocessor less for compute is not a
// multiprocessor's worth of it: part of what kernels do waits for memory anyhow. But a transfer
// beside them also takes memory bandwidth.
double transfer_share(const config::ModelConfig& model, const Hardware& hardware);

// Seconds of the device, and what of them is exchanged or copied while nothing is computed.
struct Stretch {
  double total = 0;
  double ep = 0, tp = 0, cp = 0, copy = 0;

  Stretch& operator+=(const Stretch& other);
  Stretch operator-(const Stretch& other) const;
  Stretch operator*(double factor) const;
};

// Forward and backward, launches included, and what of it nothing hides.
struct PlainTime {
  double forward = 0, backward = 0;  // seconds, all in
  double ep = 0, tp = 0, cp = 0, copy = 0, host = 0;
  double total() const { return forward + backward; }

  PlainTime& operator+=(const PlainTime& other);
  PlainTime operator*(double factor) const;
};
// Of the layer alone: by sums, or as its stretches say.
PlainTime plain_time(const config::Config& config, const LayerTime& layer);
PlainTime plain_time(const config::Config& config,
                     const LayerTime& layer,
                     const Stretch& forward,
                     const Stretch& backward);

// The forward of one micro-batch's layer merged with the backward of another's, in the order of the
// interleaving pass (schedule/passes/interleave.h).
PlainTime merged_time(const config::Config& config,
                      const LayerTime& layer,
                      const Hardware& hardware);
// The same as a stretch says.
PlainTime merged_time(const config::Config& config, const LayerTime& layer, const Stretch& merged);

}  // namespace weft::plan
