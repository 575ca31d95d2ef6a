#include "weft/plan/search/kept_search.h"

#include <algorithm>
#include <array>
#include <exception>
#include <type_traits>

#include "weft/base/text.h"
#include "weft/config/dump.h"
#include "weft/plan/search/plan_verdicts.h"

namespace weft::plan {
namespace {

using base::Json;
using base::text;

// Visits every field in the order shared by writer and reader.
template <typename Choice, typename Visit>
void each_of_choice(Choice& choice, const Visit& visit) {
  visit(choice.tp), visit(choice.pp), visit(choice.vpp), visit(choice.cp), visit(choice.ep);
  visit(choice.etp), visit(choice.mbs), visit(choice.carrier), visit(choice.order);
  visit(choice.state), visit(choice.recompute), visit(choice.offload), visit(choice.host_state);
  visit(choice.graphs);
}

template <typename Memory, typename Visit>
void each_of_memory(Memory& memory, const Visit& visit) {
  visit(memory.pp_rank), visit(memory.weights), visit(memory.gradients), visit(memory.optimizer);
  visit(memory.activations), visit(memory.logits), visit(memory.buffers), visit(memory.graphs);
  visit(memory.reserved), visit(memory.capacity), visit(memory.host), visit(memory.host_capacity);
}

template <typename PriceType, typename Visit>
void each_of_price(PriceType& price, const Visit& visit) {
  visit(price.step_ms), visit(price.tokens_per_second_per_gpu), visit(price.tflops_per_gpu);
  visit(price.mfu), visit(price.bubble), visit(price.exposed.ep), visit(price.exposed.dp);
  visit(price.exposed.tp), visit(price.exposed.pp), visit(price.exposed.cp);
  visit(price.exposed.copy), visit(price.exposed.host), visit(price.exposed.update);
  visit(price.compute.products), visit(price.compute.attention), visit(price.compute.memory);
  visit(price.compute.optimizer), visit(price.wall);
  each_of_memory(price.memory, visit);
}

// Appends fields to an array.
class FieldWriter {
 public:
  template <typename Value>
  void operator()(const Value& value) const {
    if constexpr (std::is_enum_v<Value>) {
      list_->push_back(static_cast<int>(value));
    } else {
      list_->push_back(value);
    }
  }
  explicit FieldWriter(Json& list) : list_(&list) {}

 private:
  Json* list_;
};

// Thrown for a value outside of its range: a file is untrusted input.
class OutOfRange : public std::exception {};

// Number of values of an enumeration.
constexpr int values_of(Carrier) { return static_cast<int>(Carrier::HybridEp) + 1; }
constexpr int values_of(StepOrder) { return static_cast<int>(kStepOrders); }
constexpr int values_of(StateHolder) { return static_cast<int>(StateHolder::Whole) + 1; }
constexpr int values_of(Graphs) { return static_cast<int>(Graphs::Whole) + 1; }
constexpr int values_of(Wall) { return static_cast<int>(Wall::Memory) + 1; }

template <typename Enum>
Enum enum_of(std::int64_t value) {
  if (value < 0 || value >= values_of(Enum())) throw OutOfRange();
  return static_cast<Enum>(value);
}

// Reads fields from an array in order. Json::exception if there are too few, OutOfRange for a
// negative size or a number outside of an enumeration.
class FieldReader {
 public:
  explicit FieldReader(const Json& list) : list_(&list) {}

  template <typename Value>
  void operator()(Value& value) const {
    const Json& one = list_->at(at_++);
    if constexpr (std::is_enum_v<Value>) {
      value = enum_of<Value>(one.get<std::int64_t>());
    } else if constexpr (std::is_same_v<Value, std::size_t>) {
      const auto signed_value = one.get<std::int64_t>();
      if (signed_value < 0) throw OutOfRange();
      value = static_cast<std::size_t>(signed_value);
    } else {
      value = one.get<Value>();
    }
  }

 private:
  const Json* list_;
  mutable std::size_t at_ = 0;
};

Json json_of(const LayoutChoice& choice) {
  Json list = Json::array();
  each_of_choice(choice, FieldWriter(list));
  const auto format = std::ranges::find(kProductFormats, choice.number);
  list.push_back(choice.number ? format - kProductFormats.begin() : -1);
  return list;
}

void read(const Json& json, LayoutChoice& choice) {
  const FieldReader reader(json);
  each_of_choice(choice, reader);
  std::int64_t format = -1;
  reader(format);
  if (format >= std::ssize(kProductFormats)) throw OutOfRange();
  if (format >= 0) choice.number = kProductFormats[static_cast<std::size_t>(format)];
  const bool is_shape = std::ranges::min({choice.tp, choice.pp, choice.vpp}) > 0 &&
                        std::ranges::min({choice.cp, choice.ep, choice.etp, choice.mbs}) > 0;
  if (!is_shape || choice.host_state > kStateQuarters) throw OutOfRange();
}

Json json_of(const MemoryPrice& memory) {
  Json list = Json::array();
  each_of_memory(memory, FieldWriter(list));
  return list;
}

void read(const Json& json, MemoryPrice& memory) { each_of_memory(memory, FieldReader(json)); }

Json json_of(const Price& price) {
  Json list = Json::array();
  each_of_price(price, FieldWriter(list));
  return list;
}

void read(const Json& json, Price& price) { each_of_price(price, FieldReader(json)); }

Json json_of(const PricedLayout& layout) {
  return {json_of(layout.choice), json_of(layout.price), layout.is_counted};
}

void read(const Json& json, PricedLayout& layout) {
  read(json.at(0), layout.choice);
  read(json.at(1), layout.price);
  layout.is_counted = json.at(2).get<bool>();
}

template <typename Part>
Json json_of(const std::optional<Part>& part) {
  return part ? json_of(*part) : Json();
}

template <typename Part>
void read(const Json& json, std::optional<Part>& part) {
  if (json.is_null()) return;
  read(json, part.emplace());
}

Json json_of(const DiscardedLayouts& heap) {
  return {heap.why, heap.layouts, json_of(heap.nearest), heap.lack};
}

void read(const Json& json, DiscardedLayouts& heap) {
  heap.why = json.at(0).get<std::string>();
  heap.layouts = json.at(1).get<std::int64_t>();
  read(json.at(2), heap.nearest);
  heap.lack = json.at(3).get<std::string>();
}

Json json_of(const KnobStep& step) {
  return {step.knob,
          step.from,
          step.to,
          json_of(step.price),
          json_of(step.memory),
          step.more_bytes,
          step.why_not};
}

void read(const Json& json, KnobStep& step) {
  step.knob = json.at(0).get<std::string>();
  step.from = json.at(1).get<std::string>();
  step.to = json.at(2).get<std::string>();
  read(json.at(3), step.price);
  read(json.at(4), step.memory);
  step.more_bytes = json.at(5).get<double>();
  step.why_not = json.at(6).get<std::string>();
}

Json json_of(const PlanVerdict& verdict) {
  return {verdict.question, verdict.pays, verdict.gain, verdict.because};
}

void read(const Json& json, PlanVerdict& verdict) {
  verdict.question = json.at(0).get<std::string>();
  verdict.pays = json.at(1).get<bool>();
  verdict.gain = json.at(2).get<double>();
  verdict.because = json.at(3).get<std::string>();
}

Json json_of(const FitWay& way) { return {way.change, json_of(way.layout), way.said}; }

void read(const Json& json, FitWay& way) {
  way.change = json.at(0).get<std::string>();
  read(json.at(1), way.layout);
  way.said = json.at(2).get<std::string>();
}

template <typename Part>
Json list_of(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts) list.push_back(json_of(part));
  return list;
}

template <typename Part>
void read(const Json& json, std::vector<Part>& parts) {
  for (const Json& one : json) read(one, parts.emplace_back());
}

void read(const Json& json, SearchResult& search) {
  search.shapes = json.at("shapes").get<std::int64_t>();
  search.fitting = json.at("fitting").get<std::int64_t>();
  search.offloading = json.at("offloading").get<std::int64_t>();
  search.priced = json.at("priced").get<std::int64_t>();
  search.simulated = json.at("simulated").get<std::int64_t>();
  read(json.at("ranked"), search.ranked);
  read(json.at("front"), search.front);
  read(json.at("discarded"), search.discarded);
  search.refusals = json.at("refusals").get<std::vector<std::string>>();
  for (std::size_t i = 0; i < kStepOrders; ++i) {
    read(json.at("best_of_order").at(i), search.best_of_order[i]);
  }
  read(json.at("best_full"), search.best_full);
  read(json.at("best_resident"), search.best_resident);
  read(json.at("best_offloading"), search.best_offloading);
  read(json.at("best_safe"), search.best_safe);
  read(json.at("nearest"), search.nearest);
}

std::string hardware_text(const Hardware& hardware) {
  std::string all =
      text("{} {} {}\n", hardware.name, static_cast<int>(hardware.device), word(hardware.program));
  for (const HardwareKey& key : hardware_keys()) all += text("{}={}\n", key.key, key.get(hardware));
  return all;
}

}  // namespace

std::string question_text(const PlanAsk& ask, const std::vector<Hardware>& others) {
  std::string all = config::to_yaml(ask.start);
  all += text("pinned {}\nsafe {}\ncounted {}\n",
              fmt::join(ask.pinned, " "),
              ask.is_safe,
              ask.counter != nullptr);
  for (const DType number : ask.numbers) all += text("number {}\n", name_of(number));
  all += text("imbalance {}\n", ask.routing.imbalance);
  if (ask.routing.skew) all += text("skew {}\n", *ask.routing.skew);
  for (const auto& [layer, load] : ask.routing.layers) {
    all += text("layer {} {} {} {}\n", layer, load.p50, load.p95, load.max);
  }
  all += hardware_text(ask.hardware);
  for (const Hardware& other : others) all += hardware_text(other);
  return all;
}

Json to_json(const KeptSearch& kept) {
  const SearchResult& search = kept.search;
  Json orders = Json::array();
  for (const auto& best : search.best_of_order) orders.push_back(json_of(best));
  return {{"top", kept.top},
          {"shapes", search.shapes},
          {"fitting", search.fitting},
          {"offloading", search.offloading},
          {"priced", search.priced},
          {"simulated", search.simulated},
          {"ranked", list_of(search.ranked)},
          {"front", list_of(search.front)},
          {"discarded", list_of(search.discarded)},
          {"refusals", search.refusals},
          {"best_of_order", std::move(orders)},
          {"best_full", json_of(search.best_full)},
          {"best_resident", json_of(search.best_resident)},
          {"best_offloading", json_of(search.best_offloading)},
          {"best_safe", json_of(search.best_safe)},
          {"nearest", json_of(search.nearest)},
          {"steps", list_of(kept.steps)},
          {"verdicts", list_of(kept.verdicts)},
          {"ways", list_of(kept.ways)}};
}

std::optional<KeptSearch> kept_search(const Json& json) {
  KeptSearch kept;
  try {
    const auto top = json.at("top").get<std::int64_t>();
    if (top < 0) throw OutOfRange();
    kept.top = static_cast<std::size_t>(top);
    read(json, kept.search);
    read(json.at("steps"), kept.steps);
    read(json.at("verdicts"), kept.verdicts);
    read(json.at("ways"), kept.ways);
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const OutOfRange&) {
    return std::nullopt;
  }
  return kept;
}

bool is_part_of(const LayoutSpace& space, const KeptSearch& kept) {
  const LayoutWriter& writer = space.writer();
  const auto is_layout = [&](const LayoutChoice& choice) {
    return choice.recompute < writer.ladder().size() && choice.offload < writer.offloads().size() &&
           space.complaint(choice).empty();
  };
  const auto is_priced = [&](const PricedLayout& layout) { return is_layout(layout.choice); };
  const auto is_one = [&](const std::optional<PricedLayout>& layout) {
    return !layout || is_priced(*layout);
  };
  const SearchResult& search = kept.search;
  return std::ranges::all_of(search.ranked, is_priced) &&
         std::ranges::all_of(search.front, is_priced) &&
         std::ranges::all_of(search.best_of_order, is_one) &&
         std::ranges::all_of(search.discarded,
                             [&](const DiscardedLayouts& heap) {
                               return !heap.nearest || is_layout(*heap.nearest);
                             }) &&
         is_one(search.best_full) && is_one(search.best_resident) &&
         is_one(search.best_offloading) && is_one(search.best_safe) && is_one(search.nearest);
}

}  // namespace weft::plan
