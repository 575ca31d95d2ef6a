#include "weft/exec/sim/costs.h"

#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::exec::sim {
namespace {

using base::ConfigError;
using base::Json;

schedule::Node row_of(schedule::Node node) {
  node.micro_batch = schedule::kNone;
  return node;
}

std::optional<trace::SpanKind> parse_kind(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(trace::SpanKind::Host); ++i) {
    if (trace::word(static_cast<trace::SpanKind>(i)) == text) {
      return static_cast<trace::SpanKind>(i);
    }
  }
  return std::nullopt;
}

Cost parse_cost(const std::string& row, const Json& json) {
  const double seconds = json.at("seconds").get<double>();
  if (!std::isfinite(seconds) || seconds < 0) {
    throw ConfigError(base::text("cost of {}: {} seconds, expected 0 or more", row, seconds));
  }
  const std::optional<trace::SpanKind> kind = parse_kind(json.at("kind").get<std::string>());
  if (!kind) {
    throw ConfigError(base::text("cost of {}: '{}' is not a kind of work, as gemm is",
                                 row,
                                 json.at("kind").get<std::string>()));
  }
  return {.seconds = seconds, .kind = *kind};
}

}  // namespace

void CostTable::set(int rank, schedule::Node node, Cost cost) {
  ranks_[rank].insert_or_assign(row_of(node), cost);
}

const Cost* CostTable::find(int rank, schedule::Node node) const {
  const auto rows = ranks_.find(rank);
  if (rows == ranks_.end()) return nullptr;
  const auto row = rows->second.find(row_of(node));
  return row == rows->second.end() ? nullptr : &row->second;
}

CostOf CostTable::for_graphs(const std::vector<const schedule::Graph*>& graphs) const {
  const auto costs = std::make_shared<std::vector<std::vector<Cost>>>(graphs.size());
  std::set<std::pair<int, schedule::Node>> missing;
  for (int rank = 0; static_cast<std::size_t>(rank) < graphs.size(); ++rank) {
    for (const schedule::Entry& entry : graphs[static_cast<std::size_t>(rank)]->entries) {
      const Cost* cost = find(rank, entry.node);
      if (!cost) missing.emplace(rank, row_of(entry.node));
      (*costs)[static_cast<std::size_t>(rank)].push_back(cost ? *cost : Cost{});
    }
  }
  std::vector<std::string> complaints;
  for (const auto& [rank, row] : missing) {
    complaints.push_back(base::text("no cost for {} on rank {}: measure a run that has it",
                                    schedule::print(row),
                                    rank));
  }
  if (!complaints.empty()) throw ConfigError(std::move(complaints));
  return [costs](int rank, int entry) {
    return (*costs)[static_cast<std::size_t>(rank)][static_cast<std::size_t>(entry)];
  };
}

std::string print(const CostTable& table) {
  Json ranks = Json::array();
  for (const auto& [rank, rows] : table.ranks()) {
    Json costs = Json::object();
    for (const auto& [node, cost] : rows) {
      costs[schedule::print(node)] = {{"seconds", cost.seconds}, {"kind", trace::word(cost.kind)}};
    }
    ranks.push_back({{"rank", rank}, {"costs", std::move(costs)}});
  }
  return Json{{"ranks", std::move(ranks)}}.dump(1);
}

CostTable parse_costs(std::string_view text) {
  CostTable table;
  try {
    const Json json = base::parse_json(text);
    for (const Json& rank : json.at("ranks")) {
      for (const auto& [name, cost] : rank.at("costs").items()) {
        const schedule::Node node = schedule::parse_node(name);
        if (node.micro_batch != schedule::kNone) {
          throw ConfigError(base::text("cost of {}: a row has no micro-batch", name));
        }
        table.set(rank.at("rank").get<int>(), node, parse_cost(name, cost));
      }
    }
  } catch (const Json::exception& error) {
    throw ConfigError(base::text("costs: not as `weft bench overlap --costs FILE` leaves them ({})",
                                 base::reason_of(error)));
  }
  return table;
}

}  // namespace weft::exec::sim
