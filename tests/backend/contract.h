// contract.h: the suite that every backend passes, run over each of contract_backends.
//
// It speaks to a backend's table as the core does and knows nothing of what stands behind it: memory is reached by
// copies alone, work is waited for, groups that a backend lacks are skipped. A new backend is one line in contract.cpp.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/ops.inc"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace yoke::test {

struct BackendUnderTest {
    const char *kind;
    yoke_backend_get_fn get;
    bool complete;  // has a kernel for every op that can have one

    friend void PrintTo(const BackendUnderTest &one, std::ostream *out) { *out << one.kind; }
};

std::vector<BackendUnderTest> contract_backends();

// What the host was told by the calling thread since the last forget().
struct Told {
    int errors = 0;
    yoke_status status = YOKE_OK;
    std::string message;
};
Told &told();

// What host->config tells the calling thread.
std::map<std::string, std::string> &settings();

// Lines that backends have logged.
int log_lines();

// A host that keeps all of that, and has no scratch.
yoke_host plain_host();

// One device of a backend, opened once for all tests.
class Contract : public testing::TestWithParam<BackendUnderTest> {
protected:
    void SetUp() override;

    // Holds a failing call to the contract: this status, told once, with a message of some substance.
    void expect_failure(yoke_status expected, yoke_status status, const char *what);
    // The same where several statuses are right.
    void expect_failure(yoke_status status, const char *what);

    // Device memory that a test gives back at its end.
    void *block(uint64_t bytes);
    template <class T>
    T *upload(const std::vector<T> &values);
    template <class T>
    std::vector<T> download(const T *from, size_t count);
    void TearDown() override;

    const yoke_backend *table_ = nullptr;
    void *device_ = nullptr;
    yoke_backend_device_info info_{};

private:
    struct Block {
        void *data;
        uint64_t bytes;
    };
    std::vector<Block> blocks_;
};

inline std::string name_of_kind(const testing::TestParamInfo<BackendUnderTest> &test)
{
    return test.param.kind;
}

#define YOKE_ON_EVERY_BACKEND(suite)                                                      \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(yoke::test::contract_backends()), \
                             yoke::test::name_of_kind)

#define ASSERT_DONE(call) ASSERT_EQ(call, YOKE_OK) << yoke::test::told().message
#define EXPECT_DONE(call) EXPECT_EQ(call, YOKE_OK) << yoke::test::told().message

template <class T>
T *Contract::upload(const std::vector<T> &values)
{
    const uint64_t bytes = values.size() * sizeof(T);
    T *data = static_cast<T *>(block(bytes ? bytes : 1));
    EXPECT_DONE(
        table_->copy(device_, data, values.data(), bytes, YOKE_COPY_HOST_TO_DEVICE, nullptr));
    EXPECT_DONE(table_->device_synchronize(device_));
    return data;
}

template <class T>
std::vector<T> Contract::download(const T *from, size_t count)
{
    std::vector<T> values(count);
    const uint64_t bytes = count * sizeof(T);
    EXPECT_DONE(
        table_->copy(device_, values.data(), from, bytes, YOKE_COPY_DEVICE_TO_HOST, nullptr));
    EXPECT_DONE(table_->device_synchronize(device_));
    return values;
}

}  // namespace yoke::test
