// A layout as a person reads it: whole, or what differs from another.
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/plan/layout_choice.h"

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
  if (choice.recompute > 0) result += ", recompute " + writer.ladder().at(choice.recompute).name;
  if (const std::string modules = offload_words(choice, writer); !modules.empty()) {
    result += ", offload " + modules;
  }
  if (choice.host_state > 0) result += ", " + host_state_words(choice);
  if (choice.state == StateHolder::Whole) result += ", whole optimizer";
  if (choice.graphs == Graphs::Scoped) result += ", graphs";
  if (choice.number) result += text(", {}", word(*choice.number));
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
  if (of.recompute != from.recompute) {
    parts.push_back(of.recompute == 0 ? "nothing recomputed"
                                      : "recompute " + writer.ladder().at(of.recompute).name);
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
    parts.emplace_back(of.graphs == Graphs::Scoped ? "graphs" : "no graphs");
  }
  if (of.number != from.number && of.number) parts.emplace_back(word(*of.number));
  return text("{}", fmt::join(parts, ", "));
}

}  // namespace weft::plan
