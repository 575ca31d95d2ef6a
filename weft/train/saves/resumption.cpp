#include "weft/train/saves/resumption.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/config/dump.h"
#include "weft/model/parameters.h"
#include "weft/train/saves/state_forms.h"

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

// All tensors of the state list in full, with optimizer state in these forms.
std::map<std::string, Expected> expected_states(const config::ModelConfig& model,
                                                const checkpoint::StoredForms& forms) {
  using checkpoint::StoredMasters;
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
    all["optimizer.moment1/" + spec.name] = {.dtype = forms.moment1, .shape = spec.global_shape};
    all["optimizer.moment2/" + spec.name] = {.dtype = forms.moment2, .shape = spec.global_shape};
    if (forms.masters == StoredMasters::Whole) all["optimizer.master/" + spec.name] = wide;
    if (forms.masters == StoredMasters::Halves) {
      all["optimizer.master/" + spec.name] = {.dtype = FileDtype::F16, .shape = spec.global_shape};
    }
    if (forms.masters == StoredMasters::Remainders) {
      all["optimizer.remainder/" + spec.name] = {.dtype = FileDtype::I16,
                                                 .shape = spec.global_shape};
    }
  }
  return all;
}

// Forms of the checkpoint that the run can read: master weights belong to lower-precision weights.
checkpoint::StoredForms readable_forms(const Manifest& manifest, const config::Config& config) {
  const checkpoint::StoredForms now = forms_of(config);
  checkpoint::StoredForms then = checkpoint::forms_in(manifest);
  const auto none = checkpoint::StoredMasters::None;
  if (then.masters == none || now.masters == none) then.masters = now.masters;
  return then;
}

bool holds_only_weights(const Manifest& manifest) {
  return std::ranges::all_of(manifest.states,
                             [](const auto& state) { return state.first.starts_with("weights/"); });
}

// Counts layers by tensors such as "weights/layers.3.attention.norm.weight".
std::int64_t layers_in(const Manifest& manifest) {
  constexpr std::string_view kFront = "weights/layers.";
  std::int64_t layers = 0;
  for (auto state = manifest.states.lower_bound(kFront);
       state != manifest.states.end() && state->first.starts_with(kFront);
       ++state) {
    const std::string_view digits = std::string_view(state->first).substr(kFront.size());
    std::int64_t layer = 0;
    std::from_chars(digits.begin(), digits.end(), layer);
    layers = std::max(layers, layer < INT64_MAX ? layer + 1 : layer);
  }
  return layers;
}

// Content taken from a checkpoint.
struct Taken {
  Loads loads = Loads::Everything;
  OptimizerFrom optimizer = OptimizerFrom::Checkpoint;

  bool has_optimizer() const {
    return loads != Loads::Weights && optimizer == OptimizerFrom::Checkpoint;
  }
  bool has(std::string_view name) const {
    if (name.starts_with("weights/")) return true;
    return loads != Loads::Weights && (has_optimizer() || !name.starts_with("optimizer."));
  }
};

// True if a tensor of the checkpoint fits one of the run. Weights without an optimizer may have any
// floating-point type.
bool fits(const Expected& has, const Expected& want, const Taken& taken) {
  if (has.shape != want.shape) return false;
  return has.dtype == want.dtype || (!taken.has_optimizer() && checkpoint::is_floating(has.dtype));
}

std::vector<std::string> complaints_about(const Manifest& manifest,
                                          const config::Config& config,
                                          const Taken& taken) {
  const Loads loads = taken.loads;
  if (loads != Loads::Weights && holds_only_weights(manifest)) {
    return {"it has weights and nothing else: checkpoint.finetune=true begins a run with them"};
  }
  std::vector<std::string> complaints;
  if (loads == Loads::Everything && manifest.seed != config.rng.seed) {
    complaints.push_back(
        text("it was written with rng.seed={}, and this run has rng.seed={}: the data would come "
             "in another order (checkpoint.load_rng=false goes on with the seed of this run)",
             manifest.seed,
             config.rng.seed));
  }
  if (const std::int64_t layers = layers_in(manifest); layers != config.model.num_layers) {
    complaints.push_back(
        text("it has {}, and this run has model.num_layers={}: layers are neither "
             "added nor left out",
             base::counted(layers, "layer"),
             config.model.num_layers));
    return complaints;
  }
  std::map<std::string, Expected> expected =
      expected_states(config.model, readable_forms(manifest, config));
  std::erase_if(expected, [&](const auto& each) { return !taken.has(each.first); });
  for (const auto& [name, want] : expected) {
    const auto found = manifest.states.find(name);
    if (found == manifest.states.end()) continue;
    const Expected has{.dtype = found->second.dtype, .shape = found->second.shape};
    if (fits(has, want, taken)) continue;
    complaints.push_back(
        text("its tensor '{}' is {}, and this run's is {}", name, has.print(), want.print()));
  }
  for (const auto& [name, want] : expected) {
    if (manifest.states.contains(name) || name == Progress::kOptimizerBeginName) continue;
    complaints.push_back(text("it has no tensor '{}', {} of this run", name, want.print()));
  }
  for (const auto& [name, state] : manifest.states) {
    if (expected.contains(name) || !taken.has(name)) continue;
    complaints.push_back(
        text("its tensor '{}' is not part of this run's model", base::shown(name)));
  }
  return complaints;
}

void require_fit(const Resumption& from, const config::Config& config) {
  std::vector<std::string> complaints =
      complaints_about(from.manifest, config, {from.loads, from.optimizer});
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

// Runs before any rank starts; contents are checked while they are read.
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
  return !b.empty() && base::is_same_path(a, b);
}

// Lines of one section of a config in YAML.
std::vector<std::string> section(const std::string& yaml, const std::string& name) {
  std::vector<std::string> lines;
  bool is_inside = false;
  std::istringstream all(yaml);
  for (std::string line; std::getline(all, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == 0) {
      is_inside = line == name + ":";
    } else if (is_inside && begin != line.npos) {
      lines.push_back(line.substr(begin));
    }
  }
  return lines;
}

// Key of dataset that follows from the layout and changes no token.
constexpr std::string_view kOfTheLayout = "pad_to_max_length";

// Text about data that differs from the checkpoint's; the run then skips the same number of its
// samples.
std::string changed_data(const Resumption& from, const config::Config& config) {
  if (from.loads == Loads::Weights) return "";
  const std::vector<std::string> then = section(from.manifest.config, "dataset");
  const std::vector<std::string> now = section(config::to_yaml(config), "dataset");
  const auto key_of = [](const std::string& line) { return line.substr(0, line.find(':')); };
  std::vector<std::string> changes;
  for (const std::string& line : now) {  // the checkpoint lacks a newer key
    const auto before = std::ranges::find(then, key_of(line), key_of);
    if (before == then.end() || *before == line || key_of(line) == kOfTheLayout) continue;
    changes.push_back(text("{} (was {})", line, *before));
  }
  if (changes.empty()) return "";
  return text(
      "the data is another than the checkpoint's: dataset has {}; the run goes on behind as "
      "many samples of it",
      fmt::join(changes, ", "));
}

// Checkpoint that a run starts or resumes from.
struct Source {
  fs::path folder;
  std::optional<std::int64_t> step;  // nullopt: the last
  Loads loads = Loads::Everything;
  OptimizerFrom optimizer = OptimizerFrom::Checkpoint;
  std::string note;
};

// A run that takes only a part of another checkpoint resumes from its own checkpoint once it has
// saved. The same command starts and resumes it.
Source source_of(const config::CheckpointConfig& checkpoint) {
  const fs::path load = checkpoint.load, save = checkpoint.save;
  const Loads all = checkpoint.load_rng ? Loads::Everything : Loads::AllButSeed;
  if (!checkpoint.finetune && checkpoint.load_optim) {
    return {.folder = load, .step = checkpoint.ckpt_step, .loads = all};
  }
  const bool has_own = !save.empty() && !is_same_folder(load, save);
  if (!has_own || !checkpoint::find_checkpoint(save)) {
    return {.folder = load,
            .step = checkpoint.ckpt_step,
            .loads = checkpoint.finetune ? Loads::Weights : all,
            .optimizer = OptimizerFrom::Nothing};
  }
  return {.folder = save,
          .step = {},
          .loads = all,
          .note = text("{}: '{}' has a checkpoint of this run already, and the run goes on from "
                       "it: to begin anew, name another folder",
                       checkpoint.finetune ? "checkpoint.finetune" : "checkpoint.load_optim=false",
                       save.string())};
}

// Value of the config in the checkpoint; empty: none.
std::string saved_value(const Manifest& manifest, const std::string& in, const std::string& key) {
  for (const std::string& line : section(manifest.config, in)) {
    if (!line.starts_with(key + ": ")) continue;
    const std::string value = line.substr(key.size() + 2);
    const base::Json json = base::try_parse_json(value);
    return json.is_string() ? json.get<std::string>() : value;
  }
  return "";
}

// True if a run that names no step would also continue from here. Later steps were then discarded
// with --overwrite.
bool is_latest(const fs::path& save, const fs::path& step_folder) {
  try {
    const std::optional<checkpoint::Found> latest = checkpoint::find_checkpoint(save);
    return latest && is_same_folder(latest->folder, step_folder);
  } catch (const base::ConfigError&) {
    return false;
  } catch (const base::SystemError&) {
    return false;
  }
}

// A run that continues from an earlier checkpoint than its folder's latest leaves the later ones
// behind: from its own first save on, restarts replace them.
std::string later_replacement_text(const config::Config& config, const Resumption& resumed) {
  const fs::path save = config.checkpoint.save;
  if (resumed.loads != Loads::Weights && is_latest(save, resumed.folder)) return "";
  const std::int64_t first = resumed.loads == Loads::Weights ? 0 : resumed.manifest.step;
  std::vector<std::int64_t> later = checkpoint::usable_steps(save, first);
  if (later.empty()) return "";
  constexpr std::size_t kNamed = 8;
  const std::size_t more = later.size() > kNamed ? later.size() - kNamed : 0;
  later.resize(later.size() - more);
  return text(
      "checkpoint.save: '{}' has checkpoints of step {}{}, which this run would replace or leave "
      "behind, as it goes on after step {}: name another folder, or give --overwrite",
      save.string(),
      fmt::join(later, ", "),
      more == 0 ? "" : text(" and {} more", more),
      first);
}

}  // namespace

std::string continued_folder(const config::Config& config,
                             const std::optional<Resumption>& resumed) {
  const std::string& own = config.checkpoint.pretrained_checkpoint;
  if (!own.empty() || !resumed) return own;
  return saved_value(resumed->manifest, "checkpoint", "pretrained_checkpoint");
}

bool has_read_bytes(const Resumption& resumed) {
  return saved_value(resumed.manifest, "dataset", "kind") == config::word(config::DataKind::Text);
}

std::string resumption_text(const Resumption& from, const Progress& progress) {
  const std::string layout = checkpoint::layout_text(from.manifest);
  if (from.loads == Loads::Weights) {
    return text("begins    with the weights of '{}', written after step {} by {}",
                from.folder.string(),
                from.manifest.step,
                layout);
  }
  return text("goes on   from '{}' after step {}, {} samples consumed, written by {}{}",
              from.folder.string(),
              progress.step(),
              progress.samples(),
              layout,
              from.optimizer == OptimizerFrom::Nothing
                  ? "; its optimizer is left (checkpoint.load_optim=false): moments are zero, and "
                    "the learning rate begins anew"
                  : "");
}

std::string replacement_text(const config::Config& config,
                             const std::optional<Resumption>& resumed) {
  const fs::path save = config.checkpoint.save;
  if (save.empty()) return "";
  if (resumed && is_same_folder(resumed->folder.parent_path(), save)) {
    return later_replacement_text(config, *resumed);
  }
  std::error_code error;
  for (fs::directory_iterator at(save, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") {
      return text(
          "checkpoint.save: '{}' has {}, the weights of a model: name another folder, or give "
          "--overwrite to save beside them",
          save.string(),
          at->path().filename().string());
    }
  }
  const std::vector<std::int64_t> steps = checkpoint::saved_steps(save);
  const bool has_whole = std::ranges::any_of(steps, [&](std::int64_t step) {
    return checkpoint::is_whole(checkpoint::step_folder(save, step));
  });
  if (!has_whole) return "";
  return text(
      "checkpoint.save: '{}' has checkpoints of another run, up to step {}: name another folder, "
      "go "
      "on from them with checkpoint.load={}, or give --overwrite to replace those of the same "
      "steps",
      save.string(),
      steps.back(),
      save.string());
}

std::optional<Resumption> find_resumption(const config::Config& config) {
  if (config.checkpoint.load.empty()) return std::nullopt;
  const Source source = source_of(config.checkpoint);
  const std::optional<checkpoint::Found> found =
      checkpoint::find_checkpoint(source.folder, source.step);
  if (!found) {
    const bool may_start = source.loads != Loads::Weights;
    if (may_start && is_same_folder(source.folder, config.checkpoint.save)) return std::nullopt;
    throw base::ConfigError(
        text("checkpoint.load: '{}' has no checkpoint: give the folder that checkpoint.save named, "
             "or one of its iter_ folders (a run that may start or go on names one folder in both "
             "keys)",
             source.folder.string()));
  }
  Resumption from{.folder = found->folder,
                  .note = found->note.empty() ? source.note : found->note,
                  .manifest = checkpoint::read_manifest(found->folder),
                  .loads = source.loads,
                  .optimizer = source.optimizer};
  require_files(from);
  require_fit(from, config);
  if (const std::string data = changed_data(from, config); !data.empty()) {
    from.note += (from.note.empty() ? "" : "; ") + data;
  }
  if (from.optimizer == OptimizerFrom::Nothing) return from;
  const std::string forms = changed_forms(checkpoint::forms_in(from.manifest), forms_of(config));
  if (!forms.empty()) from.note += (from.note.empty() ? "" : "; ") + forms;
  return from;
}

}  // namespace weft::train
