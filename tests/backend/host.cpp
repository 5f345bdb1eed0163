// Host that every suite gives to a backend.
#include "contract.h"

#include <atomic>

namespace yoke::test {

Told &told()
{
    thread_local Told record;
    return record;
}

std::map<std::string, std::string> &settings()
{
    thread_local std::map<std::string, std::string> ours;
    return ours;
}

namespace {

yoke_status set_error(yoke_status status, int64_t, const char *message)
{
    Told &record = told();
    ++record.errors;
    record.status = status;
    record.message = message ? message : "";
    return status;
}

std::atomic<int> logged{0};

void count_log(int32_t, const char *)
{
    ++logged;
}

const char *config(const char *key)
{
    const auto found = settings().find(key);
    return found == settings().end() ? nullptr : found->second.c_str();
}

int32_t two_threads()
{
    return 2;
}

}  // namespace

yoke_host plain_host()
{
    return {sizeof(yoke_host), YOKE_BACKEND_ABI, set_error, count_log, config,
            two_threads,       nullptr,          nullptr};
}

int log_lines()
{
    return logged.load();
}

void Contract::expect_failure(yoke_status status, const char *what)
{
    EXPECT_NE(status, YOKE_OK) << what;
    EXPECT_EQ(told().errors, 1) << what << ": set_error is called once";
    EXPECT_EQ(told().status, status) << what;
    EXPECT_GT(told().message.size(), 15u) << what << ": '" << told().message << "'";
    told() = {};
}

void Contract::expect_failure(yoke_status expected, yoke_status status, const char *what)
{
    EXPECT_EQ(status, expected) << what << ": " << told().message;
    expect_failure(status, what);
}

}  // namespace yoke::test
