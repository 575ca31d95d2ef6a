// WHICH LAYOUTS COULD A MODEL HAVE on so many GPUs? The values that each axis may take, and the
// shapes (layouts without their modes) that the sizes of the model, the batch and the world allow.
//
// The tests here are those rules that a division decides, which come first because they are cheap;
// rules::judge has the last word on every layout that is shown. What is legal and never worth its
// price is left out: tensor parallelism beyond the GPUs that NVLink joins or 16, less than 2048
// tokens of a sequence a context-parallel rank, micro-batches that are no power of two or have more
// than 128 Ki tokens a rank, more than 12 chunks a pipeline rank, more stages than layers (but for
// those that the embedding and the loss have to themselves).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/plan/layer_prices.h"
#include "weft/plan/layout_choice.h"
#include "weft/plan/memory_book.h"
#include "weft/plan/price.h"
#include "weft/plan/routing.h"

namespace weft::plan {

// The share of the GPU's memory that a careful plan takes: allocators cut memory up, and libraries
// take more than one counts.
inline constexpr double kSafeShare = 0.92;

// What is to be planned. `start` has the model, train.global_batch_size, model.seq_length,
// runtime.world_size and hardware.gpu; its other keys stay as they are, except those that a layout
// sets and nobody pinned.
struct PlanAsk {
  config::Config start;
  PinnedKeys pinned;
  Hardware hardware;
  Routing routing = {};
  std::vector<Number> numbers = {};  // formats of products to try; none: that of `start`
  // A careful plan: nothing on the host, no CUDA graphs, and memory to spare (kSafeShare).
  bool is_safe = false;
  // Counts the memory of short runs, for the layouts that are shown; none: they have the formula's.
  StepCounter counter = {};
};

// Values of an axis, ascending, without regard to the other axes.
struct LayoutAxes {
  std::vector<std::int64_t> tp, pp, vpp, cp, ep, etp, mbs;
  std::vector<Carrier> carriers;  // where tokens travel
  std::vector<StepOrder> orders;  // where tokens travel
  std::vector<StateHolder> states;
  std::size_t most_host_state = 0;  // quarters of the optimizer's state that may be on the host
  std::vector<Graphs> graphs;       // those that launch least first
  std::vector<std::optional<Number>> numbers;
};

class LayoutSpace {
 public:
  explicit LayoutSpace(const PlanAsk& ask);

  const LayoutWriter& writer() const { return writer_; }
  const LayoutAxes& axes() const { return axes_; }
  const Hardware& hardware() const { return hardware_; }
  const Routing& routing() const { return routing_; }
  // Of all layouts, for who asks for their memory; and for those that are shown, where somebody
  // counts it.
  MemoryBook& book() const { return *book_; }
  MemoryBook& shown() const { return counted_ ? *counted_ : *book_; }
  bool counts() const { return counted_ != nullptr; }
  // Whether only safe layouts are in it (PlanAsk).
  bool is_safe() const { return is_safe_; }
  // The same for who sieves them.
  SieveBooks sieve() const { return {.runs = *book_, .layers = *layers_}; }

  // Layers of a layout that were simulated before, of this one or of others that share them: those
  // that differ in the pipeline, the optimizer, graphs or the batch.
  LayerMemory simulated(const LayoutChoice& choice) const;

  // Why a shape cannot be, in few words that many shapes share; empty: nothing speaks against it.
  std::string complaint(const LayoutChoice& shape) const;

  struct Shapes {
    std::vector<LayoutChoice> all;                // in the order of the axes
    std::map<std::string, std::int64_t> refused;  // how many, by complaint
  };
  Shapes shapes() const;

  // The modes that go with a shape.
  std::vector<Carrier> carriers_of(const LayoutChoice& shape) const;
  std::vector<StepOrder> orders_of(const LayoutChoice& shape) const;
  bool goes_with(StepOrder order, std::size_t rung) const;
  // Those that go with the other modes, the ones that launch least first: whole layers are not
  // captured and run again, and a whole step is captured where rows of a fixed budget stay on the
  // device (hybridep) and experts are one fused operation (MXFP8).
  std::vector<Graphs> graphs_of(const LayoutChoice& choice) const;
  // The rungs of offloading that go with a rung of recomputation, each with another set of modules.
  std::vector<std::size_t> offloads_of(std::size_t rung) const;
  // The modes in which it needs least memory: with nothing on the host, and with as much as can be.
  LayoutChoice most_frugal(const LayoutChoice& shape) const;
  LayoutChoice most_offloaded(const LayoutChoice& shape) const;
  bool may_offload() const { return writer_.offloads().size() > 1 || axes_.most_host_state > 0; }

 private:
  LayoutAxes axes_of(const PlanAsk& ask) const;
  bool travels(const LayoutChoice& shape) const;
  bool captures_whole(const LayoutChoice& choice) const;

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
