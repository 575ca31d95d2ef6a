// Enums of config keys, each with the words that the user types.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "weft/config/allowed_dtype.h"

namespace weft::config {

// Words of an enum, in enumerator order.
template <typename Enum>
struct EnumWords;

enum class QkNorm { None, Head, Projection };
template <>
struct EnumWords<QkNorm> {
  static constexpr std::array<std::string_view, 3> words{"none", "head", "projection"};
};

enum class SoftmaxType { Vanilla, OffByOne, Learnable };
template <>
struct EnumWords<SoftmaxType> {
  static constexpr std::array<std::string_view, 3> words{"vanilla", "off-by-one", "learnable"};
};

enum class ActivationFunc { Silu, QuickGelu, Gelu, SquaredRelu };
template <>
struct EnumWords<ActivationFunc> {
  static constexpr std::array<std::string_view, 4> words{"silu",
                                                         "quick_gelu",
                                                         "gelu",
                                                         "squared_relu"};
};

enum class Normalization { RmsNorm, LayerNorm };
template <>
struct EnumWords<Normalization> {
  static constexpr std::array<std::string_view, 2> words{"RMSNorm", "LayerNorm"};
};

enum class PositionEmbedding { Rope, LearnedAbsolute, None };
template <>
struct EnumWords<PositionEmbedding> {
  static constexpr std::array<std::string_view, 3> words{"rope", "learned_absolute", "none"};
};

enum class RopeType { Rope, Yarn };
template <>
struct EnumWords<RopeType> {
  static constexpr std::array<std::string_view, 2> words{"rope", "yarn"};
};

enum class CrossEntropyImpl { Native, TransformerEngine };
template <>
struct EnumWords<CrossEntropyImpl> {
  static constexpr std::array<std::string_view, 2> words{"native", "te"};
};

enum class ScoreFunction { Softmax, Sigmoid, SqrtSoftplus };
template <>
struct EnumWords<ScoreFunction> {
  static constexpr std::array<std::string_view, 3> words{"softmax", "sigmoid", "sqrtsoftplus"};
};

enum class LoadBalancing { None, AuxLoss, SeqAuxLoss, GlobalAuxLoss, Sinkhorn, QuantileBalancing };
template <>
struct EnumWords<LoadBalancing> {
  static constexpr std::array<std::string_view, 6> words{"none",
                                                         "aux_loss",
                                                         "seq_aux_loss",
                                                         "global_aux_loss",
                                                         "sinkhorn",
                                                         "quantile_balancing"};
};

enum class DropPolicy { Probs, Position };
template <>
struct EnumWords<DropPolicy> {
  static constexpr std::array<std::string_view, 2> words{"probs", "position"};
};

enum class Dispatcher { AllToAll, AllGather, Flex, AllToAllSeq };
template <>
struct EnumWords<Dispatcher> {
  static constexpr std::array<std::string_view, 4> words{"alltoall",
                                                         "allgather",
                                                         "flex",
                                                         "alltoall_seq"};
};

enum class FlexBackend { DeepEp, HybridEp, NcclEp };
template <>
struct EnumWords<FlexBackend> {
  static constexpr std::array<std::string_view, 3> words{"deepep", "hybridep", "ncclep"};
};

enum class CpComm { P2p, AllGather, AllToAll, AllToAllP2p };
template <>
struct EnumWords<CpComm> {
  static constexpr std::array<std::string_view, 4> words{"p2p", "all_gather", "a2a", "a2a+p2p"};
};

enum class RecomputeGranularity { Full, Selective };
template <>
struct EnumWords<RecomputeGranularity> {
  static constexpr std::array<std::string_view, 2> words{"full", "selective"};
};

enum class RecomputeMethod { Uniform, Block };
template <>
struct EnumWords<RecomputeMethod> {
  static constexpr std::array<std::string_view, 2> words{"uniform", "block"};
};

enum class RecomputeModule {
  CoreAttn,
  MoeAct,
  Layernorm,
  MlaUpProj,
  Mlp,
  Moe,
  SharedExperts,
  GdnNormOut
};
template <>
struct EnumWords<RecomputeModule> {
  static constexpr std::array<std::string_view, 8> words{"core_attn",
                                                         "moe_act",
                                                         "layernorm",
                                                         "mla_up_proj",
                                                         "mlp",
                                                         "moe",
                                                         "shared_experts",
                                                         "gdn_norm_out"};
};

enum class OffloadModule {
  CoreAttn,
  AttnProj,
  ExpertFc1,
  FusedGroupMlp,
  MoeAct,
  AttnNorm,
  MlpNorm,
  QkvLinear
};
template <>
struct EnumWords<OffloadModule> {
  static constexpr std::array<std::string_view, 8> words{"core_attn",
                                                         "attn_proj",
                                                         "expert_fc1",
                                                         "fused_group_mlp",
                                                         "moe_act",
                                                         "attn_norm",
                                                         "mlp_norm",
                                                         "qkv_linear"};
};

enum class CudaGraphImpl { None, Local, TransformerEngine, FullIteration };
template <>
struct EnumWords<CudaGraphImpl> {
  static constexpr std::array<std::string_view, 4> words{"none",
                                                         "local",
                                                         "transformer_engine",
                                                         "full_iteration"};
};

enum class CudaGraphScope { Attn, Mlp, Moe, MoeRouter, MoePreprocess, Mamba, FullIteration, Full };
template <>
struct EnumWords<CudaGraphScope> {
  static constexpr std::array<std::string_view, 8> words{"attn",
                                                         "mlp",
                                                         "moe",
                                                         "moe_router",
                                                         "moe_preprocess",
                                                         "mamba",
                                                         "full_iteration",
                                                         "full"};
};

enum class Fp8Format { E4m3, Hybrid };
template <>
struct EnumWords<Fp8Format> {
  static constexpr std::array<std::string_view, 2> words{"e4m3", "hybrid"};
};

enum class Fp8Recipe { Delayed, Tensorwise, Blockwise, Mxfp8 };
template <>
struct EnumWords<Fp8Recipe> {
  static constexpr std::array<std::string_view, 4> words{"delayed",
                                                         "tensorwise",
                                                         "blockwise",
                                                         "mxfp8"};
};

enum class Fp4Format { E2m1 };
template <>
struct EnumWords<Fp4Format> {
  static constexpr std::array<std::string_view, 1> words{"e2m1"};
};

enum class Fp4Recipe { Nvfp4 };
template <>
struct EnumWords<Fp4Recipe> {
  static constexpr std::array<std::string_view, 1> words{"nvfp4"};
};

enum class BootstrapBackend { Nccl, Mpi, Gloo };
template <>
struct EnumWords<BootstrapBackend> {
  static constexpr std::array<std::string_view, 3> words{"nccl", "mpi", "gloo"};
};

enum class ShardingStrategy { NoShard, Optim, OptimGrads, OptimGradsParams };
template <>
struct EnumWords<ShardingStrategy> {
  static constexpr std::array<std::string_view, 4> words{"no_shard",
                                                         "optim",
                                                         "optim_grads",
                                                         "optim_grads_params"};
};

// Storage formats of a precision-aware optimizer: moments, gradients and master weights.
enum class OptimizerKind { Adam, DistMuon, Muon, Sgd };
template <>
struct EnumWords<OptimizerKind> {
  static constexpr std::array<std::string_view, 4> words{"adam", "dist_muon", "muon", "sgd"};
};

// Megatron's tokenizer types.
enum class TokenizerType {
  Null,
  HuggingFace,
  SentencePiece,
  GptSentencePiece,
  Llama2,
  Gpt2Bpe,
  TikToken,
  BertLowerCase,
  BertCase,
  Multimodal,
  NullMultimodal,
  Sft
};
template <>
struct EnumWords<TokenizerType> {
  static constexpr std::array<std::string_view, 12> words{"NullTokenizer",
                                                          "HuggingFaceTokenizer",
                                                          "SentencePieceTokenizer",
                                                          "GPTSentencePieceTokenizer",
                                                          "Llama2Tokenizer",
                                                          "GPT2BPETokenizer",
                                                          "TikTokenizer",
                                                          "BertWordPieceLowerCase",
                                                          "BertWordPieceCase",
                                                          "MultimodalTokenizer",
                                                          "NullMultimodalTokenizer",
                                                          "SFTTokenizer"};
};

enum class Gpu { A100, H100, H200, B200, B300, Gb200, Gb300, Vr200, R100 };
template <>
struct EnumWords<Gpu> {
  static constexpr std::array<std::string_view, 9>
      words{"a100", "h100", "h200", "b200", "b300", "gb200", "gb300", "vr200", "r100"};
};

enum class DecayScope { Matrices, All };
template <>
struct EnumWords<DecayScope> {
  static constexpr std::array<std::string_view, 2> words{"matrices", "all"};
};

enum class LrDecay { Constant, Linear, Cosine, InverseSquareRoot, WarmupStableDecay };
template <>
struct EnumWords<LrDecay> {
  static constexpr std::array<std::string_view, 5> words{"constant",
                                                         "linear",
                                                         "cosine",
                                                         "inverse-square-root",
                                                         "WSD"};
};

enum class WsdDecay { Exponential, Linear, Cosine, MinusSqrt };
template <>
struct EnumWords<WsdDecay> {
  static constexpr std::array<std::string_view, 4> words{"exponential",
                                                         "linear",
                                                         "cosine",
                                                         "minus_sqrt"};
};

enum class DataKind { Mock, Text, Indexed };
template <>
struct EnumWords<DataKind> {
  static constexpr std::array<std::string_view, 3> words{"mock", "text", "indexed"};
};

enum class RerunMode { Disabled, ValidateResults, ReportStats };
template <>
struct EnumWords<RerunMode> {
  static constexpr std::array<std::string_view, 3> words{"disabled",
                                                         "validate_results",
                                                         "report_stats"};
};

enum class ExitSignal { Sigterm, Sigint, Sighup, Sigusr1, Sigusr2 };
template <>
struct EnumWords<ExitSignal> {
  static constexpr std::array<std::string_view, 5> words{"SIGTERM",
                                                         "SIGINT",
                                                         "SIGHUP",
                                                         "SIGUSR1",
                                                         "SIGUSR2"};
};

enum class ErrorInjection { TransientError, PersistentError };
template <>
struct EnumWords<ErrorInjection> {
  static constexpr std::array<std::string_view, 2> words{"transient_error", "persistent_error"};
};

enum class PipelineSchedule { Auto, OneForwardOneBackward, Interleaved, ZeroBubble, DualPipeV };
template <>
struct EnumWords<PipelineSchedule> {
  static constexpr std::array<std::string_view, 5> words{"auto",
                                                         "1f1b",
                                                         "interleaved",
                                                         "zb_h1",
                                                         "dualpipev"};
};

enum class DeviceKind { Cpu, Cuda };
template <>
struct EnumWords<DeviceKind> {
  static constexpr std::array<std::string_view, 2> words{"cpu", "cuda"};
};

enum class CommBackend { Threads, Mpi, Nccl, Fake, Loopback };
template <>
struct EnumWords<CommBackend> {
  static constexpr std::array<std::string_view, 5> words{"threads",
                                                         "mpi",
                                                         "nccl",
                                                         "fake",
                                                         "loopback"};
};
// True if every rank is a process of its own, started by a launcher.
constexpr bool are_processes(CommBackend backend) {
  return backend == CommBackend::Mpi || backend == CommBackend::Nccl;
}
// True if one rank runs alone with imaginary peers: it computes other values than a real run.
constexpr bool is_pretended(CommBackend backend) {
  return backend == CommBackend::Fake || backend == CommBackend::Loopback;
}

template <typename Enum>
constexpr std::string_view word(Enum value) {
  return EnumWords<Enum>::words[static_cast<std::size_t>(value)];
}

}  // namespace weft::config
