#include "weft/measure/runs/counted_step.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/measure/memory/memory_forecast.h"

namespace weft::measure {
namespace {

double besides_state(const train::BytesByTag& bytes) {
  std::size_t sum = 0;
  for (const tensor::Tag tag :
       {tensor::Tag::Activations, tensor::Tag::Communication, tensor::Tag::Workspace}) {
    sum += bytes[static_cast<std::size_t>(tag)];
  }
  return static_cast<double>(sum);
}

}  // namespace

std::vector<double> count_step(const config::Config& config) {
  std::vector<double> ranks;
  for (const train::PredictedMemory& stage : forecast_memory(config, Priced::No).stages) {
    double most = 0;
    for (const train::BytesByTag& bytes : stage.timeline) {
      most = std::max(most, besides_state(bytes));
    }
    ranks.push_back(most);
  }
  return ranks;
}

}  // namespace weft::measure
