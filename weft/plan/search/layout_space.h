// Space of layouts for a model on a number of GPUs: the values of each axis, and the shapes
// (layouts without modes) that model, batch and world allow.
//
// The cheap divisibility rules are checked here first; rules::judge decides on every layout that is
// shown. Some legal but never useful values are left out: tensor parallelism beyond the NVLink
// domain or 16; less than 2048 tokens of a sequence per context-parallel rank; micro-batches that
// are no power of two or exceed 128 Ki tokens per rank; more than 12 chunks per pipeline rank; more
// stages than layers (except stages of the embedding and the loss).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/plan/hardware/routing.h"
#include "weft/plan/memory/memory_book.h"
#include "weft/plan/price/layer_prices.h"
#include "weft/plan/price/price.h"
#include "weft/plan/search/layout_choice.h"

namespace weft::plan {

// Share of GPU memory that a safe plan uses: allocators fragment memory, and libraries take more
// than counted.
inline constexpr double kSafeShare = 0.92;

// Question of a plan. `start` has the model, train.global_batch_size, model.seq_length,
// runtime.world_size and hardware.gpu. Its other keys stay, except unpinned keys that a layout
// sets.
struct PlanAsk {
  config::Config start;
  PinnedKeys pinned;
  Hardware hardware;
  Routing routing = {};
  std::vector<DType> numbers = {};  // product formats to try; empty: the format of `start`
  // Safe plan: nothing on the host, no CUDA graphs, and spare memory (kSafeShare).
  bool is_safe = false;
  // Counts the memory of short runs for the shown layouts; empty: they keep the formula's.
  StepCounter counter = {};
};

// Values of each axis, ascending, independent of the other axes.
struct LayoutAxes {
  std::vector<std::int64_t> tp, pp, vpp, cp, ep, etp, mbs;
  std::vector<Carrier> carriers;  // if tokens travel
  std::vector<StepOrder> orders;  // if tokens travel
  std::vector<StateHolder> states;
  std::size_t most_host_state = 0;  // quarters of the optimizer state that may be on the host
  std::vector<Graphs> graphs;       // fewest launches first
  std::vector<std::optional<DType>> numbers;
};

class LayoutSpace {
 public:
  explicit LayoutSpace(const PlanAsk& ask);

  const LayoutWriter& writer() const { return writer_; }
  const LayoutAxes& axes() const { return axes_; }
  const Hardware& hardware() const { return hardware_; }
  const Routing& routing() const { return routing_; }
  // Books of memory: `book` for all layouts, `shown` for shown layouts, with counted memory if
  // there is a counter.
  MemoryBook& book() const { return *book_; }
  MemoryBook& shown() const { return counted_ ? *counted_ : *book_; }
  bool counts() const { return counted_ != nullptr; }
  // True if it has safe layouts only (PlanAsk).
  bool is_safe() const { return is_safe_; }
  // Books for sieving by formula.
  SieveBooks sieve() const { return {.runs = *book_, .layers = *layers_}; }

  // Cache of simulated layers for a layout, shared by layouts that differ in pipeline, optimizer,
  // graphs or batch.
  LayerMemory simulated(const LayoutChoice& choice) const;

  // Reason against a shape, in a short text shared by many shapes; empty: none.
  std::string complaint(const LayoutChoice& shape) const;

  struct Shapes {
    std::vector<LayoutChoice> all;                // in the order of the axes
    std::map<std::string, std::int64_t> refused;  // number of shapes by complaint
  };
  Shapes shapes() const;

  // Modes compatible with a shape.
  std::vector<Carrier> carriers_of(const LayoutChoice& shape) const;
  std::vector<StepOrder> orders_of(const LayoutChoice& shape) const;
  bool order_allows(StepOrder order, std::size_t rung) const;
  // Graphs compatible with the other modes, fewest launches first. Recomputed whole layers cannot
  // be captured. Capturing a whole step requires rows of a fixed budget on the device (hybridep),
  // and experts in one fused operation (MXFP8).
  std::vector<Graphs> graphs_of(const LayoutChoice& choice) const;
  // Offload rungs compatible with a recompute rung, each with different modules.
  std::vector<std::size_t> offloads_of(std::size_t rung) const;
  // Modes with the least memory: with nothing on the host, and with the most on the host.
  LayoutChoice most_frugal(const LayoutChoice& shape) const;
  LayoutChoice most_offloaded(const LayoutChoice& shape) const;
  bool may_offload() const { return writer_.offloads().size() > 1 || axes_.most_host_state > 0; }

 private:
  LayoutAxes axes_of(const PlanAsk& ask) const;
  bool tokens_travel(const LayoutChoice& shape) const;
  bool captures_whole_step(const LayoutChoice& choice) const;

  Hardware hardware_;
  Routing routing_;
  LayoutWriter writer_;
  std::int64_t world_, batch_;
  LayoutAxes axes_;
  bool is_safe_ = false;
  std::unique_ptr<MemoryBook> book_ = std::make_unique<MemoryBook>();
  std::unique_ptr<MemoryBook> counted_;
  std::unique_ptr<SimulatedLayers> simulated_ = std::make_unique<SimulatedLayers>();
  std::unique_ptr<FormulaLayers> layers_ = std::make_unique<FormulaLayers>();
};

}  // namespace weft::plan
