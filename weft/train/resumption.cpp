// Whether a checkpoint is one of this run.
#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/model/parameters.h"
#include "weft/train/checkpoints.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using base::text;
using checkpoint::FileDtype;
using checkpoint::Manifest;

constexpr std::size_t kMostMisfits = 20;

struct Expected {
  FileDtype dtype = FileDtype::F32;
  tensor::Shape shape;

  std::string print() const { return text("{} {}", checkpoint::word(dtype), shape.print()); }
};

// Every tensor of the state list, whole.
std::map<std::string, Expected> expected_states(const config::ModelConfig& model) {
  std::map<std::string, Expected> all;
  for (const std::string& name : Progress::names()) {
    all[name] = {.dtype = FileDtype::I64, .shape = {1}};
  }
  const FileDtype weights = checkpoint::file_dtype(model::dtype_of(model.params_dtype));
  for (const model::ParameterSpec& spec :
       model::list_parameters(model, model::whole_model(model), {})) {
    const Expected wide{.dtype = FileDtype::F32, .shape = spec.global_shape};
    all["weights/" + spec.name] = wide;
    if (!spec.is_trained()) continue;
    all["weights/" + spec.name].dtype = weights;
    all["optimizer.moment1/" + spec.name] = wide;
    all["optimizer.moment2/" + spec.name] = wide;
    if (weights != FileDtype::F32) all["optimizer.master/" + spec.name] = wide;
  }
  return all;
}

std::vector<std::string> complaints_about(const Manifest& manifest, const config::Config& config) {
  std::vector<std::string> complaints;
  if (manifest.seed != config.rng.seed) {
    complaints.push_back(
        text("it was written with rng.seed={}, and this run has rng.seed={}: the data would come "
             "in another order",
             manifest.seed,
             config.rng.seed));
  }
  const std::map<std::string, Expected> expected = expected_states(config.model);
  for (const auto& [name, want] : expected) {
    const auto found = manifest.states.find(name);
    if (found == manifest.states.end()) continue;
    const Expected has{.dtype = found->second.dtype, .shape = found->second.shape};
    if (has.dtype == want.dtype && has.shape == want.shape) continue;
    complaints.push_back(
        text("its tensor '{}' is {}, and this run's is {}", name, has.print(), want.print()));
  }
  for (const auto& [name, want] : expected) {
    if (manifest.states.contains(name)) continue;
    complaints.push_back(text("it has no tensor '{}', {} of this run", name, want.print()));
  }
  for (const auto& [name, state] : manifest.states) {
    if (expected.contains(name)) continue;
    complaints.push_back(
        text("its tensor '{}' is not part of this run's model", base::shown(name)));
  }
  return complaints;
}

void require_fit(const Resumption& from, const config::Config& config) {
  std::vector<std::string> complaints = complaints_about(from.manifest, config);
  if (complaints.empty()) return;
  const std::size_t all = complaints.size();
  if (all > kMostMisfits) {
    complaints.resize(kMostMisfits);
    complaints.push_back(text("and {} more", all - kMostMisfits));
  }
  for (std::string& complaint : complaints) {
    complaint = text("checkpoint.load: '{}': {}", from.folder.string(), complaint);
  }
  throw base::ConfigError(std::move(complaints));
}

// Before any rank starts; what is in them is checked as it is read.
void require_files(const Resumption& from) {
  std::vector<std::string> complaints = checkpoint::wrong_files(from.folder, from.manifest);
  if (complaints.empty()) return;
  for (std::string& complaint : complaints) {
    complaint = text("checkpoint.load: '{}' is damaged: {}; {}",
                     from.folder.string(),
                     complaint,
                     checkpoint::way_back(from.folder));
  }
  throw base::ConfigError(std::move(complaints));
}

bool is_same_folder(const fs::path& a, const fs::path& b) {
  if (b.empty()) return false;
  return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal();
}

}  // namespace

std::optional<Resumption> find_resumption(const config::Config& config) {
  const fs::path load = config.checkpoint.load;
  if (load.empty()) return std::nullopt;
  const std::optional<checkpoint::Found> found =
      checkpoint::find_checkpoint(load, config.checkpoint.ckpt_step);
  if (!found) {
    if (is_same_folder(load, config.checkpoint.save)) return std::nullopt;
    throw base::ConfigError(
        text("checkpoint.load: '{}' has no checkpoint: give the folder that checkpoint.save named, "
             "or one of its iter_ folders (a run that may start or go on names one folder in both "
             "keys)",
             load.string()));
  }
  Resumption from{.folder = found->folder,
                  .note = found->note,
                  .manifest = checkpoint::read_manifest(found->folder)};
  require_files(from);
  require_fit(from, config);
  return from;
}

}  // namespace weft::train
