#include "tests/comm/bench_support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace weft::comm {
namespace {

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double real(std::uint64_t bits) {
  const double fraction = static_cast<double>(bits >> 11) * 0x1p-53 - 0.5;
  return std::ldexp(fraction, static_cast<int>(bits % 24));
}

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

Bench::Bench(Endpoint& at, Peers kind, StreamRole role, DeviceKind on)
    : endpoint(at),
      peers(kind),
      stream_role(role),
      rank(at.rank()),
      world(at.world()),
      all(at.group("all", first_ranks(at.world()))),
      device(devices::make_device(on)),
      pool(*device),
      stream(device->make_stream("one", role)),
      other(device->make_stream("two", role)) {}

std::unique_ptr<Communicator> Bench::everyone(const std::string& name) {
  return endpoint.group(name, first_ranks(world));
}

std::vector<std::byte> filled(DType dtype, std::int64_t elements, int rank, int round) {
  const std::int64_t width = tensor::size_of(dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * width));
  for (std::int64_t i = 0; i < elements; ++i) {
    std::byte* at = bytes.data() + i * width;
    const auto salt = static_cast<std::uint64_t>(rank * 1000 + round + 1);
    const std::uint64_t bits = scramble(static_cast<std::uint64_t>(i) + (salt << 32));
    if (dtype == DType::F32) {
      put(at, static_cast<float>(real(bits)));
    } else if (dtype == DType::F64) {
      put(at, real(bits));
    } else {
      std::memcpy(at, &bits, static_cast<std::size_t>(width));
    }
  }
  return bytes;
}

void fill(Bench& bench, const Tensor& tensor, int rank, int round) {
  const auto bytes = filled(tensor.dtype(), tensor.elements(), rank, round);
  bench.stream->upload(tensor.raw(*bench.stream), bytes.data(), tensor.bytes());
  bench.stream->synchronize();
}

std::vector<std::byte> bytes_of(Bench& bench, const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  bench.stream->download(bytes.data(), tensor.raw(*bench.stream), tensor.bytes());
  bench.stream->synchronize();
  return bytes;
}

void expect_bytes(Bench& bench,
                  const Tensor& tensor,
                  const std::vector<std::byte>& expected,
                  const std::string& what) {
  const auto found = bytes_of(bench, tensor);
  CHECK(found.size() == expected.size(),
        "{}: {} bytes on rank {}, {} expected",
        what,
        found.size(),
        bench.rank,
        expected.size());
  const auto differs = std::mismatch(found.begin(), found.end(), expected.begin());
  CHECK(differs.first == found.end(),
        "{}: byte {} of {} differs on rank {} of {}",
        what,
        differs.first - found.begin(),
        found.size(),
        bench.rank,
        bench.world);
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace weft::comm
