#include "core/launch/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace yoke {

namespace {

constexpr size_t kEnough = size_t{1} << 20;       // bytes that wait for a reader
constexpr size_t kLongestLine = size_t{1} << 20;  // beyond, a line is cut

size_t piece_of(int fd)
{
    struct stat about;
    const bool is_file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    return is_file ? kEnough : PIPE_BUF;
}

}  // namespace

LineSink::LineSink(int fd) : fd_(fd), piece_(piece_of(fd)) {}

bool LineSink::is_full() const noexcept
{
    return !is_broken_ && waiting_.size() - at_ >= kEnough;
}

void LineSink::write_some()
{
    const size_t size = std::min(piece_, waiting_.size() - at_);
    const ssize_t taken = write(fd_, waiting_.data() + at_, size);
    if (taken < 0) {
        is_broken_ = errno != EINTR && errno != EAGAIN;
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
