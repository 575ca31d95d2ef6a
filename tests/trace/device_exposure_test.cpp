// Kernels of a profiler: kinds by name, and the breakdown of their time.
#include "weft/trace/exposure/device_exposure.h"

#include <gtest/gtest.h>

#include "weft/trace/kernel_name.h"

namespace weft::trace {
namespace device_exposure_test {

SpanKind kind_of(const char* name) { return sort_of_kernel(name, "", "").kind; }

std::string communication_of(const char* name,
                             const char* collective = "",
                             const char* group = "") {
  const KernelSort sort = sort_of_kernel(name, collective, group);
  return sort.kind == SpanKind::Communication ? sort.communication : "none";
}

TEST(KernelName, ProductsAndAttentionAreKnown) {
  for (const char* name : {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN",
                           "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                           "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal>",
                           "void deep_gemm::fp8_gemm_kernel<7168u, 4096u>",
                           "ampere_sgemm_128x64_tn",
                           "triton_tem_fused_mm_t_3",
                           "Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x1_SN",
                           "chunk_gated_delta_rule_fwd_kernel_h_blockdim64"}) {
    EXPECT_EQ(kind_of(name), SpanKind::Gemm) << name;
  }
  for (const char* name : {"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>",
                           "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16",
                           "fmha_cutlassF_bf16_aligned_64x128_rf_sm80",
                           "triton_tem_fused_flex_attention_backward_2"}) {
    EXPECT_EQ(kind_of(name), SpanKind::Attention) << name;
  }
  EXPECT_EQ(kind_of("void at::native::vectorized_elementwise_kernel<4, AddFunctor>"),
            SpanKind::Memory);
}

TEST(KernelName, CommunicationIsOfItsKindWhereSomethingSaysSo) {
  EXPECT_EQ(communication_of("void deep_ep::intranode::dispatch<8, 768, 8192>"), "ep");
  EXPECT_EQ(communication_of("void deep_ep::internode::combine<4, 7168>"), "ep");
  EXPECT_EQ(communication_of("hybrid_ep::dispatch_kernel"), "ep");
  EXPECT_EQ(communication_of("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)"), "all_gather");
  EXPECT_EQ(communication_of("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"), "reduce_scatter");
  EXPECT_EQ(communication_of("ncclDevKernel_SendRecv"), "send_recv");
  EXPECT_EQ(communication_of("ncclDevKernel_SendRecv", "all_to_allv"), "all_to_all");
  EXPECT_EQ(
      communication_of("ncclDevKernel_SendRecv", "all_to_allv", "EXPERT_MODEL_PARALLEL_GROUP"),
      "ep");
  EXPECT_EQ(communication_of("ncclDevKernel_SendRecv", "send", "PIPELINE_MODEL_PARALLEL_GROUP"),
            "pp");
  EXPECT_EQ(communication_of("ncclDevKernel_AllReduce", "allreduce", "EXPERT_DATA_PARALLEL_GROUP"),
            "dp");
  EXPECT_EQ(communication_of("ncclDevKernel_AllGather", "", "DATA_PARALLEL_GROUP_WITH_CP"), "dp");
  EXPECT_EQ(communication_of("ncclDevKernel_AllGather", "", "TENSOR_MODEL_PARALLEL_GROUP"), "tp");
  EXPECT_EQ(communication_of("ncclDevKernel_AllGather", "", "CONTEXT_PARALLEL_GROUP"), "cp");
  EXPECT_EQ(communication_of("elementwise"), "none");
  EXPECT_EQ(communication_of("void multimem_all_reduce_kernel<c10::BFloat16, 16>"), "all_reduce");
  EXPECT_EQ(communication_of("void two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>"),
            "all_reduce");
  EXPECT_EQ(communication_of("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>"),
            "all_reduce");
  EXPECT_EQ(communication_of("mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>"), "ep");
  EXPECT_EQ(communication_of("void ultra_ep::combine_kernel<8>"), "ep");
  EXPECT_EQ(communication_of("triton_poi_fused_all_gather_into_tensor_wait_tensor_0"), "none");
}

TEST(KernelName, CopiesInsideTheDeviceAreKernels) {
  EXPECT_EQ(sort_of_copy("Memcpy HtoD (Pinned -> Device)").kind, SpanKind::Copy);
  EXPECT_EQ(sort_of_copy("Memcpy DtoH (Device -> Pageable)").kind, SpanKind::Copy);
  EXPECT_EQ(sort_of_copy("Memcpy DtoD (Device -> Device)").kind, SpanKind::Memory);
}

constexpr std::int64_t kMs = 1'000'000;

Kernel kernel(SpanKind kind, double begin_ms, double end_ms, double launched_ms) {
  const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * kMs); };
  return {.begin_ns = ns(begin_ms),
          .end_ns = ns(end_ms),
          .launched_ns = ns(launched_ms),
          .kind = kind,
          .communication = static_cast<std::int16_t>(kind == SpanKind::Communication ? 0 : -1)};
}

// gemm 0-4; dispatch 3-8, during 4-6 of which the next kernel was not launched; kernel 8-10; idle
// to 12 except for a copy 11-12; kernel 12-16, launched at 10.5.
DeviceTraces one_device() {
  return {.names = {"x"},
          .communications = {"ep"},
          .devices = {{.device = 5,
                       .kernels = {kernel(SpanKind::Gemm, 0, 4, -1),
                                   kernel(SpanKind::Communication, 3, 8, -1),
                                   kernel(SpanKind::Memory, 8, 10, 6),
                                   kernel(SpanKind::Copy, 11, 12, 9),
                                   kernel(SpanKind::Attention, 12, 16, 10.5)},
                       .memory = {}}},
          .steps = 2};
}

TEST(DeviceExposure, EveryMomentHasItsWall) {
  const DeviceTimes times = analyse_devices(one_device());
  ASSERT_EQ(times.walls.size(), 1u);
  EXPECT_EQ(times.walls[0].rank, 5);
  const Walls& walls = times.walls[0].walls;  // two steps: half of everything
  EXPECT_DOUBLE_EQ(walls.step, 8);
  EXPECT_DOUBLE_EQ(walls.compute, 5);
  EXPECT_DOUBLE_EQ(walls.gemm, 4);
  EXPECT_DOUBLE_EQ(walls.host, 1.25);
  EXPECT_DOUBLE_EQ(walls.communication, 1);
  EXPECT_DOUBLE_EQ(walls.copy, 0.5);
  EXPECT_DOUBLE_EQ(walls.idle, 0.25);
}

TEST(DeviceExposure, ExposedTimeIsTheHostsOrHasNoPartner) {
  const Exposure exposure = analyse_devices(one_device()).exposure;
  const CommunicationTime& ep = exposure.kinds.at("ep");
  EXPECT_DOUBLE_EQ(ep.communication_ms, 2.5);
  EXPECT_DOUBLE_EQ(ep.exposed_ms, 2);
  EXPECT_DOUBLE_EQ(ep.reasons.host_ms, 1);
  EXPECT_DOUBLE_EQ(ep.reasons.no_partner_ms, 1);
  EXPECT_DOUBLE_EQ(exposure.mean_step_ms(), 8);
}

}  // namespace device_exposure_test
}  // namespace weft::trace
