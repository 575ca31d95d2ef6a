#include "weft/plan/hardware/calibration_text.h"

#include <array>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::plan {
namespace {

constexpr const char* kFormat = "weft calibration 3";
constexpr double kMost = 1e9;

template <typename Of>
struct NamedNumber {
  const char* name;
  double Of::*field;
};

constexpr std::array kRates{
    NamedNumber<MachineRates>{"product_flop", &MachineRates::product_flop},
    NamedNumber<MachineRates>{"weight_byte", &MachineRates::weight_byte},
    NamedNumber<MachineRates>{"product", &MachineRates::product},
    NamedNumber<MachineRates>{"attention_forward_flop", &MachineRates::attention_forward_flop},
    NamedNumber<MachineRates>{"attention_backward_flop", &MachineRates::attention_backward_flop},
    NamedNumber<MachineRates>{"memory_byte", &MachineRates::memory_byte},
    NamedNumber<MachineRates>{"memory_call", &MachineRates::memory_call},
    NamedNumber<MachineRates>{"link_byte", &MachineRates::link_byte},
    NamedNumber<MachineRates>{"link_call", &MachineRates::link_call},
    NamedNumber<MachineRates>{"wake", &MachineRates::wake},
    NamedNumber<MachineRates>{"turn", &MachineRates::turn},
    NamedNumber<MachineRates>{"untraced", &MachineRates::untraced},
    NamedNumber<MachineRates>{"beside_communication", &MachineRates::beside_communication},
    NamedNumber<MachineRates>{"beside_compute", &MachineRates::beside_compute},
    NamedNumber<MachineRates>{"cores", &MachineRates::cores}};

constexpr std::array kFactors{NamedNumber<NodeFactor>{"product", &NodeFactor::product},
                              NamedNumber<NodeFactor>{"attention", &NodeFactor::attention},
                              NamedNumber<NodeFactor>{"memory", &NodeFactor::memory},
                              NamedNumber<NodeFactor>{"link", &NodeFactor::link},
                              NamedNumber<NodeFactor>{"other", &NodeFactor::other},
                              NamedNumber<NodeFactor>{"memory_calls", &NodeFactor::memory_calls},
                              NamedNumber<NodeFactor>{"seconds", &NodeFactor::seconds}};

[[noreturn]] void refuse_calibration(const std::string& what) {
  throw base::ConfigError("this is no calibration of `weft calibrate`: " + what);
}

template <typename Of, std::size_t n>
base::Json written(const Of& values, const std::array<NamedNumber<Of>, n>& names) {
  base::Json json = base::Json::object();
  for (const NamedNumber<Of>& each : names) json[each.name] = values.*each.field;
  return json;
}

template <typename Of, std::size_t n>
Of read(const base::Json& json,
        const std::string& where,
        const std::array<NamedNumber<Of>, n>& names) {
  if (!json.is_object()) refuse_calibration(base::text("'{}' is not an object", where));
  Of values;
  for (const NamedNumber<Of>& each : names) {
    const base::Json found = json.value(each.name, base::Json());
    const double value = found.is_number() ? found.get<double>() : -1;
    if (!(value >= 0 && value <= kMost)) {
      refuse_calibration(
          base::text("'{}' of {} is not a number from 0 to {:g}", each.name, where, kMost));
    }
    values.*each.field = value;
  }
  return values;
}

// Plausible range. For a cost in seconds: the inverse of the least and largest rate. For other
// values: the values themselves.
struct PlausibleRate {
  std::string_view name, unit;
  double MachineRates::*field;
  double scale;  // `unit` in seconds, FLOP or bytes
  double least, most;
  bool is_rate;
};

using R = MachineRates;
constexpr std::array kPlausible = std::to_array<PlausibleRate>({
    {"products", "GFLOP/s", &R::product_flop, 1e9, 0.01, 1e8, true},
    {"attention forward", "GFLOP/s", &R::attention_forward_flop, 1e9, 0.001, 1e8, true},
    {"attention backward", "GFLOP/s", &R::attention_backward_flop, 1e9, 0.001, 1e8, true},
    {"memory", "GB/s", &R::memory_byte, 1e9, 0.01, 1e6, true},
    {"links", "GB/s", &R::link_byte, 1e9, 0.001, 1e6, true},
    {"a product of any size", "us", &R::product, 1e-6, 0, 1e4, false},
    {"another operation", "us", &R::memory_call, 1e-6, 0, 1e4, false},
    {"an exchange", "us", &R::link_call, 1e-6, 0, 1e5, false},
    {"a wait between lanes", "us", &R::wake, 1e-6, 0, 1e5, false},
    {"a turn on a core that ranks share", "us", &R::turn, 1e-6, 0, 1e5, false},
    {"compute beside communication", "times", &R::beside_communication, 1, 0, 20, false},
    {"communication beside compute", "times", &R::beside_compute, 1, 0, 20, false},
});

constexpr double kMostFactor = 1000;
constexpr std::size_t kMostDoubts = 8;

}  // namespace

std::vector<std::string> calibration_doubts(const Calibration& calibration) {
  std::vector<std::string> doubts;
  for (const PlausibleRate& each : kPlausible) {
    const double seconds = calibration.rates.*each.field;
    if (seconds == 0) continue;  // not measurable
    const double value = each.is_rate ? 1 / seconds / each.scale : seconds / each.scale;
    if (value >= each.least && value <= each.most) continue;
    doubts.push_back(base::text("{}: {:.4g} {}, where machines have {:g} to {:g}",
                                each.name,
                                value,
                                each.unit,
                                each.least,
                                each.most));
  }
  for (const auto& [kind, factor] : calibration.nodes) {
    for (const double times : {factor.product, factor.attention, factor.memory, factor.link}) {
      if (times <= kMostFactor) continue;
      doubts.push_back(base::text("{}: {:.4g} times what the rates say", kind, times));
      break;
    }
    if (doubts.size() >= kMostDoubts) break;
  }
  return doubts;
}

std::string describe(const MachineRates& rates) {
  const auto per_second = [](double seconds, double unit, const char* name) {
    if (seconds <= 0) return std::string("without a limit that was seen");
    return base::text("{:.4g} {}", 1 / seconds / unit, name);
  };
  return base::text(
      "products {}, weights {}, attention {} forward and {} backward, memory {}, links {}\na "
      "product of any size {:.2f} us, of another operation {:.2f} us, of an exchange "
      "{:.2f} "
      "us; a wait between lanes {:.2f} us, a turn on a core that ranks share {:.2f} us; compute "
      "beside communication "
      "+{:.1f} %, communication "
      "beside compute +{:.1f} %\n",
      per_second(rates.product_flop, 1e9, "GFLOP/s"),
      per_second(rates.weight_byte, 1e9, "GB/s"),
      per_second(rates.attention_forward_flop, 1e9, "GFLOP/s"),
      per_second(rates.attention_backward_flop, 1e9, "GFLOP/s"),
      per_second(rates.memory_byte, 1e9, "GB/s"),
      per_second(rates.link_byte, 1e9, "GB/s"),
      rates.product * 1e6,
      rates.memory_call * 1e6,
      rates.link_call * 1e6,
      rates.wake * 1e6,
      rates.turn * 1e6,
      rates.beside_communication * 100,
      rates.beside_compute * 100);
}

std::string print(const Calibration& calibration) {
  base::Json nodes = base::Json::object();
  for (const auto& [kind, factor] : calibration.nodes) nodes[kind] = written(factor, kFactors);
  const base::Json json{{"format", kFormat},
                        {"rates", written(calibration.rates, kRates)},
                        {"nodes", std::move(nodes)}};
  return json.dump(1) + "\n";
}

Calibration parse_calibration(std::string_view text) {
  const base::Json json = base::try_parse_json(text);
  if (json.is_discarded() || !json.is_object()) {
    refuse_calibration("it is not JSON, or not an object");
  }
  if (json.value("format", base::Json()) != kFormat) {
    refuse_calibration(base::text("'format' is not \"{}\"", kFormat));
  }
  Calibration calibration{.rates = read(json.value("rates", base::Json()), "rates", kRates),
                          .nodes = {}};
  const base::Json nodes = json.value("nodes", base::Json());
  if (!nodes.is_object()) refuse_calibration("'nodes' is not an object");
  for (const auto& [kind, value] : nodes.items()) {
    calibration.nodes[kind_of_node(schedule::parse_node(kind))] = read(value, kind, kFactors);
  }
  return calibration;
}

}  // namespace weft::plan
