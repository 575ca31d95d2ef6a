// The communicator of backends with a Transport: collectives made of meetings and local sums. They
// run as host work in stream order.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/ledger.h"
#include "weft/comm/transport.h"

namespace weft::comm {

// Split of a tensor into one chunk per member, in member order. The first chunks are one element
// longer if the size does not divide.
struct Chunks {
  std::int64_t elements = 0;
  std::int64_t members = 1;

  std::int64_t begin(std::int64_t member) const {
    return elements / members * member + std::min(member, elements % members);
  }
  std::int64_t count(std::int64_t member) const { return begin(member + 1) - begin(member); }
};

class Collectives : public Communicator {
 public:
  Collectives(Membership group, std::unique_ptr<Transport> transport);

  const std::string& name() const override { return group_.name; }
  int rank() const override { return group_.self; }
  const std::vector<int>& members() const override { return group_.members; }

  void all_to_all(Stream& stream,
                  Tensor receive,
                  Tensor send,
                  RowCounts receive_rows,
                  RowCounts send_rows,
                  Content content) override;
  void all_to_all_counted(Stream& stream,
                          Tensor receive,
                          Tensor receive_rows,
                          Tensor send,
                          Tensor send_rows,
                          Content content) override;
  void all_gather(Stream& stream, Tensor receive, Tensor send, Content content) override;
  void reduce_scatter(Stream& stream, Tensor receive, Tensor send, Content content) override;
  void all_reduce(Stream& stream, Tensor data, Reduce reduce) override;
  void broadcast(Stream& stream, Tensor data, int root) override;
  void send(Stream& stream, Tensor data, int peer) override;
  void receive(Stream& stream, Tensor data, int peer) override;
  void barrier(Stream& stream) override;

  std::map<Operation, Traffic> traffic() const override { return ledger_.traffic(); }
  std::vector<Sent> sent() const override { return ledger_.sent(); }

 protected:
  // Enqueues `body`, which returns the bytes it sent to other ranks. Counts these bytes after the
  // run; fails the world if `body` throws. `size`: the estimate of the host, for the trace.
  using Body = std::function<std::int64_t(tensor::Transfers&)>;
  void issue(Stream& stream, Operation operation, tensor::WorkSize size, Body body);

  // Size of an operation of the whole group.
  tensor::WorkSize size_of_call(std::int64_t bytes, std::int64_t rows = 0) const {
    return {.bytes = bytes, .rows = rows, .members = group_.members};
  }

  Call next_call(Operation operation, std::int64_t extent, Content content = Content::Payload);
  // Copies this member's own part, meets the other members and returns the bytes sent to them.
  std::int64_t meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers);

 private:
  std::int64_t gather_chunks(tensor::Transfers& transfers,
                             const Call& call,
                             const Chunks& chunks,
                             std::int64_t element_bytes,
                             std::byte* data);
  // out = this member's chunk of every member's `data`, reduced. Advances call.step.
  std::int64_t reduce_chunks(tensor::Transfers& transfers,
                             Call& call,
                             const Chunks& chunks,
                             tensor::DType dtype,
                             Reduce reduce,
                             const std::byte* data,
                             std::byte* out);

  const Membership group_;
  const std::unique_ptr<Transport> transport_;
  // Sequence numbers, used by the issuing host thread only: call order is operation order on every
  // stream.
  std::uint64_t next_collective_ = 0;
  std::vector<std::uint64_t> next_send_, next_receive_;  // by member
  std::vector<std::array<int, 2>> pairs_;  // by member: its world rank and ours, ascending
  Ledger ledger_;
};

}  // namespace weft::comm
