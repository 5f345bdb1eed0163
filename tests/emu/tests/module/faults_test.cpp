// Every call that the module makes of CUDA's libraries fails once, each in its turn: the status and message are right,
// nothing is lost, and the same step works when it is taken again.
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "module.h"
#include "tests/backend/launch.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

constexpr uint64_t kBytes = 4096;
constexpr int kOutOfMemory = 2;  // a number that no call treats as an answer

using Calls = std::map<std::string, int>;

// A day in the life of the module. Each step that fails is noted and taken once more.
class Scenario {
public:
    std::vector<Failure> failures;
    Calls before_closing;

    void run()
    {
        step([&] { return module_->device_open(0, &device_); });
        if (!device_) return;
        ask();
        memory();
        virtual_memory();
        streams();
        kernels();
        step([&] { return module_->device_synchronize(device_); });
        before_closing = Module::calls();
        module_->device_close(device_);
    }

private:
    void step(const std::function<yoke_status()> &call)
    {
        if (call() == YOKE_OK) return;
        failures.push_back(failure());
        const yoke_status again = call();
        if (device_) {
            EXPECT_EQ(again, YOKE_OK) << "the second time: " << failure().message;
        }
    }
    void ask()
    {
        yoke_backend_device_info info{};
        info.struct_size = sizeof info;
        uint64_t free_bytes = 0, total = 0;
        step([&] { return module_->device_info(device_, &info); });
        step([&] { return module_->mem_info(device_, &free_bytes, &total); });
    }
    void memory()
    {
        void *block = nullptr, *pinned = nullptr;
        step([&] { return module_->alloc(device_, kBytes, &block); });
        step([&] { return module_->host_alloc(device_, kBytes, &pinned); });
        step([&] { return module_->fill(device_, block, 1, kBytes, nullptr); });
        step([&] {
            return module_->copy(device_, pinned, block, kBytes, YOKE_COPY_DEVICE_TO_HOST, nullptr);
        });
        step([&] { return module_->stream_synchronize(device_, nullptr); });
        EXPECT_EQ(static_cast<char *>(pinned)[kBytes - 1], 1);
        step([&] { return module_->host_free(device_, pinned, kBytes); });
        step([&] { return module_->free(device_, block, kBytes); });
    }
    void virtual_memory()
    {
        uint64_t unit = 0, chunk = 0;
        void *range = nullptr;
        step([&] { return module_->vmm_granularity(device_, &unit); });
        step([&] { return module_->vmm_reserve(device_, unit, &range); });
        step([&] { return module_->vmm_create(device_, unit, &chunk); });
        step([&] { return module_->vmm_map(device_, range, unit, chunk); });
        step([&] { return module_->fill(device_, range, 1, unit, nullptr); });
        step([&] { return module_->device_synchronize(device_); });
        step([&] { return module_->vmm_unmap(device_, range, unit); });
        step([&] { return module_->vmm_destroy(device_, chunk); });
        step([&] { return module_->vmm_release(device_, range, unit); });
    }
    void streams()
    {
        void *first = nullptr, *second = nullptr, *from = nullptr, *to = nullptr;
        int32_t yes = 0;
        double seconds = -1;
        step([&] { return module_->stream_create(device_, 0, &first); });
        step([&] { return module_->stream_create(device_, 1, &second); });
        step([&] { return module_->event_create(device_, YOKE_EVENT_TIMING, &from); });
        step([&] { return module_->event_create(device_, YOKE_EVENT_TIMING, &to); });
        step([&] { return module_->event_record(device_, from, first); });
        step([&] { return module_->event_wait(device_, from, second); });
        step([&] { return module_->event_record(device_, to, second); });
        step([&] { return module_->stream_query(device_, second, &yes); });
        step([&] { return module_->event_query(device_, to, &yes); });
        step([&] { return module_->event_synchronize(device_, to); });
        step([&] { return module_->event_elapsed(device_, from, to, &seconds); });
        EXPECT_GE(seconds, 0);
        step([&] { return module_->event_destroy(device_, from); });
        step([&] { return module_->event_destroy(device_, to); });
        step([&] { return module_->stream_destroy(device_, first); });
        step([&] { return module_->stream_destroy(device_, second); });
    }
    void kernels()
    {
        const std::vector<float> values = ramp<float>(64);
        void *x = nullptr, *y = nullptr;
        step([&] { return module_->alloc(device_, 256, &x); });
        step([&] { return module_->alloc(device_, 256, &y); });
        step([&] {
            return module_->copy(device_, x, values.data(), 256, YOKE_COPY_HOST_TO_DEVICE, nullptr);
        });
        const float *in = static_cast<float *>(x);
        float *out = static_cast<float *>(y);
        step([&] {
            return Record(YOKE_OP_ADD, device_)
                .in(in, {64})
                .in(in, {64})
                .out(out, {64})
                .run(*Module::table());
        });
        step([&] { return module_->stream_synchronize(device_, nullptr); });
        step([&] { return module_->free(device_, x, 256); });
        step([&] { return module_->free(device_, y, 256); });
    }

    Module module_;
    void *device_ = nullptr;
};

// Calls whose failure the module can do without.
bool is_optional(const std::string &call)
{
    return call == "cuCtxPopCurrent";  // the work is done; the next call finds its own context
}

// What a driver that fails while it is examined has said is settled for the process.
bool is_of_examination(const std::string &call)
{
    for (const char *one : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
                            "cuDeviceGetAttribute", "cuDeviceTotalMem"})
        if (call == one) return true;
    return false;
}

// What the message calls it.
std::string name_in_messages(const std::string &call)
{
    if (call == "cudaLaunchKernel") return "refused a launch";
    if (call == "cublasLt's kernel") return "cublasLtMatmul";
    return call.substr(0, call.find("_internal"));  // as cuBLASLt's header calls its own
}

void expect_told(const Failure &told, const std::string &call)
{
    EXPECT_NE(told.message.find(name_in_messages(call)), std::string::npos) << told.message;
    EXPECT_NE(told.status, YOKE_OK);
    if (call.starts_with("cuda") || (call.starts_with("cuM") || call.starts_with("cuCtx"))) {
        EXPECT_EQ(told.status, YOKE_E_OOM) << told.message;
    }
}

// The n-th call of a name fails in a process of its own. True if all is as it should be.
bool fail_one(const std::string &call, int n, bool is_closing)
{
    const std::string fault = call + "@" + std::to_string(n) + "=" + std::to_string(kOutOfMemory);
    return passes_in_child([&] {
        setenv("FAKE_CUDA_FAIL", fault.c_str(), 1);
        Scenario scenario;
        scenario.run();
        if (is_of_examination(call)) {
            ASSERT_EQ(scenario.failures.size(), 1u);
            expect_told(scenario.failures[0], call);
        } else if (!is_closing && !is_optional(call)) {
            ASSERT_EQ(scenario.failures.size(), 1u) << "it was passed over";
            expect_told(scenario.failures[0], call);
            EXPECT_EQ(Module::held(), "");
        }
        if (is_of_examination(call)) return;
        Scenario again;
        again.run();
        EXPECT_TRUE(again.failures.empty()) << "without faults: " << again.failures[0].message;
    });
}

// The calls of a run without faults: all, and those before the device is closed.
std::pair<Calls, Calls> count_calls()
{
    const std::string file = testing::TempDir() + "yoke_calls_" + std::to_string(getpid());
    EXPECT_TRUE(passes_in_child([&] {
        Scenario scenario;
        scenario.run();
        EXPECT_TRUE(scenario.failures.empty()) << scenario.failures[0].message;
        EXPECT_EQ(Module::held(), "");
        FILE *out = fopen(file.c_str(), "w");
        for (const auto &[name, count] : Module::calls())
            fprintf(out, "%s\t%d\t%d\n", name.c_str(), count, scenario.before_closing[name]);
        fclose(out);
    }));
    std::pair<Calls, Calls> calls;
    char name[64];
    int all = 0, before = 0;
    FILE *in = fopen(file.c_str(), "r");
    while (in && fscanf(in, " %63[^\t] %d %d", name, &all, &before) == 3)
        calls.first[name] = all, calls.second[name] = before;
    if (in) fclose(in);
    remove(file.c_str());
    return calls;
}

}  // namespace

TEST(Faults, EveryCallMayFailOnce)
{
    const auto [all, before_closing] = count_calls();
    EXPECT_GT(all.size(), 30u);
    std::string wrong;  // gathered: a child begins with its parent's failures
    for (const auto &[name, count] : all)
        for (int n = 1; n <= count; ++n)
            if (!fail_one(name, n, n > before_closing.at(name)))
                wrong += " " + name + "@" + std::to_string(n);
    EXPECT_EQ(wrong, "");
}

}  // namespace yoke::test
