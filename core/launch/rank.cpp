#include "core/launch/rank.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <fcntl.h>
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

Rank::~Rank()
{
    if (child_.process <= 0) return;  // never started
    signal_group(SIGKILL);
    while (is_running() && waitpid(child_.process, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Rank::start(ChildPlan plan, std::string error_file)
{
    Pipe out = make_pipe(), err = make_pipe();
    plan.out = out.write.fd();
    plan.err = err.write.fd();
    make_non_blocking(out.read.fd());
    make_non_blocking(err.read.fd());
    out_.from = std::move(out.read);
    err_.from = std::move(err.read);
    error_file_ = std::move(error_file);
    child_ = start_child(plan);
}

void Rank::look()
{
    if (!is_running()) return;
    int status = 0;
    const pid_t found = waitpid(child_.process, &status, WNOHANG);
    if (found == child_.process) status_ = status;
    if (found >= 0 || errno == EINTR) return;
    status_ = 0;  // there is nobody to wait for any more
    fail(
        YOKE_E_STATE,
        "run: how rank %d (process %d) ended was told to another part of this process: %s; let nothing here wait for any child",
        number_, static_cast<int>(child_.process), strerror(errno));
}

void Rank::signal_process(int signal) const noexcept
{
    if (is_running()) kill(child_.process, signal);
}

void Rank::signal_group(int signal) const noexcept
{
    if (child_.process > 0) kill(-child_.process, signal);
}

bool Rank::has_group() const noexcept
{
    return child_.process > 0 && kill(-child_.process, 0) == 0;
}

void Rank::Stream::pass_on()
{
    char bytes[8192];                            // hosts may have threads with small stacks
    if (lines.sink().is_broken()) from.close();  // the rank then learns of it as if it were its own
    if (!from.present() || lines.sink().is_full()) return;
    const ssize_t count = read(from.fd(), bytes, sizeof bytes);
    if (count > 0) lines.add({bytes, static_cast<size_t>(count)});
    const bool is_later = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (count <= 0 && !is_later) from.close();
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
