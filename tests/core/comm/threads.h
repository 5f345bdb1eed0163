// threads.h: groups whose ranks are threads of the test, and the result of each rank.
#pragma once

#include "core/comm/group.h"
#include "core/comm/local_groups.h"
#include "core/ops/ops.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <future>

namespace yoke::test {

inline constexpr const char *kCall = "init_all";

// Returns a tensor on a device whose memory the CPU reaches.
inline Tensor filled_on(Device &device, int64_t count, float value)
{
    const int64_t shape[] = {count};
    Tensor made = make_tensor(device, YOKE_F32, shape, kCall);
    for (int64_t i = 0; i < count; ++i) reinterpret_cast<float *>(made->data)[i] = value;
    return made;
}

inline Tensor filled(int64_t count, float value)
{
    return filled_on(open_device("cpu"), count, value);
}

inline std::vector<float> values(const Tensor &tensor)
{
    const auto *data = reinterpret_cast<const float *>(tensor->data);
    return {data, data + tensor->numel};
}

inline Collective reduce_all(const Tensor &t, int32_t reduction = YOKE_REDUCE_SUM)
{
    return {YOKE_COMM_ALL_REDUCE, reduction, -1, t, t};
}

// Runs a collective of all ranks: "0 of 2" on rank 0, if two ranks came to one call.
inline std::string met(const Ref<Group> &group)
{
    const Tensor ones = filled(1, 1);
    group->run(reduce_all(ones), false);
    return format("%d of %g", group->rank(), static_cast<double>(values(ones)[0]));
}

inline Collective barrier()
{
    return {};
}

// Returns each rank's result: "" or the text of its error.
inline std::vector<std::string> each_rank(std::vector<Ref<Group>> &groups,
                                          const std::function<void(Group &)> &body)
{
    std::vector<std::future<std::string>> running;
    for (const Ref<Group> &group : groups)
        running.push_back(std::async(std::launch::async, [&body, group] {
            try {
                body(*group);
                return std::string();
            } catch (const Error &error) {
                return std::string(status_name(error.status())) + " " + error.what();
            }
        }));
    std::vector<std::string> told;
    for (auto &each : running) told.push_back(each.get());
    return told;
}

inline void expect_all_told(const std::vector<std::string> &told,
                            std::initializer_list<const char *> parts)
{
    for (const std::string &each : told) {
        EXPECT_EQ(each, told[0]);
        for (const char *part : parts)
            EXPECT_NE(each.find(part), std::string::npos) << "no '" << part << "' in: " << each;
    }
}

// Issues calls of a group together, in this thread if possible, and raises their error.
inline void run_together(Group &group, std::vector<IssuedCall> calls)
{
    CallIssuer::Together together{&group.issuer(), std::move(calls)};
    for (const Ref<Work> &each : CallIssuer::issue_together({&together})) each->wait(-1);
    if (together.failure) std::rethrow_exception(together.failure);
}

}  // namespace yoke::test
