// Working set of a rank in a communicator test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/devices/devices_support.h"
#include "weft/base/check.h"
#include "weft/comm/launch.h"
#include "weft/tensor/pool.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/transfer.h"

namespace weft::comm {

using devices::DeviceKind;
using tensor::DType;
using tensor::Pool;
using tensor::Shape;
using tensor::StreamRole;
using tensor::Tag;

// Pretended: peers hold and send this rank's data (the fake backend). Returning: rows and messages
// sent to a peer also return from it (the loopback backend).
enum class Peers { Real, Pretended, Returning };

// Streams end before the pool and the communicators.
struct Bench {
  Bench(Endpoint& at, Peers kind, StreamRole role, DeviceKind device = DeviceKind::Cpu);
  // All ranks of the world, in order.
  std::unique_ptr<Communicator> everyone(const std::string& name);
  Tensor tensor(DType dtype, Shape shape) { return {pool, dtype, shape, Tag::Communication}; }
  // Rank whose data arrives in place of `peer`'s.
  int stands_for(int peer) const { return peers == Peers::Real ? peer : rank; }

  Endpoint& endpoint;
  const Peers peers;
  const StreamRole stream_role;
  const int rank, world;
  std::unique_ptr<Communicator> all;
  std::unique_ptr<tensor::Device> device;
  Pool pool;
  std::unique_ptr<Stream> stream, other;
};

// Writes element `index` of `rank`'s data in round `round`. bf16 and integers get any bits; fp32
// and fp64 get magnitudes for which a sum depends on its order.
void fill(Bench& bench, const Tensor& tensor, int rank, int round);
// Bytes that fill would write, for `elements`.
std::vector<std::byte> filled(DType dtype, std::int64_t elements, int rank, int round);

std::vector<std::byte> bytes_of(Bench& bench, const Tensor& tensor);
// Throws InternalError naming the rank and the first differing byte.
void expect_bytes(Bench& bench,
                  const Tensor& tensor,
                  const std::vector<std::byte>& expected,
                  const std::string& what);

std::vector<int> first_ranks(int count);

}  // namespace weft::comm
