#include "bindings/cli/src/first_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace yoke::cli {

namespace {

std::vector<std::string> own_words()
{
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
    return words;
}

// Returns the path of this program, from whose last part the system names the process.
std::string own_program()
{
    std::error_code error;
    const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
    return !error && access(path.c_str(), X_OK) == 0 ? path.string() : "/proc/self/exe";
}

// Starts this program anew with the same words and the signal mask that this process had.
pid_t start_child(const sigset_t &mask)
{
    std::vector<std::string> words = own_words();
    std::vector<char *> pointers;
    for (std::string &word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &mask);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    pid_t child = 0;
    const std::string program = own_program();
    const int error = posix_spawn(&child, program.c_str(), nullptr, &how, pointers.data(), environ);
    posix_spawnattr_destroy(&how);
    if (error) throw std::system_error(error, std::generic_category(), "run: " + program);
    return child;
}

// Reaps all ended children of this process, without a wait. If `child` is among them, sets `status` and returns true.
bool reap_all(pid_t child, int &status)
{
    bool has_ended = false;
    int found = 0;
    for (pid_t process; (process = waitpid(-1, &found, WNOHANG)) > 0;) {
        if (process != child) continue;
        status = found;
        has_ended = true;
    }
    return has_ended;
}

// Returns whether the signal goes to the child. Signals of a terminal's keys reach the child directly, since it is in
// the same process group. When a terminal hangs up, the system notifies only the process that leads the terminal,
// which this process may be.
bool is_sent_on(int number, const siginfo_t &told)
{
    if (number <= 0 || number == SIGCHLD) return false;
    return told.si_code != SI_KERNEL || number == SIGHUP;
}

}  // namespace

bool is_first_process() noexcept
{
    return getpid() == 1;
}

int be_first_process()
{
    constexpr int kSignalled = 128;
    std::signal(SIGCHLD, SIG_DFL);  // if ignored, the system reaps children and sends no signal
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t child = start_child(before);
    int status = 0;
    while (!reap_all(child, status)) {
        siginfo_t told{};
        const int number = sigwaitinfo(&all, &told);
        if (is_sent_on(number, told)) kill(child, number);
    }
    return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace yoke::cli
