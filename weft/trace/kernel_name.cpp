#include "weft/trace/kernel_name.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace weft::trace {
namespace {

std::string lower(std::string_view name) {
  std::string all(name);
  for (char& c : all) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return all;
}

bool has_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return name.find(word) != name.npos; });
}

// Megatron describes process groups by words such as EXPERT_MODEL_PARALLEL_GROUP.
std::string_view kind_of_group(std::string_view group) {
  if (has_any(group, {"expert_data"})) return "dp";
  if (has_any(group, {"expert", "moe", "tp_ep", "tensor_and_expert"})) return "ep";
  if (has_any(group, {"pipeline", "embedding"})) return "pp";
  if (has_any(group, {"context_parallel"}) && !has_any(group, {"data"})) return "cp";
  if (has_any(group, {"data_parallel", "fsdp", "dp_"})) return "dp";
  if (has_any(group, {"tensor"})) return "tp";
  return "";
}

// Kind of libraries that carry one kind of communication only.
std::string_view kind_of_library(std::string_view name) {
  if (has_any(name,
              {"deep_ep",
               "deepep",
               "hybrid_ep",
               "internode::",
               "intranode::",
               "mori::",
               "ultra_ep::"})) {
    return "ep";
  }
  if (has_any(name, {"userbuffers"})) return "tp";
  return "";
}

std::string_view operation_of(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOperations[] = {
      {"alltoall", "all_to_all"},
      {"all_to_all", "all_to_all"},
      {"allgather", "all_gather"},
      {"all_gather", "all_gather"},
      {"reducescatter", "reduce_scatter"},
      {"reduce_scatter", "reduce_scatter"},
      {"allreduce", "all_reduce"},
      {"all_reduce", "all_reduce"},
      {"cross_device_reduce", "all_reduce"},
      {"broadcast", "broadcast"},
      {"sendrecv", "send_recv"},
      {"send", "send_recv"},
      {"recv", "send_recv"}};
  for (const auto& [word, operation] : kOperations) {
    if (name.find(word) != name.npos) return operation;
  }
  return "other";
}

// Inductor names a kernel after everything fused into it, including collectives that it only waits
// for. Its own kernels move nothing between ranks.
bool is_communication(std::string_view name) {
  if (name.starts_with("triton_")) return false;
  return has_any(name,
                 {"nccl",
                  "nvshmem",
                  "all_to_all",
                  "alltoall",
                  "all_reduce",
                  "allreduce",
                  "cross_device_reduce",
                  "all_gather",
                  "allgather",
                  "reduce_scatter",
                  "reducescatter"});
}

std::string communication_of(std::string_view name,
                             const std::string& collective,
                             const std::string& group) {
  if (const std::string_view kind = kind_of_library(name); !kind.empty()) return std::string(kind);
  if (const std::string_view kind = kind_of_group(group); !kind.empty()) return std::string(kind);
  return std::string(operation_of(collective.empty() ? name : collective));
}

}  // namespace

KernelSort sort_of_kernel(std::string_view name,
                          std::string_view collective,
                          std::string_view group) {
  const std::string word = lower(name);
  if (!kind_of_library(word).empty() || is_communication(word)) {
    return {.kind = SpanKind::Communication,
            .communication = communication_of(word, lower(collective), lower(group))};
  }
  if (has_any(word, {"flash", "fmha", "attention", "attn", "sdpa"})) {
    return {.kind = SpanKind::Attention};
  }
  // triton_tem: Inductor's template of GEMMs and attention; cijk: AMD's Tensile.
  if (has_any(word,
              {"gemm",
               "cutlass",
               "nvjet",
               "xmma",
               "wgmma",
               "cublas",
               "gemv",
               "matmul",
               "triton_tem",
               "cijk_",
               "gated_delta_rule"})) {
    return {.kind = SpanKind::Gemm};
  }
  return {.kind = SpanKind::Memory};
}

KernelSort sort_of_copy(std::string_view name) {
  const std::string word = lower(name);
  // Copies to and from the host run beside kernels; a copy within the device counts as a kernel.
  return {.kind = has_any(word, {"htod", "dtoh"}) ? SpanKind::Copy : SpanKind::Memory};
}

}  // namespace weft::trace
