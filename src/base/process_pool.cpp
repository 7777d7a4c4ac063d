#include "base/process_pool.h"

#include <fcntl.h>
#include <omp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(50);

struct RunningJob {
  const ProcessJob* job;
  pid_t process;
  Clock::time_point began;
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_of_job(int most) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) all.emplace_back(*entry);
  if (!std::getenv("OMP_NUM_THREADS"))
    all.push_back("OMP_NUM_THREADS=" + std::to_string(std::max(1, omp_get_num_procs() / most)));
  return all;
}

// Starts a job in its own process group. So Ctrl-C reaches the job only through this program.
// Otherwise the job would get two signals, and the second would end it immediately.
pid_t start(const ProcessJob& job, std::vector<std::string>& environment) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, job.log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = job.words;
  pid_t process = -1;
  const int error = posix_spawn(&process, "/proc/self/exe", &files, &how, pointers(words).data(),
                                pointers(environment).data());
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  if (error) fail_errno(job.log, "start a process that writes it", error);
  return process;
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class ProcessPool {
 public:
  ProcessPool(const std::vector<ProcessJob>& jobs, const AtOnce& how)
      : jobs_(jobs), options_(how), limit_(std::min(how.most, static_cast<int>(jobs.size()))),
        environment_(environment_of_job(limit_)), finished_(how.before),
        total_(how.before + std::ssize(jobs)) {
    if (log_format() != LogFormat::tty) return;
    progress_.emplace("models", total_);
    progress_->begin_at(finished_);
  }

  void run() {
    for (auto next = jobs_.begin(); next != jobs_.end() || !running_.empty();) {
      collect();
      if (failure_ || stop_requested()) {
        next = jobs_.end();
        send_stop();
      }
      if (next == jobs_.end() || std::ssize(running_) == limit_) {
        show();
        std::this_thread::sleep_for(kPause);
        continue;
      }
      attempt([&] {
        running_.push_back({&*next, start(*next, environment_), Clock::now()});
        ++next;
      });
    }
    show();
    progress_.reset();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Runs `action` and keeps its exception if it is the first. run() throws it after all running
  // jobs have ended.
  void attempt(const std::function<void()>& action) try { action(); } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }

  void send_stop() {
    if (!std::exchange(stop_sent_, true))
      for (const RunningJob& one : running_) kill(one.process, SIGTERM);
  }

  // Removes the jobs that have ended from running_ and reports them.
  void collect() {
    for (auto at = running_.begin(); at != running_.end();) {
      int status = 0;
      if (waitpid(at->process, &status, WNOHANG) == 0) {
        ++at;
        continue;  // if there is an error, the process no longer exists: it has ended
      }
      const RunningJob one = *at;
      at = running_.erase(at);
      report_end(one, exit_code(status));
      attempt([&] { options_.ended(*one.job, exit_code(status)); });
    }
  }

  void report_end(const RunningJob& one, int code) {
    if (code != 0 && (stop_requested() || stop_sent_))
      return log_info("{}: stopped", one.job->name);
    ++finished_;
    const std::string took =
        short_duration(std::chrono::duration<double>(Clock::now() - one.began).count());
    if (code == 0) return log_info("{} of {} done: {}, {}", finished_, total_, one.job->name, took);
    log_warning("{} of {} failed: {}: exit code {} after {}; see {}", finished_, total_,
                one.job->name, code, took, one.job->log);
  }

  void show() {
    if (!progress_) return;
    std::string names;
    for (const RunningJob& one : running_) names += (names.empty() ? "" : ", ") + one.job->name;
    progress_->note(names);
    progress_->set(finished_);
  }

  const std::vector<ProcessJob>& jobs_;
  const AtOnce& options_;
  int limit_;
  std::vector<std::string> environment_;
  std::vector<RunningJob> running_;
  int64_t finished_, total_;
  std::optional<Progress> progress_;
  std::exception_ptr failure_;
  bool stop_sent_ = false;
};

}  // namespace

void run_at_once(const std::vector<ProcessJob>& jobs, const AtOnce& how) {
  std::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD were ignored, waitpid() would not work
  ProcessPool(jobs, how).run();
}

std::vector<std::string> words_of_this_program() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);  // the system reports its size as 0
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  check(!words.empty(), ExitCode::files, "/proc/self/cmdline: cannot be read; omit `at_once`");
  return words;
}

void stop_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace fovea
