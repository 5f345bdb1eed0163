#include "core/launch/child.h"

#include "core/base/error.h"
#include "core/base/signals.h"
#include "core/base/text.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace yoke {

void reap(pid_t process) noexcept
{
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
}

namespace {

[[noreturn]] void fail_descriptor()
{
    fail(YOKE_E_IO, "run: the system cannot open a pipe: %s; check ulimit -n", strerror(errno));
}

}  // namespace

Pipe make_pipe()
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_descriptor();
    Pipe made{OwnedFile(ends[0]), OwnedFile(ends[1])};
    if (!made.read.is_open() || !made.write.is_open()) fail_descriptor();
    return made;
}

OwnedFile open_null()
{
    OwnedFile made(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!made.is_open()) fail(YOKE_E_IO, "run: /dev/null cannot be opened: %s", strerror(errno));
    return made;
}

namespace {

// Data of the child, prepared before vfork: after vfork the child allocates no memory.
struct Prepared {
    const ChildPlan &plan;
    char *const *command;
    char *const *variables;
    pid_t parent;
    sigset_t mask;
};

// Resets the host program's handlers, which must not run in the child. Signals ignored by the host program stay
// ignored, except SIGPIPE.
void reset_signals()
{
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction action;
        if (sigaction(signal, nullptr, &action) != 0) continue;
        const bool is_ignored =
            !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN && signal != SIGPIPE;
        if (is_ignored) continue;
        action = {};
        action.sa_handler = SIG_DFL;
        sigaction(signal, &action, nullptr);
    }
}

void write_number(int file, pid_t number)
{
    char digits[16];
    size_t at = sizeof digits;
    digits[--at] = '\n';
    for (pid_t rest = number; rest > 0; rest /= 10)
        digits[--at] = static_cast<char>('0' + rest % 10);
    (void)!write(file, digits + at, sizeof digits - at);
}

void close_all_others()
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0) return;
#endif
    constexpr int kSome = 1024;
    for (int file = STDERR_FILENO + 1; file < kSome; ++file) close(file);
}

// Becomes the program, in the child: sets signals, process group and files, then calls exec. If exec fails, sets
// *error and ends the child. The child still uses the parent's memory.
[[noreturn]] void become(const Prepared &prepared, volatile int *error)
{
    const ChildPlan &plan = prepared.plan;
    reset_signals();
    if (plan.is_guard) {
        setsid();
        (void)!chdir("/");
    } else {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != prepared.parent) _exit(1);
    }
    if (plan.note >= 0) write_number(plan.note, getpid());
    dup2(plan.in, STDIN_FILENO);
    dup2(plan.out, STDOUT_FILENO);
    dup2(plan.err, STDERR_FILENO);
    if (plan.is_guard) close_all_others();
    if (plan.files > 0) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = plan.files;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    sigprocmask(SIG_SETMASK, &prepared.mask, nullptr);
    execvpe(prepared.command[0], prepared.command, prepared.variables);
    *error = errno;
    _exit(1);
}

// Calls vfork and returns the child's number. If there is no child, returns -1 and sets *error. This is a stack frame
// of its own, because the child may not return from the frame.
__attribute__((noinline)) pid_t fork_into(const Prepared &prepared, volatile int *error)
{
    const pid_t made = vfork();
    if (made == 0) become(prepared, error);
    if (made < 0) *error = errno;
    return made;
}

std::vector<char *> pointers_to(const std::vector<std::string> &texts)
{
    std::vector<char *> pointers;
    for (const std::string &text : texts) pointers.push_back(const_cast<char *>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

Child start_child(const ChildPlan &plan)
{
    const std::vector<char *> command = pointers_to(plan.command);
    const std::vector<char *> variables = pointers_to(plan.variables);
    Prepared prepared{plan, command.data(), variables.data(), getpid(), {}};
    sigemptyset(&prepared.mask);
    volatile int error = 0;
    Child child;
    {
        const HostSignalsBlocked blocked;  // no handler of the host program runs in the child
        child.process = fork_into(prepared, &error);
    }
    child.error = error;
    if (child.error) {
        if (child.process > 0) reap(child.process);
        child.process = -1;
        return child;
    }
#ifdef SYS_pidfd_open
    child.ended = OwnedFile(static_cast<int>(syscall(SYS_pidfd_open, child.process, 0)));
#endif
    return child;
}

}  // namespace yoke
