#include "weft/kernels/cpu/dry_operations.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "weft/kernels/cpu/attention/attention_blocks.h"
#include "weft/kernels/cpu/moe/choose_shards.h"
#include "weft/kernels/cpu/moe/even_choice.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cudnn_shapes.h"
#include "weft/tensor/cpu/dry_device.h"
#include "weft/tensor/pool.h"

namespace weft::kernels {

std::unique_ptr<tensor::Device> make_dry_device(DryRouting routing) {
  return std::make_unique<tensor::cpu::DryDevice>(cpu::dry_operations(routing));
}

std::unique_ptr<tensor::Device> make_dry_gpu(tensor::Deterministic deterministic,
                                             DryRouting routing) {
  return std::make_unique<tensor::cpu::DryDevice>(cpu::dry_gpu_operations(deterministic, routing));
}

namespace cpu {
namespace {

template <typename Operation>
struct Nothing;
template <typename... Arguments>
struct Nothing<void(Arguments...)> {
  static void run(Arguments...) {}
};

Tensor floats(Pool& pool, std::int64_t elements) {
  return {pool, DType::F32, {elements}, tensor::Tag::Workspace};
}

void dry_attention_forward(Stream&,
                           Pool& workspace,
                           Tensor,
                           Tensor,
                           Tensor q,
                           Tensor,
                           Tensor,
                           const AttentionShape& shape) {
  floats(workspace, forward_workspace(attention_sizes(q.dim(0), shape)));
}

void dry_attention_dgrad(Stream&,
                         Pool& workspace,
                         Tensor,
                         Tensor,
                         Tensor,
                         Tensor,
                         Tensor,
                         Tensor,
                         Tensor q,
                         Tensor,
                         Tensor,
                         const AttentionShape& shape) {
  const DgradWorkspace elements = dgrad_workspace(attention_sizes(q.dim(0), shape));
  const Tensor slots = floats(workspace, elements.slots);
  floats(workspace, elements.partial);
}

// cuDNN's forward takes little workspace, whatever the shape. Workspace of our own attention
// kernels does not come from the pool.
void dry_gpu_attention_forward(Stream&,
                               Pool& workspace,
                               Tensor,
                               Tensor,
                               Tensor q,
                               Tensor,
                               Tensor,
                               const AttentionShape& shape) {
  if (suits_cudnn(cudnn_shape(q, shape))) floats(workspace, kCudnnForwardBytes / sizeof(float));
}

template <tensor::Deterministic deterministic>
void dry_gpu_attention_dgrad(Stream&,
                             Pool& workspace,
                             Tensor,
                             Tensor,
                             Tensor,
                             Tensor,
                             Tensor,
                             Tensor,
                             Tensor q,
                             Tensor,
                             Tensor,
                             const AttentionShape& shape) {
  const CudnnShape call = cudnn_shape(q, shape);
  if (!suits_cudnn(call)) return;
  const CudnnPart part = cudnn_part(call, deterministic);
  const CudnnMemory memory =
      cudnn_memory(call,
                   part,
                   deterministic,
                   call.batch == 1 ? LseOrder::AsItLies : LseOrder::BySequence,
                   expected_library_bytes(call, part, deterministic));
  floats(workspace, memory.total() / static_cast<std::int64_t>(sizeof(float)));
}

// Choice cache of a thread: every layer of a dry step asks for the same few choices.
struct DryChoice {
  DryRouting routing;
  std::int64_t k = 0, experts = 0;
  GroupLimit groups;
  std::vector<std::int32_t> chosen;
};

const DryChoice& dry_choice(DryRouting routing,
                            std::size_t size,
                            std::int64_t k,
                            std::int64_t experts,
                            const GroupLimit& groups) {
  constexpr std::size_t kMost = 4;
  thread_local std::deque<DryChoice> made;
  const auto found = std::ranges::find_if(made, [&](const DryChoice& one) {
    return one.routing == routing && one.chosen.size() == size && one.k == k &&
           one.experts == experts && one.groups.groups == groups.groups &&
           one.groups.kept == groups.kept;
  });
  if (found != made.end()) return *found;
  if (made.size() == kMost) made.pop_front();
  DryChoice& one = made.emplace_back(
      DryChoice{.routing = routing, .k = k, .experts = experts, .groups = groups, .chosen = {}});
  one.chosen.resize(size);
  switch (routing) {
    case DryRouting::Even:
      choose_evenly(one.chosen, k, experts, groups);
      break;
    case DryRouting::Lopsided:
      choose_lopsidedly(one.chosen, k, experts, groups);
      break;
  }
  return one;
}

template <DryRouting routing>
void dry_top_k(Stream& stream,
               Tensor,
               Tensor experts_Tk,
               Tensor logits_TE,
               Tensor,
               const TopK& options) {
  const std::span chosen(data<std::int32_t>(stream, experts_Tk),
                         static_cast<std::size_t>(experts_Tk.elements()));
  const std::int64_t k = experts_Tk.dim(1), experts = logits_TE.dim(1);
  enqueue(stream, "dry_top_k", WorkClass::Memory, [=, groups = options.groups](Workers&) {
    std::ranges::copy(dry_choice(routing, chosen.size(), k, experts, groups).chosen,
                      chosen.begin());
  });
}

void shards_of_experts(Stream& stream,
                       Tensor,
                       Tensor chosen_TK,
                       Tensor copy_Sn,
                       Tensor,
                       Tensor experts_Tk,
                       const ExpertShards& ranks) {
  const Sharding sharding{.tokens = experts_Tk.dim(0),
                          .k = experts_Tk.dim(1),
                          .ranks = ranks,
                          .expert = data<std::int32_t>(stream, experts_Tk),
                          .chosen = data<std::int32_t>(stream, chosen_TK),
                          .copy = data<std::int32_t>(stream, copy_Sn)};
  enqueue(stream, "shards_of_experts", WorkClass::Memory, [=](Workers&) { choose(sharding); });
}

// Counts of choices, with the options they were counted by.
struct DryCounts {
  std::vector<std::int32_t> chosen;
  std::array<std::int64_t, 3> options;
  std::vector<std::int64_t> counts;
};

// Returns `size` counts from a cache of the thread: every layer of a dry step counts the same few
// choices. Comparing choices takes a fifth of the time of counting.
template <typename Count>
const std::vector<std::int64_t>& count_once(std::size_t size,
                                            std::span<const std::int32_t> chosen,
                                            const std::array<std::int64_t, 3>& options,
                                            Count count) {
  constexpr std::size_t kMost = 8;
  thread_local std::deque<DryCounts> made;
  const auto found = std::ranges::find_if(made, [&](const DryCounts& one) {
    return one.options == options && one.counts.size() == size &&
           std::ranges::equal(one.chosen, chosen);
  });
  if (found != made.end()) return found->counts;
  std::vector<std::int64_t> counts(size);
  count(counts, chosen);
  if (made.size() == kMost) made.pop_front();
  made.push_back(
      {.chosen = {chosen.begin(), chosen.end()}, .options = options, .counts = std::move(counts)});
  return made.back().counts;
}

template <typename T>
std::span<T> numbers_of(Stream& stream, const Tensor& x) {
  return {data<T>(stream, x), static_cast<std::size_t>(x.elements())};
}

// Counts of a sort, without the sorted rows. Choices received from peers hold no values; only those
// in range are counted.
void count_by_expert(Stream& stream,
                     Tensor,
                     Tensor,
                     Tensor,
                     Tensor counts_E,
                     Tensor experts_Tk,
                     std::int64_t first,
                     Room) {
  const auto counts = numbers_of<std::int64_t>(stream, counts_E);
  const auto chosen = numbers_of<const std::int32_t>(stream, experts_Tk);
  enqueue(stream, "count_by_expert", WorkClass::Memory, [=](Workers&) {
    const auto count = [first](std::span<std::int64_t> of, std::span<const std::int32_t> all) {
      for (const std::int32_t expert : all) {
        const std::int64_t own = expert - first;
        if (expert >= 0 && own >= 0 && own < std::ssize(of)) {
          ++of[static_cast<std::size_t>(own)];
        }
      }
    };
    std::ranges::copy(count_once(counts.size(), chosen, {first, 0, 0}, count), counts.begin());
  });
}

// Tokens that chose from each group, then choices per group.
const std::vector<std::int64_t>& group_counts(std::size_t count,
                                              std::span<const std::int32_t> chosen,
                                              std::int64_t k,
                                              const ExpertGroups& groups) {
  const auto walk = [&](std::span<std::int64_t> of, std::span<const std::int32_t> all) {
    std::int64_t last = -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (static_cast<std::int64_t>(i) % k == 0) last = -1;
      const std::int64_t expert = all[i] - groups.first;
      const std::int64_t group = expert / groups.width;
      if (expert < 0 || group >= static_cast<std::int64_t>(count)) continue;
      const auto at = static_cast<std::size_t>(group);
      if (group != last) ++of[at];
      ++of[count + at];
      last = group;
    }
  };
  return count_once(2 * count, chosen, {groups.first, groups.width, k}, walk);
}

void count_tokens_by_group(Stream& stream,
                           Tensor,
                           Tensor,
                           Tensor,
                           Tensor counts_G,
                           Tensor experts_Tk,
                           const ExpertGroups& groups) {
  const auto counts = numbers_of<std::int64_t>(stream, counts_G);
  const auto chosen = numbers_of<const std::int32_t>(stream, experts_Tk);
  enqueue(stream, "count_tokens_by_group", WorkClass::Memory, [=, k = experts_Tk.dim(1)](Workers&) {
    const auto& both = group_counts(counts.size(), chosen, k, groups);
    std::copy_n(both.begin(), counts.size(), counts.begin());
  });
}

void dry_count_by_group(Stream& stream,
                        Tensor rows_G,
                        Tensor choices_G,
                        Tensor experts_Tk,
                        const ExpertGroups& groups) {
  const auto rows = numbers_of<std::int64_t>(stream, rows_G);
  const auto choices = numbers_of<std::int64_t>(stream, choices_G);
  const auto chosen = numbers_of<const std::int32_t>(stream, experts_Tk);
  enqueue(stream, "count_by_group", WorkClass::Memory, [=, k = experts_Tk.dim(1)](Workers&) {
    const auto& both = group_counts(rows.size(), chosen, k, groups);
    std::copy_n(both.begin(), rows.size(), rows.begin());
    std::copy_n(both.begin() + std::ssize(rows), choices.size(), choices.begin());
  });
}

// True for values of the model; all other numbers are choices, counts and totals.
bool holds_values(const Tensor& x) { return x.dtype() == DType::F32 || x.dtype() == DType::BF16; }

void copy_numbers(Stream& stream, Tensor y, Tensor x) {
  if (!holds_values(x)) cpu::copy(stream, std::move(y), std::move(x));
}

void copy_rows_of_numbers(Stream& stream, Tensor y, Tensor x, std::span<const RowBlock> blocks) {
  if (!holds_values(x)) cpu::copy_rows(stream, std::move(y), std::move(x), blocks);
}

#define WEFT_DRY_OPERATION(name) .name = Nothing<decltype(::weft::kernels::name)>::run,

template <DryRouting routing>
Operations make_dry_operations() {
  Operations table{WEFT_EACH_OPERATION(WEFT_DRY_OPERATION)};
  table.attention_forward = dry_attention_forward;
  table.attention_dgrad = dry_attention_dgrad;
  table.top_k_forward = dry_top_k<routing>;
  table.drop_over_capacity_forward = drop_over_capacity_forward;
  table.choose_shards = shards_of_experts;
  table.sort_by_expert = count_by_expert;
  table.sort_by_group = count_tokens_by_group;
  table.count_by_group = dry_count_by_group;
  table.seal_counts = seal_counts;
  table.open_counts = open_counts;
  table.plan_hops = plan_hops;
  table.copy = copy_numbers;
  table.copy_rows = copy_rows_of_numbers;
  return table;
}

#undef WEFT_DRY_OPERATION

template <tensor::Deterministic deterministic, DryRouting routing>
Operations make_dry_gpu_operations() {
  Operations table = make_dry_operations<routing>();
  table.attention_forward = dry_gpu_attention_forward;
  table.attention_dgrad = dry_gpu_attention_dgrad<deterministic>;
  return table;
}

template <DryRouting routing>
const Operations& dry_gpu_table(tensor::Deterministic deterministic) {
  using enum tensor::Deterministic;
  static const Operations kSame = make_dry_gpu_operations<Yes, routing>();
  static const Operations kVarying = make_dry_gpu_operations<No, routing>();
  return deterministic == Yes ? kSame : kVarying;
}

}  // namespace

const Operations& dry_operations(DryRouting routing) {
  static const Operations kEven = make_dry_operations<DryRouting::Even>();
  static const Operations kLopsided = make_dry_operations<DryRouting::Lopsided>();
  return routing == DryRouting::Even ? kEven : kLopsided;
}

const Operations& dry_gpu_operations(tensor::Deterministic deterministic, DryRouting routing) {
  return routing == DryRouting::Even ? dry_gpu_table<DryRouting::Even>(deterministic)
                                     : dry_gpu_table<DryRouting::Lopsided>(deterministic);
}

}  // namespace cpu
}  // namespace weft::kernels
