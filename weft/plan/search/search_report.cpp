#include "weft/plan/search/search_report.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/run_hardware.h"
#include "weft/plan/memory/memory_text.h"
#include "weft/plan/search/layout_keys.h"
#include "weft/plan/search/layout_ties.h"
#include "weft/plan/search/plan_verdicts.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

constexpr std::size_t kFrontLines = 12;
constexpr std::size_t kDiscardLines = 12;

std::string layout_text(const LayoutSpace& space, const LayoutChoice& choice) {
  return to_text(choice, space.writer());
}

// Wraps words at 100 columns, with `indent` spaces before each line.
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
  std::string line = text("{:.1f} of {:.1f} GiB:", in_gib(memory.total()), in_gib(memory.capacity));
  for (const MemoryComponent& component : memory_components(memory)) {
    line += text(" {} {:.1f},", component.name, in_gib(component.bytes));
  }
  line += text(" reserved {:.1f}", in_gib(memory.reserved));
  if (memory.host == 0) return line;
  return line +
         text("; host {:.1f} of {:.0f} GiB", in_gib(memory.host), in_gib(memory.host_capacity));
}

// Modes that no published run has.
std::string unmeasured_line(const Trust& trust) {
  if (trust.unmeasured.empty()) return "";
  return text("     no published run has: {}\n", fmt::join(trust.unmeasured, ", "));
}

std::string layout_lines(const PlanReport& report,
                         const LayoutSpace& space,
                         const std::string& place,
                         const PricedLayout& layout) {
  const Price& price = layout.price;
  const Trust trust = report.trust(space.writer().config_of(layout.choice));
  const std::string band = band_text(trust);
  std::string lines = text("{:>3}  {}\n", place, layout_text(space, layout.choice));
  lines += text(
      "     {}, {} tokens/s/GPU, {} TFLOP/s/GPU{}, {:.1f} % of the peak, bubble {:.1f} %, "
      "wall: {}\n",
      time_text(price.step_ms),
      rate_text(price.tokens_per_second_per_gpu),
      rate_text(price.tflops_per_gpu),
      band.empty() ? "" : text(" ({})", band),
      price.mfu * 100,
      price.bubble * 100,
      wall_text(price.wall));
  lines += text("     exposed: {}\n", exposed_line(price));
  lines += text("     memory {}\n", memory_line(price.memory));
  return lines + unmeasured_line(trust);
}

// Best layout without parts that are hard to set up or unmeasured.
std::string safe_lines(const PlanReport& report, const LayoutSpace& space) {
  const SearchResult& search = report.search;
  const std::string what = text("nothing on the host, no CUDA graphs, {:.0f} % of the memory free",
                                100 * (1 - kSafeShare));
  if (!search.best_safe) {
    return text("\nNo safe layout ({}) is among those simulated; --safe looks for one.\n", what);
  }
  const PricedLayout& safe = *search.best_safe;
  if (safe.choice == search.ranked.front().choice) {
    return text("\nPlace 1 is also the best safe layout ({}).\n", what);
  }
  return text("\nThe best safe layout ({}); --safe looks for no others:\n", what) +
         layout_lines(report, space, "", safe);
}

// Legend of the lists, and the assumed network.
std::string legend(const PlanReport& report, const LayoutSpace& space) {
  const Hardware& hardware = space.hardware();
  std::string lines = "\n";
  if (report.trust_of) {
    lines += wrapped(
        "(±a %, 9 of 10 within b %): how far the model is off in the published runs that are most "
        "like the layout and that no number was fitted on: class of model, GPU, format, "
        "dispatcher, order. 'No published run has' names modes that no measurement on GPUs of this "
        "generation holds: their prices may be off by more.",
        0);
  } else if (hardware.program == Program::Weft) {
    lines += wrapped("No errors are told: published runs are of Megatron Bridge, not of Weft.", 0);
  }
  lines +=
      wrapped(text("=: a tie with the place above it (up to {:g} %), which no price tells "
                   "apart; of ties the simpler layout comes first, so that a list may name one "
                   "before another that is faster by a trifle.",
                   100 * kTie),
              0);
  if (hardware.nic_gbps <= 0) return lines;
  return lines + wrapped(text("Network, as assumed: {:g} GB/s each way between machines for each "
                              "GPU (nic_gbps), of which {:.0f} % are reached, and no congestion; "
                              "NVLink joins {:g} GPUs.",
                              hardware.nic_gbps,
                              100 * hardware.nic_share,
                              hardware.nvlink_domain),
                         0);
}

std::string step_lines(const std::vector<KnobStep>& steps, const Price& from) {
  const auto change_of = [](const KnobStep& step) { return text("{} -> {}", step.from, step.to); };
  constexpr std::size_t kWidest = 48;  // longer texts have a line of their own
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
    // Rates compare across batches and formats.
    const double faster =
        step.price->tokens_per_second_per_gpu / from.tokens_per_second_per_gpu - 1;
    lines += text("{:>9}  {:>+6.1f} % tokens/s  {:>+6.1f} GiB\n",
                  time_text(step.price->step_ms),
                  faster * 100,
                  in_gib(step.more_bytes));
  }
  return lines;
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
  // Many points are thinned evenly, with both ends of the front.
  const std::size_t shown = std::min(front.size(), kFrontLines);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t at = shown == front.size() ? i : i * (front.size() - 1) / (shown - 1);
    const PricedLayout& layout = front[at];
    lines +=
        text("  {:>9}  {:>7} GiB  {}\n",
             time_text(layout.price.step_ms),
             text("{}{:.1f}", layout.is_counted ? "" : "~", in_gib(layout.price.memory.total())),
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

std::string head_line(const PlanReport& report, const LayoutSpace& space) {
  const Config& start = space.writer().start();
  return text("{} on {} x {} ({}), {} of {} tokens{} a step, {}\n{}\n",
              report.model,
              derive::layout_of(start).world,
              space.hardware().name,
              space.hardware().summary,
              base::counted(start.train.global_batch_size, "sequence"),
              start.model.seq_length,
              report.length.empty() ? "" : text(" ({})", report.length),
              numbers_text(space),
              program_text(space.hardware()));
}

// The recipe's own layout, before results of the search.
std::string own_lines(const PlanReport& report) {
  if (!report.own) return "";
  const SearchResult& search = report.search;
  const Price* best = search.ranked.empty() ? nullptr : &search.ranked.front().price;
  return to_text(*report.own, report.trust(report.own->config), best) + "\n";
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
    lines += text("  {}: {:.1f} of {:.1f} GiB with {}\n",
                  way.change,
                  in_gib(way.layout.price.memory.total()),
                  in_gib(way.layout.price.memory.capacity),
                  way.said);
  }
  return lines;
}

}  // namespace

std::string numbers_text(const LayoutSpace& space) {
  std::vector<std::string_view> words;
  for (const std::optional<DType>& number : space.axes().numbers) {
    words.push_back(name_of(number.value_or(number_of(space.writer().start().model))));
  }
  return text("{}", fmt::join(words, ", "));
}

std::string to_text(const PlanReport& report, const LayoutSpace& space) {
  const SearchResult& search = report.search;
  std::string result = head_line(report, space) + own_lines(report);
  if (search.ranked.empty()) return result + nothing_fits(report, space);
  result += wrapped(searched_text(report), 0) + "\n";
  for (std::size_t i = 0; i < std::min(report.top, search.ranked.size()); ++i) {
    const bool is_tied = i > 0 && are_tied(search.ranked[i - 1], search.ranked[i]);
    result +=
        layout_lines(report, space, text("{}{}", is_tied ? "=" : "", i + 1), search.ranked[i]);
  }
  if (!space.is_safe()) result += safe_lines(report, space);
  result += legend(report, space);
  const Price& best = search.ranked.front().price;
  result += "\nVerdicts, for the layout on place 1:\n" + verdict_lines(report.verdicts);
  result += "\nOne step in each knob of place 1:\n" + step_lines(report.steps, best);
  result +=
      "\nTime against memory: nothing is both faster and smaller than these (~: by formula).\n" +
      front_lines(space, search.front);
  result += "\nDiscarded, with the number of shapes:\n" + discard_lines(space, search);
  if (report.next.empty()) return result;
  result += "\nTo go on with it (the search is kept; --fresh searches again):\n";
  for (const NextCommand& next : report.next) {
    result += text("  {}\n      {}\n", next.command, next.what);
  }
  return result;
}

std::string explain_text(const PlanReport& report,
                         const LayoutSpace& space,
                         const PricedLayout& layout) {
  const Trust trust = report.trust(space.writer().config_of(layout.choice));
  std::string result = own_lines(report) + layout_text(space, layout.choice) + "\n";
  result += "Modes that no key names are the fastest that a search found for this shape.\n\n";
  result += to_text(layout.price);
  if (trust.band) result += text("error       {}\n", band_text(trust));
  if (!trust.unmeasured.empty()) {
    result += text("unmeasured  no published run has: {}\n", fmt::join(trust.unmeasured, ", "));
  }
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
