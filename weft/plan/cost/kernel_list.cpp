#include "weft/plan/cost/kernel_list.h"

#include <utility>

namespace weft::plan {
namespace {

using schedule::Direction;
using schedule::Part;
using schedule::Piece;

constexpr double kAccumulate = 8;  // weight gradient: an fp32 sum is read and written

// Bytes moved to cast one value for a product and for its weight gradient, which needs another
// layout. A scale per tensor requires one more read; so does fp4.
double cast_bytes(DType number) {
  if (number == DType::F8E4M3) return 6;
  if (number == DType::MXFP8) return 4;
  return number == DType::NVFP4 ? 5 : 0;
}

// fp4 with its scales, fp8 without.
double bytes_of_value(DType number) {
  return number == DType::NVFP4 ? 0.56 : base::row_of(number).bits / 8.0;
}

}  // namespace

void KernelList::memory(Piece piece,
                        Part part,
                        double forward_values,
                        double backward_values,
                        double launches) {
  add({.piece = piece,
       .part = part,
       .direction = Direction::F,
       .bytes = forward_values * work.element,
       .launches = launches});
  add({.piece = piece,
       .part = part,
       .direction = Direction::D,
       .bytes = backward_values * work.element,
       .launches = launches});
}

void KernelList::launch(Piece piece, Part part, double forward, double backward) {
  add({.piece = piece, .part = part, .launches = forward});
  add({.piece = piece, .part = part, .direction = Direction::D, .launches = backward});
}

void KernelList::small(Piece piece, Part part, int forward, int backward) {
  for (int i = 0; i < forward; ++i) add({.piece = piece, .part = part});
  for (int i = 0; i < backward; ++i) {
    add({.piece = piece, .part = part, .direction = Direction::D});
  }
}

void KernelList::product(Piece piece, Part part, const ProductShape& of, DType number, Cast cast) {
  const double rows = of.m * of.groups, value = bytes_of_value(number);
  const double weights = of.n * of.k * of.groups;
  Kernel kernel{.piece = piece,
                .part = part,
                .direction = Direction::F,
                .kind = KernelKind::Product,
                .number = number,
                .m = of.m,
                .n = of.n,
                .k = of.k,
                .groups = of.groups};
  kernel.is_head = number != work.number;  // no other product has another format
  kernel.bytes = value * (rows * of.k + weights) + work.element * rows * of.n;
  // Without fused kernels a library is called per group.
  if (of.groups > 1 && !work.fuses_experts) kernel.launches = 1 + of.groups * kGroupLaunch;
  add(kernel);
  kernel.direction = Direction::D;
  std::swap(kernel.n, kernel.k);
  kernel.bytes = value * (rows * of.n + weights) + work.element * rows * of.k;
  add(kernel);
  kernel.direction = Direction::W;
  kernel.m = of.n;
  kernel.n = of.k;
  kernel.k = of.m;
  kernel.bytes = value * rows * (of.n + of.k) + kAccumulate * weights;
  add(kernel);
  add_casts(kernel, rows * of.k, rows * of.n, cast);
}

void KernelList::add_casts(const Kernel& like, double in, double out, Cast cast) {
  const double bytes = cast_bytes(like.number);
  if (bytes == 0) return;
  Kernel kernel{.piece = like.piece, .part = like.part};
  kernel.launches = like.groups > 1 ? 1 + like.groups * kGroupLaunch : 2;
  if (cast == Cast::Alone) {
    kernel.bytes = bytes * in;
    add(kernel);
  }
  if (cast == Cast::Alone || like.groups == 1) {
    kernel.direction = Direction::D;
    kernel.bytes = bytes * out;
    add(kernel);
  }
}

}  // namespace weft::plan
