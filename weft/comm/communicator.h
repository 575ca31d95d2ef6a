// HOW DO RANKS TALK? A communicator is one rank's handle on one group of ranks.
//
// Operations are asynchronous: they enqueue on the stream and return; all members of a group call
// the same operations in the same order. Operations of one group may be enqueued on several
// streams: order is the order of the calls. Tensors are contiguous. An operation ends when its
// bytes have arrived and been taken, a send too: two ranks that each send first on their only
// stream wait for each other until the timeout. Members that disagree on an operation or on a size
// get an error naming both ranks and both numbers.
//
// Reductions are an exchange and a local sum in member order, so that results depend neither on
// timing nor on the backend (one with collectives of its own, as NCCL, is repeatable and says so).
//
// Two kinds of backend: Collectives (collectives.h) writes the operations once, above a transport
// that lets members meet; a backend with collectives of its own implements this interface, with the
// checks (call_checks.h), the members (membership.h) and the counters (ledger.h) that all share.
// Every byte that leaves a rank is counted. A member that fails poisons
// the world: peers stop with an error that names it, within the timeout.
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
  std::int64_t bytes_sent = 0;  // to other ranks; what a rank keeps for itself does not count
};

// What bytes are for; they are counted apart.
enum class Content { Payload, Probabilities, Metadata };
inline constexpr int kContents = static_cast<int>(Content::Metadata) + 1;

struct Sent {
  std::int64_t payload = 0, probabilities = 0, metadata = 0;  // bytes

  std::int64_t total() const { return payload + probabilities + metadata; }
};

// In which order the rows of all members lie, where those of a member are several blocks: all
// blocks of the first member and so on, or the first block of all members and so on.
enum class RowOrder { ByMember, ByBlock };

// How many rows go to or come from every member: one count for each, or as many for each as there
// are blocks, member by member.
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

  virtual const std::string& name() const = 0;          // of the group, for messages: "ep"
  virtual int rank() const = 0;                         // of this member in the group
  virtual const std::vector<int>& members() const = 0;  // world ranks
  int size() const { return static_cast<int>(members().size()); }

  // Rows (dim 0) to and from every member, one behind the other from row 0 on; counts known to the
  // host. `receive` and `send` may have more rows than are used. All members have as many blocks.
  virtual void all_to_all(Stream&,
                          Tensor receive,
                          Tensor send,
                          RowCounts receive_rows,
                          RowCounts send_rows,
                          Content content = Content::Payload) = 0;
  // The same with counts in device memory (int64, one a member) read when the operation runs;
  // `receive` has room for a fixed number of rows. Rows beyond it are an error naming both numbers.
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
  // The other direction: send has size() times the rows of receive. Summed in member order.
  // Both may work in place: the smaller tensor is then this member's rows of the larger one.
  virtual void reduce_scatter(Stream&,
                              Tensor receive,
                              Tensor send,
                              Content content = Content::Payload) = 0;
  // Reductions take fp32, bf16 (summed in fp32), fp64 and int64. A NaN anywhere makes the maximum
  // NaN.
  virtual void all_reduce(Stream&, Tensor data, Reduce reduce) = 0;
  virtual void broadcast(Stream&, Tensor data, int root) = 0;
  // Ahead of sends from one member to another, of which this rank is one: where the first of them
  // would have to make a connection. Both call it; all ranks go through pairs in one order.
  virtual void connect(int /*from*/, int /*to*/) {}
  virtual void send(Stream&, Tensor data, int peer) = 0;
  virtual void receive(Stream&, Tensor data, int peer) = 0;
  virtual void barrier(Stream&) = 0;

  // Since the start; read after synchronizing the streams used.
  virtual std::map<Operation, Traffic> traffic() const = 0;
  virtual std::vector<Sent> sent() const = 0;  // to each member
};

// A rank's place in the world: makes its communicators.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  // This rank's number among those on the same machine.
  virtual int local_rank() const = 0;
  // All members call this with the same arguments, and any two ranks make the groups they share in
  // the same order. Does not communicate. Must outlive its groups.
  virtual std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) = 0;
  // Emulates these links from now on, free ones too; none: the links are what they are (threads:
  // memory; loopback: that of the host). Threads and loopback only, ConfigError elsewhere. One rank
  // calls it, while no operation is under way.
  virtual void set_fabric(const std::optional<grid::Fabric>& fabric) = 0;
  // Tells every rank that this one failed, with the reason. The first failure of a world counts.
  virtual void fail(const std::string& reason) = 0;
};

}  // namespace weft::comm
