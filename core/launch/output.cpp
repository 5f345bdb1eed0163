#include "core/launch/output.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace yoke {

namespace {

constexpr size_t kEnough = size_t{1} << 20;       // bytes that wait for a reader
constexpr size_t kLongestLine = size_t{1} << 20;  // beyond, a line is cut

// Returns a file's kind, as in S_IFMT; 0: the file is not open.
mode_t kind_of(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 ? about.st_mode & S_IFMT : 0;
}

// Opens a terminal or a pipe a second time, because other processes share `fd` and may need a file that waits.
// Returns a closed file for other kinds, and if the system refuses, as for another user's terminal.
OwnedFile opened_anew(int fd)
{
    if (kind_of(fd) != S_IFIFO && !isatty(fd)) return OwnedFile();
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    return OwnedFile(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// Returns how many bytes a single write takes without waiting, after poll() reports free space. A terminal may still
// accept only a byte.
size_t piece_of(int fd, bool never_waits)
{
    if (never_waits) return kEnough;
    return isatty(fd) ? 1 : PIPE_BUF;
}

}  // namespace

LineSink::LineSink(int fd)
    : anew_(opened_anew(fd)),
      fd_(anew_.is_open() ? anew_.get() : fd),
      is_socket_(kind_of(fd) == S_IFSOCK),
      piece_(piece_of(fd, anew_.is_open() || is_socket_ || kind_of(fd) == S_IFREG))
{
}

bool LineSink::is_full() const noexcept
{
    return !is_broken() && waiting_.size() - at_ >= kEnough;
}

void LineSink::write_some()
{
    const size_t size = std::min(piece_, waiting_.size() - at_);
    const char *from = waiting_.data() + at_;
    const ssize_t taken =
        is_socket_ ? send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL) : write(fd_, from, size);
    if (taken < 0) {
        if (errno != EINTR && errno != EAGAIN) error_ = errno;
        return;
    }
    at_ += static_cast<size_t>(taken);
    if (at_ < waiting_.size() && at_ < kEnough) return;
    waiting_.erase(0, at_);
    at_ = 0;
}

void LineMaker::put_line(std::string_view end)
{
    sink_->add(prefix_);
    sink_->add(begun_);
    sink_->add(end);
    sink_->add("\n");
    begun_.clear();
}

void LineMaker::add(std::string_view text)
{
    for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
        put_line(text.substr(0, end));
    begun_ += text;
    if (begun_.size() >= kLongestLine) put_line("");
}

void LineMaker::finish()
{
    if (!begun_.empty()) put_line("");
}

}  // namespace yoke
