#include "core/ops/recompute/budget_times.h"

#include "core/base/config.h"
#include "core/base/text.h"
#include "core/memory/memory.h"
#include "core/ops/graph.h"
#include "core/ops/op_def.h"

#include <atomic>
#include <chrono>
#include <optional>

namespace yoke {

namespace {

double clock_seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Waits for the kernels of a GPU, which run after the launching call. In a capture, does not wait.
void wait_for_kernels(Device &device)
{
    if (!device.host && !Graph::of_thread())
        static_cast<void>(
            synchronize_lane(device, memory_lane(device)));  // the next wait reports an error
}

// Returns estimated seconds of a launch, for captures, where no time can be measured.
double assumed_seconds(const yoke_launch &launch)
{
    const bool is_product = launch.op >= 0 && kOps[launch.op].cost == Cost::kGemm;
    return launch.work / (is_product ? 1e14 : 2e12);
}

// Returns a random time if YOKE_BUDGET_TIMES is set: a microsecond to 10 ms, each decade as likely. For tests, which
// could not bring about the plans of every machine.
std::optional<double> drawn_seconds()
{
    static const char *const seed = try_config("YOKE_BUDGET_TIMES");
    if (!seed) return {};
    static std::atomic<uint64_t> state{parsed<uint64_t>(seed).value_or(0)};
    uint64_t x = state.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    constexpr double kDecades[] = {1e-6, 1e-5, 1e-4, 1e-3};
    return kDecades[x >> 62] * (1 + 9 * static_cast<double>(x & 0xffff) / 0x10000);
}

}  // namespace

void CallClock::start(Device &device, bool waits)
{
    if (waits) wait_for_kernels(device);
    started_ = clock_seconds();
}

double CallClock::stop(const yoke_launch &launch, Device &device, bool waits) const
{
    if (waits) wait_for_kernels(device);
    if (const auto drawn = drawn_seconds()) [[unlikely]]
        return *drawn;
    const bool is_timed = device.host || !Graph::of_thread();
    return is_timed ? clock_seconds() - started_ : assumed_seconds(launch);
}

}  // namespace yoke
