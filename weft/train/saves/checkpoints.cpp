#include "weft/train/saves/checkpoints.h"

#include "weft/checkpoint/state_reader.h"
#include "weft/train/saves/save_parts.h"
#include "weft/train/saves/state_forms.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace {

// Saves now. Returns the error on rank 0; empty: saved.
std::string saved_now(Engine& engine, const Progress& progress, const SavePlace& place) {
  SaveTalk talk(engine);
  const std::string failure = engine.rank() == 0 ? make_room(place) : "";
  const bool has_folder = talk.gather({failure.empty() ? 1 : 0}).front() == 1;
  if (!has_folder) return failure;
  const std::vector<checkpoint::StateEntry> own = own_entries(engine, progress, talk);
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  const std::vector<std::string> told =
      talk.collect(write_part(place, engine.rank(), own, checkpoint::read_tensors(stream, own)));
  return engine.rank() == 0 ? finish_save(place, told) : "";
}

}  // namespace

std::optional<std::string> save_checkpoint(Engine& engine, const Progress& progress) {
  const SavePlace place(engine, progress);
  const std::string failure = saved_now(engine, progress, place);
  if (failure.empty()) return std::nullopt;
  return failure_text(place, failure);
}

void load_checkpoint(Engine& engine, Progress& progress, const Resumption& from) {
  checkpoint::StateReader reader(from.manifest, from.folder);
  const bool has_optimizer =
      from.loads != Loads::Weights && from.optimizer == OptimizerFrom::Checkpoint;
  if (!has_optimizer) {
    load_weights(
        engine,
        [&](const std::string& parameter, const tensor::Slice& slice, std::span<float> out) {
          reader.read("weights/" + parameter, slice, out);
        });
  }
  if (from.loads == Loads::Weights) return;
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  FormReader forms(reader, from.manifest, engine.config());
  for (const checkpoint::StateEntry& entry :
       has_optimizer ? state_list(engine, progress) : progress.entries()) {
    if (from.loads == Loads::AllButSeed && entry.name == Progress::kSeedName) continue;
    if (!reader.dtype_of(entry.name) && entry.name == Progress::kOptimizerBeginName) continue;
    forms.read(stream, entry);
  }
  if (!has_optimizer) {
    stream.synchronize();
    return progress.begin_optimizer();
  }
  for (OptimizerShare& share : engine.optimizers()) {
    if (share.adamw.master_is_copy()) share.adamw.refresh_master(stream);
  }
  stream.synchronize();
}

}  // namespace weft::train
