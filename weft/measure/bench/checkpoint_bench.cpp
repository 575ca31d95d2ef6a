#include "weft/measure/bench/checkpoint_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/parallel/parallel.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/measure/runs/one_rank.h"
#include "weft/measure/runs/rounds.h"
#include "weft/measure/runs/timed_step.h"
#include "weft/train/saves/background_saves.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::measure {

using namespace train;
namespace {

namespace fs = std::filesystem;

constexpr int kWarmUpSteps = 2;
constexpr int kSettlingSteps = 4;
constexpr int kFreeSteps = 2;  // steps without a save in a round whose save took all others
constexpr std::size_t kPlainBlock = 1 << 20;  // as dd bs=1M
constexpr std::size_t kCooling = 512 << 20;   // larger than a processor's caches

struct Cost {
  double seconds = 0, cpu_seconds = 0;
};

template <typename Work>
Cost cost_of(const Work& work) {
  const double cpu_before = cpu_seconds();
  const double seconds = seconds_of(work);
  return {.seconds = seconds, .cpu_seconds = cpu_seconds() - cpu_before};
}

// Times of our way and of the plain way in the same rounds.
struct TimePairs {
  Samples own, plain;

  RatePair rates(double bytes) const {
    Samples shares;
    for (std::size_t i = 0; i < own.values.size(); ++i) {
      shares.add(plain.values[i] / own.values[i]);
    }
    return {.own = bytes / own.median(), .plain = bytes / plain.median(), .share = shares.median()};
  }
};

// Drops the file from the page cache, so that the next read comes from the disk.
void drop_from_cache(const fs::path& path) {
  const base::Descriptor file(path, O_RDONLY, 0, path.string());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

class SaveBench {
 public:
  SaveBench(const CheckpointBenchRequest& request, const OneRank& rank)
      : request_(request),
        rank_(rank),
        config_(rank.config()),
        engine_(rank.engine()),
        copy_lane_(engine_.lanes()[schedule::Lane::Copy]),
        progress_(engine_.pool(), config_.rng.seed) {
    SaveTalk talk(engine_);
    state_.emplace(engine_.device(), own_entries(engine_, progress_, talk));
    plain_.resize(state_->bytes());
    result_.bytes = static_cast<std::int64_t>(state_->bytes());
  }

  CheckpointBench run() {
    warm_up();
    measure_checksum();
    // A turn for memory, one for the disk, and one for all steps from one save to the next.
    const int turns = 3 * request_.rounds;
    const auto rounds_from = [&](int begun) {
      return Rounds(
          {.rounds = request_.rounds,
           .progress = [this, begun, turns](int done,
                                            int) { request_.progress(begun + done, turns); },
           .stop = request_.stop});
    };
    Rounds rates = rounds_from(0);
    TimePairs copy, write, read;
    rates.add([&] { return measure_copy(copy); });
    rates.add([&, goes_first = First::Own]() mutable {
      goes_first = goes_first == First::Own ? First::Plain : First::Own;
      return measure_disk(write, read, goes_first);
    });
    rates.run();
    settle();
    Rounds saves = rounds_from(2 * request_.rounds);
    saves.add([&] { return measure_steps(); });
    saves.run();
    result_.copy = copy.rates(double(result_.bytes));
    result_.write = write.rates(double(result_.bytes));
    result_.read = read.rates(double(result_.bytes));
    sum_up_steps();
    return result_;
  }

 private:
  // Touches memory before timing: pages are allocated at first use.
  void warm_up() {
    state_->copy(copy_lane_);
    copy_lane_.synchronize();
    saves_.emplace(engine_, progress_);
    for (int i = 0; i < kWarmUpSteps; ++i) step(nullptr);
    saves_->begin();
    saves_->finish();
  }

  void measure_checksum() {
    const std::span<const std::byte> block =
        std::span<const std::byte>(plain_).first(std::min(plain_.size(), kPlainBlock));
    constexpr int kTimes = 200;
    std::uint32_t sum = 0;
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kTimes; ++i) sum ^= base::crc32c(block);
    });
    CHECK(sum == 0, "a checksum changes");
    result_.checksum = double(block.size()) * kTimes / seconds;
  }

  // Evicts the last moved bytes: the caches of large processors hold most of a small model's state.
  void cool_caches() {
    cooling_.resize(kCooling);
    std::ranges::fill(cooling_, std::byte(++times_cooled_));
  }

  double measure_copy(TimePairs& times) {
    cool_caches();
    const double own = seconds_of([&] {
      state_->copy(copy_lane_);
      copy_lane_.synchronize();
    });
    const std::span<const std::byte> from = all_values();
    const int threads = static_cast<int>(config_.runtime.threads_per_rank);
    const std::size_t part = from.size() / base::at(threads);
    cool_caches();
    const double plain = seconds_of([&] {
      base::parallel(threads, threads, [&](std::int64_t i) {
        std::memcpy(plain_.data() + base::at(i) * part, from.data() + base::at(i) * part, part);
      });
    });
    copy_seconds_.add(own);
    times.own.add(own);
    times.plain.add(plain);
    return own;
  }

  // All entries' copies, which lie back to back.
  std::span<const std::byte> all_values() const {
    return {state_->values(0).data(), state_->bytes()};
  }

  // Order of the two ways. Shared disks give full speed for a short time only: the first reader is
  // faster.
  enum class First { Plain, Own };

  double measure_disk(TimePairs& write, TimePairs& read, First goes_first) {
    const SavePlace place(engine_, progress_);
    const fs::path plain = place.save / "plain";
    const double plain_write = seconds_of([&] { write_plain(plain); });
    checkpoint::make_step_folder(place.save, place.step);
    std::vector<std::string> told;
    const double own_write = seconds_of(
        [&] { told.push_back(write_part(place, 0, state_->entries(), read_snapshot(*state_))); });
    const std::string failure = finish_save(place, told);
    if (!failure.empty()) throw base::SystemError(failure_text(place, failure));
    const Resumption from{.folder = place.folder(),
                          .note = "",
                          .manifest = checkpoint::read_manifest(place.folder())};
    // Caches may exist below the operating system. Each way reads a file that was not read before;
    // both were written alike.
    const fs::path twin = place.save / "twin";
    const fs::path shard = place.folder() / from.manifest.files.front().name;
    const std::span<const std::byte> all = all_values();
    base::write_whole(twin, {reinterpret_cast<const char*>(all.data()), all.size()});
    const auto time_cold = [&](const fs::path& path, const auto& work) {
      drop_from_cache(path);
      return seconds_of(work);
    };
    double own_read = 0, plain_read = 0;
    const auto time_own = [&] {
      own_read = time_cold(shard, [&] { load_checkpoint(engine_, progress_, from); });
    };
    if (goes_first == First::Own) time_own();
    plain_read = time_cold(twin, [&] { read_plain(twin); });
    if (goes_first == First::Plain) time_own();
    write.own.add(own_write);
    write.plain.add(plain_write);
    read.own.add(own_read);
    read.plain.add(plain_read);
    fs::remove(plain);
    fs::remove(twin);
    checkpoint::remove_step(place.save, place.step);
    base::sync_folder(place.save);  // otherwise removed files are cleared away during the steps
    return own_write + own_read;
  }

  // Writes as dd bs=1M conv=fsync does.
  void write_plain(const fs::path& path) const {
    base::Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644, path.string());
    std::span<const std::byte> rest = all_values();
    while (!rest.empty()) {
      const ssize_t put = ::write(file.get(), rest.data(), std::min(kPlainBlock, rest.size()));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) base::throw_errno(base::text("cannot write '{}'", path.string()));
      rest = rest.subspan(static_cast<std::size_t>(put));
    }
    if (::fsync(file.get()) != 0) base::throw_errno("cannot sync " + path.string());
  }

  void read_plain(const fs::path& path) {
    const base::InputFile file(path);
    const std::span<std::byte> block =
        std::span(plain_).first(std::min(plain_.size(), kPlainBlock));
    for (std::uint64_t at = 0; at < file.size(); at += block.size()) {
      file.read(at, block.first(std::min<std::uint64_t>(block.size(), file.size() - at)));
    }
  }

  // Waits until the disk has cleared removed files, which also uses cores. A run that only saves
  // has no such load during its steps.
  void settle() {
    ::sync();
    for (int i = 0; i < kSettlingSteps; ++i) {
      throw_if_stopped(request_.stop);
      step(nullptr);
    }
  }

  // Measures the steps from one save to the next, as in a long run; returns their time.
  double measure_steps() {
    bool is_saving = true;
    Beside beside;
    const auto note = [&](const std::optional<EndedSave>& end) {
      if (!end) return;
      if (end->failure) throw base::SystemError(*end->failure);
      save_seconds_.add(end->seconds);
      is_saving = false;
    };
    for (int i = 0; i < request_.steps && !is_stopped(); ++i) {
      const bool was_saving = is_saving;
      const Cost cost = cost_of([&] {
        if (i == 0) saves_->begin();
        step(saves_->due());
        note(saves_->look());
      });
      if (was_saving) {
        beside.cost.seconds += cost.seconds;
        beside.cost.cpu_seconds += cost.cpu_seconds;
        ++beside.steps;
      } else {
        add_free(cost);
      }
    }
    note(saves_->finish());
    beside_.push_back(beside);
    if (beside.steps < request_.steps) return beside.cost.seconds;
    for (int i = 0; i < kFreeSteps && !is_stopped(); ++i) {
      add_free(cost_of([&] { step(nullptr); }));
    }
    return beside.cost.seconds;
  }

  bool is_stopped() const { return request_.stop != nullptr && request_.stop->load(); }

  void step(const checkpoint::Snapshot* snapshot) {
    const Batch batch = rank_.batch(engine_.share(), progress_.samples());
    const StepTotals totals = train_step(engine_,
                                         {.batch = batch,
                                          .step = progress_.step(),
                                          .learning_rate = config_.optimizer.lr,
                                          .snapshot = snapshot},
                                         exec::Tracing::Off);
    refuse_repeated(totals, config_);
    progress_.advance(config_.train.global_batch_size);
  }

  void add_free(const Cost& cost) {
    free_seconds_.add(cost.seconds);
    free_cpu_.add(cost.cpu_seconds);
  }

  void sum_up_steps() {
    result_.step_seconds = free_seconds_.median();
    result_.save_seconds = save_seconds_.median();
    const double copy = copy_seconds_.median();
    const double cpu = free_cpu_.median();
    Samples added, added_cpu;
    for (const Beside& one : beside_) {
      added.add(one.cost.seconds - double(one.steps) * result_.step_seconds - copy);
      added_cpu.add(one.cost.cpu_seconds - double(one.steps) * cpu - copy);
    }
    result_.overhead = added.median() / (request_.steps * result_.step_seconds);
    result_.cpu_overhead = added_cpu.median() / (request_.steps * cpu);
  }

  // Steps with a concurrent save.
  struct Beside {
    Cost cost;
    std::int64_t steps = 0;
  };

  const CheckpointBenchRequest& request_;
  const OneRank& rank_;
  const config::Config& config_;
  Engine& engine_;
  tensor::Stream& copy_lane_;
  Progress progress_;
  std::optional<checkpoint::Snapshot> state_;
  std::vector<std::byte> plain_, cooling_;
  int times_cooled_ = 0;
  std::optional<BackgroundSaves> saves_;
  Samples copy_seconds_, free_seconds_, free_cpu_, save_seconds_;
  std::vector<Beside> beside_;
  CheckpointBench result_;
};

}  // namespace

CheckpointBench bench_checkpoint(const CheckpointBenchRequest& request) {
  CheckpointBench result;
  on_one_rank(request.config,
              [&](const OneRank& rank) { result = SaveBench(request, rank).run(); });
  return result;
}

}  // namespace weft::measure
