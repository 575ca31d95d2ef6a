#include "weft/plan/search_report.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/plan/time_text.h"
#include "weft/plan/workload.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

constexpr double kReportGb = 1e9;
constexpr std::size_t kFrontLines = 12;
constexpr std::size_t kDiscardLines = 12;

std::string layout_text(const LayoutSpace& space, const LayoutChoice& choice) {
  return to_text(choice, space.writer());
}

std::string exposed_line(const Price& price) {
  std::string line;
  const auto add_kind = [&](std::string_view kind, double ms) {
    if (ms < 5e-4 * price.step_ms) return;
    line += text("{}{} {}", line.empty() ? "" : ", ", kind, time_text(ms));
  };
  add_kind("ep", price.exposed.ep);
  add_kind("dp", price.exposed.dp);
  add_kind("tp", price.exposed.tp);
  add_kind("pp", price.exposed.pp);
  add_kind("cp", price.exposed.cp);
  add_kind("copy", price.exposed.copy);
  add_kind("host", price.exposed.host);
  add_kind("update", price.exposed.update);
  return line.empty() ? "nothing" : line;
}

std::string memory_line(const MemoryPrice& memory) {
  std::string line =
      text("{:.1f} of {:.0f} GB:", memory.total() / kReportGb, memory.capacity / kReportGb);
  for (const MemoryComponent& component : memory_components(memory)) {
    line += text(" {} {:.1f},", component.name, component.bytes / kReportGb);
  }
  line += text(" reserved {:.1f}", memory.reserved / kReportGb);
  if (memory.host == 0) return line;
  return line + text("; host {:.1f} of {:.0f} GB",
                     memory.host / kReportGb,
                     memory.host_capacity / kReportGb);
}

std::string layout_lines(const LayoutSpace& space, std::size_t place, const PricedLayout& layout) {
  const Price& price = layout.price;
  std::string lines = text("{:>3}  {}\n", place, layout_text(space, layout.choice));
  lines += text(
      "     {}, {} tokens/s/GPU, {} TFLOP/s/GPU, {:.1f} % of the peak, bubble {:.1f} %, wall: {}\n",
      time_text(price.step_ms),
      rate_text(price.tokens_per_second_per_gpu),
      rate_text(price.tflops_per_gpu),
      price.mfu * 100,
      price.bubble * 100,
      wall_text(price.wall));
  lines += text("     exposed: {}\n", exposed_line(price));
  lines += text("     memory {}\n", memory_line(price.memory));
  return lines;
}

std::string step_lines(const std::vector<KnobStep>& steps, const Price& from) {
  const auto change_of = [](const KnobStep& step) { return text("{} -> {}", step.from, step.to); };
  constexpr std::size_t kWidest = 48;  // what is longer has a line of its own
  std::size_t width = 0;
  for (const KnobStep& step : steps) {
    width = std::max(width, std::min(kWidest, change_of(step).size()));
  }
  std::string lines;
  for (const KnobStep& step : steps) {
    const std::string change = change_of(step);
    const bool is_long = change.size() > width;
    lines += text("  {:<11}{:<{}}", step.knob, change, width);
    lines += is_long ? text("\n{:{}}  ", "", 13 + width) : "  ";
    if (!step.price) {
      lines += text("no: {}\n", step.why_not);
      continue;
    }
    // Of other batches and formats the rate is what compares.
    const double faster =
        step.price->tokens_per_second_per_gpu / from.tokens_per_second_per_gpu - 1;
    lines += text("{:>9}  {:>+6.1f} % tokens/s  {:>+6.1f} GB\n",
                  time_text(step.price->step_ms),
                  faster * 100,
                  step.more_bytes / kReportGb);
  }
  return lines;
}

// Lines of at most 100 columns, broken between words, each behind so many spaces.
std::string wrapped(std::string_view words, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  std::string lines, line;
  for (const std::string& word : base::split(words, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) {
      lines += text("{:{}}{}\n", "", indent, line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + text("{:{}}{}\n", "", indent, line);
}

std::string answer_of(const PlanVerdict& verdict) {
  if (verdict.pays && verdict.gain == 0) {
    return "Needed: without it the best layout does not fit, or takes smaller micro-batches.";
  }
  const std::string change = text("the step is {:.1f} % {} with it",
                                  std::abs(verdict.gain) * 100,
                                  verdict.gain >= 0 ? "shorter" : "longer");
  if (verdict.is_tie()) return text("A tie: {}, less than a price can tell.", change);
  return text("{}: {}.", verdict.pays ? "Yes" : "No", change);
}

std::string verdict_lines(const std::vector<PlanVerdict>& verdicts) {
  std::string lines;
  for (const PlanVerdict& verdict : verdicts) {
    lines += text("  {} {}\n", verdict.question, answer_of(verdict));
    lines += wrapped(verdict.because, 4);
  }
  return lines;
}

std::string front_lines(const LayoutSpace& space, const std::vector<PricedLayout>& front) {
  std::string lines;
  // Where there are many, those that are spread evenly over the front, both ends among them.
  const std::size_t shown = std::min(front.size(), kFrontLines);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t at = shown == front.size() ? i : i * (front.size() - 1) / (shown - 1);
    const PricedLayout& layout = front[at];
    lines += text(
        "  {:>9}  {:>7} GB  {}\n",
        time_text(layout.price.step_ms),
        text("{}{:.1f}", layout.is_counted ? "" : "~", layout.price.memory.total() / kReportGb),
        layout_text(space, layout.choice));
  }
  if (shown < front.size()) lines += text("  ({} of {} points)\n", shown, front.size());
  return lines;
}

std::string discard_lines(const LayoutSpace& space, const SearchResult& search) {
  std::string lines;
  const std::size_t shown = std::min(search.discarded.size(), kDiscardLines);
  for (std::size_t i = 0; i < shown; ++i) {
    const DiscardedLayouts& heap = search.discarded[i];
    lines += text("  {:>6}  {}\n", heap.layouts, heap.why);
    if (!heap.nearest) continue;
    lines += text("          nearest: {}{}\n",
                  layout_text(space, *heap.nearest),
                  heap.lack.empty() ? "" : "; " + heap.lack);
  }
  if (shown < search.discarded.size()) {
    lines += text("  and {} more reasons (--json)\n", search.discarded.size() - shown);
  }
  return lines;
}

// "bf16", or all that were searched: "bf16, fp8".
std::string numbers_text(const LayoutSpace& space) {
  std::vector<std::string_view> words;
  for (const std::optional<Number>& number : space.axes().numbers) {
    words.push_back(word(number.value_or(number_of(space.writer().start().model))));
  }
  return text("{}", fmt::join(words, ", "));
}

std::string head_line(const PlanReport& report, const LayoutSpace& space) {
  const Config& start = space.writer().start();
  return text("{} on {} x {} ({}), {} sequences of {} tokens a step, {}\n",
              report.model,
              derive::layout_of(start).world,
              space.hardware().name,
              space.hardware().summary,
              start.train.global_batch_size,
              start.model.seq_length,
              numbers_text(space));
}

std::string searched_text(const PlanReport& report) {
  const SearchResult& search = report.search;
  std::string all = text("{} {} possible, of which {} fit with nothing on the host",
                         base::counted(search.shapes, "shape"),
                         search.shapes == 1 ? "is" : "are",
                         search.fitting);
  if (search.offloading > 0) {
    all += text("; of those worth trying with something there, {} fit", search.offloading);
  }
  all += text(
      ". With their modes, {} are priced by formula, and the schedules of the best are simulated, "
      "with and without graphs: {}.",
      base::counted(search.priced, "layout"),
      search.simulated);
  const auto shown = static_cast<std::int64_t>(std::min(report.top, search.ranked.size()));
  if (shown == 1) return all + " The best shape:";
  return all +
         text(" The best {} shapes, of ties (up to {:g} %) the simpler first:", shown, 100 * kTie);
}

std::string nothing_fits(const PlanReport& report, const LayoutSpace& space) {
  const SearchResult& search = report.search;
  if (!search.nearest) {
    std::string lines = "No layout is possible.";
    if (!search.refusals.empty()) lines += " Of the smallest:";
    lines += "\n";
    for (const std::string& refusal : search.refusals) lines += wrapped(refusal, 2);
    if (search.discarded.empty()) return lines;
    return lines + "The reasons, with the number of shapes:\n" + discard_lines(space, search);
  }
  const MemoryPrice& memory = search.nearest->price.memory;
  std::string lines = text("It fits in no layout. The nearest needs {}:\n  {}\n  memory {}\n",
                           lack_text(memory),
                           layout_text(space, search.nearest->choice),
                           memory_line(memory));
  if (report.ways.empty()) {
    return lines + "No number of GPUs up to 64 times as many helps, nor another kind of GPU.\n";
  }
  lines += "What would make it fit:\n";
  for (const FitWay& way : report.ways) {
    lines += text("  {}: {:.1f} of {:.0f} GB with {}\n",
                  way.change,
                  way.layout.price.memory.total() / kReportGb,
                  way.layout.price.memory.capacity / kReportGb,
                  way.said);
  }
  return lines;
}

base::Json memory_parts(const MemoryPrice& memory) {
  base::Json parts = to_json(memory);
  for (auto& part : parts) {
    if (part.is_number_float()) part = std::llround(part.get<double>());
  }
  return parts;
}

base::Json layout_json(const LayoutSpace& space, const PricedLayout& layout) {
  base::Json json{{"keys", layout_keys(space.writer().config_of(layout.choice))}};
  json["layout"] = layout_text(space, layout.choice);
  json.update(to_json(layout.price));
  json["memory_bytes"] = std::llround(layout.price.memory.total());
  json["memory_parts_bytes"] = memory_parts(layout.price.memory);
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
    json["layouts"].push_back(layout_json(space, search.ranked[i]));
  }
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

std::string to_text(const PlanReport& report, const LayoutSpace& space) {
  const SearchResult& search = report.search;
  std::string result = head_line(report, space);
  if (search.ranked.empty()) return result + nothing_fits(report, space);
  result += wrapped(searched_text(report), 0) + "\n";
  for (std::size_t i = 0; i < std::min(report.top, search.ranked.size()); ++i) {
    result += layout_lines(space, i + 1, search.ranked[i]);
  }
  const Price& best = search.ranked.front().price;
  result += "\nVerdicts, for the best:\n" + verdict_lines(report.verdicts);
  result += "\nOne step in each knob of the best:\n" + step_lines(report.steps, best);
  result +=
      "\nTime against memory: nothing is both faster and smaller than these (~: by formula).\n" +
      front_lines(space, search.front);
  result += "\nDiscarded, with the number of shapes:\n" + discard_lines(space, search);
  return result;
}

base::Json explain_json(const LayoutSpace& space, const PricedLayout& layout) {
  base::Json json = layout_json(space, layout);
  json["overrides"] = layout_overrides(space.writer().config_of(layout.choice));
  json["sensitivity"] = steps_json(sensitivity(space, layout.choice));
  return json;
}

std::string explain_text(const LayoutSpace& space, const PricedLayout& layout) {
  std::string result = layout_text(space, layout.choice) + "\n\n" + to_text(layout.price);
  result += "\nOne step in each knob:\n";
  result += step_lines(sensitivity(space, layout.choice), layout.price);
  result += "\nAs overrides:\n";
  for (const std::string& word : layout_overrides(space.writer().config_of(layout.choice))) {
    result += "  " + word + "\n";
  }
  return result;
}

std::string recipe_yaml(const Config& config, const std::string& summary) {
  std::string yaml = text("summary: {}\n", base::Json(summary).dump());
  for (const std::string& section : config::section_names()) {
    std::string lines;
    for (const config::Field& field : config::fields()) {
      if (field.section != section || config::is_default(field, config)) continue;
      lines += text("  {}: {}\n", field.name, config::value_text(field, config));
    }
    if (!lines.empty()) yaml += section + ":\n" + lines;
  }
  return yaml;
}

}  // namespace weft::plan
