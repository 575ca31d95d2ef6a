#include <algorithm>
#include <array>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/rules/rule.h"
#include "weft/rules/topics.h"

namespace weft::rules {
namespace {

const std::vector<Topic>& all_topics() {
  static const std::vector<Topic> all{
      {"Command line", word_rules()},
      {"Input", input_rules()},
      {"Old names", old_name_rules()},
      {"Hardware", hardware_rules()},
      {"Precision", precision_rules()},
      {"fp8 and fp4", quantization_rules()},
      {"Model", model_rules()},
      {"Experts", expert_rules()},
      {"Router", router_rules()},
      {"Capacity and padding", capacity_rules()},
      {"Layout", layout_rules()},
      {"Context parallelism", context_rules()},
      {"Order of a pipeline", pipeline_order_rules()},
      {"Pipeline", pipeline_rules()},
      {"Dispatchers", dispatcher_rules()},
      {"Flex backends", flex_backend_rules()},
      {"Recomputation", recompute_rules()},
      {"Offload", offload_rules()},
      // Before graphs: it judges scopes by name, including those that the graph rules clear.
      {"Delayed weight gradients", delayed_wgrad_rules()},
      {"CUDA graphs", graph_rules()},
      {"Scopes of CUDA graphs", graph_scope_rules()},
      {"Tensor-parallel overlap", tensor_overlap_rules()},
      {"Sharding", sharding_rules()},
      {"State of the optimizer", optimizer_state_rules()},
      {"Data-parallel overlap", data_parallel_rules()},
      {"Expert-parallel overlap", expert_overlap_rules()},
      {"Beside expert-parallel overlap", overlap_conflict_rules()},
      {"Token slices", token_slice_rules()},
      {"Data", dataset_rules()},
      {"Length of a run", learning_rules()},
      {"Run", run_rules()},
      {"Fabric", fabric_rules()},
      {"Keys without effect", idle_rules()},
  };
  return all;
}

}  // namespace

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::Error:
      return "error";
    case Kind::Warning:
      return "warning";
    case Kind::Automatic:
      return "automatic";
    case Kind::Mended:
      return "warning, automatic";
  }
  UNREACHABLE("kind {}", static_cast<int>(kind));
}

std::span<const Topic> topics() { return all_topics(); }

std::span<const Rule> rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> joined;
    for (const Topic& topic : all_topics()) {
      joined.insert(joined.end(), topic.rules.begin(), topic.rules.end());
    }
    return joined;
  }();
  return all;
}

const Rule* find_rule(std::string_view id) {
  const auto has = [&](const Rule& rule) {
    const std::vector<std::string> others = base::split(rule.also, ' ');
    return rule.id == id || std::ranges::find(others, id) != others.end();
  };
  const auto all = rules();
  const auto at = std::ranges::find_if(all, has);
  return at == all.end() ? nullptr : &*at;
}

}  // namespace weft::rules
