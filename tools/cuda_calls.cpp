// Counter of a process's CUDA calls. The driver loads it if CUDA_INJECTION64_PATH names this
// library; it is no part of weft. It counts calls by thread and name (driver calls only if the
// program made them itself), copies by kind of memory, and work on the default stream, which
// synchronises with all streams.
//
// A launch of the optimizer's kernel (adamw) ends a period. At exit it writes the counts of a
// quarter of all periods, from five to seven eighths of the run: long after its beginning, and
// before its end. WEFT_CUDA_CALLS names the JSON file, with one count per line, so that awk can
// read it (tools/cuda_calls.sh).
#include <cupti.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
using Copy = CUpti_ActivityMemcpy6;
#else
using Kernel = CUpti_ActivityKernel9;
using Copy = CUpti_ActivityMemcpy5;
#endif
using Clear = CUpti_ActivityMemset4;

using Counts = std::map<std::string, std::int64_t>;
using StreamId = std::pair<std::uint32_t, std::uint32_t>;  // context, stream

// Work of the GPU, with time and stream.
struct Work {
  std::uint64_t start = 0;
  const char* what = nullptr;
  const char *from = nullptr, *to = nullptr;  // kinds of memory of a copy
  StreamId stream;
};

struct Seen {
  std::mutex mutex;  // guards all that follows
  int threads = 0;
  std::vector<std::uint64_t> ends;                   // ends of periods
  std::vector<std::map<int, Counts>> calls = {{}};   // by period and thread
  std::map<std::string, std::int64_t> streams_made;  // by call, from the beginning
  std::vector<Work> work;
  std::int64_t dropped = 0;
  std::set<StreamId> default_streams;
  std::set<CUcontext> contexts;
  std::map<std::string, std::int64_t> failed;  // CUPTI calls, by reason
};

// Never destroyed: driver threads may call until the process ends.
Seen& seen() {
  static Seen& all = *new Seen;
  return all;
}

void check(CUptiResult result) {
  if (result == CUPTI_SUCCESS) return;
  const std::lock_guard lock(seen().mutex);
  const char* why = nullptr;
  cuptiGetResultString(result, &why);
  ++seen().failed[why == nullptr ? "for no known reason" : why];
}

// "cudaMalloc" of "cudaMalloc_v3020", "cuMemcpyAsync" of "cuMemcpyAsync_ptsz".
std::string plain(std::string name) {
  for (const char* ending : {"_ptsz", "_ptds"}) {
    if (name.ends_with(ending)) name.resize(name.size() - 5);
  }
  const std::size_t at = name.rfind("_v");
  const bool is_version =
      at != std::string::npos && name.find_first_not_of("0123456789", at + 2) == std::string::npos;
  if (is_version) name.resize(at);
  return name;
}

// Finds the GPU's number of a context's default stream. Not under the mutex: the query may call
// back.
void look_at(CUcontext context) {
  Seen& all = seen();
  {
    const std::lock_guard lock(all.mutex);
    if (context == nullptr || !all.contexts.insert(context).second) return;
  }
  std::uint32_t id = 0, stream = 0;
  check(cuptiGetContextId(context, &id));
  check(cuptiGetStreamIdEx(context, nullptr, 0, &stream));
  const std::lock_guard lock(all.mutex);
  all.default_streams.insert({id, stream});
}

void count(CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  thread_local int thread = -1;
  const char* name = nullptr;
  if (cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS) name = call.functionName;
  const bool ends_period =
      call.symbolName != nullptr &&
      std::string_view(call.symbolName).find("adamw") != std::string_view::npos;
  std::uint64_t now = 0;
  if (ends_period) check(cuptiGetTimestamp(&now));
  Seen& all = seen();
  const std::lock_guard lock(all.mutex);
  if (thread < 0) thread = all.threads++;
  const std::string called = plain(name);
  ++all.calls.back()[thread][called];
  if (called.starts_with("cudaStreamCreate")) ++all.streams_made[called];
  if (!ends_period) return;
  all.ends.push_back(now);
  all.calls.emplace_back();
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  thread_local int depth = 0;  // nesting depth of this thread's calls: a call makes others
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite == CUPTI_API_ENTER) {
    if (depth++ == 0) count(domain, id, call);
  } else if (depth > 0) {  // false at the end of the call that loaded this library
    if (depth == 1) look_at(call.context);
    --depth;
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *bytes = 8u << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *bytes));
  *most_records = 0;
}

const char* word(std::uint8_t memory) {
  switch (memory) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return "pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return "pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return "device";
    default:
      return "other";
  }
}

void add(Seen& all, const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const Kernel&>(record);
      return all.work.push_back(
          {.start = kernel.start, .what = "kernel", .stream = {kernel.contextId, kernel.streamId}});
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const Copy&>(record);
      const bool waits = (copy.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) == 0;
      return all.work.push_back({.start = copy.start,
                                 .what = waits ? "synchronous copy" : "copy",
                                 .from = word(copy.srcKind),
                                 .to = word(copy.dstKind),
                                 .stream = {copy.contextId, copy.streamId}});
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& clear = reinterpret_cast<const Clear&>(record);
      return all.work.push_back(
          {.start = clear.start, .what = "clear", .stream = {clear.contextId, clear.streamId}});
    }
    default:
      return;
  }
}

void CUPTIAPI
take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Seen& all = seen();
  {
    const std::lock_guard lock(all.mutex);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(all, *record);
    std::size_t dropped = 0;
    cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
    all.dropped += static_cast<std::int64_t>(dropped);
  }
  std::free(buffer);
}

// Periods from `first` up to `end`, exclusive.
struct Window {
  std::size_t first = 0, end = 0;

  explicit Window(std::size_t periods) : first(periods * 5 / 8), end(periods * 7 / 8) {}
};

std::map<int, Counts> calls_in(const Window& window, const Seen& all) {
  std::map<int, Counts> calls;
  for (std::size_t period = window.first; period < window.end; ++period) {
    for (const auto& [thread, counts] : all.calls[period]) {
      for (const auto& [name, count] : counts) calls[thread][name] += count;
    }
  }
  return calls;
}

Counts work_in(const Window& window, const Seen& all) {
  Counts counts;
  if (window.first == 0) return counts;
  const std::uint64_t begin = all.ends[window.first - 1], end = all.ends[window.end - 1];
  for (const Work& work : all.work) {
    if (work.start < begin || work.start >= end) continue;
    std::string what = work.what;
    if (work.from != nullptr) what += std::string(" ") + work.from + " to " + work.to;
    ++counts[what];
    counts["on the default stream"] += all.default_streams.contains(work.stream);
  }
  return counts;
}

void write(std::FILE* file, const Seen& all) {
  const auto line = [&](const std::string& start, const std::string& name, std::int64_t count) {
    std::fprintf(file,
                 "{%s\"%s\", \"count\": %lld},\n",
                 start.c_str(),
                 name.c_str(),
                 static_cast<long long>(count));
  };
  const Window window(all.ends.size());
  std::fprintf(file, "[\n");
  for (const auto& [thread, counts] : calls_in(window, all)) {
    const std::string start = "\"thread\": " + std::to_string(thread) + ", \"call\": ";
    for (const auto& [name, count] : counts) line(start, name, count);
  }
  for (const auto& [name, count] : work_in(window, all)) line("\"work\": ", name, count);
  for (const auto& [name, count] : all.streams_made) line("\"made\": ", name, count);
  for (const auto& [why, count] : all.failed) line("\"work\": ", "failed CUPTI: " + why, count);
  std::fprintf(file,
               "{\"work\": \"dropped\", \"count\": %lld}\n]\n",
               static_cast<long long>(all.dropped));
}

void finish() {
  check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const char* path = std::getenv("WEFT_CUDA_CALLS");
  std::FILE* file = path == nullptr ? stderr : std::fopen(path, "w");
  if (file == nullptr) return std::perror(path);
  const std::lock_guard lock(seen().mutex);
  write(file, seen());
  if (file != stderr) std::fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static CUpti_SubscriberHandle subscriber = nullptr;
  check(cuptiSubscribe(&subscriber, on_call, nullptr));
  check(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  check(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
  check(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  for (const CUpti_ActivityKind kind : std::array{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                  CUPTI_ACTIVITY_KIND_MEMCPY,
                                                  CUPTI_ACTIVITY_KIND_MEMSET}) {
    check(cuptiActivityEnable(kind));
  }
  std::atexit(finish);
  return 1;
}
