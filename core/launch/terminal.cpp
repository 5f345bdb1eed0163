#include "core/launch/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace yoke {

int Terminal::open()
{
    pipe_ = Pipe();
    waiting_.clear();
    if (!isatty(STDIN_FILENO)) return STDIN_FILENO;
    pipe_ = make_pipe();
    const int fd = pipe_.write.get();
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return pipe_.read.get();
}

int Terminal::reads_from() const noexcept
{
    const bool is_ours = pipe_.write.is_open() && waiting_.empty();
    return is_ours && tcgetpgrp(STDIN_FILENO) == getpgrp() ? STDIN_FILENO : -1;
}

int Terminal::writes_to() const noexcept
{
    return waiting_.empty() ? -1 : pipe_.write.get();
}

void Terminal::pass_on()
{
    if (waiting_.empty()) {
        char bytes[4096];
        const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (count <= 0) {
            pipe_.write.close();
            return;
        }
        waiting_.assign(bytes, static_cast<size_t>(count));
    }
    const ssize_t taken = write(pipe_.write.get(), waiting_.data(), waiting_.size());
    if (taken < 0 && errno != EAGAIN && errno != EINTR) {
        waiting_.clear();
        pipe_.write.close();
    }
    if (taken > 0) waiting_.erase(0, static_cast<size_t>(taken));
}

}  // namespace yoke
