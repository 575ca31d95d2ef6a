#include "weft/model/initial_values.h"

#include <algorithm>
#include <array>
#include <vector>

#include "weft/base/parallel/parallel.h"
#include "weft/base/random.h"
#include "weft/tensor/slice.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace {

using tensor::DType;
using tensor::Range;

// One thread draws a piece. A batch is uploaded at once; two batches are in host memory.
constexpr std::int64_t kPieceElements = 1 << 16, kBatchBytes = 32 << 20;

// Part of a parameter, and the place of its values in the batch.
struct Piece {
  const Parameter* parameter = nullptr;
  Range elements;       // range of this rank's part
  std::int64_t at = 0;  // byte offset
};

struct Batch {
  std::vector<Piece> drawn;
  std::vector<Piece> copied;  // `drawn` with adjacent pieces joined
  std::int64_t bytes = 0;
};

void add(Batch& batch, const Piece& piece) {
  const bool goes_on = !batch.copied.empty() && batch.copied.back().parameter == piece.parameter;
  if (goes_on) {
    batch.copied.back().elements.count += piece.elements.count;
  } else {
    batch.copied.push_back(piece);
  }
  batch.drawn.push_back(piece);
}

// Cuts parameters into pieces, batch after batch. Pieces of a parameter within a batch are
// adjacent: all but the last have one size, a multiple of the alignment.
std::vector<Batch> cut(std::span<const Parameter> parameters) {
  constexpr std::int64_t kAlignment = 64;
  std::vector<Batch> batches(1);
  for (const Parameter& parameter : parameters) {
    const std::int64_t all = parameter.weight.elements();
    for (std::int64_t begin = 0; begin < all; begin += kPieceElements) {
      const std::int64_t count = std::min(kPieceElements, all - begin);
      const std::int64_t bytes = count * tensor::size_of(parameter.weight.dtype());
      if (batches.back().bytes + bytes > kBatchBytes) batches.emplace_back();
      Batch& batch = batches.back();
      add(batch,
          {.parameter = &parameter,
           .elements = {.begin = begin, .count = count},
           .at = batch.bytes});
      batch.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  return batches;
}

// Draws elements of the global tensor from `first` on.
template <typename T>
void draw(const ParameterSpec& spec, std::uint64_t seed, std::int64_t first, std::span<T> out) {
  if (!spec.is_matrix()) {
    std::ranges::fill(out, T(spec.is_trained() && spec.start == derive::Start::Ones ? 1.0f : 0.0f));
    return;
  }
  const std::uint64_t key = base::combine(seed, base::hash(spec.name));
  const auto deviation = static_cast<float>(spec.init_deviation);
  std::array<float, 1024> some;
  while (!out.empty()) {
    const std::span<float> drawn = std::span(some).first(std::min(some.size(), out.size()));
    base::normals(key, static_cast<std::uint64_t>(first), drawn);
    std::ranges::transform(drawn, out.begin(), [&](float value) { return T(value * deviation); });
    first += std::ssize(drawn);
    out = out.subspan(drawn.size());
  }
}

template <typename T>
std::span<T> values_of(const Piece& piece, std::byte* memory) {
  return {reinterpret_cast<T*>(memory + piece.at), static_cast<std::size_t>(piece.elements.count)};
}

template <typename T>
void draw(const Piece& piece, std::uint64_t seed, std::byte* memory) {
  const ParameterSpec& spec = piece.parameter->spec;
  tensor::Slice slice = spec.slice;
  slice.elements = {.begin = slice.elements.begin + piece.elements.begin,
                    .count = piece.elements.count};
  const std::span<T> values = values_of<T>(piece, memory);
  for (const tensor::Run& run : tensor::runs_of(slice)) {
    draw<T>(
        spec,
        seed,
        run.global,
        values.subspan(static_cast<std::size_t>(run.local), static_cast<std::size_t>(run.count)));
  }
}

template <typename T>
void upload(tensor::Stream& stream, const Piece& piece, std::byte* memory) {
  const auto& [begin, count] = piece.elements;
  tensor::upload<T>(stream,
                    piece.parameter->weight.range(begin, {count}),
                    values_of<T>(piece, memory));
}

bool is_float(const Piece& piece) { return piece.parameter->weight.dtype() == DType::F32; }

// Host memory that the device copies from while the host goes on.
class Staged {
 public:
  Staged(tensor::Stream& stream, std::int64_t bytes)
      : stream_(stream), bytes_(static_cast<std::size_t>(bytes)) {
    if (bytes > 0) memory_ = stream.device().take(tensor::Memory::HostVisible, bytes_);
  }
  ~Staged() {
    if (memory_ == nullptr) return;
    try {
      await_copies();
    } catch (...) {
      // The stream keeps its error; its work is complete.
    }
    stream_.device().give_back(tensor::Memory::HostVisible, memory_, bytes_);
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  void await_copies() {
    if (copied_.stream != nullptr) stream_.host_wait(copied_);
  }

  void draw_all(const Batch& batch, std::uint64_t seed, int threads) {
    await_copies();
    base::parallel(threads, std::ssize(batch.drawn), [&](std::int64_t i) {
      const Piece& piece = batch.drawn[static_cast<std::size_t>(i)];
      is_float(piece) ? draw<float>(piece, seed, memory_)
                      : draw<tensor::BFloat16>(piece, seed, memory_);
    });
  }

  void upload_all(const Batch& batch) {
    for (const Piece& piece : batch.copied) {
      is_float(piece) ? upload<float>(stream_, piece, memory_)
                      : upload<tensor::BFloat16>(stream_, piece, memory_);
    }
    copied_ = stream_.record();
  }

 private:
  tensor::Stream& stream_;
  const std::size_t bytes_;
  std::byte* memory_ = nullptr;
  tensor::Event copied_;
};

}  // namespace

void put_initial_values(tensor::Stream& stream,
                        std::span<const Parameter> parameters,
                        std::uint64_t seed,
                        int threads) {
  const std::vector<Batch> batches = cut(parameters);
  const std::int64_t bytes = std::ranges::max(batches, {}, &Batch::bytes).bytes;
  Staged first(stream, bytes), second(stream, batches.size() > 1 ? bytes : 0);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Staged& staged = i % 2 == 0 ? first : second;
    staged.draw_all(batches[i], seed, threads);
    staged.upload_all(batches[i]);
  }
  first.await_copies();
  second.await_copies();
}

}  // namespace weft::model
