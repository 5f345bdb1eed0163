// Questions of tests to the real cuDNN: descriptions of cards, and properties of the offered plans.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/cudnn/plans.h"
#include "tests/cudnn/devices.h"

namespace yoke::cuda {

constexpr uint64_t kWorkspaceLimit = 256 << 20;

// Loads the tests' own driver (driver.c). Before compiling an engine, cuDNN opens the driver and so finds this
// library in the process.
inline bool has_driver()
{
    static const bool has = dlopen(FOLDER "/driver/libcuda.so.1", RTLD_NOW) != nullptr;
    return has;
}

// Returns why nothing can be asked, or "".
inline std::string why_not()
{
    EXPECT_TRUE(has_driver()) << dlerror();
    return cudnn_why_unavailable();
}

inline std::vector<cudnnBackendNumericalNote_t> notes_of(const CudnnPlan &plan)
{
    CudnnSteps steps(*cudnn_calls());
    const Descriptor engine = steps.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t place = engine.get();
    steps.get(plan.config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
              &place);
    std::vector<cudnnBackendNumericalNote_t> notes(32);
    const int64_t count = steps.get(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                    CUDNN_TYPE_NUMERICAL_NOTE, 32, notes.data());
    EXPECT_TRUE(steps.works()) << steps.failure().said;
    notes.resize(static_cast<size_t>(count));
    return notes;
}

inline bool has_note(const CudnnPlan &plan, cudnnBackendNumericalNote_t note)
{
    const std::vector<cudnnBackendNumericalNote_t> notes = notes_of(plan);
    return std::find(notes.begin(), notes.end(), note) != notes.end();
}

// A test for each card.
class OnCard : public testing::TestWithParam<Card> {
protected:
    void SetUp() override
    {
        if (const std::string why = why_not(); !why.empty()) {
            printf("skipped: %s\n",
                   why.c_str());  // for ctest, which gtest's own word does not reach
            GTEST_SKIP() << why;
        }
        CudnnSteps steps(*cudnn_calls());
        const std::string text = described(GetParam());
        properties_ = steps.create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
        steps.set(properties_.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  static_cast<int64_t>(text.size()), text.data());
        steps.finalize(properties_.get());
        ASSERT_TRUE(steps.works()) << steps.failure().said;
    }
    Target target() const { return {nullptr, properties_.get()}; }
    // bfloat16 has been there since 8.0.
    bool has_bf16() const { return GetParam().arch >= 80; }

private:
    Descriptor properties_;
};

inline std::string name_of(const testing::TestParamInfo<Card> &card)
{
    std::string name = card.param.name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
    return name;
}

#define YOKE_ON_EACH_CARD(suite) \
    INSTANTIATE_TEST_SUITE_P(Cards, suite, testing::ValuesIn(kCards), name_of)

}  // namespace yoke::cuda
