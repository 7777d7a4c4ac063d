#include "cli/at_once.h"

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
#include <thread>

#include "base/check.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(50);

struct Running {
  const Job* job;
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

// In a process group of its own, so that Ctrl-C reaches it through this program alone: a second
// signal would end it at once.
pid_t start(const Job& job, std::vector<std::string>& environment) {
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
  if (error) fail_errno(job.log, "start a program that writes", error);
  return process;
}

void tell(const Running& ended, int status) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - ended.began).count();
  if (status == 0) return log_info("{}: done, {} s", ended.job->name, seconds);
  if (stop_requested()) return log_info("{}: stopped", ended.job->name);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  log_warning("{}: exit code {} after {} s; {} tells why", ended.job->name, code, seconds,
              ended.job->log);
}

// Leaves those that are still running.
void collect(std::vector<Running>& running) {
  std::erase_if(running, [](const Running& one) {
    int status = 0;
    const pid_t found = waitpid(one.process, &status, WNOHANG);
    if (found != 0) tell(one, status);
    return found != 0;  // an error, too, means that there is no such program
  });
}

}  // namespace

void run_at_once(const std::vector<Job>& jobs, int most) {
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored nobody can be waited for
  most = std::min(most, static_cast<int>(jobs.size()));
  std::vector<std::string> environment = environment_of_job(most);
  std::vector<Running> running;
  std::exception_ptr failure;
  bool told_to_stop = false;
  for (auto next = jobs.begin(); next != jobs.end() || !running.empty();) {
    collect(running);
    if (failure || stop_requested()) {
      next = jobs.end();
      if (!told_to_stop)
        for (const Running& one : running) kill(one.process, SIGTERM);
      told_to_stop = true;
    }
    if (next == jobs.end() || std::ssize(running) == most) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    try {
      running.push_back({&*next, start(*next, environment), Clock::now()});
      ++next;
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

std::vector<std::string> words_of_this_program() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);  // its size is 0 for read_file()
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  check(!words.empty(), Exit::files, "/proc/self/cmdline: cannot be read; leave --at-once out");
  return words;
}

void stop_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace fovea
