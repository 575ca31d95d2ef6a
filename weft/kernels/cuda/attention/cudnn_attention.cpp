// Attention by cuDNN: which calls it takes, and how it is called. kernels/cudnn_shapes.h has the
// parts and the memory of a call.
#include "weft/kernels/cuda/attention/cudnn_attention.h"

#include <array>
#include <limits>
#include <vector>

#include "weft/base/text.h"
#include "weft/kernels/cuda/attention/cudnn_stream.h"
#include "weft/kernels/cudnn_shapes.h"
#include "weft/tensor/cuda/stream.h"
#include "weft/tensor/pool.h"

namespace weft::kernels::cuda {
namespace {

using tensor::Deterministic;
using tensor::DType;
using tensor::WorkClass;
using tensor::cuda::cuda_stream;

// Versions 9.10.0 and 9.10.1 have wrong attention; 9.11 and 9.12 take few widths of latent
// attention.
constexpr std::size_t kOldest = 91300;
constexpr std::int64_t kBytesAtOnce = 16;  // addresses and strides are its multiples

// Matrix, fp32 or bf16, (batch * sequence, heads * width).
struct Rows {
  std::byte* data = nullptr;
  std::int64_t stride = 0;  // elements from one row to the next
};

struct Call : CudnnShape {
  float scale = 1;
  Rows q, k, v, o;
  Rows dq, dk, dv, d_o;  // backward only
  float* lse = nullptr;  // (heads, batch * sequence)
  std::int64_t lse_stride = 0;
};

Rows rows_of(Stream& stream, const Tensor& x) {
  void* data = x.dtype() == DType::BF16 ? static_cast<void*>(x.data<tensor::BFloat16>(stream))
                                        : static_cast<void*>(x.data<float>(stream));
  return {static_cast<std::byte*>(data), x.row_stride()};
}

Call call_of(Stream& stream,
             const Tensor& o,
             const Tensor& lse,
             const Tensor& q,
             const Tensor& k,
             const Tensor& v,
             const AttentionShape& shape) {
  Call call{cudnn_shape(q, shape)};
  call.scale = shape.scale;
  call.q = rows_of(stream, q);
  call.k = rows_of(stream, k);
  call.v = rows_of(stream, v);
  call.o = rows_of(stream, o);
  call.lse = lse.data<float>(stream);
  call.lse_stride = lse.row_stride();
  return call;
}

bool is_aligned(const void* data, std::int64_t stride_bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % kBytesAtOnce == 0 &&
         stride_bytes % kBytesAtOnce == 0;
}

bool has_cudnn() { return find_cudnn() != nullptr && find_cudnn()->version >= kOldest; }

// The rule: shapes, versions and the card decide, never timing. cuDNN takes such a call if the
// library has an engine for it; the library tells when the plan is made.
bool uses_cudnn(const Call& call) {
  if (!suits_cudnn(call)) return false;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(tensor::BFloat16));
  for (const Rows* rows :
       {&call.q, &call.k, &call.v, &call.o, &call.dq, &call.dk, &call.dv, &call.d_o}) {
    if (!is_aligned(rows->data, rows->stride * kSize)) return false;
  }
  return is_aligned(call.lse, call.lse_stride * std::int64_t{sizeof(float)}) && has_cudnn();
}

AttentionGraphShape graph_shape(const Call& call,
                                const CudnnPart& part,
                                Direction direction,
                                Deterministic deterministic) {
  return {.direction = direction,
          .deterministic = deterministic,
          .batch = part.sequences,
          .heads = part.groups * call.heads_per_group(),
          .groups = part.groups,
          .sequence = call.sequence,
          .width = call.width,
          .value_width = call.value_width,
          .rows = {.q = call.q.stride,
                   .k = call.k.stride,
                   .v = call.v.stride,
                   .o = call.o.stride,
                   .dq = call.dq.stride,
                   .dk = call.dk.stride,
                   .dv = call.dv.stride,
                   .d_o = call.d_o.stride}};
}

// Scalars of a graph, on the host.
struct Scalars {
  float scale = 1, one = 1;
  float hidden = -std::numeric_limits<float>::infinity();
};

Bound bind(Operand operand, void* memory) { return {std::int64_t(operand), memory}; }

void run_forward(CudnnStream& library, const Plan& plan, const Call& call, std::byte* workspace) {
  Scalars scalars{.scale = call.scale};
  const std::array bound{bind(Operand::Q, call.q.data),
                         bind(Operand::K, call.k.data),
                         bind(Operand::V, call.v.data),
                         bind(Operand::O, call.o.data),
                         bind(Operand::Lse, call.lse),
                         bind(Operand::Scale, &scalars.scale),
                         bind(Operand::Hidden, &scalars.hidden)};
  library.run(plan, bound, workspace);
}

Tensor make_workspace(Pool& pool, std::int64_t bytes) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(float));
  return {pool, DType::F32, {(bytes + kSize - 1) / kSize}, tensor::Tag::Workspace};
}

struct Backward {
  Call call;
  CudnnPart part;
  Deterministic deterministic = Deterministic::Yes;
  const Plan* plan = nullptr;
  // Memory of the operation itself.
  std::byte* workspace = nullptr;
  float* delta = nullptr;
  float* dq_sums = nullptr;
  float* lse = nullptr;  // (batch, heads, sequence); nullptr: the caller's lse has that order
};

bool is_lse_in_order(const Call& call) {
  return call.batch == 1 && call.lse_stride == call.sequence;
}

// Memory of a backward. The caller keeps it until the work is enqueued.
Tensor place(Stream& stream, Pool& pool, Backward& job) {
  const Call& call = job.call;
  const bool in_order = is_lse_in_order(call);
  const CudnnMemory pieces = cudnn_memory(call,
                                          job.part,
                                          job.deterministic,
                                          in_order ? LseOrder::AsItLies : LseOrder::BySequence,
                                          job.plan->workspace_bytes());
  Tensor memory = make_workspace(pool, pieces.total());
  auto* at = reinterpret_cast<std::byte*>(memory.data<float>(stream));
  const auto floats = [&](std::int64_t begin) { return reinterpret_cast<float*>(at + begin); };
  job.workspace = at;
  job.delta = floats(pieces.delta_at());
  job.dq_sums = floats(pieces.dq_sums_at());
  job.lse = in_order ? call.lse : floats(pieces.lse_at());
  return memory;
}

// cuDNN takes other strides too, but its backward is said to be wrong with them before 9.26.
void put_lse_in_order(const Backward& job, cudaStream_t stream) {
  const Call& call = job.call;
  if (job.lse == call.lse) return;
  const auto line = static_cast<std::size_t>(call.sequence) * sizeof(float);
  for (std::int64_t i = 0; i < call.batch; ++i) {
    tensor::cuda::check("cudaMemcpy2DAsync",
                        cudaMemcpy2DAsync(job.lse + i * call.heads * call.sequence,
                                          line,
                                          call.lse + i * call.sequence,
                                          static_cast<std::size_t>(call.lse_stride) * sizeof(float),
                                          line,
                                          static_cast<std::size_t>(call.heads),
                                          cudaMemcpyDeviceToDevice,
                                          stream));
  }
}

void run_part(CudnnStream& library,
              const Backward& job,
              std::int64_t sequence,
              std::int64_t group) {
  const Call& call = job.call;
  const std::int64_t head = group * call.heads_per_group();
  const auto from = [&](const Rows& rows, std::int64_t column) -> void* {
    const std::int64_t elements = sequence * call.sequence * rows.stride + column;
    return rows.data + elements * std::int64_t{sizeof(tensor::BFloat16)};
  };
  Scalars scalars{.scale = call.scale};
  std::vector<Bound> bound{
      bind(Operand::Q, from(call.q, head * call.width)),
      bind(Operand::K, from(call.k, group * call.width)),
      bind(Operand::V, from(call.v, group * call.value_width)),
      bind(Operand::O, from(call.o, head * call.value_width)),
      bind(Operand::Lse, job.lse + (sequence * call.heads + head) * call.sequence),
      bind(Operand::GradO, from(call.d_o, head * call.value_width)),
      bind(Operand::GradQ, from(call.dq, head * call.width)),
      bind(Operand::GradK, from(call.dk, group * call.width)),
      bind(Operand::GradV, from(call.dv, group * call.value_width)),
      bind(Operand::Delta, job.delta),
      bind(Operand::Scale, &scalars.scale),
      bind(Operand::One, &scalars.one),
      bind(Operand::Hidden, &scalars.hidden)};
  if (job.deterministic == Deterministic::No) {
    bound.push_back(bind(Operand::GradQSums, job.dq_sums));
  }
  library.run(*job.plan, bound, job.workspace);
}

void run_backward(CudnnStream& library, const Backward& job, cudaStream_t stream) {
  put_lse_in_order(job, stream);
  for (std::int64_t i = 0; i < job.call.batch; i += job.part.sequences) {
    for (std::int64_t group = 0; group < job.call.groups; group += job.part.groups) {
      run_part(library, job, i, group);
    }
  }
}

}  // namespace

bool cudnn_attention_forward(Stream& stream,
                             Pool& workspace,
                             const Tensor& o,
                             const Tensor& lse,
                             const Tensor& q,
                             const Tensor& k,
                             const Tensor& v,
                             const AttentionShape& shape) {
  const Call call = call_of(stream, o, lse, q, k, v, shape);
  if (!uses_cudnn(call)) return false;
  AttentionGraphShape graph = graph_shape(call,
                                          {call.batch, call.groups},
                                          Direction::Forward,
                                          cuda_stream(stream).cuda().deterministic());
  graph.lse_batch_stride = call.sequence;
  graph.lse_head_stride = call.lse_stride;
  auto& library = cuda_stream(stream).held<CudnnStream>();
  const Plan* plan = library.plan_for(graph);
  if (plan == nullptr) return false;
  const Tensor memory = make_workspace(workspace, plan->workspace_bytes());
  auto* at = reinterpret_cast<std::byte*>(memory.data<float>(stream));
  cuda_stream(stream).enqueue(
      "attention_forward_cudnn",
      WorkClass::Attention,
      [plan, call, at, &library](cudaStream_t) { run_forward(library, *plan, call, at); });
  return true;
}

bool cudnn_attention_dgrad(Stream& stream,
                           Pool& workspace,
                           const Tensor& dq,
                           const Tensor& dk,
                           const Tensor& dv,
                           const Tensor& d_o,
                           const Tensor& o,
                           const Tensor& lse,
                           const Tensor& q,
                           const Tensor& k,
                           const Tensor& v,
                           const AttentionShape& shape) {
  Backward job{.call = call_of(stream, o, lse, q, k, v, shape),
               .deterministic = cuda_stream(stream).cuda().deterministic()};
  job.call.dq = rows_of(stream, dq);
  job.call.dk = rows_of(stream, dk);
  job.call.dv = rows_of(stream, dv);
  job.call.d_o = rows_of(stream, d_o);
  if (!uses_cudnn(job.call)) return false;
  job.part = cudnn_part(job.call, job.deterministic);
  AttentionGraphShape graph =
      graph_shape(job.call, job.part, Direction::Backward, job.deterministic);
  graph.lse_batch_stride = graph.heads * graph.sequence;
  graph.lse_head_stride = graph.sequence;
  auto& library = cuda_stream(stream).held<CudnnStream>();
  job.plan = library.plan_for(graph);
  if (job.plan == nullptr) return false;
  const Tensor memory = place(stream, workspace, job);
  cuda_stream(stream).enqueue(
      "attention_dgrad_cudnn",
      WorkClass::Attention,
      [job, &library](cudaStream_t handle) { run_backward(library, job, handle); });
  return true;
}

std::string why_no_cudnn() {
  constexpr const char* kWayOut =
      "install cuDNN 9.13 or later (apt-get install libcudnn9-cuda-13, or 12 as the toolkit is), "
      "or "
      "name its folder in LD_LIBRARY_PATH";
  if (find_cudnn() == nullptr) return base::text("there is no libcudnn.so.9; {}", kWayOut);
  const std::size_t version = find_cudnn()->version;
  if (version >= kOldest) return "";
  return base::text("cuDNN {}.{}.{} is too old; {}",
                    version / 10000,
                    version / 100 % 100,
                    version % 100,
                    kWayOut);
}

}  // namespace weft::kernels::cuda
