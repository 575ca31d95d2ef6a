// Layout as text: in full, or its difference from another.
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/plan/search/layout_choice.h"

namespace weft::plan {
namespace {

using base::text;

std::string offload_words(const LayoutChoice& choice, const LayoutWriter& writer) {
  std::vector<std::string_view> words;
  for (const config::OffloadModule module : writer.offloaded(choice.offload, choice.recompute)) {
    words.push_back(config::word(module));
  }
  return text("{}", fmt::join(words, ", "));
}

// "moe_act, layernorm"; empty: no recomputation.
std::string recompute_words(const LayoutChoice& choice, const LayoutWriter& writer) {
  const RecomputeRung& rung = writer.ladder().at(choice.recompute);
  if (rung.is_full || rung.is_given) return rung.name;
  std::vector<std::string_view> words;
  for (const config::RecomputeModule module : writer.recomputed(choice)) {
    words.push_back(config::word(module));
  }
  return text("{}", fmt::join(words, ", "));
}

std::string_view graphs_word(Graphs graphs) {
  switch (graphs) {
    case Graphs::Given:
      return "";
    case Graphs::Scoped:
      return "graphs";
    case Graphs::Whole:
      return "whole-step graphs";
    case Graphs::None:
      return "no graphs";
  }
  return "";
}

std::string host_state_words(const LayoutChoice& choice) {
  return text("{} % of the optimizer on the host", 100 * choice.host_state / kStateQuarters);
}

std::string order_change(StepOrder to, StepOrder from) {
  switch (to) {
    case StepOrder::Plain:
      return "plain order";
    case StepOrder::Merged:
      return from == StepOrder::MergedDelayed ? "no delayed wgrad" : "overlap";
    case StepOrder::MergedDelayed:
      return from == StepOrder::Merged ? "delayed wgrad" : "overlap, delayed wgrad";
  }
  return "";
}

struct AxisName {
  std::string_view name;
  std::int64_t LayoutChoice::*field;
};
constexpr AxisName kAxisNames[] = {{"tp", &LayoutChoice::tp},
                                   {"pp", &LayoutChoice::pp},
                                   {"vpp", &LayoutChoice::vpp},
                                   {"cp", &LayoutChoice::cp},
                                   {"ep", &LayoutChoice::ep},
                                   {"etp", &LayoutChoice::etp},
                                   {"mbs", &LayoutChoice::mbs}};

}  // namespace

std::string to_text(const LayoutChoice& choice, const LayoutWriter& writer) {
  std::string result;
  for (const AxisName& axis : kAxisNames) {
    result += text("{}{} {}", result.empty() ? "" : ", ", axis.name, choice.*axis.field);
  }
  if (choice.carrier != Carrier::Given) result += text(", {}", word(choice.carrier));
  if (choice.order != StepOrder::Plain) result += ", overlap";
  if (choice.order == StepOrder::MergedDelayed) result += ", delayed wgrad";
  if (choice.recompute > 0) {
    const std::string again = recompute_words(choice, writer);
    if (!again.empty()) result += ", recompute " + again;
  }
  if (const std::string modules = offload_words(choice, writer); !modules.empty()) {
    result += ", offload " + modules;
  }
  if (choice.host_state > 0) result += ", " + host_state_words(choice);
  if (choice.state == StateHolder::Whole) result += ", whole optimizer";
  if (choice.graphs == Graphs::Scoped || choice.graphs == Graphs::Whole) {
    result += text(", {}", graphs_word(choice.graphs));
  }
  if (choice.number) result += text(", {}", name_of(*choice.number));
  return result;
}

std::string difference_text(const LayoutChoice& of,
                            const LayoutChoice& from,
                            const LayoutWriter& writer) {
  std::vector<std::string> parts;
  for (const AxisName& axis : kAxisNames) {
    if (of.*axis.field == from.*axis.field) continue;
    parts.push_back(text("{} {}", axis.name, of.*axis.field));
  }
  if (of.carrier != from.carrier && of.carrier != Carrier::Given) {
    parts.emplace_back(word(of.carrier));
  }
  if (of.order != from.order) parts.push_back(order_change(of.order, from.order));
  const std::string again = of.recompute == 0 ? "" : recompute_words(of, writer);
  if (again != (from.recompute == 0 ? "" : recompute_words(from, writer))) {
    parts.push_back(again.empty() ? "nothing recomputed" : "recompute " + again);
  }
  const std::string modules = offload_words(of, writer);
  if (modules != offload_words(from, writer)) {
    parts.push_back(modules.empty() ? "no activations offloaded" : "offload " + modules);
  }
  if (of.host_state != from.host_state) {
    parts.push_back(of.host_state == 0 ? "no optimizer state on the host" : host_state_words(of));
  }
  if (of.state != from.state) {
    parts.emplace_back(of.state == StateHolder::Whole ? "whole optimizer"
                                                      : "distributed optimizer");
  }
  if (of.graphs != from.graphs) {
    parts.emplace_back(graphs_word(of.graphs));
  }
  if (of.number != from.number && of.number) parts.emplace_back(name_of(*of.number));
  return text("{}", fmt::join(parts, ", "));
}

}  // namespace weft::plan
