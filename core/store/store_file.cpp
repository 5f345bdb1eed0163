#include "core/store/store_file.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/store/store_log.h"

#include <condition_variable>
#include <thread>
#include <unordered_map>

namespace yoke {

namespace {

class FileStore final : public Store {
public:
    FileStore(const std::string &path, const std::string &run, Deadline deadline)
        : log_(path, run, deadline)
    {
    }
    std::string where() const override { return log_.path(); }

private:
    using Lock = std::unique_lock<std::mutex>;

    // Change by this process. Other writers wait for its end.
    class Writing {
    public:
        Writing(FileStore &store, const char *call, Deadline deadline)
            : store_(store), lock_(store.lock(call))
        {
            while (!store_.log_.lock(deadline)) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                check_interrupt(lock_);
            }
            try {
                store_.read_on();
            } catch (...) {
                store_.log_.unlock();
                throw;
            }
        }
        ~Writing() { store_.log_.unlock(); }
        Writing(const Writing &) = delete;
        Writing &operator=(const Writing &) = delete;

    private:
        FileStore &store_;
        Lock lock_;
    };

    // Locks the store. Raises YOKE_E_FORKED in a forked child: another thread may have held the lock at the fork. The
    // child has no such thread, but no file either.
    Lock lock(const char *call)
    {
        if (!log_.is_open()) detail::fail_forked(call);
        return Lock(mutex_);
    }

    bool read_on()
    {
        return log_.read_on(
            [this](StoreLog::Change change, std::string_view key, std::string_view value) {
                if (change == StoreLog::Change::kSet) values_[std::string(key)] = value;
                if (change == StoreLog::Change::kRemove) values_.erase(std::string(key));
            });
    }

    void put(const std::string &key, std::string_view value)
    {
        log_.append(StoreLog::Change::kSet, key, value);
        read_on();
    }

    std::vector<std::string> serve(const Request &request, const Patience &patience) override
    {
        if (request.kind == Request::kGet || request.kind == Request::kWait)
            return await(request, patience);
        if (request.kind == Request::kTryGet) {
            const Lock held = lock(request.name());
            read_on();
            const auto known = values_.find(request.keys.front());
            return known == values_.end() ? Keys() : Keys{known->second};
        }
        if (request.kind != Request::kRemove) return {change(request, patience)};
        for (const std::string &key : request.keys) {
            const Writing writing(*this, request.name(), patience.deadline);
            if (!values_.count(key)) continue;
            log_.append(StoreLog::Change::kRemove, key, "");
            read_on();
        }
        return {};
    }

    // Changes a key by set, set_once or add. Returns the value in the store.
    std::string change(const Request &request, const Patience &patience)
    {
        const std::string &key = request.keys.front();
        const Writing writing(*this, request.name(), patience.deadline);
        const auto known = values_.find(key);
        const bool is_there = known != values_.end();
        if (is_there && request.kind == Request::kSetOnce) return known->second;
        std::string value(request.value);
        if (request.kind == Request::kAdd)
            value =
                std::to_string(detail::sum_of(key, is_there ? known->second : "0", request.delta));
        put(key, value);
        return value;
    }

    Keys missing(const Keys &keys) const
    {
        Keys missing;
        for (const std::string &key : keys)
            if (!values_.count(key)) missing.push_back(key);
        return missing;
    }

    // Waits until all keys are there, and for kGet returns their values. The file may be shared with another machine,
    // so no event reports a change. The file is read again and again, with growing pauses.
    std::vector<std::string> await(const Request &request, const Patience &patience)
    {
        constexpr double kFirstPause = 0.0005, kLongestPause = 0.02;
        Lock held = lock(request.name());
        double pause = kFirstPause;
        for (Keys left = request.keys;;) {
            patience.stop->check();
            if (read_on()) pause = kFirstPause;
            left = missing(left);
            if (left.empty()) break;
            if (patience.deadline.has_passed()) detail::fail_late(left, patience, where());
            woken_.wait_until(held, patience.deadline.within(pause).at());
            check_interrupt(held);
            pause = std::min(pause * 2, kLongestPause);
        }
        std::vector<std::string> values;
        if (request.kind == Request::kGet)
            for (const std::string &key : request.keys) values.push_back(values_[key]);
        return values;
    }

    void wake() noexcept override
    {
        if (!log_.is_open()) return;
        const Lock held(mutex_);
        woken_.notify_all();
    }

    StoreLog log_;
    std::mutex mutex_;
    std::condition_variable woken_;
    std::unordered_map<std::string, std::string> values_;
};

}  // namespace

std::shared_ptr<Store> open_file_store(const std::string &path, const std::string &run,
                                       Deadline deadline)
{
    return std::make_shared<FileStore>(path, run, deadline);
}

}  // namespace yoke
