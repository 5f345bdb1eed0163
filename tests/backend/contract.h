// contract.h: the suite that every backend must pass, run over each of contract_backends.
//
// The suite uses a backend's table as the core does, and knows no details behind the table. Memory is reached by
// copies alone, work is waited for, and groups missing in a backend are skipped. A new backend is a line in
// contract.cpp.
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
    bool complete;  // has a kernel for every op with kernels

    friend void PrintTo(const BackendUnderTest &one, std::ostream *out) { *out << one.kind; }
};

std::vector<BackendUnderTest> contract_backends();

// Reports of the backend to the host, in the calling thread, since the last forget().
struct Told {
    int errors = 0;
    yoke_status status = YOKE_OK;
    std::string message;
};
Told &told();

// Returns values of host->config for the calling thread.
std::map<std::string, std::string> &settings();

// Returns lines that backends have logged.
int log_lines();

// Returns a host that stores reports and settings, and has no scratch memory.
yoke_host plain_host();

// Device of a backend, opened once for all tests.
class Contract : public testing::TestWithParam<BackendUnderTest> {
protected:
    void SetUp() override;

    // Holds a failing call to the contract: this status, reported once, with a message of some substance.
    void expect_failure(yoke_status expected, yoke_status status, const char *what);
    // Expects a failure when several statuses are right.
    void expect_failure(yoke_status status, const char *what);

    // Returns device memory, which the test frees at its end.
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
