#include "weft/schedule/text/offload_text.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/schedule/memory/offload_share.h"
#include "weft/schedule/passes/offload.h"

namespace weft::schedule {
namespace {

void count_layers(const Anatomy& anatomy,
                  const std::vector<PieceName>& parts,
                  OffloadCount& count) {
  for (const Chunk& chunk : anatomy.chunks) {
    for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
      bool is_named = false, is_offloaded = false;
      for (const PieceAnatomy& piece : anatomy.layers[base::at(layer)]) {
        const bool is_one =
            std::ranges::any_of(parts, [&](const PieceName& name) { return piece.is(name); });
        is_named |= is_one;
        is_offloaded |= is_one && piece.is_offloaded;
      }
      count.all += is_named ? 1 : 0;
      count.offloaded += is_offloaded ? 1 : 0;
    }
  }
}

}  // namespace

std::vector<OffloadCount> offload_counts(const config::Config& config) {
  std::vector<OffloadCount> counts;
  std::vector<PieceName> names;
  std::vector<OffloadedPart> parts;
  const std::vector<OffloadedModule> modules = offloaded_modules(config);
  for (const OffloadedModule& module : modules) {
    counts.push_back({.module = module.module, .link_is_full = module.is_cut});
    for (const PieceName& name : module.parts) {
      names.push_back(name);
      parts.push_back({.name = name, .share = module.share});
    }
  }
  if (parts.empty()) return counts;
  for (int pp_rank = 0; pp_rank < config.model.pipeline_model_parallel_size; ++pp_rank) {
    const Anatomy anatomy = with_offloading(before_offload(config, pp_rank, names), parts);
    for (std::size_t i = 0; i < modules.size(); ++i) {
      count_layers(anatomy, modules[i].parts, counts[i]);
    }
  }
  return counts;
}

std::string offload_text(const config::Config& config) {
  std::vector<std::string> texts;
  for (const OffloadCount& count : offload_counts(config)) {
    texts.push_back(
        base::text("{} in {} of {} layers{}",
                   config::word(count.module),
                   count.offloaded,
                   count.all,
                   count.offloaded == 0 && count.link_is_full ? " (the link is full)" : ""));
  }
  return base::text("{}", fmt::join(texts, ", "));
}

}  // namespace weft::schedule
