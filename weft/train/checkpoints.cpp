#include "weft/train/checkpoints.h"

#include "weft/checkpoint/state_reader.h"
#include "weft/train/save_parts.h"
#include "weft/train/state_forms.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace {

// Why there is no checkpoint, on rank 0; empty: there is one.
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

void load_checkpoint(Engine& engine, const Progress& progress, const Resumption& from) {
  checkpoint::StateReader reader(from.manifest, from.folder);
  if (from.loads == Loads::Weights) {
    return load_weights(
        engine,
        [&](const std::string& parameter, const tensor::Slice& slice, std::span<float> out) {
          reader.read("weights/" + parameter, slice, out);
        });
  }
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  FormReader forms(reader, from.manifest, engine.config());
  for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
    if (from.loads == Loads::AllButSeed && entry.name == Progress::kSeedName) continue;
    forms.read(stream, entry);
  }
  for (OptimizerShare& share : engine.optimizers()) {
    if (share.adamw.master_is_copy()) share.adamw.refresh_master(stream);
  }
  stream.synchronize();
}

}  // namespace weft::train
