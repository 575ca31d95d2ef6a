#include "weft/train/weights.h"

#include <algorithm>
#include <map>

#include "weft/base/check.h"

namespace weft::train {
namespace {

using tensor::BFloat16;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

void copy_in(const Tensor& weight, std::span<const float> values) {
  if (weight.dtype() == DType::F32) {
    std::ranges::copy(values, weight.host<float>());
  } else {
    std::ranges::transform(values, weight.host<BFloat16>(), [](float x) { return BFloat16(x); });
  }
}

// The local elements [begin, begin + out.size()) of this rank's part of a parameter.
void copy_out(const model::Parameter& parameter, std::int64_t begin, std::span<float> out) {
  if (parameter.weight.dtype() == DType::F32) {
    std::copy_n(parameter.weight.host<float>() + begin, out.size(), out.begin());
  } else {
    std::transform(parameter.weight.host<BFloat16>() + begin,
                   parameter.weight.host<BFloat16>() + begin + out.size(),
                   out.begin(),
                   [](BFloat16 x) { return float(x); });
  }
}

// One range of one parameter's global elements; parameter -1 ends the asking.
struct Request {
  std::int64_t parameter = -1, begin = 0, count = 0;
};

// Member 0 of the ep group asks the others for ranges of their experts, one at a time.
class ExpertFetcher {
 public:
  explicit ExpertFetcher(Engine& engine)
      : engine_(engine),
        ep_(*engine.groups().ep),
        stream_(engine.lanes()[schedule::Lane::Compute]),
        request_(engine.pool(), DType::I64, {3}, Tag::Communication) {}

  void fetch(std::int64_t index, std::int64_t begin, std::span<float> out) {
    const model::Parameter& parameter = parameter_at(index);
    const int owner = owner_of(parameter, begin);
    if (owner == 0) return copy_out(parameter, begin, out);
    announce({.parameter = index, .begin = begin, .count = std::ssize(out)});
    Tensor values(engine_.pool(), DType::F32, {std::ssize(out)}, Tag::Communication);
    ep_.receive(stream_, values, owner);
    stream_.synchronize();
    std::copy_n(values.host<float>(), out.size(), out.begin());
  }

  void finish() { announce({}); }

  // The other members answer until member 0 is done.
  void serve() {
    for (Request asked = announce({}); asked.parameter >= 0; asked = announce({})) {
      const model::Parameter& parameter = parameter_at(asked.parameter);
      if (owner_of(parameter, asked.begin) != ep_.rank()) continue;
      const std::int64_t local = asked.begin - parameter.spec.begin;
      CHECK(local >= 0 && asked.count >= 0 && local + asked.count <= parameter.weight.elements(),
            "elements [{}, +{}) of {}",
            asked.begin,
            asked.count,
            parameter.spec.name);
      Tensor values(engine_.pool(), DType::F32, {asked.count}, Tag::Communication);
      copy_out(parameter, local, {values.host<float>(), static_cast<std::size_t>(asked.count)});
      ep_.send(stream_, values, 0);
      stream_.synchronize();
    }
  }

 private:
  const model::Parameter& parameter_at(std::int64_t index) const {
    const auto& all = engine_.parameters().all();
    CHECK(index >= 0 && index < std::ssize(all), "parameter {} of {}", index, all.size());
    return all[static_cast<std::size_t>(index)];
  }

  // The member of the group whose part holds a global element.
  static int owner_of(const model::Parameter& parameter, std::int64_t begin) {
    if (parameter.spec.home == model::Home::Dense) return 0;
    return static_cast<int>(begin / parameter.weight.elements());
  }

  // Member 0's request, on every member.
  Request announce(const Request& mine) {
    if (ep_.size() == 1) return mine;
    std::int64_t* words = request_.host<std::int64_t>();
    words[0] = mine.parameter;
    words[1] = mine.begin;
    words[2] = mine.count;
    ep_.broadcast(stream_, request_, 0);
    stream_.synchronize();
    return {.parameter = words[0], .begin = words[1], .count = words[2]};
  }

  Engine& engine_;
  comm::Communicator& ep_;
  tensor::Stream& stream_;
  Tensor request_;
};

}  // namespace

config::Config with_model_of(const config::Config& config,
                             const checkpoint::HuggingFaceModel& model) {
  config::Config adopted = config;
  adopted.model = model.config();
  const config::ModelConfig& own = config.model;
  adopted.model.seq_length = own.seq_length;
  adopted.model.params_dtype = own.params_dtype;
  adopted.model.init_method_std = own.init_method_std;
  adopted.model.moe_router_load_balancing_type = own.moe_router_load_balancing_type;
  adopted.model.moe_aux_loss_coeff = own.moe_aux_loss_coeff;
  adopted.model.moe_z_loss_coeff = own.moe_z_loss_coeff;
  adopted.model.moe_token_dispatcher_type = own.moe_token_dispatcher_type;
  adopted.model.tensor_model_parallel_size = own.tensor_model_parallel_size;
  adopted.model.pipeline_model_parallel_size = own.pipeline_model_parallel_size;
  adopted.model.context_parallel_size = own.context_parallel_size;
  adopted.model.expert_model_parallel_size = own.expert_model_parallel_size;
  adopted.model.expert_tensor_parallel_size = own.expert_tensor_parallel_size;
  return adopted;
}

void load_weights(Engine& engine, const checkpoint::HuggingFaceModel& model) {
  std::vector<float> values;
  for (const model::Parameter& parameter : engine.parameters().all()) {
    values.resize(static_cast<std::size_t>(parameter.weight.elements()));
    model.read(parameter.spec.name, parameter.spec.begin, values);
    copy_in(parameter.weight, values);
  }
  for (optim::AdamW& optimizer : engine.optimizers()) optimizer.refresh_master();
}

void save_weights(Engine& engine,
                  const std::filesystem::path& folder,
                  const checkpoint::HuggingFaceConfig& config) {
  // The group of rank 0 holds every expert once; other groups are replicas.
  if (engine.groups().ep->members().front() != 0) return;
  ExpertFetcher fetcher(engine);
  if (engine.rank() != 0) return fetcher.serve();
  std::map<std::string, std::int64_t> index;
  for (const model::Parameter& parameter : engine.parameters().all()) {
    index.emplace(parameter.spec.name, std::ssize(index));
  }
  checkpoint::write_huggingface(
      folder,
      config,
      [&](const std::string& parameter, std::int64_t begin, std::span<float> out) {
        fetcher.fetch(index.at(parameter), begin, out);
      });
  fetcher.finish();
}

checkpoint::HuggingFaceConfig huggingface_config_for(const config::ModelConfig& model) {
  using checkpoint::Family;
  std::vector<std::string> reasons{
      "checkpoint.save_hf: no Hugging Face family computes this model"};
  for (const Family family : {Family::Qwen3Moe, Family::Olmoe, Family::Mixtral}) {
    checkpoint::HuggingFaceConfig candidate{.family = family, .model = model};
    try {
      checkpoint::huggingface_config_text(candidate);
      return candidate;
    } catch (const base::ConfigError& error) {
      reasons.push_back(base::text("{}: {}", checkpoint::word(family), error.what()));
    }
  }
  throw base::ConfigError(reasons);
}

}  // namespace weft::train
