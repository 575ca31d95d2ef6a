#include "weft/schedule/text/plan_files.h"

#include <algorithm>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/schedule/census.h"
#include "weft/schedule/node_index.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace {

namespace fs = std::filesystem;

// Files of another config differ in thousands of nodes; more lines would not be read.
constexpr std::size_t kMostComplaints = 20;

Graph read_graph(const fs::path& file) {
  try {
    return parse_graph(base::read_text(file));
  } catch (const base::SystemError& error) {
    throw base::ConfigError(
        base::text("{}: write schedules with `weft schedule --write FOLDER`", error.what()));
  } catch (const base::ConfigError& error) {
    throw base::ConfigError(base::text("{}: {}", file.string(), error.what()));
  }
}

std::vector<std::string> shortened(std::vector<std::string> complaints) {
  if (complaints.size() <= kMostComplaints) return complaints;
  const std::size_t more = complaints.size() - kMostComplaints;
  complaints.resize(kMostComplaints);
  complaints.back() += base::text(" ... and {} more like these", more);
  return complaints;
}

// Micro-batches and layers of an order.
struct Extent {
  int micro_batches = 0, layers = 0;

  void take(const Node& node) {
    micro_batches = std::max(micro_batches, node.micro_batch + 1);
    layers = std::max(layers, node.layer + 1);
  }
};

// Complaint if the file's order has other micro-batches or layers, or both unknown and missing
// nodes; nullopt: none.
std::optional<std::string> written_for_another(const RankPlan& plan) {
  const std::vector<Node> wanted =
      all_nodes(plan.anatomy, plan.shape.micro_batches, StepKind::Training);
  NodeIndex expected, found;
  Extent own, others;
  for (const Node& node : wanted) {
    expected.add(node, 0);
    own.take(node);
  }
  for (const Entry& entry : plan.training.entries) {
    found.add(entry.node, 0);
    others.take(entry.node);
  }
  std::string difference;
  if (others.micro_batches != own.micro_batches) {
    difference = base::text("it has {}, and this run has {}",
                            base::counted(others.micro_batches, "micro-batch"),
                            own.micro_batches);
  } else if (others.layers != own.layers) {
    difference =
        base::text("its last layer is {}, and this run's is {}", others.layers - 1, own.layers - 1);
  } else {
    const auto is_foreign = [&](const Entry& entry) { return !expected.contains(entry.node); };
    const auto is_missing = [&](const Node& node) { return !found.contains(node); };
    const auto foreign = std::ranges::find_if(plan.training.entries, is_foreign);
    const auto missing = std::ranges::find_if(wanted, is_missing);
    if (foreign == plan.training.entries.end() || missing == wanted.end()) return std::nullopt;
    difference =
        base::text("it has {}, and this run has {}", print(foreign->node), print(*missing));
  }
  return base::text(
      "it was written for another step: {}; write it again by `weft schedule --write` with the "
      "keys of this run",
      difference);
}

}  // namespace

fs::path file_of(const fs::path& folder, int pp_rank) {
  return folder / base::text("rank{}.txt", pp_rank);
}

void write_orders(const fs::path& folder, const std::vector<RankPlan>& plans) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw base::SystemError(
        base::text("cannot make folder '{}': {}", folder.string(), error.message()));
  }
  for (const RankPlan& plan : plans) {
    base::write_whole(file_of(folder, plan.anatomy.pp_rank), print(plan.training));
  }
}

void read_orders(const fs::path& folder, std::vector<RankPlan>& plans) {
  std::vector<std::string> complaints;
  for (RankPlan& plan : plans) {
    try {
      plan.training = read_graph(file_of(folder, plan.anatomy.pp_rank));
    } catch (const base::ConfigError& error) {
      complaints.push_back(error.what());
    }
  }
  const fs::path beyond = file_of(folder, static_cast<int>(plans.size()));
  std::error_code ignored;
  if (fs::exists(beyond, ignored)) {
    complaints.push_back(
        base::text("{} is of no rank: the layout has {}; remove it, or use the "
                   "layout it was written for",
                   beyond.string(),
                   base::counted(std::ssize(plans), "pipeline rank")));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

std::vector<std::string> verify_orders(const fs::path& folder, const std::vector<RankPlan>& plans) {
  std::vector<std::string> complaints;
  for (const RankPlan& plan : plans) {
    const std::string file = file_of(folder, plan.anatomy.pp_rank).string();
    if (const auto why = written_for_another(plan)) return {base::text("{}: {}", file, *why)};
    const std::vector<Fault> faults =
        verify(plan.training, plan.anatomy, plan.shape.micro_batches, StepKind::Training);
    for (const std::string& complaint : complaints_of(faults, {&plan.training})) {
      complaints.push_back(base::text("{}: {}", file, complaint));
    }
  }
  if (!complaints.empty()) return shortened(std::move(complaints));
  // Each order is valid alone; remaining errors are between ranks, and name them.
  for (const std::string& complaint : verify_plan(plans)) {
    complaints.push_back(base::text("{}: {}", folder.string(), complaint));
  }
  return shortened(std::move(complaints));
}

void take_orders_from(const fs::path& folder, std::vector<RankPlan>& plans) {
  read_orders(folder, plans);
  std::vector<std::string> complaints = verify_orders(folder, plans);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

}  // namespace weft::schedule
