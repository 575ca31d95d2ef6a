#include "weft/report/experts.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"

namespace weft::report {
namespace {

std::string lower_case(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

bool has_any_of(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return name.find(word) != name.npos; });
}

bool names_experts(const std::string& name) {
  return has_any_of(name,
                    {"moe",
                     "expert",
                     "grouped_gemm",
                     "groupedgemm",
                     "gemmgrouped",
                     "group_gemm",
                     "unpermute",
                     "sort_chunks",
                     "topk_router"});
}

// True for kernels that route, sort and move rows; casts do not count.
bool moves_rows(const std::string& name) {
  return has_any_of(name,
                    {"permut",
                     "router",
                     "topk",
                     "sort_chunk",
                     "radixsort",
                     "moe_align",
                     "index",
                     "scatter",
                     "gather"});
}

std::optional<Experts> experts_of(const trace::DeviceTraces& traces) {
  const auto& kinds = traces.communications;
  bool any = std::ranges::find(kinds, "ep") != kinds.end();
  std::vector<bool> of_rows;
  for (const std::string& name : traces.names) {
    const std::string word = lower_case(name);
    any = any || names_experts(word);
    of_rows.push_back(moves_rows(word));
  }
  if (!any) return std::nullopt;
  std::int64_t ns = 0;
  for (const trace::DeviceTrace& device : traces.devices) {
    for (const trace::Kernel& kernel : device.kernels) {
      const bool counts = kernel.kind == trace::SpanKind::Memory && of_rows[base::at(kernel.name)];
      if (counts) ns += kernel.end_ns - kernel.begin_ns;
    }
  }
  const auto steps = static_cast<double>(traces.steps) * static_cast<double>(traces.devices.size());
  return Experts{.rows_ms = static_cast<double>(ns) / 1e6 / steps};
}

// A Weft node names its piece: "3F7.merge".
std::optional<Experts> experts_of(const std::vector<trace::Timeline>& timelines) {
  bool any = false;
  double ns = 0, steps = 0;
  for (const trace::Timeline& timeline : timelines) {
    std::set<int> runs;
    for (const trace::Span& span : timeline.spans) {
      runs.insert(span.run);
      if (!trace::is_node(span)) continue;
      any = any || has_any_of(span.name, {".dispatch", ".experts"});
      const bool of_rows = has_any_of(span.name, {".route", ".permute", ".merge"});
      if (of_rows && span.lane == trace::kComputeLane) {
        ns += static_cast<double>(span.end_ns - span.begin_ns);
      }
    }
    steps += static_cast<double>(runs.size());
  }
  if (!any) return std::nullopt;
  return Experts{.rows_ms = ns / 1e6 / steps};
}

}  // namespace

std::optional<Experts> experts_in(const Evidence& evidence) {
  if (evidence.devices) return experts_of(*evidence.devices);
  return experts_of(evidence.timelines);
}

}  // namespace weft::report
