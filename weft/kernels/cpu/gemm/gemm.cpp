#include "weft/kernels/cpu/gemm/gemm.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "weft/kernels/cpu/gemm/work_cut.h"

namespace weft::kernels::cpu {
namespace {

// Tiles of this size run near the speed of a large product; packing costs a few percent. A task
// with too few tiles for many threads halves them while a tile stays worth a task.
constexpr std::int64_t kTileRows = 256, kTileColumns = 512;
constexpr std::int64_t kLeastRows = 64, kLeastColumns = 128;
// Measured: 48 gains 8 % on a Xeon with 16 threads. A Neoverse-V1 with one thread per rank loses up
// to 6 % from 12 on; no tile is halved there.
#if defined(__x86_64__)
constexpr std::int64_t kEnoughTiles = 48;
#else
constexpr std::int64_t kEnoughTiles = 1;
#endif
constexpr std::int64_t kTileWork = 1 << 20;  // multiply-adds worth a task

struct TileSize {
  std::int64_t rows = kTileRows, columns = kTileColumns;
};

struct Tile {
  std::size_t gemm = 0;
  Range rows, columns;
};

// Equal cuts of about `size`, multiples of 16 so that tiles fill the vector registers.
Cut even_cut(std::int64_t total, std::int64_t size) {
  const std::int64_t count = std::max<std::int64_t>(1, (total + size - 1) / size);
  const std::int64_t even = (total + count - 1) / count;
  return {total, std::max<std::int64_t>(16, (even + 15) / 16 * 16)};
}

bool is_nothing(const Gemm& gemm) {
  if (gemm.m == 0 || gemm.n == 0) return true;
  return gemm.k == 0 && gemm.write == Write::Accumulate;  // no terms to add
}

struct TileCuts {
  Cut rows, columns;

  std::int64_t count() const { return rows.count() * columns.count(); }
};

TileCuts cuts_of(const Gemm& gemm, const TileSize& size) {
  const std::int64_t k = std::max<std::int64_t>(1, gemm.k);
  std::int64_t rows = std::min(gemm.m, size.rows);
  std::int64_t columns = std::min(gemm.n, size.columns);
  columns = std::max(columns, kTileWork / (k * rows));
  rows = std::max(rows, kTileWork / (k * std::min(columns, gemm.n)));
  return {even_cut(gemm.m, rows), even_cut(gemm.n, columns)};
}

// Tile size, a function of the shapes alone, never of the number of threads.
TileSize size_for(const std::vector<Gemm>& gemms) {
  TileSize size;
  while (true) {
    std::int64_t tiles = 0;
    for (const Gemm& gemm : gemms) {
      if (!is_nothing(gemm)) tiles += cuts_of(gemm, size).count();
    }
    if (tiles >= kEnoughTiles) return size;
    if (size.columns > 2 * size.rows || size.rows <= kLeastRows) {
      if (size.columns <= kLeastColumns) return size;
      size.columns /= 2;
    } else {
      size.rows /= 2;
    }
  }
}

void cut_tiles(std::vector<Tile>& tiles,
               std::size_t index,
               const Gemm& gemm,
               const TileSize& size) {
  if (is_nothing(gemm)) return;
  const TileCuts cuts = cuts_of(gemm, size);
  for (std::int64_t i = 0; i < cuts.rows.count(); ++i) {
    for (std::int64_t j = 0; j < cuts.columns.count(); ++j) {
      tiles.push_back({index, cuts.rows[i], cuts.columns[j]});
    }
  }
}

// fp32 memory of a task that converts bf16.
class Scratch {
 public:
  float* take(std::int64_t elements) {
    parts_.push_back(std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(elements)));
    return parts_.back().get();
  }

 private:
  std::vector<std::unique_ptr<float[]>> parts_;
};

// Block (rows x columns) of the factor after transposing, as fp32.
Factor fp32_block(const Operand& x, Range rows, Range columns, Scratch& scratch) {
  if (x.transpose == Transpose::Yes) std::swap(rows, columns);
  const std::int64_t offset = rows.begin * x.stride + columns.begin;
  if (x.dtype == DType::F32) {
    return {reinterpret_cast<const float*>(x.data) + offset, x.stride, x.transpose};
  }
  const auto* from = reinterpret_cast<const BFloat16*>(x.data) + offset;
  float* to = scratch.take(rows.size() * columns.size());
  for (std::int64_t r = 0; r < rows.size(); ++r) {
#pragma omp simd
    for (std::int64_t c = 0; c < columns.size(); ++c) {
      to[r * columns.size() + c] = load(from[r * x.stride + c]);
    }
  }
  return {to, columns.size(), x.transpose};
}

void round_row(BFloat16* to, const float* from, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(to[i], from[i]);
}

void run_tile(const Gemm& gemm, const Range& rows, const Range& columns) {
  Scratch scratch;
  const Factor a = fp32_block(gemm.a, rows, {0, gemm.k}, scratch);
  const Factor b = fp32_block(gemm.b, {0, gemm.k}, columns, scratch);
  const std::int64_t offset = rows.begin * gemm.c_stride + columns.begin;
  const std::int64_t m = rows.size(), n = columns.size();
  if (gemm.c_dtype == DType::F32) {
    float* c = reinterpret_cast<float*>(gemm.c) + offset;
    const float beta = gemm.write == Write::Accumulate ? 1.0f : 0.0f;
    sgemm(m, n, gemm.k, 1, a, b, {c, gemm.c_stride, beta});
    return;
  }
  float* wide = scratch.take(m * n);
  sgemm(m, n, gemm.k, 1, a, b, {wide, n, 0});
  auto* c = reinterpret_cast<BFloat16*>(gemm.c) + offset;
  for (std::int64_t i = 0; i < m; ++i) round_row(c + i * gemm.c_stride, wide + i * n, n);
}

}  // namespace

Operand Operand::rows_from(std::int64_t row) const {
  Operand part = *this;
  part.data += row * stride * tensor::size_of(dtype);
  return part;
}

Operand operand(Stream& stream, const Tensor& matrix, Transpose transpose) {
  return {bytes_of(stream, matrix), matrix.dtype(), matrix.row_stride(), transpose};
}

void run_gemms(Workers& workers, const std::vector<Gemm>& gemms) {
  std::vector<Tile> tiles;
  const TileSize size = size_for(gemms);
  for (std::size_t i = 0; i < gemms.size(); ++i) cut_tiles(tiles, i, gemms[i], size);
  workers.parallel(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t i) {
    const Tile& tile = tiles[static_cast<std::size_t>(i)];
    run_tile(gemms[tile.gemm], tile.rows, tile.columns);
  });
}

void enqueue_gemms(Stream& stream,
                   std::string_view name,
                   std::vector<Gemm> gemms,
                   tensor::WorkSize size) {
  for (const Gemm& gemm : gemms) {
    CHECK(gemm.c_dtype == DType::F32 || gemm.write == Write::Assign,
          "accumulation into {}",
          tensor::name_of(gemm.c_dtype));
  }
  enqueue(
      stream,
      name,
      WorkClass::Gemm,
      [gemms = std::move(gemms)](Workers& workers) { run_gemms(workers, gemms); },
      size);
}

}  // namespace weft::kernels::cpu
