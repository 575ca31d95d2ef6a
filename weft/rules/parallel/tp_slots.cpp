#include "weft/rules/parallel/tp_slots.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "weft/base/text.h"

namespace weft::rules {
namespace {

using base::Json;
using base::text;
using Faults = std::vector<std::string>;

constexpr std::size_t kMostSlotBytes = 16 * 1024;

// Range of a number with a collective; without one it must be 0.
struct Bounds {
  int low = 1, high = 1;
};
constexpr Bounds kSms{1, 1024}, kCga{1, 16}, kSplits{1, 64};

constexpr std::array<std::string_view, 7>
    kMembers{"method", "num_sm", "cga_size", "set_sm_margin", "num_splits", "aggregate", "fp8_buf"};

std::string said(const Json& value) { return base::shown(value.dump().substr(0, 80)); }

std::optional<TpMethod> method_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  for (const TpMethod method :
       {TpMethod::Bulk, TpMethod::Pipeline, TpMethod::Ring, TpMethod::None}) {
    if (value == word(method)) return method;
  }
  return std::nullopt;
}

// "fc1: unknown: did you mean 'fc1_dgrad'?"
template <typename Names>
std::string unknown(const std::string& key, const Names& names) {
  const std::vector<std::string> all(names.begin(), names.end());
  const auto best = key.size() <= 80 ? base::nearest(key, all) : std::nullopt;
  return text("'{}' is unknown: {}",
              base::shown(key.substr(0, 80)),
              best ? text("did you mean '{}'?", *best) : text("use {}", fmt::join(all, ", ")));
}

class SlotReader {
 public:
  SlotReader(std::string_view product, const Json& slot, Faults& faults)
      : product_(product), slot_(slot), faults_(faults) {}

  TpSlot read() {
    TpSlot read;
    if (!slot_.is_object()) {
      faults_.push_back(text("{} = {}: give an object", product_, said(slot_)));
      return read;
    }
    for (const auto& [key, value] : slot_.items()) {
      const bool known = std::ranges::find(kMembers, key) != kMembers.end();
      if (!known) faults_.push_back(text("{}: {}", product_, unknown(key, kMembers)));
    }
    read.method = method();
    const bool none = read.method == TpMethod::None;
    read.sms = number("num_sm", none ? Bounds{0, 0} : kSms);
    read.cga = number("cga_size", none ? Bounds{0, 0} : kCga);
    read.splits = number("num_splits", none ? Bounds{0, 0} : kSplits);
    read.sm_margin = flag("set_sm_margin");
    read.aggregate = flag("aggregate");
    read.fp8_buffer = flag("fp8_buf");
    if (read.aggregate && read.method != TpMethod::Ring) {
      fault("aggregate", "only a ring_exchange takes its pieces two at a time");
    }
    return read;
  }

 private:
  void fault(std::string_view member, std::string_view fix) {
    faults_.push_back(text("{}.{} = {}: {}", product_, member, said(slot_.at(member)), fix));
  }

  // Member by name; nullptr, with a fault, if it is missing.
  const Json* member(std::string_view name) {
    if (const auto at = slot_.find(name); at != slot_.end()) return &*at;
    faults_.push_back(text("{} lacks {}", product_, name));
    return nullptr;
  }

  TpMethod method() {
    const Json* value = member("method");
    if (value == nullptr) return TpMethod::Ring;
    const std::optional<TpMethod> method = method_of(*value);
    if (!method) fault("method", "use bulk, pipeline, ring_exchange or none");
    return method.value_or(TpMethod::Ring);
  }

  int number(std::string_view name, Bounds bounds) {
    const Json* value = member(name);
    if (value == nullptr) return bounds.low;
    const bool fits = value->is_number_integer() && *value >= bounds.low && *value <= bounds.high;
    if (fits) return value->get<int>();
    fault(name,
          bounds.low == bounds.high ? text("use {}", bounds.low)
                                    : text("use {} to {}", bounds.low, bounds.high));
    return bounds.low;
  }

  bool flag(std::string_view name) {
    const Json* value = member(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fault(name, "use true or false");
    return value->is_boolean() && value->get<bool>();
  }

  std::string_view product_;
  const Json& slot_;
  Faults& faults_;
};

// Parsed value, with a fault for each repeated key of an object; or a discarded value.
Json parsed(std::string_view json, Faults& faults) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      faults.push_back(text("{} is given twice", said(value)));
    }
    return true;
  };
  try {
    return base::parse_json(json, watch);
  } catch (const Json::exception& error) {
    faults.push_back(text("it is no JSON: {}", base::reason_of(error)));
    return Json(Json::value_t::discarded);
  }
}

}  // namespace

bool gives_slots(std::string_view value) { return base::trim(value).starts_with('{'); }

GivenSlots read_slots(std::string_view json) {
  GivenSlots given;
  if (json.size() > kMostSlotBytes) {
    given.faults.push_back(text("{} bytes, and at most {} are read", json.size(), kMostSlotBytes));
    return given;
  }
  const Json all = parsed(json, given.faults);
  if (all.is_discarded()) return given;
  std::vector<std::string_view> products;
  for (const NamedSlot& slot : slots_of(tp_presets().front())) products.push_back(slot.name);
  for (const auto& [key, value] : all.items()) {
    if (std::ranges::find(products, key) == products.end()) {
      given.faults.push_back(unknown(key, products));
    }
  }
  for (const std::string_view product : products) {
    const auto at = all.find(product);
    if (at == all.end()) {
      given.faults.push_back(text("{} is missing", product));
    } else {
      given.slots.push_back({product, SlotReader(product, *at, given.faults).read()});
    }
  }
  if (!given.faults.empty()) given.slots.clear();
  return given;
}

Json to_json(const std::vector<NamedSlot>& slots) {
  Json json = Json::object();
  for (const auto& [name, slot] : slots) {
    json[std::string(name)] = {{"method", word(slot.method)},
                               {"num_sm", slot.sms},
                               {"cga_size", slot.cga},
                               {"set_sm_margin", slot.sm_margin},
                               {"num_splits", slot.splits},
                               {"aggregate", slot.aggregate},
                               {"fp8_buf", slot.fp8_buffer}};
  }
  return json;
}

}  // namespace weft::rules
