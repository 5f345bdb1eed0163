#include "core/state/read_team.h"

#include "core/base/config.h"
#include "core/base/start_thread.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

// Bytes that justify the start of a thread. Tensors up to this size have a single reader, so no other reader clears
// their huge pages.
constexpr size_t kReadPart = size_t{8} << 20;
constexpr size_t kMostReaders = 8;  // memory is saturated well before

}  // namespace

ReadTeam::~ReadTeam()
{
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        parts_.clear();
        changed_.notify_all();
    }
    for (std::thread &each : threads_) each.join();
}

void ReadTeam::read(const ReadFile &file, uint64_t from, const Tensor &to)
{
    const std::lock_guard lock(mutex_);
    char *const data = static_cast<char *>(to->data);
    const size_t bytes = static_cast<size_t>(to->numel) * item_size(to->dtype);
    for (size_t begin = 0; begin < bytes; begin += kReadPart)
        parts_.push_back(
            {&file, from + begin, to, data + begin, std::min(kReadPart, bytes - begin)});
    bytes_ += bytes;
    recruit();
    changed_.notify_all();
}

void ReadTeam::recruit()
{
    const size_t most = std::min(static_cast<size_t>(num_threads()), kMostReaders) - 1;
    if (threads_.size() >= std::min(most, bytes_ / kReadPart)) return;
    threads_.reserve(most);
    const auto read = [this] {
        std::unique_lock lock(mutex_);
        while (!is_over_) {
            read_parts(lock);
            changed_.wait(lock, [this] { return is_over_ || !parts_.empty(); });
        }
    };
    while (threads_.size() < std::min(most, bytes_ / kReadPart)) {
        std::thread thread;
        // If the system gives no more threads, the existing threads read all parts.
        if (!start_thread(thread, read).empty()) return;
        threads_.push_back(std::move(thread));
    }
}

void ReadTeam::read_parts(std::unique_lock<std::mutex> &lock)
{
    while (!parts_.empty()) {
        const Part part = std::move(parts_.front());
        parts_.pop_front();
        ++reading_;
        const bool is_wanted = !failure_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            if (is_wanted) part.file->read(part.from, part.data, part.bytes);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        if (failure && !failure_) failure_ = failure;
        --reading_;
    }
    changed_.notify_all();
}

void ReadTeam::finish()
{
    std::unique_lock lock(mutex_);
    read_parts(lock);
    changed_.wait(lock, [this] { return reading_ == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace yoke
