#include "weft/plan/price/sensitivity.h"

#include <algorithm>
#include <map>
#include <set>

#include "weft/base/text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/shape_pricing.h"
#include "weft/plan/search/search_candidates.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

std::string order_word(StepOrder order) {
  switch (order) {
    case StepOrder::Plain:
      return "plain";
    case StepOrder::Merged:
      return "overlap";
    case StepOrder::MergedDelayed:
      return "overlap, delayed wgrad";
  }
  return "";
}

std::string state_word(StateHolder state) {
  return state == StateHolder::Shared ? "distributed" : "whole";
}

// Prices a neighbouring config, or gives the reason against it.
void price_step_to(const Config& config,
                   const LayoutSpace& space,
                   const LayerMemory& simulated,
                   double from_bytes,
                   KnobStep& step) {
  const rules::Verdict verdict = rules::judge(config);
  if (!verdict.legal()) {
    const config::Finding& error = verdict.errors.front();
    step.why_not = text("rule {}: {}", error.id, error.message);
    return;
  }
  step.memory = price_memory(config, space.hardware(), space.routing(), space.book());
  step.more_bytes = step.memory->total() - from_bytes;
  if (!step.memory->fits()) {
    step.why_not = "needs " + lack_text(*step.memory);
    return;
  }
  step.price = price_step(config, space.hardware(), space.routing(), simulated);
  step.price->memory = *step.memory;
}

class KnobTurner {
 public:
  KnobTurner(const LayoutSpace& space, const LayoutChoice& choice)
      : space_(space),
        choice_(choice),
        config_(space.writer().config_of(choice)),
        bytes_(price_memory(config_, space.hardware(), space.routing(), space.book()).total()),
        sieved_ms_(sieve_step(config_, space.hardware(), space.routing(), space.sieve()).step_ms) {}

  std::vector<KnobStep> turn() {
    const LayoutAxes& axes = space_.axes();
    turn_axis("tp", axes.tp, &LayoutChoice::tp);
    turn_axis("pp", axes.pp, &LayoutChoice::pp);
    if (choice_.pp > 1) turn_axis("vpp", axes.vpp, &LayoutChoice::vpp);
    turn_axis("cp", axes.cp, &LayoutChoice::cp);
    turn_axis("ep", axes.ep, &LayoutChoice::ep);
    turn_axis("etp", axes.etp, &LayoutChoice::etp);
    turn_axis("mbs", axes.mbs, &LayoutChoice::mbs);
    turn_modes();
    turn_recompute();
    turn_host();
    turn_graphs();
    turn_batch();
    turn_numbers();
    return std::move(steps_);
  }

 private:
  KnobStep step_to(std::string knob,
                   std::string from,
                   std::string to,
                   const LayoutChoice& other) const {
    KnobStep step{.knob = std::move(knob), .from = std::move(from), .to = std::move(to)};
    step.why_not = space_.complaint(other);
    if (step.why_not.empty()) {
      price_step_to(space_.writer().config_of(other),
                    space_,
                    space_.simulated(other),
                    bytes_,
                    step);
    }
    return step;
  }

  void try_choice(std::string knob, std::string from, std::string to, const LayoutChoice& other) {
    steps_.push_back(step_to(std::move(knob), std::move(from), std::move(to), other));
  }

  void turn_axis(const char* knob,
                 const std::vector<std::int64_t>& values,
                 std::int64_t LayoutChoice::*field) {
    const auto here = std::ranges::find(values, choice_.*field);
    if (here == values.end()) return;
    const auto try_value = [&](std::int64_t value) {
      LayoutChoice other = choice_;
      other.*field = value;
      if (other.pp == 1) other.vpp = 1;
      try_shape(knob, text("{}", choice_.*field), text("{}", value), other);
    };
    if (here != values.begin()) try_value(*std::prev(here));
    if (std::next(here) != values.end()) try_value(*std::next(here));
  }

  // Tries a shape with the modes of the layout as far as possible. If others are faster, or these
  // do not fit, takes the shape's best modes and names them.
  void try_shape(const char* knob, std::string from, std::string to, LayoutChoice other) {
    // A layout whose tokens no longer travel needs no dispatcher and no interleaved order.
    const auto carriers = space_.carriers_of(other);
    if (std::ranges::find(carriers, other.carrier) == carriers.end()) {
      other.carrier = carriers.back();
    }
    const auto orders = space_.orders_of(other);
    if (std::ranges::find(orders, other.order) == orders.end()) other.order = orders.front();
    // The formula's order is some percent off, and more between numbers of chunks: simulates the
    // fastest of each.
    constexpr std::size_t kSimulated = 3;
    KnobStep best = step_to(knob, from, to, other);
    std::set<std::int64_t> chunks;
    for (const LayoutChoice& tuned : tuned_modes(other)) {
      if (chunks.size() == kSimulated) break;
      if (chunks.contains(tuned.vpp)) continue;
      KnobStep step = step_to(knob, from, to, tuned);
      if (!step.price) continue;
      chunks.insert(tuned.vpp);
      if (!best.price || step.price->step_ms < (1 - kTie) * best.price->step_ms) {
        step.to = text("{} ({})", to, difference_text(tuned, other, space_.writer()));
        best = std::move(step);
      }
    }
    steps_.push_back(std::move(best));
  }

  // Modes of a shape, and chunks of a changed pipeline: fastest first by formula. A few per number
  // of chunks, since rules may refuse the first.
  std::vector<LayoutChoice> tuned_modes(const LayoutChoice& other) const {
    constexpr std::size_t kFew = 6;
    constexpr double kMuchSlower = 1.5;
    std::vector<PricedLayout> found;
    const bool turns_chunks = other.pp > 1 && other.pp != choice_.pp;
    for (const std::int64_t vpp : turns_chunks ? space_.axes().vpp : std::vector{other.vpp}) {
      const LayoutChoice shape{.tp = other.tp,
                               .pp = other.pp,
                               .vpp = vpp,
                               .cp = other.cp,
                               .ep = other.ep,
                               .etp = other.etp,
                               .mbs = other.mbs};
      if (!space_.complaint(shape).empty()) continue;
      for (PricedLayout& layout : price_shape(space_, shape).priced) {
        if (layout.choice.number == choice_.number) found.push_back(std::move(layout));
      }
      if (!is_offloading(choice_)) continue;
      const OffloadLimit limit{
          .limit_ms = kMuchSlower * sieved_ms_,
          .most_state = choice_.host_state > 0 ? space_.axes().most_host_state : 0};
      for (PricedLayout& layout : price_offloads(space_, shape, limit)) {
        if (layout.choice.number == choice_.number) found.push_back(std::move(layout));
      }
    }
    std::ranges::sort(found, is_faster);
    std::vector<LayoutChoice> modes;
    std::map<std::int64_t, std::size_t> of_chunks;
    for (const PricedLayout& layout : found) {
      std::size_t& count = of_chunks[layout.choice.vpp];
      if (count >= kFew) continue;
      for (const Graphs graphs : space_.graphs_of(layout.choice)) {
        modes.push_back(layout.choice);
        modes.back().graphs = graphs;
        ++count;
      }
    }
    return modes;
  }

  void turn_modes() {
    for (const Carrier carrier : space_.carriers_of(choice_)) {
      if (carrier == choice_.carrier) continue;
      LayoutChoice other = choice_;
      other.carrier = carrier;
      try_choice("dispatcher",
                 std::string(word(choice_.carrier)),
                 std::string(word(carrier)),
                 other);
    }
    for (const StepOrder order : space_.orders_of(choice_)) {
      if (order == choice_.order) continue;
      LayoutChoice other = choice_;
      other.order = order;
      try_choice("order", order_word(choice_.order), order_word(order), other);
    }
    for (const StateHolder state : space_.axes().states) {
      if (state == choice_.state) continue;
      LayoutChoice other = choice_;
      other.state = state;
      std::string to = state_word(state);
      // Only a distributed optimizer can be offloaded.
      if (other.host_state > 0 && state == StateHolder::Whole) {
        other.host_state = 0;
        to += " (none on the host)";
      }
      try_choice("optimizer", state_word(choice_.state), std::move(to), other);
    }
  }

  void turn_recompute() {
    const std::vector<RecomputeRung>& ladder = space_.writer().ladder();
    std::vector<std::size_t> rungs;
    if (choice_.recompute > 0) rungs.push_back(choice_.recompute - 1);
    if (choice_.recompute + 1 < ladder.size()) rungs.push_back(choice_.recompute + 1);
    if (choice_.recompute + 2 < ladder.size()) rungs.push_back(ladder.size() - 1);
    for (const std::size_t rung : rungs) {
      LayoutChoice other = choice_;
      other.recompute = rung;
      if (!space_.order_allows(other.order, rung)) other.order = StepOrder::Plain;
      const std::vector<Graphs> graphs = space_.graphs_of(other);
      if (std::ranges::find(graphs, other.graphs) == graphs.end()) other.graphs = graphs.front();
      LayoutChoice same = other;
      same.recompute = choice_.recompute;
      const std::string also = difference_text(same, choice_, space_.writer());
      std::string to = ladder[rung].name + (also.empty() ? "" : text(" ({})", also));
      try_choice("recompute", ladder[choice_.recompute].name, std::move(to), other);
    }
  }

  // Steps one rung of offloading up and down, and a quarter of the optimizer state.
  void turn_host() {
    const std::vector<std::size_t> rungs = space_.offloads_of(choice_.recompute);
    const auto here = std::ranges::find(rungs, choice_.offload);
    const auto try_rung = [&](std::size_t rung) {
      LayoutChoice other = choice_;
      other.offload = rung;
      try_choice("offload", offload_word(choice_), offload_word(other), other);
    };
    if (here != rungs.end() && here != rungs.begin()) try_rung(*std::prev(here));
    if (here != rungs.end() && std::next(here) != rungs.end()) try_rung(*std::next(here));
    if (choice_.state != StateHolder::Shared || space_.axes().most_host_state == 0) return;
    const auto try_state = [&](std::size_t quarters) {
      LayoutChoice other = choice_;
      other.host_state = quarters;
      try_choice("host state", host_word(choice_.host_state), host_word(quarters), other);
    };
    if (choice_.host_state > 0) try_state(choice_.host_state - 1);
    if (choice_.host_state < space_.axes().most_host_state) try_state(choice_.host_state + 1);
  }

  std::string offload_word(const LayoutChoice& choice) const {
    std::string words;
    for (const config::OffloadModule module :
         space_.writer().offloaded(choice.offload, choice.recompute)) {
      words += (words.empty() ? "" : ", ") + std::string(config::word(module));
    }
    return words.empty() ? "none" : words;
  }

  static std::string host_word(std::size_t quarters) {
    return text("{} %", 100 * quarters / kStateQuarters);
  }

  void try_config(std::string knob,
                  std::string from,
                  std::string to,
                  const Config& config,
                  const LayerMemory& simulated) {
    KnobStep step{.knob = std::move(knob), .from = std::move(from), .to = std::move(to)};
    price_step_to(config, space_, simulated, bytes_, step);
    steps_.push_back(std::move(step));
  }

  void turn_graphs() {
    const auto said = [&](Graphs graphs) -> std::string {
      if (graphs == Graphs::Whole) return "full_iteration";
      if (graphs != Graphs::Scoped) return "none";
      std::string words;
      for (const config::CudaGraphScope scope : graph_scopes(config_.model)) {
        words += (words.empty() ? "" : ", ") + std::string(config::word(scope));
      }
      return words;
    };
    for (const Graphs graphs : space_.graphs_of(choice_)) {
      if (graphs == choice_.graphs) continue;
      LayoutChoice other = choice_;
      other.graphs = graphs;
      try_choice("graphs", said(choice_.graphs), said(graphs), other);
    }
  }

  void turn_batch() {
    const std::int64_t batch = config_.train.global_batch_size;
    const auto try_batch = [&](std::int64_t other) {
      Config config = config_;
      config.train.global_batch_size = other;
      try_config("gbs", text("{}", batch), text("{}", other), config, space_.simulated(choice_));
    };
    if (batch % 2 == 0) try_batch(batch / 2);
    try_batch(batch * 2);
  }

  void turn_numbers() {
    const DType now = number_of(config_.model);
    for (const DType number : kProductFormats) {
      if (number == now || space_.hardware().peak(number) <= 0) continue;
      const bool is_gpu = space_.hardware().device == config::DeviceKind::Cuda;
      if (is_gpu && number == DType::F32) continue;
      Config config = config_;
      set_number(config, number);
      try_config("precision", std::string(name_of(now)), std::string(name_of(number)), config, {});
    }
  }

  const LayoutSpace& space_;
  const LayoutChoice choice_;
  const Config config_;
  const double bytes_, sieved_ms_;
  std::vector<KnobStep> steps_;
};

}  // namespace

std::vector<KnobStep> sensitivity(const LayoutSpace& space, const LayoutChoice& choice) {
  return KnobTurner(space, choice).turn();
}

}  // namespace weft::plan
