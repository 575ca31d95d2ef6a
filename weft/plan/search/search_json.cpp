// Plan as JSON.
#include <algorithm>
#include <cmath>

#include "weft/derive/derived.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/search/layout_keys.h"
#include "weft/plan/search/layout_ties.h"
#include "weft/plan/search/plan_verdicts.h"
#include "weft/plan/search/search_report.h"

namespace weft::plan {
namespace {

using config::Config;

base::Json memory_parts(const MemoryPrice& memory) {
  base::Json parts = to_json(memory);
  for (auto& part : parts) {
    if (part.is_number_float()) part = std::llround(part.get<double>());
  }
  return parts;
}

base::Json layout_json(const PlanReport& report,
                       const LayoutSpace& space,
                       const PricedLayout& layout) {
  base::Json json{{"keys", layout_keys(space.writer().config_of(layout.choice))}};
  json["layout"] = to_text(layout.choice, space.writer());
  json.update(to_json(layout.price));
  json["memory_bytes"] = std::llround(layout.price.memory.total());
  json["memory_parts_bytes"] = memory_parts(layout.price.memory);
  json["safe"] = is_safe(layout);
  json.update(to_json(report.trust(space.writer().config_of(layout.choice))));
  return json;
}

base::Json steps_json(const std::vector<KnobStep>& steps) {
  base::Json all = base::Json::array();
  for (const KnobStep& step : steps) {
    base::Json one{{"knob", step.knob}, {"from", step.from}, {"to", step.to}};
    if (step.price) {
      one["step_ms"] = step.price->step_ms;
      one["tokens_per_second_per_gpu"] = step.price->tokens_per_second_per_gpu;
    } else {
      one["why_not"] = step.why_not;
    }
    if (step.memory) one["memory_bytes"] = std::llround(step.memory->total());
    all.push_back(std::move(one));
  }
  return all;
}

base::Json discards_json(const LayoutSpace& space, const SearchResult& search) {
  base::Json all = base::Json::array();
  for (const DiscardedLayouts& heap : search.discarded) {
    base::Json one{{"keys", base::Json::object()},
                   {"why", heap.lack.empty() ? heap.why : heap.why + ": " + heap.lack},
                   {"layouts", heap.layouts}};
    if (heap.nearest) one["keys"] = layout_keys(space.writer().config_of(*heap.nearest));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

base::Json to_json(const PlanReport& report, const LayoutSpace& space) {
  const Config& start = space.writer().start();
  const SearchResult& search = report.search;
  base::Json json{{"model", report.model},
                  {"gpu", space.hardware().name},
                  {"program", word(space.hardware().program)},
                  {"gpus", derive::layout_of(start).world},
                  {"global_batch_size", start.train.global_batch_size},
                  {"seq_length", start.model.seq_length},
                  {"precision", numbers_text(space)},
                  {"fits", !search.ranked.empty()},
                  {"shapes", search.shapes},
                  {"fitting", search.fitting},
                  {"offloading", search.offloading},
                  {"priced", search.priced},
                  {"simulated", search.simulated},
                  {"layouts", base::Json::array()}};
  for (std::size_t i = 0; i < std::min(report.top, search.ranked.size()); ++i) {
    base::Json one = layout_json(report, space, search.ranked[i]);
    one["tie"] = i > 0 && are_tied(search.ranked[i - 1], search.ranked[i]);
    json["layouts"].push_back(std::move(one));
  }
  json["safe"] = search.best_safe ? layout_json(report, space, *search.best_safe) : base::Json();
  const Price* best = search.ranked.empty() ? nullptr : &search.ranked.front().price;
  json["own"] = base::Json();
  if (report.own) json["own"] = to_json(*report.own, report.trust(report.own->config), best);
  json["network"] = {{"nic_gbps", space.hardware().nic_gbps},
                     {"nic_share", space.hardware().nic_share},
                     {"nvlink_domain", space.hardware().nvlink_domain}};
  json["sensitivity"] = steps_json(report.steps);
  json["pareto"] = base::Json::array();
  for (const PricedLayout& layout : search.front) {
    json["pareto"].push_back({{"keys", layout_keys(space.writer().config_of(layout.choice))},
                              {"step_ms", layout.price.step_ms},
                              {"memory_bytes", std::llround(layout.price.memory.total())},
                              {"memory_counted", layout.is_counted}});
  }
  json["verdicts"] = base::Json::array();
  for (const PlanVerdict& verdict : report.verdicts) {
    json["verdicts"].push_back({{"question", verdict.question},
                                {"pays", verdict.pays},
                                {"tie", verdict.is_tie()},
                                {"gain", verdict.gain},
                                {"because", verdict.because}});
  }
  json["discarded"] = discards_json(space, search);
  json["refusals"] = search.refusals;
  if (search.nearest) {
    const MemoryPrice& memory = search.nearest->price.memory;
    json["nearest"] = {{"keys", layout_keys(space.writer().config_of(search.nearest->choice))},
                       {"lacks_bytes", std::llround(memory.total() - memory.capacity)},
                       {"memory_parts_bytes", memory_parts(memory)}};
    json["would_fit"] = base::Json::array();
    for (const FitWay& way : report.ways) {
      json["would_fit"].push_back(
          {{"change", way.change},
           {"layout", way.said},
           {"memory_bytes", std::llround(way.layout.price.memory.total())}});
    }
  }
  return json;
}

base::Json explain_json(const PlanReport& report,
                        const LayoutSpace& space,
                        const PricedLayout& layout) {
  base::Json json = layout_json(report, space, layout);
  json["overrides"] = layout_overrides(space.writer().config_of(layout.choice));
  json["sensitivity"] = steps_json(sensitivity(space, layout.choice));
  return json;
}

}  // namespace weft::plan
