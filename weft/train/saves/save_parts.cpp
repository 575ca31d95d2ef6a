#include "weft/train/saves/save_parts.h"

#include "weft/base/check.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/config/dump.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using base::text;
using checkpoint::Manifest;
using checkpoint::StateEntry;

// First character of a rank's message about its shard.
constexpr char kWritten = '+', kFailed = '-';

// nullopt: no readable manifest.
std::optional<std::uint32_t> manifest_at(const fs::path& folder) {
  std::optional<std::uint32_t> checksum;
  failure_of([&] { checksum = checkpoint::manifest_checksum(folder); });
  return checksum;
}

// Merges the ranks' manifests; returns the first failure of a rank.
std::string merge(const SavePlace& place,
                  const std::vector<std::string>& told,
                  Manifest& manifest) {
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const std::string content = told[rank].substr(1);
    if (told[rank].front() == kFailed) return text("rank {}: {}", rank, content);
    add_part(manifest, checkpoint::parse_manifest(content, text("what rank {} wrote", rank)));
  }
  for (const checkpoint::StoredFile& file : manifest.files) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(place.folder() / file.name, error);
    if (!error && bytes == file.bytes) continue;
    return text(
        "rank 0 does not see '{}' with the {} bytes another rank wrote: checkpoint.save "
        "must be a folder that all ranks share",
        (place.folder() / file.name).string(),
        file.bytes);
  }
  const std::string lacking = checkpoint::uncovered_state(manifest);
  CHECK(lacking.empty(), "no rank wrote all of '{}'", lacking);
  return "";
}

void finish(const SavePlace& place, Manifest& manifest) {
  const config::Config& config = place.config;
  manifest.step = place.step;
  manifest.samples = place.samples;
  manifest.seed = config.rng.seed;
  manifest.config = config::to_yaml(config);
  manifest.follows = checkpoint::tracked_checksum(place.save);
  const grid::Grid& grid = place.grid;
  manifest.layout = {{"world", grid.world()},
                     {"tp", grid.tp()},
                     {"cp", grid.cp()},
                     {"dp", grid.dp()},
                     {"pp", grid.pp()},
                     {"vpp", config.model.virtual_pipeline_model_parallel_size.value_or(1)},
                     {"ep", grid.ep()},
                     {"etp", grid.etp()},
                     {"distributed_optimizer", config.ddp.use_distributed_optimizer ? 1 : 0}};
  base::write_whole(place.folder() / checkpoint::kManifestName,
                    checkpoint::manifest_text(manifest));
  base::sync_folder(place.folder());
  checkpoint::write_tracker(place.save, manifest.step);
  checkpoint::remove_strays(place.folder());
  // Also removes unfinished saves of earlier runs.
  const std::int64_t keep = config.checkpoint.most_recent_k;
  checkpoint::remove_old_steps(place.save, manifest.step, keep >= 0 ? keep : INT64_MAX);
}

}  // namespace

std::vector<StateEntry> stored_entries(std::vector<StateEntry> entries) {
  std::erase_if(entries, [](const StateEntry& entry) { return entry.tensor.elements() == 0; });
  return entries;
}

std::vector<StateEntry> own_entries(Engine& engine, const Progress& progress, SaveTalk& talk) {
  std::vector<StateEntry> entries = stored_entries(state_list(engine, progress));
  std::vector<EntryKey> keys;
  for (const StateEntry& entry : entries) keys.push_back(key_of(entry));
  const std::vector<bool> writes = written_by(engine.rank(), talk.gather_keys(keys));
  std::vector<StateEntry> own;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (writes[i]) own.push_back(std::move(entries[i]));
  }
  return own;
}

SavePlace::SavePlace(const Engine& engine, const Progress& progress)
    : config(engine.config()),
      grid(engine.groups().grid),
      save(config.checkpoint.save),
      step(progress.step()),
      samples(progress.samples()),
      replaced(manifest_at(folder())) {}

bool SavePlace::is_written() const {
  const std::optional<std::uint32_t> found = manifest_at(folder());
  return found && found != replaced;
}

fs::path SavePlace::folder() const { return checkpoint::step_folder(save, step); }

std::string make_room(const SavePlace& place) {
  return failure_of([&] { checkpoint::make_step_folder(place.save, place.step); });
}

std::string write_part(const SavePlace& place,
                       int rank,
                       std::span<const StateEntry> entries,
                       const checkpoint::ReadBlock& read) {
  Manifest part;
  const std::string failure =
      failure_of([&] { part = checkpoint::write_shard(place.folder(), rank, entries, read); });
  return failure.empty() ? kWritten + checkpoint::manifest_text(part) : kFailed + failure;
}

std::string finish_save(const SavePlace& place, const std::vector<std::string>& told) {
  Manifest manifest;
  std::string failure = merge(place, told, manifest);
  if (failure.empty()) failure = failure_of([&] { finish(place, manifest); });
  if (!failure.empty()) {
    failure_of([&] {
      checkpoint::is_whole(place.folder()) ? checkpoint::remove_strays(place.folder())
                                           : checkpoint::remove_step(place.save, place.step);
    });
  }
  return failure;
}

std::string failure_text(const SavePlace& place, const std::string& failure) {
  return text("the checkpoint of step {}: {}", place.step, failure);
}

}  // namespace weft::train
