#include "weft/train/checkpoints.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/state_reader.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/config/dump.h"
#include "weft/tensor/transfer.h"
#include "weft/train/state_owners.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using base::at;
using base::text;
using checkpoint::Manifest;
using checkpoint::StateEntry;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

// What went wrong with the disk; empty: nothing.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const base::SystemError& error) {
    return error.what();
  } catch (const fs::filesystem_error& error) {
    return error.what();
  }
}

// What ranks tell each other of a save.
class Talk {
 public:
  explicit Talk(Engine& engine)
      : pool_(engine.pool()),
        world_(*engine.groups().world),
        stream_(engine.lanes()[schedule::Lane::Compute]) {}

  // Equally many numbers of every rank, by rank.
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& own) {
    Tensor mine(pool_, DType::I64, {std::ssize(own)}, Tag::Communication);
    Tensor all(pool_, DType::I64, {world_.size() * std::ssize(own)}, Tag::Communication);
    tensor::upload<std::int64_t>(stream_, mine, own);
    world_.all_gather(stream_, all, mine, comm::Content::Metadata);
    return tensor::read<std::int64_t>(stream_, all);
  }

  std::vector<std::vector<EntryKey>> gather_keys(const std::vector<EntryKey>& own) {
    const std::vector<std::int64_t> counts = gather(std::vector{std::ssize(own)});
    const std::int64_t most = std::ranges::max(counts);
    std::vector<std::int64_t> words(at(2 * most), 0);
    for (std::size_t i = 0; i < own.size(); ++i) {
      words[2 * i] = own[i].key;
      words[2 * i + 1] = own[i].bytes;
    }
    const std::vector<std::int64_t> all = gather(words);
    std::vector<std::vector<EntryKey>> ranks(counts.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (std::int64_t i = 0; i < counts[rank]; ++i) {
        const std::size_t first = 2 * (rank * at(most) + at(i));
        ranks[rank].push_back({.key = all[first], .bytes = all[first + 1]});
      }
    }
    return ranks;
  }

  // Every rank's text on rank 0, by rank; nothing on the others.
  std::vector<std::string> collect(const std::string& own) {
    const std::vector<std::int64_t> sizes = gather(std::vector{std::ssize(own)});
    std::vector<std::string> texts;
    if (world_.rank() != 0) {
      std::vector<std::int64_t> words(words_of(std::ssize(own)), 0);
      std::ranges::copy(own, reinterpret_cast<char*>(words.data()));
      Tensor message(pool_, DType::I64, {std::ssize(words)}, Tag::Communication);
      tensor::upload<std::int64_t>(stream_, message, words);
      world_.send(stream_, message, 0);
      stream_.synchronize();
      return texts;
    }
    texts.push_back(own);
    for (int rank = 1; rank < world_.size(); ++rank) {
      const auto count = static_cast<std::int64_t>(words_of(sizes[at(rank)]));
      Tensor message(pool_, DType::I64, {count}, Tag::Communication);
      world_.receive(stream_, message, rank);
      const std::vector<std::int64_t> words = tensor::read<std::int64_t>(stream_, message);
      texts.emplace_back(reinterpret_cast<const char*>(words.data()), at(sizes[at(rank)]));
    }
    return texts;
  }

 private:
  static std::size_t words_of(std::int64_t bytes) { return at((bytes + 7) / 8); }

  tensor::Pool& pool_;
  comm::Communicator& world_;
  tensor::Stream& stream_;
};

constexpr char kWritten = '+', kFailed = '-';  // begins what a rank tells of its file

// One save of one rank.
class Save {
 public:
  Save(Engine& engine, const Progress& progress)
      : engine_(engine),
        config_(engine.config()),
        progress_(progress),
        talk_(engine),
        save_(config_.checkpoint.save),
        folder_(checkpoint::step_folder(save_, progress.step())) {}

  std::string run() {
    const bool is_first = engine_.rank() == 0;
    std::string failure;
    if (is_first) {
      failure = failure_of([&] { checkpoint::make_step_folder(save_, progress_.step()); });
    }
    const bool has_folder = talk_.gather({failure.empty() ? 1 : 0}).front() == 1;
    if (!has_folder) return failure;
    const std::vector<std::string> told = talk_.collect(write_own());
    if (!is_first) return "";
    Manifest manifest;
    failure = merge(told, manifest);
    if (failure.empty()) failure = failure_of([&] { finish(manifest); });
    if (!failure.empty() && !checkpoint::is_whole(folder_)) {
      failure_of([&] { checkpoint::remove_step(save_, progress_.step()); });
    }
    return failure;
  }

 private:
  // This rank's file; what it tells the first rank of it.
  std::string write_own() {
    std::vector<StateEntry> entries = state_list(engine_, progress_);
    std::erase_if(entries, [](const StateEntry& entry) { return entry.tensor.elements() == 0; });
    std::vector<EntryKey> keys;
    for (const StateEntry& entry : entries) keys.push_back(key_of(entry));
    const std::vector<bool> writes = written_by(engine_.rank(), talk_.gather_keys(keys));
    std::vector<StateEntry> own;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (writes[i]) own.push_back(std::move(entries[i]));
    }
    Manifest part;
    tensor::Stream& stream = engine_.lanes()[schedule::Lane::Compute];
    const std::string failure =
        failure_of([&] { part = checkpoint::write_shard(stream, folder_, engine_.rank(), own); });
    return failure.empty() ? kWritten + checkpoint::manifest_text(part) : kFailed + failure;
  }

  // What the ranks wrote, as one; the first failure of a rank.
  std::string merge(const std::vector<std::string>& told, Manifest& manifest) const {
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      const std::string content = told[rank].substr(1);
      if (told[rank].front() == kFailed) return text("rank {}: {}", rank, content);
      add_part(manifest, checkpoint::parse_manifest(content, text("what rank {} wrote", rank)));
    }
    for (const checkpoint::StoredFile& file : manifest.files) {
      std::error_code error;
      const std::uintmax_t bytes = fs::file_size(folder_ / file.name, error);
      if (!error && bytes == file.bytes) continue;
      return text(
          "rank 0 does not see '{}' with the {} bytes another rank wrote: checkpoint.save "
          "must be a folder that all ranks share",
          (folder_ / file.name).string(),
          file.bytes);
    }
    const std::string lacking = checkpoint::uncovered_state(manifest);
    CHECK(lacking.empty(), "no rank wrote all of '{}'", lacking);
    return "";
  }

  void finish(Manifest& manifest) const {
    manifest.step = progress_.step();
    manifest.samples = progress_.samples();
    manifest.seed = config_.rng.seed;
    manifest.config = config::to_yaml(config_);
    manifest.follows = checkpoint::tracked_checksum(save_);
    const grid::Grid& grid = engine_.groups().grid;
    manifest.layout = {{"world", grid.world()},
                       {"tp", grid.tp()},
                       {"cp", grid.cp()},
                       {"dp", grid.dp()},
                       {"pp", grid.pp()},
                       {"vpp", config_.model.virtual_pipeline_model_parallel_size.value_or(1)},
                       {"ep", grid.ep()},
                       {"etp", grid.etp()},
                       {"distributed_optimizer", config_.ddp.use_distributed_optimizer ? 1 : 0}};
    base::write_whole(folder_ / checkpoint::kManifestName, checkpoint::manifest_text(manifest));
    base::sync_folder(folder_);
    checkpoint::write_tracker(save_, manifest.step);
    const std::int64_t keep = config_.checkpoint.most_recent_k;
    if (keep >= 0) checkpoint::remove_old_steps(save_, manifest.step, keep);
  }

  Engine& engine_;
  const config::Config& config_;
  const Progress& progress_;
  Talk talk_;
  const fs::path save_, folder_;
};

}  // namespace

std::optional<std::string> save_checkpoint(Engine& engine, const Progress& progress) {
  const std::string failure = Save(engine, progress).run();
  if (failure.empty()) return std::nullopt;
  return text("the checkpoint of step {}: {}", progress.step(), failure);
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
  for (const StateEntry& entry : state_list(engine, progress)) {
    if (from.loads == Loads::AllButSeed && entry.name == Progress::kSeedName) continue;
    reader.read(stream, entry);
  }
}

}  // namespace weft::train
