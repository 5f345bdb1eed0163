#include "core/launch/rank.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace yoke {

std::string describe_end(int status)
{
    if (!WIFSIGNALED(status)) return format("exit code %d", WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    const char *name = strsignal(signal);
#if defined __GLIBC__ && defined __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 32)
    if (const char *abbreviation = sigabbrev_np(signal))
        return format("signal %d (SIG%s)", signal, abbreviation);
#endif
#endif
    return format("signal %d (%s)", signal, name);
}

namespace {

std::string prefix_of(int32_t number)
{
    return format("[%d] ", number);
}

void make_non_blocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Rank::Rank(int32_t number, LineSink &out, LineSink &err)
    : number_(number),
      out_{OwnedFile(), LineMaker(prefix_of(number), out)},
      err_{OwnedFile(), LineMaker(prefix_of(number), err)}
{
}

void Rank::start(ChildPlan plan, std::string error_file)
{
    Pipe out = make_pipe(), err = make_pipe();
    plan.out = out.write.get();
    plan.err = err.write.get();
    make_non_blocking(out.read.get());
    make_non_blocking(err.read.get());
    out_.from = std::move(out.read);
    err_.from = std::move(err.read);
    error_file_ = std::move(error_file);
    child_ = start_child(plan);
    has_number_ = child_.process > 0;
}

void Rank::look()
{
    if (!is_running()) return;
    siginfo_t found{};
    const auto process = static_cast<id_t>(child_.process);
    const int problem = waitid(P_PID, process, &found, WEXITED | WNOHANG | WNOWAIT);
    if (problem == 0 && found.si_pid == child_.process) note_end(found);
    if (problem == 0 || errno == EINTR) return;
    status_ = 0;  // the process was already waited for
    has_number_ = false;
    fail(
        YOKE_E_STATE,
        "run: another part of this process took the exit status of rank %d (process %d): %s; this process must not wait for any child",
        number_, static_cast<int>(child_.process), strerror(errno));
}

void Rank::note_end(const siginfo_t &end) noexcept
{
    constexpr int kCodeShift = 8;  // in a status of waitpid()
    const bool has_code = end.si_code == CLD_EXITED;
    status_ = has_code ? end.si_status << kCodeShift : end.si_status;
    signal_group(SIGTERM);
    signal_group(SIGCONT);  // a stopped process cannot handle TERM
    leftover_end_ = Deadline::after(kLeftoverGrace);
}

void Rank::signal_process(int signal) const noexcept
{
    if (is_running()) kill(child_.process, signal);
}

void Rank::signal_group(int signal) const noexcept
{
    if (has_number_) kill(-child_.process, signal);
}

void Rank::release() noexcept
{
    if (!has_number_) return;
    signal_group(SIGKILL);
    reap(child_.process);
    has_number_ = false;
}

size_t Rank::Stream::pass_on()
{
    char bytes[8192];  // threads of host programs may have small stacks
    if (lines.sink().error() == EPIPE)
        from.close();  // the rank then gets EPIPE, as from a reader of its own
    if (!from.is_open() || lines.sink().is_full()) return 0;
    const ssize_t count = read(from.get(), bytes, sizeof bytes);
    if (count > 0) lines.add({bytes, static_cast<size_t>(count)});
    const bool is_later = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (count <= 0 && !is_later) from.close();
    return count > 0 ? static_cast<size_t>(count) : 0;
}

size_t Rank::Stream::waiting() const noexcept
{
    int bytes = 0;
    const bool is_told = from.is_open() && ioctl(from.get(), FIONREAD, &bytes) == 0;
    return is_told ? static_cast<size_t>(bytes) : 0;
}

void Rank::Stream::finish()
{
    from.close();
    lines.finish();
}

std::string Rank::trace() const
{
    return file_text(error_file_ + kTraceSuffix);
}

}  // namespace yoke
