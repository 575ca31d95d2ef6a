#include "weft/comm/nccl/communicator.h"

#include <algorithm>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error_context.h"
#include "weft/comm/call_checks.h"
#include "weft/comm/collectives.h"
#include "weft/comm/row_exchange.h"
#include "weft/tensor/cuda/reduce.h"

namespace weft::comm::nccl {
namespace {

using tensor::DType;
using tensor::cuda::CudaStream;

// Type of data that is moved without arithmetic.
constexpr ncclDataType_t kByte = ncclUint8;

ncclDataType_t reducible(DType dtype) {
  if (dtype == DType::F32) return ncclFloat32;
  if (dtype == DType::F64) return ncclFloat64;
  if (dtype == DType::I64) return ncclInt64;
  if (dtype == DType::BF16) return ncclBfloat16;
  UNREACHABLE("a dtype that was refused");
}

std::size_t to_size(std::int64_t count) { return static_cast<std::size_t>(count); }

// Ends an NCCL group whatever its calls return; throws the first error.
class Group {
 public:
  explicit Group(Line::Turn& turn) : turn_(turn) { add("ncclGroupStart", ncclGroupStart()); }

  void add(const char* call, ncclResult_t result) {
    const bool failed = result != ncclSuccess && result != ncclInProgress;
    if (!failed || failed_ != ncclSuccess) return;
    failed_ = result;
    call_ = call;
  }
  void end() {
    const ncclResult_t ended = ncclGroupEnd();
    check_nccl(call_, failed_, turn_.comm());
    turn_.settle("ncclGroupEnd", ended);
  }

 private:
  Line::Turn& turn_;
  const char* call_ = "";
  ncclResult_t failed_ = ncclSuccess;
};

// out = the maximum of `members` consecutive pieces; NaN if any is NaN.
template <typename T>
void reduce_largest(cudaStream_t stream, T* out, const T* pieces, int members, std::int64_t each) {
  using tensor::cuda::kMostSources;
  for (int first = 0; first < members;) {
    tensor::cuda::Sources<T> sources{};
    if (first > 0) sources.at[sources.count++] = out;
    while (sources.count < kMostSources && first < members) {
      sources.at[sources.count++] = pieces + first++ * each;
    }
    tensor::cuda::check(
        "reduce",
        tensor::cuda::launch_reduce(stream, out, sources, tensor::cuda::Combine::Max, each));
  }
}

}  // namespace

NcclCommunicator::NcclCommunicator(World& world, Membership group, std::string key)
    : world_(world),
      group_(std::move(group)),
      key_(std::move(key)),
      all_(std::make_shared<Lane>(world, group_, key_)),
      ledger_(group_.size()) {
  const int self = group_.world_rank();
  for (const int peer : group_.members) {
    pairs_.push_back({std::min(self, peer), std::max(self, peer)});
  }
  all_->open();
}

template <typename Calls>
void NcclCommunicator::issue_on(const std::shared_ptr<Lane>& lane,
                                Stream& stream,
                                Operation operation,
                                tensor::WorkSize size,
                                Calls calls) {
  CudaStream& cuda = tensor::cuda::cuda_stream(stream);
  cuda.heed(world_.verdict());
  const std::uint64_t number = world_.order().take_number();
  cuda.enqueue(
      name_of(operation),
      tensor::WorkClass::Communication,
      [=, this](cudaStream_t handle) {
        try {
          lane->line().run(name_of(operation), number, handle, [&](Line::Turn& turn) {
            ledger_.count_call(operation, calls(turn));
          });
        } catch (...) {
          world_.fail(reason_of(std::current_exception()));
          throw;
        }
      },
      size);
}

std::shared_ptr<Lane> NcclCommunicator::make_lane(int from, int to) {
  Membership pair{.name = base::text("{} {} to {}", group_.name, from, to),
                  .members = {group_.rank_of(from), group_.rank_of(to)},
                  .self = group_.self == from ? 0 : 1};
  return std::make_shared<Lane>(world_, std::move(pair), base::text("{} {} {}", key_, from, to));
}

void NcclCommunicator::connect(int from, int to) {
  std::shared_ptr<Lane>& lane = between_[{from, to}];
  if (lane) return;
  lane = make_lane(from, to);
  lane->open();
}

// The lanes of pipeline stages are opened before the first step. Other transfers (a state that is
// saved) open their lane at first use.
std::shared_ptr<Lane> NcclCommunicator::lane_between(Stream& stream, int from, int to) {
  std::shared_ptr<Lane>& lane = between_[{from, to}];
  if (lane) return lane;
  lane = make_lane(from, to);
  stream.enqueue_host("connect",
                      tensor::WorkClass::Communication,
                      [this, opened = lane](tensor::Transfers&) {
                        try {
                          opened->open();
                        } catch (...) {
                          world_.fail(reason_of(std::current_exception()));
                          throw;
                        }
                      });
  return lane;
}

std::int64_t NcclCommunicator::count_to_others(Content content, std::int64_t bytes) {
  for (int i = 0; i < group_.size(); ++i) {
    if (i != group_.self) ledger_.count_sent(i, content, bytes);
  }
  return (group_.size() - 1) * bytes;
}

// Both sides of a pair know the same size, so both skip empty parts.
std::int64_t NcclCommunicator::exchange(Line::Turn& turn,
                                        std::span<const Part> parts,
                                        Content content) {
  Group group(turn);
  for (const Part& part : parts) {
    if (part.out_bytes > 0) {
      group.add("ncclSend",
                ncclSend(part.out,
                         to_size(part.out_bytes),
                         kByte,
                         part.member,
                         turn.comm(),
                         turn.stream()));
    }
    if (part.in_bytes > 0) {
      group.add("ncclRecv",
                ncclRecv(part.in,
                         to_size(part.in_bytes),
                         kByte,
                         part.member,
                         turn.comm(),
                         turn.stream()));
    }
  }
  group.end();
  std::int64_t sent = 0;
  for (const Part& part : parts) {
    if (part.member == group_.self) continue;
    ledger_.count_sent(part.member, content, part.out_bytes);
    sent += part.out_bytes;
  }
  return sent;
}

void NcclCommunicator::all_to_all(Stream& stream,
                                  Tensor receive,
                                  Tensor send,
                                  RowCounts receive_rows,
                                  RowCounts send_rows,
                                  Content content) {
  const RowExchange rows(group_, receive, send, stream);
  const std::vector<std::int64_t> in(receive_rows.counts.begin(), receive_rows.counts.end());
  const std::vector<std::int64_t> out(send_rows.counts.begin(), send_rows.counts.end());
  const std::int64_t leaving = rows_to_others(out, group_);
  issue(stream,
        Operation::AllToAll,
        size_of_call(leaving * rows.row_bytes(), leaving),
        [=, this, in_order = receive_rows.order, out_order = send_rows.order](Line::Turn& turn) {
          return exchange(turn, rows.parts({in, in_order}, {out, out_order}), content);
        });
}

void NcclCommunicator::all_to_all_counted(Stream& stream,
                                          Tensor receive,
                                          Tensor receive_rows,
                                          Tensor send,
                                          Tensor send_rows,
                                          Content content) {
  check_counts(group_, receive_rows, send_rows);
  struct Counts {
    std::vector<std::int64_t> in, out;
  };
  const auto counts = std::make_shared<Counts>();
  const std::size_t members = group_.members.size();
  const std::byte* in = receive_rows.raw(stream);
  const std::byte* out = send_rows.raw(stream);
  stream.enqueue_host("counts", tensor::WorkClass::Copy, [=](tensor::Transfers& transfers) {
    counts->in = read_counts(transfers, in, members);
    counts->out = read_counts(transfers, out, members);
  });
  const RowExchange rows(group_, receive, send, stream);
  issue(stream, Operation::AllToAll, size_of_call(0), [=, this](Line::Turn& turn) {
    return exchange(turn, rows.parts(counts->in, counts->out), content);
  });
}

void NcclCommunicator::all_gather(Stream& stream, Tensor receive, Tensor send, Content content) {
  check_all_gather(group_, receive, send);
  std::byte* in = receive.raw(stream);
  const std::byte* out = send.raw(stream);
  const std::int64_t bytes = send.bytes();
  const std::int64_t sent = count_to_others(content, bytes);
  issue(stream, Operation::AllGather, size_of_call(sent), [=](Line::Turn& turn) {
    turn.settle("ncclAllGather",
                ncclAllGather(out, in, to_size(bytes), kByte, turn.comm(), turn.stream()));
    return sent;
  });
}

void NcclCommunicator::reduce_scatter(Stream& stream,
                                      Tensor receive,
                                      Tensor send,
                                      Content content) {
  check_reduce_scatter(group_, receive, send);
  std::byte* out = receive.raw(stream);
  const std::byte* data = send.raw(stream);
  const std::size_t elements = to_size(receive.elements());
  const ncclDataType_t type = reducible(send.dtype());
  const std::int64_t sent = count_to_others(content, receive.bytes());
  issue(stream, Operation::ReduceScatter, size_of_call(sent), [=](Line::Turn& turn) {
    turn.settle("ncclReduceScatter",
                ncclReduceScatter(data, out, elements, type, ncclSum, turn.comm(), turn.stream()));
    return sent;
  });
}

// Bytes sent by an exchange of chunks, a local sum and an all-gather of the sums.
std::int64_t NcclCommunicator::count_all_reduce(std::int64_t elements, std::int64_t width) {
  const Chunks chunks{.elements = elements, .members = group_.size()};
  std::int64_t sent = 0;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.self) continue;
    const std::int64_t bytes = (chunks.count(i) + chunks.count(group_.self)) * width;
    ledger_.count_sent(i, Content::Payload, bytes);
    sent += bytes;
  }
  return sent;
}

void NcclCommunicator::all_reduce(Stream& stream, Tensor data, Reduce reduce) {
  tensor::check_reducible(data.dtype());
  const std::int64_t sent = count_all_reduce(data.elements(), tensor::size_of(data.dtype()));
  // NCCL's maximum of floating-point numbers loses NaN.
  if (reduce == Reduce::Max && data.dtype() == DType::F32) {
    return find_largest<float>(stream, data, sent);
  }
  if (reduce == Reduce::Max && data.dtype() == DType::F64) {
    return find_largest<double>(stream, data, sent);
  }
  std::byte* all = data.raw(stream);
  const std::size_t elements = to_size(data.elements());
  const ncclDataType_t type = reducible(data.dtype());
  const ncclRedOp_t operation = reduce == Reduce::Sum ? ncclSum : ncclMax;
  issue(stream, Operation::AllReduce, size_of_call(sent), [=](Line::Turn& turn) {
    turn.settle("ncclAllReduce",
                ncclAllReduce(all, all, elements, type, operation, turn.comm(), turn.stream()));
    return sent;
  });
}

// Gathers all members' numbers, as many at a time as the stream's workspace holds.
template <typename T>
void NcclCommunicator::find_largest(Stream& stream, const Tensor& data, std::int64_t sent) {
  constexpr auto kWidth = std::int64_t{sizeof(T)};
  T* all = data.data<T>(stream);
  const std::int64_t elements = data.elements();
  const std::int64_t room = tensor::cuda::kWorkspaceBytes / (group_.size() * kWidth);
  T* gathered = reinterpret_cast<T*>(
      tensor::cuda::cuda_stream(stream).workspace(tensor::cuda::kWorkspaceBytes));
  issue(stream, Operation::AllReduce, size_of_call(sent), [=, this](Line::Turn& turn) {
    for (std::int64_t at = 0; at < elements; at += room) {
      const std::int64_t count = std::min(room, elements - at);
      turn.settle("ncclAllGather",
                  ncclAllGather(all + at,
                                gathered,
                                to_size(count * kWidth),
                                kByte,
                                turn.comm(),
                                turn.stream()));
      reduce_largest<T>(turn.stream(), all + at, gathered, group_.size(), count);
    }
    return sent;
  });
}

void NcclCommunicator::broadcast(Stream& stream, Tensor data, int root) {
  check_root(group_, root);
  std::byte* all = data.raw(stream);
  const std::size_t bytes = to_size(data.bytes());
  const std::int64_t sent =
      group_.self == root ? count_to_others(Content::Payload, data.bytes()) : 0;
  issue(stream, Operation::Broadcast, size_of_call(sent), [=](Line::Turn& turn) {
    turn.settle("ncclBroadcast",
                ncclBroadcast(all, all, bytes, kByte, root, turn.comm(), turn.stream()));
    return sent;
  });
}

void NcclCommunicator::send(Stream& stream, Tensor data, int peer) {
  check_peer(group_, peer);
  const std::shared_ptr<Lane> lane = lane_between(stream, group_.self, peer);
  const std::byte* all = data.raw(stream);
  const std::int64_t bytes = data.bytes();
  ledger_.count_sent(peer, Content::Payload, bytes);
  issue_on(lane, stream, Operation::Send, size_of_pair(bytes, peer), [=](Line::Turn& turn) {
    turn.settle("ncclSend", ncclSend(all, to_size(bytes), kByte, 1, turn.comm(), turn.stream()));
    return bytes;
  });
}

void NcclCommunicator::receive(Stream& stream, Tensor data, int peer) {
  check_peer(group_, peer);
  const std::shared_ptr<Lane> lane = lane_between(stream, peer, group_.self);
  std::byte* all = data.raw(stream);
  const std::size_t bytes = to_size(data.bytes());
  issue_on(lane, stream, Operation::Receive, size_of_pair(0, peer), [=](Line::Turn& turn) {
    turn.settle("ncclRecv", ncclRecv(all, bytes, kByte, 0, turn.comm(), turn.stream()));
    return std::int64_t{0};
  });
}

void NcclCommunicator::barrier(Stream& stream) {
  std::byte* place = tensor::cuda::cuda_stream(stream).workspace(sizeof(float));
  issue(stream, Operation::Barrier, size_of_call(0), [=](Line::Turn& turn) {
    tensor::cuda::check("cudaMemsetAsync", cudaMemsetAsync(place, 0, sizeof(float), turn.stream()));
    turn.settle("ncclAllReduce",
                ncclAllReduce(place, place, 1, ncclFloat32, ncclSum, turn.comm(), turn.stream()));
    return std::int64_t{0};
  });
}

}  // namespace weft::comm::nccl
