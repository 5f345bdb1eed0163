// worker.h: a thread that does a single piece of work at a time while the owner waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace yoke::fuzz {

class Worker {
public:
    Worker() : thread_([this] { serve(); }) {}
    ~Worker()
    {
        hand([this] { ends_ = true; });
        thread_.join();
    }
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;

    // Runs work to the end. The work must not raise.
    void run(const std::function<void()> &work) { hand(work); }

private:
    void hand(const std::function<void()> &work)
    {
        std::unique_lock lock(mutex_);
        work_ = &work;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !work_; });
    }
    void serve()
    {
        std::unique_lock lock(mutex_);
        while (!ends_) {
            changed_.wait(lock, [this] { return work_; });
            (*work_)();
            work_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()> *work_ = nullptr;
    bool ends_ = false;
    std::thread thread_;  // last, because the thread reads the other members
};

}  // namespace yoke::fuzz
