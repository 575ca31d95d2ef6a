#include "weft/checkpoint/tensors/bf16_reference.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_tensors.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::at;
using base::text;

SafetensorsFile open_bf16(const fs::path& folder) {
  const fs::path path = folder / "bf16.safetensors";
  std::error_code ignored;
  if (fs::is_directory(folder, ignored) && !fs::exists(path, ignored)) {
    throw base::ConfigError(
        text("'{}' is missing: it says how far another implementation is from the reference in "
             "bf16. Make it with python3 tools/make_reference.py {} --bf16, where PyTorch and "
             "Transformers are installed; without model.bf16, the run is verified in fp32",
             path.string(),
             folder.string()));
  }
  return SafetensorsFile(path);
}

// Checks that each token has different valid experts in ascending order.
void check_choice(const TensorView& tensor,
                  const std::vector<std::int32_t>& experts,
                  const config::ModelConfig& model) {
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const bool first = i % at(model.moe_router_topk) == 0;
    const std::int32_t least = first ? 0 : experts[i - 1] + 1;
    if (experts[i] >= least && experts[i] < model.experts()) continue;
    throw base::ConfigError(text("{}: element {} is expert {}; one from {} to {} expected",
                                 tensor.where,
                                 i,
                                 experts[i],
                                 least,
                                 model.experts() - 1));
  }
}

std::vector<std::int32_t> read_choice(const TensorView& tensor,
                                      const config::ModelConfig& model,
                                      const ReferenceRun& reference) {
  const Shape shape{reference.batch_size(), reference.seq_length(), model.moe_router_topk};
  if (tensor.shape != shape) {
    throw base::ConfigError(
        text("{} has shape {}; {} expected", tensor.where, tensor.shape, shape));
  }
  std::vector<std::int32_t> experts(at(tensor.elements()));
  read_elements(tensor, 0, experts);
  check_choice(tensor, experts, model);
  return experts;
}

double read_error(const TensorView& tensor) {
  if (tensor.elements() != 1) {
    throw base::ConfigError(text("{} has shape {}; (1) expected", tensor.where, tensor.shape));
  }
  std::vector<double> error(1);
  read_elements(tensor, 0, error);
  if (std::isfinite(error[0]) && error[0] >= 0) return error[0];
  throw base::ConfigError(text("{} is {}; an error of 0 or more expected", tensor.where, error[0]));
}

}  // namespace

Bf16Reference::Bf16Reference(const fs::path& folder,
                             const HuggingFaceModel& model,
                             const ReferenceRun& reference)
    : numbers_a_sequence_(reference.seq_length() * model.config().moe_router_topk),
      experts_(at(model.config().num_layers)) {
  const SafetensorsFile file = open_bf16(folder);
  for (std::int64_t layer = 0; layer < model.config().num_layers; ++layer) {
    if (!model.config().is_moe_layer(layer)) continue;
    experts_[at(layer)] =
        read_choice(file.get(text("experts.{}", layer)), model.config(), reference);
  }
  read_errors(file, model);
}

void Bf16Reference::read_errors(const SafetensorsFile& file, const HuggingFaceModel& model) {
  std::vector<std::string> names{"logits", "loss"};
  for (const HuggingFaceTensor& tensor :
       huggingface_tensors(model.config(), model.family(), ExpertNames::Stacked)) {
    if (tensor.trained) names.push_back("grad." + tensor.name);
  }
  for (const std::string& name : names) errors_[name] = read_error(file.get("error." + name));
}

std::vector<std::int32_t> Bf16Reference::experts(std::int64_t layer,
                                                 std::int64_t first,
                                                 std::int64_t count) const {
  const std::vector<std::int32_t>& all = experts_[at(layer)];
  if (all.empty()) return {};
  const auto begin = all.begin() + first * numbers_a_sequence_;
  return {begin, begin + count * numbers_a_sequence_};
}

double Bf16Reference::error(std::string_view name) const {
  const auto found = errors_.find(name);
  CHECK(found != errors_.end(), "no error of {}", name);
  return found->second;
}

}  // namespace weft::checkpoint
