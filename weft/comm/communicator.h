// Communicator: one rank's handle on one group of ranks.
//
// Operations are asynchronous: they enqueue on the stream and return. All members of a group call
// the same operations in the same order. Operations of one group may use several streams; their
// order is the call order. Tensors are contiguous. An operation, also a send, ends when the peer
// has taken the bytes. Two ranks that each send first on their only stream therefore wait for each
// other until the timeout. Members that disagree on an operation or a size get an error with both
// ranks and both numbers.
//
// A reduction is an exchange and a local sum in member order. Results depend neither on timing nor
// on the backend. (A backend with collectives of its own, such as NCCL, is repeatable and says so.)
//
// Two kinds of backend exist. Collectives (collectives.h) writes the operations once, above a
// Transport. A backend with collectives of its own implements this interface. Both share the checks
// (call_checks.h), the members (membership.h) and the counters (ledger.h). Every byte that leaves a
// rank is counted. A failing member poisons the world: peers stop within the timeout with an error
// that names it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/grid/fabric.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/transfers.h"

namespace weft::comm {

using tensor::Reduce;
using tensor::Stream;
using tensor::Tensor;

enum class Operation {
  AllToAll,
  AllGather,
  ReduceScatter,
  AllReduce,
  Broadcast,
  Send,
  Receive,
  Barrier
};
inline constexpr int kOperations = static_cast<int>(Operation::Barrier) + 1;
std::string_view name_of(Operation operation);

struct Traffic {
  std::int64_t calls = 0;
  std::int64_t bytes_sent = 0;  // bytes to other ranks; bytes to the rank itself do not count
};

// Purpose of sent bytes; each purpose has its own counter.
enum class Content { Payload, Probabilities, Metadata };
inline constexpr int kContents = static_cast<int>(Content::Metadata) + 1;

struct Sent {
  std::int64_t payload = 0, probabilities = 0, metadata = 0;  // bytes

  std::int64_t total() const { return payload + probabilities + metadata; }
};

// Order of rows if each member has several blocks. ByMember: all blocks of member 0, then of member
// 1. ByBlock: block 0 of every member, then block 1.
enum class RowOrder { ByMember, ByBlock };

// Rows to or from every member: one count per block, member by member. The usual case is one block
// per member.
struct RowCounts {
  RowCounts(std::span<const std::int64_t> all, RowOrder how = RowOrder::ByMember)
      : counts(all), order(how) {}
  RowCounts(const std::vector<std::int64_t>& all, RowOrder how = RowOrder::ByMember)
      : counts(all), order(how) {}

  std::span<const std::int64_t> counts;
  RowOrder order;
};

// Must outlive the work enqueued through it.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const std::string& name() const = 0;          // name of the group in messages: "ep"
  virtual int rank() const = 0;                         // index of this rank in members()
  virtual const std::vector<int>& members() const = 0;  // world ranks
  int size() const { return static_cast<int>(members().size()); }

  // Exchanges rows (dim 0) with every member; the rows lie back to back from row 0. The host knows
  // the counts. `receive` and `send` may have unused rows at the end. All members have the same
  // number of blocks.
  virtual void all_to_all(Stream&,
                          Tensor receive,
                          Tensor send,
                          RowCounts receive_rows,
                          RowCounts send_rows,
                          Content content = Content::Payload) = 0;
  // Variant with counts in device memory (int64, one per member), read when the operation runs.
  // `receive` has a fixed capacity; more rows are an error with both numbers.
  virtual void all_to_all_counted(Stream&,
                                  Tensor receive,
                                  Tensor receive_rows,
                                  Tensor send,
                                  Tensor send_rows,
                                  Content content = Content::Payload) = 0;
  // receive has size() times the rows of send.
  virtual void all_gather(Stream&,
                          Tensor receive,
                          Tensor send,
                          Content content = Content::Payload) = 0;
  // Inverse of all_gather: send has size() times the rows of receive; sums in member order. Both
  // work in place: the smaller tensor is then this member's slice of the larger one.
  virtual void reduce_scatter(Stream&,
                              Tensor receive,
                              Tensor send,
                              Content content = Content::Payload) = 0;
  // Reductions take fp32, bf16 (summed in fp32), fp64 and int64. The maximum propagates NaN.
  virtual void all_reduce(Stream&, Tensor data, Reduce reduce) = 0;
  virtual void broadcast(Stream&, Tensor data, int root) = 0;
  // Opens the connection for later sends from one member to another; this rank is one of the two.
  // Both members call it; all ranks visit pairs in one order.
  virtual void connect(int /*from*/, int /*to*/) {}
  virtual void send(Stream&, Tensor data, int peer) = 0;
  virtual void receive(Stream&, Tensor data, int peer) = 0;
  virtual void barrier(Stream&) = 0;

  // Totals since the start; read after synchronizing the streams.
  virtual std::map<Operation, Traffic> traffic() const = 0;
  virtual std::vector<Sent> sent() const = 0;  // by member
};

// A rank's place in the world; makes the rank's communicators.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  // Index of this rank among the ranks of its machine.
  virtual int local_rank() const = 0;
  // Makes a group without communicating. All members pass the same arguments; two ranks make their
  // common groups in the same order. The endpoint must outlive its groups.
  virtual std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) = 0;
  // Emulates these links from now on, free links included. nullopt: the real links (threads:
  // memory; loopback: the link of the host). Threads and loopback only; ConfigError elsewhere. One
  // rank calls it while no operation is in flight.
  virtual void set_fabric(const std::optional<grid::Fabric>& fabric) = 0;
  // Tells every rank that this rank failed, with the reason. The first failure of a world counts.
  virtual void fail(const std::string& reason) = 0;
};

}  // namespace weft::comm
