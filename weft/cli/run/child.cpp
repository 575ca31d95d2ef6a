#include "weft/cli/run/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/files/descriptor.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::Descriptor;
using base::text;
using Clock = std::chrono::steady_clock;

constexpr int kLookMilliseconds = 100;
constexpr int kSilentMilliseconds = 10;  // between polls after it has closed its pipes
constexpr double kPatienceSeconds = 5;   // between SIGTERM and SIGKILL
constexpr std::size_t kLastLines = 8;
constexpr std::size_t kPipeBytes = 1 << 16;  // capacity of a Linux pipe: one read empties it

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) base::throw_errno("cannot make a pipe");
  return {Descriptor(ends[0], "pipe"), Descriptor(ends[1], "pipe")};
}

struct Ends {
  int output, errors;
  int error_of_exec;  // closed by a successful exec
};

// Runs in the child: only calls that are safe between fork and exec.
[[noreturn]] void become(char* const* arguments, const Ends& ends, pid_t parent) {
  constexpr int kNotFound = 127;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotFound);  // the parent died before that call
  ::dup2(ends.output, STDOUT_FILENO);
  ::dup2(ends.errors, STDERR_FILENO);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  (void)!::write(ends.error_of_exec, &error, sizeof error);
  ::_exit(kNotFound);
}

// Process with a group of its own, both killed with their owner. (A process that left the group, as
// a daemon does, survives.)
class Process {
 public:
  // SystemError if the program cannot be started.
  Process(const std::vector<std::string>& arguments, int output, int errors) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) {
      pointers.push_back(const_cast<char*>(argument.c_str()));
    }
    pointers.push_back(nullptr);
    Pipe told = make_pipe();
    const Ends ends{.output = output, .errors = errors, .error_of_exec = told.write.get()};
    const pid_t parent = ::getpid();
    id_ = ::fork();
    if (id_ == 0) become(pointers.data(), ends, parent);
    if (id_ < 0) base::throw_errno(text("cannot start {}", arguments.front()));
    told.write.close();
    int error = 0;
    ssize_t got = 0;
    while ((got = ::read(told.read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
    }
    if (got != sizeof error) return;
    end();
    errno = error;
    base::throw_errno(text("cannot start {}", arguments.front()));
  }
  ~Process() { end(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void terminate() const { ::kill(-id_, SIGTERM); }
  void kill() const {
    ::kill(-id_, SIGKILL);
    ::kill(id_, SIGKILL);  // it may have left its group
  }

  // True if it has ended. It stays a zombie, so that its id is not reused before end().
  bool is_over() const {
    siginfo_t info{};
    const int answer = ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
    return answer == 0 ? info.si_pid == id_ : errno != EINTR;
  }

  // Kills what still runs. Returns the status as waitpid does.
  int end() {
    if (ended_) return status_;
    ended_ = true;
    kill();
    while (::waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
    }
    return status_;
  }

 private:
  pid_t id_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

class Child {
 public:
  Child(const std::vector<std::string>& arguments, const ChildOptions& options)
      : options_(options),
        output_(make_pipe()),
        errors_(make_pipe()),
        start_(Clock::now()),
        process_(arguments, output_.write.get(), errors_.write.get()) {
    output_.write.close();
    errors_.write.close();
  }

  // A pipe may outlive the child, held by its descendants, or close before its end.
  ChildResult wait() {
    while (!process_.is_over()) {
      look(output_open_ || errors_open_ ? kLookMilliseconds : kSilentMilliseconds);
      if (!ended_for_)
        end_if_due();
      else if (seconds_since(ended_at_) > kPatienceSeconds)
        process_.kill();
    }
    const int status = process_.end();
    look(0);
    return {.output = std::move(result_),
            .failure = failure_of(status),
            .was_ended = ended_for_.has_value()};
  }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void look(int milliseconds) {
    std::array<pollfd, 2> ready{
        pollfd{.fd = output_open_ ? output_.read.get() : -1, .events = POLLIN, .revents = 0},
        pollfd{.fd = errors_open_ ? errors_.read.get() : -1, .events = POLLIN, .revents = 0}};
    if (::poll(ready.data(), ready.size(), milliseconds) <= 0) return;
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

  // False at the end of the file.
  static bool take(int from, std::string& part) {
    std::array<char, kPipeBytes> bytes;
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
    process_.terminate();
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
  Process process_;
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
