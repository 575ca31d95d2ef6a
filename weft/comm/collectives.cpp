#include "weft/comm/collectives.h"

#include <utility>

#include "weft/base/check.h"
#include "weft/comm/call_checks.h"
#include "weft/comm/row_exchange.h"

namespace weft::comm {
namespace {

// Most bytes that the reductions of all members hold together outside the rank's pool.
constexpr std::int64_t kHeldBytes = 32 << 20;

// Copy of the counts that lives in the body. Tensor pointers stay valid: each tensor has recorded
// its use.
std::vector<std::int64_t> copy_of(std::span<const std::int64_t> counts) {
  return {counts.begin(), counts.end()};
}

}  // namespace

Collectives::Collectives(Membership group, std::unique_ptr<Transport> transport)
    : group_(std::move(group)),
      transport_(std::move(transport)),
      next_send_(group_.members.size()),
      next_receive_(group_.members.size()),
      ledger_(group_.size()) {
  const int self = group_.world_rank();
  for (const int peer : group_.members) {
    pairs_.push_back({std::min(self, peer), std::max(self, peer)});
  }
}

void Collectives::issue(Stream& stream, Operation operation, tensor::WorkSize size, Body body) {
  stream.enqueue_host(
      name_of(operation),
      tensor::WorkClass::Communication,
      [this, operation, body = std::move(body)](tensor::Transfers& transfers) {
        try {
          ledger_.count_call(operation, body(transfers));
        } catch (const std::exception& error) {
          transport_->fail(error.what());
          throw;
        }
      },
      size);
}

Call Collectives::next_call(Operation operation, std::int64_t extent, Content content) {
  return {.operation = operation,
          .sequence = next_collective_++,
          .step = 0,
          .extent = extent,
          .content = content};
}

std::int64_t Collectives::meet(const Call& call,
                               std::span<const Part> parts,
                               tensor::Transfers& transfers) {
  std::int64_t bytes = 0;
  std::vector<tensor::Copy> own;
  for (const Part& part : parts) {
    if (part.member != group_.self) {
      bytes += part.out_bytes;
      ledger_.count_sent(part.member, call.content, part.out_bytes);
    } else if (part.in != part.out && part.in_bytes > 0) {
      CHECK(part.in_bytes == part.out_bytes,
            "{} bytes to itself, {} expected",
            part.out_bytes,
            part.in_bytes);
      own.push_back({part.in, part.out, part.in_bytes});
    }
  }
  // A group of one has no meeting in which a transport could copy.
  if (size() == 1) transport_->Transport::copy_own(own, transfers);
  if (size() > 1) transport_->copy_own(own, transfers);
  if (size() > 1) transport_->meet(call, parts, transfers);
  return bytes;
}

void Collectives::all_to_all(Stream& stream,
                             Tensor receive,
                             Tensor send,
                             RowCounts receive_rows,
                             RowCounts send_rows,
                             Content content) {
  RowExchange rows(group_, receive, send, stream);
  const Call call = next_call(Operation::AllToAll, rows.row_bytes(), content);
  const std::int64_t leaving = rows_to_others(send_rows.counts, group_);
  issue(
      stream,
      Operation::AllToAll,
      size_of_call(leaving * rows.row_bytes(), leaving),
      [=, this, in = copy_of(receive_rows.counts), out = copy_of(send_rows.counts)](
          tensor::Transfers& transfers) {
        return meet(call, rows.parts({in, receive_rows.order}, {out, send_rows.order}), transfers);
      });
}

void Collectives::all_to_all_counted(Stream& stream,
                                     Tensor receive,
                                     Tensor receive_rows,
                                     Tensor send,
                                     Tensor send_rows,
                                     Content content) {
  check_counts(group_, receive_rows, send_rows);
  RowExchange rows(group_, receive, send, stream);
  const Call call = next_call(Operation::AllToAll, rows.row_bytes(), content);
  const std::byte* in = receive_rows.raw(stream);
  const std::byte* out = send_rows.raw(stream);
  // The number of rows is known only when the operation runs.
  issue(stream, Operation::AllToAll, size_of_call(0), [=, this](tensor::Transfers& transfers) {
    const auto taken = [&](const std::byte* counts) {
      return read_counts(transfers, counts, group_.members.size());
    };
    return meet(call, rows.parts(taken(in), taken(out)), transfers);
  });
}

void Collectives::all_gather(Stream& stream, Tensor receive, Tensor send, Content content) {
  check_all_gather(group_, receive, send);
  const std::int64_t bytes = send.bytes();
  const Call call = next_call(Operation::AllGather, bytes, content);
  std::byte* in = receive.raw(stream);
  const std::byte* out = send.raw(stream);
  issue(stream,
        Operation::AllGather,
        size_of_call((size() - 1) * bytes),
        [=, this](tensor::Transfers& transfers) {
          std::vector<Part> parts;
          for (int i = 0; i < size(); ++i) parts.push_back({i, out, bytes, in + i * bytes, bytes});
          return meet(call, parts, transfers);
        });
}

void Collectives::reduce_scatter(Stream& stream, Tensor receive, Tensor send, Content content) {
  check_reduce_scatter(group_, receive, send);
  Call next = next_call(Operation::ReduceScatter, send.bytes(), content);
  const Chunks chunks{.elements = send.elements(), .members = size()};
  const tensor::DType dtype = send.dtype();
  std::byte* out = receive.raw(stream);
  const std::byte* data = send.raw(stream);
  issue(stream,
        Operation::ReduceScatter,
        size_of_call(send.bytes() - receive.bytes()),
        [=, this](tensor::Transfers& transfers) {
          Call call = next;
          return reduce_chunks(transfers, call, chunks, dtype, Reduce::Sum, data, out);
        });
}

void Collectives::all_reduce(Stream& stream, Tensor data, Reduce reduce) {
  tensor::check_reducible(data.dtype());
  const Call next = next_call(Operation::AllReduce, data.bytes());
  const Chunks chunks{.elements = data.elements(), .members = size()};
  const tensor::DType dtype = data.dtype();
  std::byte* all = data.raw(stream);
  const std::int64_t own = chunks.count(rank());
  const std::int64_t sent = (chunks.elements - own) + (size() - 1) * own;
  issue(stream,
        Operation::AllReduce,
        size_of_call(sent * tensor::size_of(dtype)),
        [=, this](tensor::Transfers& transfers) {
          Call call = next;
          std::byte* mine = all + chunks.begin(rank()) * tensor::size_of(dtype);
          const std::int64_t reduced =
              reduce_chunks(transfers, call, chunks, dtype, reduce, all, mine);
          return reduced + gather_chunks(transfers, call, chunks, tensor::size_of(dtype), all);
        });
}

void Collectives::broadcast(Stream& stream, Tensor data, int root) {
  check_root(group_, root);
  const std::int64_t bytes = data.bytes();
  const Call call = next_call(Operation::Broadcast, bytes);
  std::byte* all = data.raw(stream);
  const std::int64_t sent = rank() == root ? (size() - 1) * bytes : 0;
  issue(stream, Operation::Broadcast, size_of_call(sent), [=, this](tensor::Transfers& transfers) {
    std::vector<Part> parts;
    for (int i = 0; i < size(); ++i) {
      Part part{.member = i};
      if (rank() == root && i != root) part = {.member = i, .out = all, .out_bytes = bytes};
      if (rank() != root && i == root) part = {.member = i, .in = all, .in_bytes = bytes};
      parts.push_back(part);
    }
    return meet(call, parts, transfers);
  });
}

void Collectives::send(Stream& stream, Tensor data, int peer) {
  check_peer(group_, peer);
  const Call call{.operation = Operation::Send,
                  .sequence = next_send_[static_cast<std::size_t>(peer)]++};
  const Part part{.member = peer, .out = data.raw(stream), .out_bytes = data.bytes()};
  const tensor::WorkSize size{.bytes = data.bytes(),
                              .members = pairs_[static_cast<std::size_t>(peer)]};
  issue(stream, Operation::Send, size, [=, this](tensor::Transfers& transfers) {
    return meet(call, {&part, 1}, transfers);
  });
}

void Collectives::receive(Stream& stream, Tensor data, int peer) {
  check_peer(group_, peer);
  const Call call{.operation = Operation::Receive,
                  .sequence = next_receive_[static_cast<std::size_t>(peer)]++};
  const Part part{.member = peer, .in = data.raw(stream), .in_bytes = data.bytes()};
  const tensor::WorkSize size{.members = pairs_[static_cast<std::size_t>(peer)]};
  issue(stream, Operation::Receive, size, [=, this](tensor::Transfers& transfers) {
    return meet(call, {&part, 1}, transfers);
  });
}

void Collectives::barrier(Stream& stream) {
  const Call call = next_call(Operation::Barrier, 0);
  issue(stream, Operation::Barrier, size_of_call(0), [=, this](tensor::Transfers& transfers) {
    std::vector<Part> parts;
    for (int i = 0; i < size(); ++i) parts.push_back({.member = i});
    return meet(call, parts, transfers);
  });
}

std::int64_t Collectives::gather_chunks(tensor::Transfers& transfers,
                                        const Call& call,
                                        const Chunks& chunks,
                                        std::int64_t element_bytes,
                                        std::byte* data) {
  std::vector<Part> parts;
  const std::byte* mine = data + chunks.begin(rank()) * element_bytes;
  const std::int64_t bytes = chunks.count(rank()) * element_bytes;
  for (int i = 0; i < size(); ++i) {
    std::byte* theirs = data + chunks.begin(i) * element_bytes;
    parts.push_back({i, mine, bytes, theirs, chunks.count(i) * element_bytes});
  }
  return meet(call, parts, transfers);
}

std::int64_t Collectives::reduce_chunks(tensor::Transfers& transfers,
                                        Call& call,
                                        const Chunks& chunks,
                                        tensor::DType dtype,
                                        Reduce reduce,
                                        const std::byte* data,
                                        std::byte* out) {
  const std::int64_t width = tensor::size_of(dtype);
  const std::int64_t longest = chunks.count(0);
  const std::int64_t bytes = std::min(transfers.segment_bytes(), kHeldBytes / size());
  const std::int64_t segment = std::min(longest, std::max<std::int64_t>(1, bytes / width));
  const std::shared_ptr<std::byte> scratch = transfers.scratch(size() * segment * width);
  std::int64_t sent = 0;
  std::int64_t offset = 0;  // offset of the segment in every chunk
  do {
    const auto length = [&](int i) {
      return std::clamp(chunks.count(i) - offset, std::int64_t{0}, segment);
    };
    std::vector<Part> parts;
    std::vector<const std::byte*> sources;
    for (int i = 0; i < size(); ++i) {
      const std::byte* outgoing = data + (chunks.begin(i) + offset) * width;
      std::byte* incoming = scratch.get() + i * segment * width;
      const bool own = i == rank();
      sources.push_back(own ? outgoing : incoming);
      parts.push_back({.member = i,
                       .out = outgoing,
                       .out_bytes = length(i) * width,
                       .in = own ? nullptr : incoming,
                       .in_bytes = own ? 0 : length(rank()) * width});
    }
    sent += meet(call, parts, transfers);
    ++call.step;
    transfers.reduce(dtype, reduce, out + offset * width, sources, length(rank()));
    offset += segment;
  } while (offset < longest);
  return sent;
}

}  // namespace weft::comm
