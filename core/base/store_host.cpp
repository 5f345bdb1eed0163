#include "core/base/store_host.h"

#include "core/base/error.h"

namespace yoke {

namespace {

constexpr double kSlice = 0.1;  // how long an abort may go unseen

// What get gave: the host calls it once, while its own text is there.
void take_value(void *taker, const void *value, uint64_t bytes)
{
    static_cast<std::string *>(taker)->assign(static_cast<const char *>(value), bytes);
}

class HostStore final : public Store {
public:
    explicit HostStore(const HostStoreFunctions &functions) : host_(functions) {}
    ~HostStore() override
    {
        if (host_.drop) host_.drop(host_.user);
    }
    std::string where() const override { return "the host program"; }

private:
    static void check(yoke_status status, const char *call, const std::string &key)
    {
        if (status != YOKE_OK)
            fail(status, "store.%s: the host program's own store failed with %s for '%s'", call,
                 status_name(status), key.c_str());
    }

    void do_set(const std::string &key, std::string_view value, const Patience &) override
    {
        check(host_.set(host_.user, key.c_str(), value.data(), value.size()), "set", key);
    }

    int64_t do_add(const std::string &key, int64_t delta, const Patience &) override
    {
        int64_t sum = 0;
        check(host_.add(host_.user, key.c_str(), delta, &sum), "add", key);
        return sum;
    }

    std::optional<std::string> do_try_get(const std::string &key, const Patience &) override
    {
        std::string value;
        return has(key, 0, value) ? std::optional(std::move(value)) : std::nullopt;
    }

    // A host that cannot forget keeps what is done with.
    void do_remove(const std::string &key, const Patience &) override
    {
        if (host_.remove) check(host_.remove(host_.user, key.c_str()), "remove", key);
    }

    bool has(const std::string &key, double seconds, std::string &value)
    {
        const yoke_status status = host_.get(host_.user, key.c_str(), seconds, take_value, &value);
        if (status != YOKE_E_TIMEOUT) check(status, "get", key);
        return status == YOKE_OK;
    }

    void await_some(const Keys &keys, double seconds)
    {
        std::string value;
        if (!host_.wait) return void(has(keys.front(), seconds, value));
        std::vector<const char *> names;
        for (const std::string &key : keys) names.push_back(key.c_str());
        const yoke_status status =
            host_.wait(host_.user, names.data(), static_cast<int64_t>(names.size()), seconds);
        if (status != YOKE_E_TIMEOUT) check(status, "wait", keys.front());
    }

    Keys missing(const Keys &keys)
    {
        Keys missing;
        std::string value;
        for (const std::string &key : keys)
            if (!has(key, 0, value)) missing.push_back(key);
        return missing;
    }

    std::vector<std::string> do_await(const Keys &keys, bool wants_values,
                                      const Patience &patience) override
    {
        for (Keys left = keys; !left.empty();) {
            patience.stop->check();
            await_some(left, patience.deadline.within(kSlice).remaining_s());
            left = missing(left);
            if (!left.empty() && patience.deadline.has_passed())
                detail::fail_late(left, patience, where());
        }
        std::vector<std::string> values(wants_values ? keys.size() : 0);
        for (size_t i = 0; i < values.size(); ++i) has(keys[i], 0, values[i]);
        return values;
    }

    void wake() noexcept override {}

    const HostStoreFunctions host_;
};

}  // namespace

std::shared_ptr<Store> make_host_store(const HostStoreFunctions &functions)
{
    const bool is_whole = functions.set && functions.get && functions.add;
    if (!is_whole)
        fail(
            YOKE_E_VALUE,
            "comm.init: the host program's own store has no function %s; set, get and add are needed",
            !functions.set   ? "set"
            : !functions.get ? "get"
                             : "add");
    return std::make_shared<HostStore>(functions);
}

}  // namespace yoke
