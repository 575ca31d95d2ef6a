#include "weft/train/weights.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/checkpoint/huggingface/huggingface_files.h"
#include "weft/checkpoint/new_folder.h"
#include "weft/checkpoint/run_reads.h"
#include "weft/config/field.h"
#include "weft/tensor/transfer.h"

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

// Local elements [begin, begin + out.size()) of this rank's part of a parameter.
void copy_out(tensor::Stream& stream,
              const model::Parameter& parameter,
              std::int64_t begin,
              std::span<float> out) {
  tensor::read_floats(stream, out, parameter.weight.range(begin, {std::ssize(out)}));
}

// One range of a parameter's global elements, held by one of its owners. parameter = -1: end of
// requests.
struct Request {
  std::int64_t parameter = -1, owner = 0, begin = 0, count = 0;
};

// Member that holds a part of a parameter.
struct Owner {
  int member = 0;
  tensor::Slice slice;
};

std::int64_t total(const std::vector<tensor::Run>& runs) {
  std::int64_t sum = 0;
  for (const tensor::Run& run : runs) sum += run.count;
  return sum;
}

// Fetches ranges of parameters from the other ranks of a copy of the model to rank 0, one at a
// time.
class ParameterFetcher {
 public:
  explicit ParameterFetcher(Engine& engine)
      : engine_(engine),
        group_(*engine.groups().model_copy),
        stream_(engine.lanes()[schedule::Lane::Compute]),
        request_(engine.pool(), DType::I64, {4}, Tag::Communication),
        specs_(model::list_parameters(engine.config().model,
                                      model::whole_model(engine.config().model),
                                      {})) {
    for (const model::ParameterSpec& spec : specs_) index_.emplace(spec.name, std::ssize(index_));
    owners_.resize(specs_.size());
    find_owners();
  }

  void fetch(const std::string& name, std::int64_t begin, std::span<float> out) {
    const std::int64_t index = index_.at(name);
    const std::vector<Owner>& owners = owners_[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const Request request{.parameter = index,
                            .owner = static_cast<std::int64_t>(i),
                            .begin = begin,
                            .count = std::ssize(out)};
      const std::vector<tensor::Run> runs = runs_for(request);
      if (runs.empty()) continue;
      const bool own = owners[i].member == group_.rank();
      const std::vector<float> values = own ? held(name, runs) : receive(request, total(runs));
      auto next = values.begin();
      for (const tensor::Run& run : runs) {
        std::copy_n(next, run.count, out.begin() + (run.global - begin));
        next += run.count;
      }
    }
  }

  void finish() { announce({}); }

  // Serves the requests of rank 0, member 0 of its group, until it is done.
  void serve() {
    for (Request asked = announce({}); asked.parameter >= 0; asked = announce({})) {
      const std::vector<tensor::Run> runs = runs_for(asked);
      if (owner_of(asked).member != group_.rank()) continue;
      const std::vector<float> packed =
          held(specs_[static_cast<std::size_t>(asked.parameter)].name, runs);
      Tensor values(engine_.pool(), DType::F32, {std::ssize(packed)}, Tag::Communication);
      tensor::upload<float>(stream_, values, packed);
      group_.send(stream_, values, 0);
      stream_.synchronize();
    }
  }

 private:
  // Finds the owner of each part: the first holder (for a tied table or replicated weights), rank 0
  // itself if possible.
  void find_owners() {
    const config::ModelConfig& model = engine_.config().model;
    const grid::Grid& grid = engine_.groups().grid;
    const derive::Placement placement = derive::placement_of(engine_.config());
    for (int member = 0; member < group_.size(); ++member) {
      const grid::Coordinate place =
          grid.coordinate(group_.members()[static_cast<std::size_t>(member)]);
      for (const model::ParameterSpec& held :
           model::list_parameters(model,
                                  model::holding_of(model, place.pp, placement),
                                  {.tp = place.tp, .ep = place.ep, .etp = place.etp})) {
        std::vector<Owner>& owners = owners_[static_cast<std::size_t>(index_.at(held.name))];
        const bool is_copy = std::ranges::find(owners, held.slice, &Owner::slice) != owners.end();
        if (!is_copy) owners.push_back({.member = member, .slice = held.slice});
      }
    }
  }

  const Owner& owner_of(const Request& request) const {
    CHECK(request.parameter >= 0 && request.parameter < std::ssize(specs_),
          "parameter {} of {}",
          request.parameter,
          specs_.size());
    return owners_[static_cast<std::size_t>(request.parameter)].at(
        static_cast<std::size_t>(request.owner));
  }

  std::vector<tensor::Run> runs_for(const Request& request) const {
    return tensor::runs_in(owner_of(request).slice,
                           {.begin = request.begin, .count = request.count});
  }

  // Values of a parameter on this rank, run after run in memory order.
  std::vector<float> held(const std::string& name, const std::vector<tensor::Run>& runs) const {
    std::vector<float> values(static_cast<std::size_t>(total(runs)));
    copy_out(stream_, engine_.parameters().find(name), runs.front().local, values);
    return values;
  }

  std::vector<float> receive(const Request& request, std::int64_t count) {
    announce(request);
    Tensor values(engine_.pool(), DType::F32, {count}, Tag::Communication);
    group_.receive(stream_, values, owner_of(request).member);
    return tensor::read<float>(stream_, values);
  }

  // Sends member 0's request to every member.
  Request announce(const Request& mine) {
    if (group_.size() == 1) return mine;
    std::array<std::int64_t, 4> words{mine.parameter, mine.owner, mine.begin, mine.count};
    tensor::upload<std::int64_t>(stream_, request_, words);
    group_.broadcast(stream_, request_, 0);
    tensor::read<std::int64_t>(stream_, words, request_);
    return {.parameter = words[0], .owner = words[1], .begin = words[2], .count = words[3]};
  }

  Engine& engine_;
  comm::Communicator& group_;
  tensor::Stream& stream_;
  Tensor request_;
  const std::vector<model::ParameterSpec> specs_;  // the whole model's
  std::map<std::string, std::int64_t> index_;      // index in specs_
  std::vector<std::vector<Owner>> owners_;         // by spec
};

}  // namespace

config::Config with_model_of(const config::Config& config,
                             const checkpoint::HuggingFaceModel& model) {
  config::Config folder;
  folder.model = model.config();
  config::Config adopted = config;
  for (const std::string_view key : kFolderModelKeys) {
    config::find_field(key)->copy(folder, adopted);
  }
  return adopted;
}

namespace {

// Untrained parameters have no gradient that shows the error: a non-finite router bias would only
// misroute.
void check_finite(const model::Parameter& parameter, std::span<const float> values) {
  if (parameter.spec.home != model::Home::Untrained) return;
  if (std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return;
  throw base::ConfigError(
      base::text("{} has a value that is not finite: mend the folder that is loaded",
                 parameter.spec.name));
}

// Reads in pieces: the host never holds a whole parameter.
void load_parameter(tensor::Stream& stream,
                    const model::Parameter& parameter,
                    const ReadSlice& read) {
  constexpr std::int64_t kMostElements = 1 << 20;
  tensor::Slice piece = parameter.spec.slice;
  const std::int64_t elements = parameter.weight.elements();
  std::vector<float> values;
  for (std::int64_t begin = 0; begin < elements; begin += kMostElements) {
    piece.elements = {.begin = begin, .count = std::min(kMostElements, elements - begin)};
    values.resize(base::at(piece.elements.count));
    read(parameter.spec.name, piece, values);
    check_finite(parameter, values);
    tensor::write_floats(stream, parameter.weight.range(begin, {std::ssize(values)}), values);
  }
}

}  // namespace

void load_weights(Engine& engine, const ReadSlice& read) {
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  for (const model::Parameter& parameter : engine.parameters().all()) {
    load_parameter(stream, parameter, read);
  }
  for (OptimizerShare& share : engine.optimizers()) share.adamw.refresh_master(stream);
}

void load_weights(Engine& engine, const checkpoint::HuggingFaceModel& model) {
  load_weights(engine,
               [&](const std::string& parameter, const tensor::Slice& slice, std::span<float> out) {
                 const auto read = [&](std::int64_t begin, std::span<float> values) {
                   model.read(parameter, begin, values);
                 };
                 checkpoint::read_runs(tensor::runs_of(slice), out, read);
               });
}

namespace {

// Runs `write` on rank 0 with a function that fetches weights. Errors of the disk or the place are
// returned, others thrown.
std::optional<std::string> save_with(
    Engine& engine,
    const std::function<void(const checkpoint::Fetch& fetch)>& write) {
  engine.program().gather_weights();
  if (!engine.groups().model_copy) return std::nullopt;  // other copies hold the same
  ParameterFetcher fetcher(engine);
  if (engine.rank() != 0) {
    fetcher.serve();
    return std::nullopt;
  }
  bool fetching = false;
  std::optional<std::string> failure;
  try {
    write([&](const std::string& parameter, std::int64_t begin, std::span<float> out) {
      fetching = true;
      fetcher.fetch(parameter, begin, out);
      fetching = false;
    });
  } catch (const base::SystemError& error) {
    if (fetching) throw;  // a rank failed, not the disk
    failure = error.what();
  } catch (const base::ConfigError& error) {
    if (fetching) throw;
    failure = error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    failure = error.what();
  }
  fetcher.finish();
  return failure;
}

}  // namespace

std::optional<std::string> save_weights(Engine& engine,
                                        const std::filesystem::path& folder,
                                        const checkpoint::HuggingFaceConfig& config) {
  return save_with(engine, [&](const checkpoint::Fetch& fetch) {
    checkpoint::write_huggingface(folder, config, fetch);
  });
}

std::optional<std::string> save_weights(Engine& engine,
                                        const NewWeights& place,
                                        const checkpoint::HuggingFaceConfig& config) {
  return save_with(engine, [&](const checkpoint::Fetch& fetch) {
    checkpoint::NewFolder folder(place.folder, place.overwrite, checkpoint::is_of_the_model);
    checkpoint::write_huggingface(folder.path(), config, fetch);
    if (!place.text_from.empty()) checkpoint::copy_text_files(place.text_from, folder.path());
    folder.finish();
  });
}

namespace {

// Adds config.json values that training ignores. Positions are at least the sequence length. The
// coefficient of a loss comes from the start folder if the run has no such loss.
config::ModelConfig with_what_folders_say(const config::ModelConfig& model,
                                          const checkpoint::HuggingFaceConfig* start) {
  config::ModelConfig written = model;
  std::int64_t positions = std::max(model.max_position_embeddings.value_or(0), model.seq_length);
  if (start != nullptr) {
    positions = std::max(positions, start->model.max_position_embeddings.value_or(0));
    const bool has_loss =
        std::ranges::any_of(model.moe_aux_loss_coeff, [](double coeff) { return coeff != 0; });
    if (!has_loss) {
      written.moe_router_load_balancing_type = start->model.moe_router_load_balancing_type;
      written.moe_aux_loss_coeff = start->model.moe_aux_loss_coeff;
    }
  }
  written.max_position_embeddings = positions;
  return written;
}

}  // namespace

checkpoint::HuggingFaceConfig huggingface_config_for(const config::ModelConfig& model,
                                                     const checkpoint::HuggingFaceConfig* start) {
  using checkpoint::Family;
  std::vector<std::string> least;  // smallest set of reasons against a family
  Family nearest{};
  for (const Family family : checkpoint::kFamilies) {
    checkpoint::HuggingFaceConfig candidate;
    if (start != nullptr) candidate = *start;
    candidate.family = family;
    candidate.model = with_what_folders_say(model, start);
    candidate.layers_ahead = 0;
    try {
      checkpoint::huggingface_config_text(candidate);
      return candidate;
    } catch (const base::ConfigError& error) {
      if (!least.empty() && least.size() <= error.complaints().size()) continue;
      least = error.complaints();
      nearest = family;
    }
  }
  throw base::ConfigError(base::text(
      "checkpoint.save_hf: no Hugging Face family computes this model; {} comes nearest, "
      "and would need other settings ({})",
      checkpoint::word(nearest),
      fmt::join(least, "; ")));
}

}  // namespace weft::train
