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

    // A change by this process, which others wait for.
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

    // Another thread may have held it at a fork, and is not in the child, which has no file either.
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

    void do_set(const std::string &key, std::string_view value, const Patience &patience) override
    {
        const Writing writing(*this, "set", patience.deadline);
        put(key, value);
    }

    int64_t do_add(const std::string &key, int64_t delta, const Patience &patience) override
    {
        const Writing writing(*this, "add", patience.deadline);
        const auto known = values_.find(key);
        const int64_t sum =
            detail::sum_of(key, known == values_.end() ? "0" : known->second, delta);
        put(key, std::to_string(sum));
        return sum;
    }

    std::string do_set_once(const std::string &key, std::string_view value,
                            const Patience &patience) override
    {
        const Writing writing(*this, "set_once", patience.deadline);
        if (!values_.count(key)) put(key, value);
        return values_[key];
    }

    void do_remove(const std::string &key, const Patience &patience) override
    {
        const Writing writing(*this, "remove", patience.deadline);
        if (!values_.count(key)) return;
        log_.append(StoreLog::Change::kRemove, key, "");
        read_on();
    }

    std::optional<std::string> do_try_get(const std::string &key, const Patience &) override
    {
        const Lock held = lock("try_get");
        read_on();
        const auto known = values_.find(key);
        if (known == values_.end()) return std::nullopt;
        return known->second;
    }

    Keys missing(const Keys &keys) const
    {
        Keys missing;
        for (const std::string &key : keys)
            if (!values_.count(key)) missing.push_back(key);
        return missing;
    }

    // Nothing tells of a change in a file that others may have on another machine, so it is asked for, less and less
    // often.
    std::vector<std::string> do_await(const Keys &keys, bool wants_values,
                                      const Patience &patience) override
    {
        constexpr double kFirstPause = 0.0005, kLongestPause = 0.02;
        Lock held = lock("get");
        double pause = kFirstPause;
        for (Keys left = keys;;) {
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
        if (wants_values)
            for (const std::string &key : keys) values.push_back(values_[key]);
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
