#include "weft/comm/pretended.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/sealed_count.h"
#include "weft/base/text.h"
#include "weft/comm/failure.h"

namespace weft::comm {
namespace {

// Size of one segment of a sum: the partial sum of many members needs memory.
constexpr std::int64_t kSummedBytes = 16 << 20;

class PretendedEndpoint final : public Endpoint {
 public:
  PretendedEndpoint(const LaunchOptions& options, const PretendedWorld& world)
      : rank_(options.rank), size_(options.world), world_(world) {}

  int rank() const override { return rank_; }
  int world() const override { return size_; }
  int local_rank() const override { return 0; }  // alone on its machine
  void set_fabric(const std::optional<grid::Fabric>& fabric) override { world_.set_fabric(fabric); }

  std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) override {
    return world_.group(make_membership(std::move(name), std::move(members), rank_, size_));
  }

  // Thread-safe: several streams may fail at once.
  void fail(const std::string& reason) override {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = reason;
    }
    world_.on_failure();
  }

  // Call after all streams have ended.
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  const int rank_;
  const int size_;
  const PretendedWorld& world_;
  std::mutex mutex_;
  std::optional<std::string> failure_;
};

}  // namespace

void PretendedCommunicator::all_reduce(Stream& stream, Tensor data, Reduce reduce) {
  tensor::check_reducible(data.dtype());
  const Call next = next_call(Operation::AllReduce, data.bytes());
  const Chunks chunks{.elements = data.elements(), .members = size()};
  const tensor::DType dtype = data.dtype();
  const std::int64_t width = tensor::size_of(dtype);
  std::byte* all = data.raw(stream);
  // Step 0 reduces every member's chunk; step 1 sends this rank's chunk to every member.
  const auto parts_of = [=, this](std::int32_t step) {
    std::vector<Part> parts;
    for (int i = 0; i < size(); ++i) {
      const int out = step == 0 ? i : rank(), in = step == 0 ? rank() : i;
      parts.push_back({.member = i,
                       .out = all + chunks.begin(out) * width,
                       .out_bytes = chunks.count(out) * width,
                       .in = nullptr,
                       .in_bytes = i == rank() ? 0 : chunks.count(in) * width});
    }
    return parts;
  };
  const std::int64_t own = chunks.count(rank());
  const std::int64_t sent = (chunks.elements - own + (size() - 1) * own) * width;
  issue(stream, Operation::AllReduce, size_of_call(sent), [=, this](tensor::Transfers& transfers) {
    Call call = next;
    std::int64_t bytes = meet(call, parts_of(call.step), transfers);
    const std::int64_t most = kSummedBytes / width;
    for (std::int64_t begin = 0; begin < chunks.elements; begin += most) {
      std::byte* at = all + begin * width;
      const std::vector<const std::byte*> sources(static_cast<std::size_t>(size()), at);
      transfers.reduce(dtype, reduce, at, sources, std::min(most, chunks.elements - begin));
    }
    ++call.step;
    bytes += meet(call, parts_of(call.step), transfers);
    return bytes;
  });
}

std::optional<std::vector<std::int64_t>> opened_counts(std::span<const std::byte> message,
                                                       int member) {
  if (message.empty() || message.size() % sizeof(std::int64_t) != 0) return std::nullopt;
  std::vector<std::int64_t> counts(message.size() / sizeof(std::int64_t));
  std::memcpy(counts.data(), message.data(), message.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count = base::unseal(counts[i], member, static_cast<std::int64_t>(i));
    if (!count) return std::nullopt;
    counts[i] = *count;
  }
  return counts;
}

std::vector<std::int64_t> sealed_counts(std::vector<std::int64_t> counts, int member) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = base::seal(counts[i], member, static_cast<std::int64_t>(i));
  }
  return counts;
}

void repeat(tensor::Transfers& transfers,
            std::byte* to,
            std::int64_t to_bytes,
            const std::byte* from,
            std::int64_t from_bytes) {
  if (from_bytes == 0) return transfers.clear(to, to_bytes);
  for (std::int64_t at = 0; at < to_bytes; at += from_bytes) {
    transfers.copy(to + at, from, std::min(from_bytes, to_bytes - at));
  }
}

void run_pretended(const LaunchOptions& options,
                   const PretendedWorld& world,
                   const RankFunction& function) {
  world.set_fabric(options.fabric);
  PretendedEndpoint endpoint(options, world);
  try {
    function(endpoint);
  } catch (...) {
    throw_from_rank(options.rank, std::current_exception());
  }
  if (endpoint.failure()) {
    throw base::SystemError(base::text("rank {}: {}", options.rank, *endpoint.failure()));
  }
}

}  // namespace weft::comm
