#include "weft/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <utility>

#include "weft/base/descriptor.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::Descriptor;
using base::text;
using Clock = std::chrono::steady_clock;

constexpr int kLookMilliseconds = 100;
constexpr double kPatienceSeconds = 5;  // between SIGTERM and SIGKILL
constexpr std::size_t kLastLines = 8;

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) base::throw_errno("cannot make a pipe");
  return {Descriptor(ends[0], "pipe"), Descriptor(ends[1], "pipe")};
}

// In the child: nothing but calls that are safe between fork and exec.
[[noreturn]] void become(char* const* arguments, int output, int errors) {
  ::setpgid(0, 0);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  ::execvp(arguments[0], arguments);
  constexpr int kNotFound = 127;
  ::_exit(kNotFound);
}

class Child {
 public:
  Child(const std::vector<std::string>& arguments, const ChildOptions& options)
      : options_(options), output_(make_pipe()), errors_(make_pipe()), start_(Clock::now()) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) {
      pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    pointers.push_back(nullptr);
    process_ = ::fork();
    if (process_ < 0) base::throw_errno(text("cannot start {}", arguments.front()));
    if (process_ == 0) become(pointers.data(), output_.write.get(), errors_.write.get());
    ::setpgid(process_, process_);  // whoever of the two comes first
    output_.write.close();
    errors_.write.close();
  }

  ChildResult wait() {
    while (output_open_ || errors_open_) {
      look();
      if (!ended_for_)
        end_if_due();
      else if (seconds_since(ended_at_) > kPatienceSeconds)
        ::kill(-process_, SIGKILL);
    }
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    return {.output = std::move(result_), .failure = failure_of(status)};
  }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void look() {
    std::array<pollfd, 2> ready{
        pollfd{.fd = output_open_ ? output_.read.get() : -1, .events = POLLIN, .revents = 0},
        pollfd{.fd = errors_open_ ? errors_.read.get() : -1, .events = POLLIN, .revents = 0}};
    if (::poll(ready.data(), ready.size(), kLookMilliseconds) <= 0) return;
    std::string part;
    if (ready[0].revents != 0) {
      output_open_ = take(output_.read.get(), part);
      result_ += part;
    }
    if (ready[1].revents != 0) {
      errors_open_ = take(errors_.read.get(), part);
      hear(part);
    }
  }

  // False at its end.
  static bool take(int from, std::string& part) {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(from, bytes.data(), bytes.size());
    part.assign(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    return got > 0 || (got < 0 && errno == EINTR);
  }

  void hear(const std::string& part) {
    for (const char c : part) {
      if (c != '\n') {
        line_ += c;
        continue;
      }
      const std::string line = base::without_controls(std::exchange(line_, {}));
      if (line.empty()) continue;
      if (options_.progress) options_.progress(line);
      last_lines_.push_back(line);
      if (last_lines_.size() > kLastLines) last_lines_.pop_front();
    }
  }

  void end_if_due() {
    if (options_.stop != nullptr && options_.stop->load()) {
      ended_for_ = "it was told to stop";
    } else if (options_.limit_seconds > 0 && seconds_since(start_) > options_.limit_seconds) {
      ended_for_ = text("it took longer than {:.0f} s", options_.limit_seconds);
    } else {
      return;
    }
    ended_at_ = Clock::now();
    ::kill(-process_, SIGTERM);
  }

  std::optional<std::string> failure_of(int status) const {
    std::string why;
    if (ended_for_) {
      why = *ended_for_;
    } else if (WIFSIGNALED(status)) {
      why = text("signal {}", WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0) {
      why = text("exit code {}", WEXITSTATUS(status));
    } else {
      return std::nullopt;
    }
    if (last_lines_.empty()) return why;
    return text("{}: {}", why, fmt::join(last_lines_, " | "));
  }

  const ChildOptions& options_;
  Pipe output_, errors_;
  const Clock::time_point start_;
  pid_t process_ = -1;
  bool output_open_ = true, errors_open_ = true;
  std::optional<std::string> ended_for_;
  Clock::time_point ended_at_;
  std::string result_, line_;
  std::deque<std::string> last_lines_;
};

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments, const ChildOptions& options) {
  return Child(arguments, options).wait();
}

}  // namespace weft::cli
