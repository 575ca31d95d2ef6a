#include "weft/measure/bench/narrow_formats.h"

#include <algorithm>
#include <functional>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/price_memory.h"

namespace weft::measure {
namespace {

constexpr auto kActivations = static_cast<std::size_t>(tensor::Tag::Activations);

void scale(double share, std::size_t& bytes) {
  bytes = static_cast<std::size_t>(share * static_cast<double>(bytes));
}

// Scales all activations of a stage by one factor, so that pieces still add up.
void keep_share(double share, train::PredictedMemory& stage) {
  train::PeakMoment& peak = stage.at_peak;
  const std::size_t before = peak.bytes[kActivations];
  scale(share, peak.bytes[kActivations]);
  scale(share, stage.peak_bytes[kActivations]);
  stage.peak_total_bytes -= before - peak.bytes[kActivations];
  for (train::PieceBytes& piece : peak.pieces) {
    if (piece.tag == tensor::Tag::Activations) scale(share, piece.bytes);
  }
  std::ranges::stable_sort(peak.pieces, std::ranges::greater(), &train::PieceBytes::bytes);
  for (train::BytesByTag& moment : stage.timeline) scale(share, moment[kActivations]);
}

}  // namespace

config::Config with_formats_of(const config::Config& asked, config::Config counted) {
  counted.model.fp8 = asked.model.fp8;
  counted.model.fp8_recipe = asked.model.fp8_recipe;
  counted.model.fp4 = asked.model.fp4;
  return counted;
}

void take_narrow_formats(const config::Config& asked,
                         const config::Config& counted,
                         const std::vector<int>& pp_ranks,
                         MemoryForecast& forecast) {
  const config::Config narrow = with_formats_of(asked, counted);
  const base::DType number = plan::number_of(narrow.model);
  if (number == plan::number_of(counted.model)) return;
  plan::MemoryBook book;
  const std::vector<plan::MemoryPrice> all = plan::price_ranks(counted, {}, {}, book);
  const std::vector<plan::MemoryPrice> fewer = plan::price_ranks(narrow, {}, {}, book);
  double most = 0;
  for (std::size_t i = 0; i < forecast.stages.size(); ++i) {
    train::PredictedMemory& stage = forecast.stages[i];
    const std::size_t rank = base::at(pp_ranks[i]);
    const auto kept = static_cast<double>(stage.at_peak.bytes[kActivations]);
    const double less = std::clamp(all[rank].activations - fewer[rank].activations, 0.0, kept);
    if (kept > 0) keep_share(1 - less / kept, stage);
    most = std::max(most, less);
  }
  forecast.left_out.push_back(base::text(
      "the dry step is in bf16; that layers keep up to {} less in {} is by the formula of "
      "`weft plan`",
      base::human_bytes(most),
      name_of(number)));
}

}  // namespace weft::measure
