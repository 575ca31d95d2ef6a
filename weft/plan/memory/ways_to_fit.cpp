#include "weft/plan/memory/ways_to_fit.h"

#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/derive/derived.h"
#include "weft/plan/memory/memory_text.h"
#include "weft/plan/price/shape_pricing.h"

namespace weft::plan {
namespace {

using base::text;

constexpr std::int64_t kMostTimes = 64;

bool is_smaller(const PricedLayout& a, const std::optional<PricedLayout>& b) {
  return !b || a.price.memory.total() < b->price.memory.total();
}

// Way without a description yet; nullopt: nothing fits.
std::optional<FitWay> fitting_layout(const PlanAsk& ask) {
  const LayoutSpace space(ask);
  const std::optional<PricedLayout> smallest = smallest_layout(space);
  if (!smallest || !smallest->price.memory.fits()) return std::nullopt;
  return FitWay{.change = "",
                .layout = *smallest,
                .said = to_text(smallest->choice, space.writer())};
}

// Lifts keys of the question that prevent offloading.
std::optional<FitWay> with_offloading(const PlanAsk& ask) {
  PlanAsk freed = ask;
  std::vector<std::string> given;
  for (const std::string key : {"model.fine_grained_activation_offloading",
                                "model.offload_modules",
                                "optimizer.optimizer_cpu_offload",
                                "optimizer.optimizer_offload_fraction"}) {
    if (freed.pinned.erase(key) > 0) given.push_back(key);
  }
  if (given.empty()) return std::nullopt;
  std::optional<FitWay> way = fitting_layout(freed);
  if (way) way->change = text("offloading to the host, without {}", fmt::join(given, ", "));
  return way;
}

// Narrower optimizer moments or gradients.
struct FewerBits {
  const char* what;
  bool moments, gradients;
};
constexpr FewerBits kFewerBits[] = {{"moments in bf16", true, false},
                                    {"main gradients in bf16", false, true},
                                    {"moments and main gradients in bf16", true, true}};

// nullopt: keys of the question say otherwise, or it is the case already.
std::optional<FitWay> with_bits(const PlanAsk& ask, const FewerBits& bits) {
  PlanAsk fewer = ask;
  config::OptimizerConfig& optimizer = fewer.start.optimizer;
  std::vector<std::string> words;
  bool may = true;
  const auto set = [&](const char* key, auto& value, auto wanted, const char* word) {
    if (value == wanted) return;
    may = may && !ask.pinned.contains(key);
    value = wanted;
    words.push_back(text("{}={}", key, word));
  };
  bool& is_aware = optimizer.use_precision_aware_optimizer;
  set("optimizer.use_precision_aware_optimizer", is_aware, true, "true");
  if (bits.moments) {
    constexpr auto kShort = base::DType::BF16;
    set("optimizer.exp_avg_dtype", optimizer.exp_avg_dtype, kShort, "bf16");
    set("optimizer.exp_avg_sq_dtype", optimizer.exp_avg_sq_dtype, kShort, "bf16");
  }
  if (bits.gradients) {
    constexpr auto kShort = base::DType::BF16;
    set("optimizer.main_grads_dtype", optimizer.main_grads_dtype, kShort, "bf16");
  }
  if (!may || words.empty()) return std::nullopt;
  std::optional<FitWay> way = fitting_layout(fewer);
  if (way) way->change = text("{} ({}), which rounds otherwise", bits.what, fmt::join(words, " "));
  return way;
}

// Chunked logits: no extra time and equal bits. Without effect under tensor parallelism.
std::optional<FitWay> with_logits_in_chunks(const PlanAsk& ask) {
  constexpr std::int64_t kTokens = 1024;
  constexpr const char* kKey = "runtime.logits_chunk";
  if (ask.start.runtime.logits_chunk > 0 || ask.pinned.contains(kKey)) return std::nullopt;
  PlanAsk fewer = ask;
  fewer.start.runtime.logits_chunk = kTokens;
  std::optional<FitWay> way = fitting_layout(fewer);
  if (way) {
    way->change =
        text("logits of {} tokens at a time ({}={}), which costs no time", kTokens, kKey, kTokens);
  }
  return way;
}

std::optional<FitWay> with_host_memory(const PlanAsk& ask) {
  constexpr double kEndless = 1e6;  // unlimited, in GB
  PlanAsk more = ask;
  more.hardware.host_memory_gb = kEndless;
  if (more.hardware.host_memory_free <= 0) more.hardware.host_memory_free = 1;
  std::optional<FitWay> way = fitting_layout(more);
  if (!way) return way;
  const double host = way->layout.price.memory.host;
  if (host <= ask.hardware.host_room()) return std::nullopt;
  way->change = text("{:.0f} GiB of host memory a GPU, with {:.0f} GiB offloaded to it",
                     in_gib(host / more.hardware.host_memory_free),
                     in_gib(host));
  return way;
}

std::optional<FitWay> with_gpus(const PlanAsk& ask, std::int64_t times) {
  PlanAsk more = ask;
  const std::int64_t world = derive::layout_of(ask.start).world * times;
  if (world > grid::kMaxWorld) return std::nullopt;
  more.start.runtime.world_size = world;
  std::string change = text("{} GPUs", world);
  std::optional<FitWay> way = fitting_layout(more);
  if (!way) {
    more.start.train.global_batch_size *= times;
    change += text(" and a batch of {}", more.start.train.global_batch_size);
    way = fitting_layout(more);
  }
  if (way) way->change = std::move(change);
  return way;
}

}  // namespace

std::optional<PricedLayout> smallest_layout(const LayoutSpace& space) {
  std::optional<PricedLayout> smallest;
  for (const LayoutChoice& shape : space.shapes().all) {
    PricedLayout layout = smallest_of_shape(space, shape);
    if (is_smaller(layout, smallest)) smallest = std::move(layout);
  }
  return smallest;
}

std::vector<FitWay> ways_to_fit(const PlanAsk& ask, const std::vector<Hardware>& others) {
  std::vector<FitWay> ways;
  if (auto way = with_offloading(ask)) ways.push_back(std::move(*way));
  if (auto way = with_logits_in_chunks(ask)) ways.push_back(std::move(*way));
  for (const FewerBits& bits : kFewerBits) {
    if (auto way = with_bits(ask, bits)) {
      ways.push_back(std::move(*way));
      break;
    }
  }
  if (auto way = with_host_memory(ask)) ways.push_back(std::move(*way));
  for (std::int64_t times = 2; times <= kMostTimes; times *= 2) {
    if (std::optional<FitWay> way = with_gpus(ask, times)) {
      ways.push_back(std::move(*way));
      break;
    }
  }
  for (const Hardware& other : others) {
    if (other.name == ask.hardware.name) continue;
    PlanAsk there = ask;
    there.hardware = other;
    there.start.hardware.gpu = config::WordCodec<config::Gpu>::parse(other.name);
    std::optional<FitWay> way = fitting_layout(there);
    if (!way) continue;
    way->change = text("{} instead of {}", other.name, ask.hardware.name);
    ways.push_back(std::move(*way));
  }
  return ways;
}

}  // namespace weft::plan
