#include "weft/comm/nccl/world.h"

#include <algorithm>

namespace weft::comm::nccl {
namespace {

using rendezvous::Clock;

constexpr auto kBetweenVisits = std::chrono::milliseconds(10);
// Wait for the rendezvous, which knows the failed rank, after NCCL notices a failure.
constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr auto kAbortGrace = std::chrono::seconds(5);

}  // namespace

// Aborts in flight; their threads may outlive the world.
struct World::Aborts {
  std::mutex mutex;
  std::condition_variable ended;
  int under_way = 0;
};

void Verdict::set(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
}

std::exception_ptr Verdict::error() const {
  const std::lock_guard lock(mutex_);
  if (!failure_) return nullptr;
  try {
    if (failure_->rank == rank_) throw base::SystemError(failure_->reason);
    throw_peer_failed(*failure_);
  } catch (...) {
    return std::current_exception();
  }
}

World::World(const rendezvous::Place& place, const Card& card, double timeout_seconds)
    : place_(place),
      card_(card),
      timeout_seconds_(timeout_seconds),
      store_(place, card.text, timeout_seconds),
      verdict_(std::make_shared<Verdict>(place.rank)),
      aborts_(std::make_shared<Aborts>()),
      watcher_([this] { watch(); }) {}

World::~World() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  watcher_.join();
  std::unique_lock lock(aborts_->mutex);
  aborts_->ended.wait_for(lock, kAbortGrace, [&] { return aborts_->under_way == 0; });
}

std::shared_ptr<Line> World::open(const Membership& group, const std::string& key) {
  auto line = std::make_shared<Line>(store_, order_, group, key, timeout_seconds_);
  const std::lock_guard lock(mutex_);
  return lines_.emplace_back(std::move(line));
}

void World::close(const std::shared_ptr<Line>& line) {
  if (failure()) return;  // the watcher thread then ends it
  {
    const std::lock_guard lock(mutex_);
    std::erase(lines_, line);
  }
  line->close();
}

void World::watch() {
  cudaSetDevice(card_.ordinal);
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kBetweenVisits, [&] { return stopping_; })) {
    lock.unlock();
    if (const auto failed = failure()) return abort_all(*failed);
    look_for_trouble();
    lock.lock();
  }
}

void World::look_for_trouble() {
  std::vector<std::shared_ptr<Line>> lines;
  {
    const std::lock_guard lock(mutex_);
    lines = lines_;
  }
  for (const auto& line : lines) {
    const auto trouble = line->trouble();
    if (!trouble) continue;
    if (!troubled_since_) troubled_since_ = Clock::now();
    if (Clock::now() - *troubled_since_ >= kPatience) store_.fail(*trouble);
    return;
  }
  troubled_since_.reset();
}

// One thread per abort. An abort may wait for the kernels of another communicator, which only that
// communicator's abort ends.
void World::abort_all(const Failure& failure) {
  verdict_->set(failure);  // before the first stream continues
  const std::lock_guard lock(mutex_);
  for (const auto& line : lines_) {
    {
      const std::lock_guard count(aborts_->mutex);
      ++aborts_->under_way;
    }
    std::thread([line, aborts = aborts_, ordinal = card_.ordinal] {
      cudaSetDevice(ordinal);
      line->cut();
      const std::lock_guard count(aborts->mutex);
      --aborts->under_way;
      aborts->ended.notify_all();
    }).detach();
  }
}

}  // namespace weft::comm::nccl
