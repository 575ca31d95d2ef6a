// Communicator of ranks on GPUs: NCCL collectives, and grouped sends and receives for the variable
// all-to-all.
//
// Bytes are counted as in the other backends (collectives.h): as for an exchange and a sum in
// member order.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/ledger.h"
#include "weft/comm/nccl/lane.h"
#include "weft/comm/nccl/world.h"
#include "weft/comm/transport.h"

namespace weft::comm::nccl {

class NcclCommunicator final : public Communicator {
 public:
  // All members make it together; `key` is unique to the group.
  NcclCommunicator(World& world, Membership group, std::string key);

  const std::string& name() const override { return group_.name; }
  int rank() const override { return group_.self; }
  const std::vector<int>& members() const override { return group_.members; }

  void all_to_all(Stream& stream,
                  Tensor receive,
                  Tensor send,
                  RowCounts receive_rows,
                  RowCounts send_rows,
                  Content content) override;
  // NCCL takes sizes from the host. The stream's own thread reads the counts and then issues the
  // exchange. The calling thread does not wait. The thread of the next operation on another
  // communicator may wait for its turn (line.h).
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
  void connect(int from, int to) override;
  void send(Stream& stream, Tensor data, int peer) override;
  void receive(Stream& stream, Tensor data, int peer) override;
  void barrier(Stream& stream) override;

  std::map<Operation, Traffic> traffic() const override { return ledger_.traffic(); }
  std::vector<Sent> sent() const override { return ledger_.sent(); }

 private:
  // Enqueues `calls` as one piece of work. It gets a Line::Turn and returns the bytes sent to other
  // ranks. It keeps its arguments by value, but no tensor, which would hold memory.
  template <typename Calls>
  void issue(Stream& stream, Operation operation, tensor::WorkSize size, Calls calls) {
    issue_on(all_, stream, operation, size, std::move(calls));
  }
  template <typename Calls>
  void issue_on(const std::shared_ptr<Lane>& lane,
                Stream& stream,
                Operation operation,
                tensor::WorkSize size,
                Calls calls);
  // Lane for one direction between two members. The stream's thread opens it at first use, so the
  // calling thread does not wait for the peer.
  std::shared_ptr<Lane> make_lane(int from, int to);
  std::shared_ptr<Lane> lane_between(Stream& stream, int from, int to);
  std::int64_t exchange(Line::Turn& turn, std::span<const Part> parts, Content content);
  template <typename T>
  void find_largest(Stream& stream, const Tensor& data, std::int64_t sent);

  tensor::WorkSize size_of_call(std::int64_t bytes, std::int64_t rows = 0) const {
    return {.bytes = bytes, .rows = rows, .members = group_.members};
  }
  tensor::WorkSize size_of_pair(std::int64_t bytes, int peer) const {
    return {.bytes = bytes, .members = pairs_[static_cast<std::size_t>(peer)]};
  }
  // Counts `bytes` for each other member; returns the sum.
  std::int64_t count_to_others(Content content, std::int64_t bytes);
  std::int64_t count_all_reduce(std::int64_t elements, std::int64_t width);

  World& world_;
  const Membership group_;
  const std::string key_;
  const std::shared_ptr<Lane> all_;
  std::map<std::pair<int, int>, std::shared_ptr<Lane>> between_;  // by members: from, to
  std::vector<std::array<int, 2>> pairs_;  // by member: its world rank and ours, ascending
  Ledger ledger_;
};

}  // namespace weft::comm::nccl
