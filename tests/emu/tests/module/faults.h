// Fails every call of the module to CUDA's libraries, one after another.
//
// A part is a piece of a device's life: steps, each an entry of the table. First the part runs without faults, and
// the calls of every name are counted. Then, for each call, the part runs in a fresh process in which this call
// fails. There are two right outcomes. In the first, the call's step fails with the right status and the call's name.
// No new resource is held, and the step works when it is repeated. If the device is lost by then, no call on the
// device works until the process ends, and the part ends there. In the second outcome, the module goes on without the
// call, and the log has the call's name. At the end no resource is held, except a resource that CUDA itself refused
// to take back.
#pragma once

#include <algorithm>
#include <climits>
#include <functional>
#include <map>
#include <string>

#include "module.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

class Scenario {
public:
    using Part = std::function<void(Scenario &)>;

    struct Lost {};  // thrown by the step that loses the device

    std::vector<Failure> failures;
    void *device = nullptr;

    const yoke_backend *operator->() const { return Module::table(); }
    const yoke_backend &table() const { return *Module::table(); }

    void run(const Part &part)
    {
        open(0, &device);
        if (!device) return;
        part(*this);
        step([&] { return table().device_synchronize(device); });
        table().device_close(device);
        for (const Failure &one : std::exchange(Module::scratch_failures(), {}))
            failures.push_back(one);
    }
    // Opens a device. The first call makes a context, which stays while the device is open, even if that call fails
    // later.
    void open(int32_t index, void **opened)
    {
        step([&] { return table().device_open(index, opened); });
        if (!*opened || table().device_synchronize(*opened) == YOKE_OK) return;
        failures.push_back(failure());
        EXPECT_EQ(table().device_synchronize(*opened), YOKE_OK)
            << "the second time: " << failure().message;
    }
    // A step that fails is noted and taken once more.
    void step(const std::function<yoke_status()> &call)
    {
        // Handles of libraries do not count: they stay until the device closes, even if the first product fails.
        const std::string before = Module::held(FAKE_HANDLES);
        if (call() == YOKE_OK) return;
        failures.push_back(failure());
        if (Module::is_lost()) {
            EXPECT_EQ(call(), YOKE_E_DEVICE_LOST) << failure().message;
            throw Lost();
        }
        EXPECT_EQ(Module::held(FAKE_HANDLES), before) << "lost by: " << failure().message;
        const yoke_status again = call();
        if (device) {
            EXPECT_EQ(again, YOKE_OK) << "the second time: " << failure().message;
        }
    }
    void *alloc(uint64_t bytes)
    {
        void *block = nullptr;
        step([&] { return table().alloc(device, bytes, &block); });
        return block;
    }
    void free(void *block, uint64_t bytes)
    {
        step([&] { return table().free(device, block, bytes); });
    }
    void *stream()
    {
        void *made = nullptr;
        step([&] { return table().stream_create(device, 0, &made); });
        return made;
    }
    void wait(void *on = nullptr)
    {
        step([&] { return table().stream_synchronize(device, on); });
    }
    // Returns a block with these values; bytes are the vector's.
    template <class T>
    T *upload(const std::vector<T> &values)
    {
        void *block = alloc(values.size() * sizeof(T));
        step([&] {
            return table().copy(device, block, values.data(), values.size() * sizeof(T),
                                YOKE_COPY_HOST_TO_DEVICE, nullptr);
        });
        return static_cast<T *>(block);
    }
    // Returns the contents of a block written on the default stream, and frees the block.
    template <class T>
    std::vector<T> download(T *block, size_t count)
    {
        std::vector<T> values(count);
        step([&] {
            return table().copy(device, values.data(), block, count * sizeof(T),
                                YOKE_COPY_DEVICE_TO_HOST, nullptr);
        });
        free(block, count * sizeof(T));
        return values;
    }

private:
    Module module_;
};

namespace detail {

// How a call fails, and the status of that.
struct Fault {
    int of_cuda;
    yoke_status cuda_status;
    int of_cublas;
    yoke_status cublas_status;
    int of_cudnn;
    yoke_status cudnn_status;
    int number_for(const std::string &call) const
    {
        return call.ends_with("'s kernel")    ? of_cuda
               : call.starts_with("cublasLt") ? of_cublas
               : call.starts_with("cudnn")    ? of_cudnn
                                              : of_cuda;
    }
};

// Call that the module can do without: text in the log, and resources that CUDA keeps.
struct Optional {
    const char *call, *logged, *held;
};
// Finds the entry for a call; of several entries, the entry whose text is in the log.
inline const Optional *find_optional(const std::string &call)
{
    static constexpr Optional kAll[] = {
        {"cuCtxPopCurrent", "cuCtxPopCurrent", "pushed contexts=1"},
        {"cuCtxPushCurrent", "device_close: cuCtxPushCurrent", nullptr},
        {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease", "contexts=1"},
        {"cudaFreeHost", "device_close: cudaFreeHost", "pinned blocks=1"},
        {"cublasLtDestroy", "device_close: cublasLtDestroy", "handles=1"},
        {"cudaGraphDestroy", "graph_end: cudaGraphDestroy", "graphs=1"},
        {"cuDeviceGetName", "AUTOTUNE_FILE is not used: cuDeviceGetName", ""},
        {"cublasLtMatmulAlgoCheck", "not used: cublasLtMatmulAlgoCheck", ""},
        {"cuDeviceGetAttribute", "cuDeviceGetAttribute", ""},
        {"cudaStreamIsCapturing", "tuning a matrix product: cudaStreamIsCapturing", ""},
        {"cublasLtMatmul", "tuning a matrix product: cublasLtMatmul", ""},
        {"cublasLt's kernel", "tuning a matrix product: cublasLtMatmul", ""},
        {"cudaEventCreateWithFlags", "tuning a matrix product: cudaEventCreateWithFlags", ""},
        {"cudaEventRecord", "tuning a matrix product: cudaEventRecord", ""},
        {"cudaEventSynchronize", "tuning a matrix product: cudaEventSynchronize", ""},
        {"cudaEventElapsedTime", "tuning a matrix product: cudaEventElapsedTime", ""},
        {"cudaStreamIsCapturing", "tuning a plan of cuDNN's: cudaStreamIsCapturing", ""},
        {"cudaEventCreateWithFlags", "tuning a plan of cuDNN's: cudaEventCreateWithFlags", ""},
        {"cudaEventRecord", "tuning a plan of cuDNN's: cudaEventRecord", ""},
        {"cudaEventSynchronize", "tuning a plan of cuDNN's: cudaEventSynchronize", ""},
        {"cudaEventElapsedTime", "tuning a plan of cuDNN's: cudaEventElapsedTime", ""},
        {"cudaEventDestroy", "tuning a plan of cuDNN's: cudaEventDestroy", "events=1"},
        {"cudnnBackendExecute", "cudnnBackendExecute", ""},
        {"cuDNN's kernel", "cudnnBackendExecute", ""},
        {"cudaPointerGetAttributes", "cudaPointerGetAttributes", ""},
        {"cudaDeviceCanAccessPeer", "cudaDeviceCanAccessPeer", ""},
        {"cudaDeviceEnablePeerAccess", "cudaDeviceEnablePeerAccess", ""},
        {"cuCtxPushCurrent", "no memory for a workspace", ""},
        {"cudaMalloc", "no memory for a workspace", ""},
        {"cudnnCreate", "cudnnCreate", ""},
        {"cudnnDestroy", "device_close: cudnnDestroy", "handles=1"},
        {"cudnnSetStream", "cudnnSetStream", ""},
        {"cudnnBackendCreateDescriptor", "cudnnBackendCreateDescriptor", ""},
        {"cudnnBackendSetAttribute", "cudnnBackendSetAttribute", ""},
        {"cudnnBackendGetAttribute", "cudnnBackendGetAttribute", ""},
        {"cudnnBackendFinalize", "cudnnBackendFinalize", ""},
        {"cudaEventDestroy", "tuning a matrix product: cudaEventDestroy", "events=1"},
    };
    const Optional *found = nullptr;
    for (const Optional &one : kAll)
        if (call == one.call && (!found || Module::logged().find(one.logged) != std::string::npos))
            found = &one;
    return found;
}

// Tells whether a call belongs to the examination of the driver. A failure there is final for the process.
inline bool is_of_examination(const std::string &call)
{
    for (const char *one : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
                            "cuDeviceGetAttribute", "cuDeviceTotalMem"})
        if (call == one) return true;
    return false;
}

// Returns the call's name in messages.
inline std::string name_in_messages(const std::string &call)
{
    if (call == "cudaLaunchKernel") return "refused a launch";
    if (call == "cublasLt's kernel") return "cublasLtMatmul";
    if (call == "cuDNN's kernel") return "cudnnBackendExecute";
    return call.substr(0, call.find("_internal"));  // as cuBLASLt's header calls its own
}

inline void expect_told(const Failure &told, const std::string &call, const Fault &fault)
{
    const bool is_cubs = call == "cudaLaunchKernel" &&  // CUB launches the kernel
                         told.message.find("cub::DeviceRadixSort::SortPairs") != std::string::npos;
    if (call == "cudaLaunchKernel" && fault.cuda_status == YOKE_E_DEVICE_LOST) {
        EXPECT_NE(told.message.find("caused by earlier work"), std::string::npos) << told.message;
        EXPECT_EQ(told.message.find("refused"), std::string::npos) << told.message;
    } else {
        EXPECT_TRUE(is_cubs || told.message.find(name_in_messages(call)) != std::string::npos)
            << told.message;
    }
    // For a failed launch, cuBLASLt gives no reason; the context shows whether the device is lost.
    const bool is_launch = call.ends_with("'s kernel");
    const yoke_status of_launch =
        fault.cuda_status == YOKE_E_DEVICE_LOST ? YOKE_E_DEVICE_LOST : YOKE_E_INTERNAL;
    const yoke_status expected = is_of_examination(call)        ? YOKE_E_UNAVAILABLE
                                 : is_launch                    ? of_launch
                                 : call.starts_with("cublasLt") ? fault.cublas_status
                                 : call.starts_with("cudnn")    ? fault.cudnn_status
                                                                : fault.cuda_status;
    EXPECT_EQ(told.status, expected) << told.message;
}

// Expects a log line for a fault that failed no step, because the module can do without the call.
inline void expect_logged(const std::string &call)
{
    const Optional *optional = find_optional(call);
    ASSERT_NE(optional, nullptr) << "it was passed over";
    EXPECT_NE(Module::logged().find(optional->logged), std::string::npos)
        << "the log has no '" << optional->logged << "': " << Module::logged();
    if (optional->held) {
        EXPECT_EQ(Module::held(), optional->held);
    }
}

// Plays a part with a failing call, then again without faults. The caller must run this in a fresh process.
inline void play_with(const Scenario::Part &part, const std::string &call, int n,
                      const Fault &fault)
{
    const std::string asked =
        call + "@" + std::to_string(n) + "=" + std::to_string(fault.number_for(call));
    setenv("FAKE_CUDA_FAIL", asked.c_str(), 1);
    Scenario scenario;
    try {
        scenario.run(part);
    } catch (const Scenario::Lost &) {
        ASSERT_EQ(scenario.failures.size(), 1u);
        return expect_told(scenario.failures[0], call, fault);
    }
    ASSERT_LE(scenario.failures.size(), 1u) << scenario.failures[1].message;
    const bool told = !scenario.failures.empty();
    if (told)
        expect_told(scenario.failures[0], call, fault);
    else
        expect_logged(call);
    if (is_of_examination(call)) return;
    if (told) {
        EXPECT_EQ(Module::held(), "");
    }
    const Optional *optional = told ? nullptr : find_optional(call);
    Scenario again;
    again.run(part);
    EXPECT_TRUE(again.failures.empty()) << "without faults: " << again.failures[0].message;
    EXPECT_EQ(Module::held(), optional && optional->held ? optional->held : "");
}

// Returns how often each call is made where none fails.
inline std::map<std::string, int> count_calls(const Scenario::Part &part)
{
    const std::string file = testing::TempDir() + "yoke_calls_" + std::to_string(getpid());
    EXPECT_TRUE(passes_in_child([&] {
        Scenario scenario;
        scenario.run(part);
        EXPECT_TRUE(scenario.failures.empty()) << scenario.failures[0].message;
        EXPECT_EQ(Module::held(), "");
        EXPECT_EQ(Module::logged(), "");
        FILE *out = fopen(file.c_str(), "w");
        for (const auto &[name, count] : Module::calls())
            fprintf(out, "%s\t%d\n", name.c_str(), count);
        fclose(out);
    }));
    std::map<std::string, int> calls;
    char name[64];
    int count = 0;
    FILE *in = fopen(file.c_str(), "r");
    while (in && fscanf(in, " %63[^\t] %d", name, &count) == 2) calls[name] = count;
    if (in) fclose(in);
    remove(file.c_str());
    return calls;
}

}  // namespace detail

// Fails every call of a part once, in each of two ways: no memory, and a broken device or library. `needed` are calls
// that the part must make; otherwise the part could lose them unnoticed. If a part makes many calls of a name, at
// most `most` of them fail, spread from the first to the last.
inline void expect_every_call_may_fail(const Scenario::Part &part,
                                       const std::vector<const char *> &needed, int most = INT_MAX)
{
    constexpr detail::Fault kFaults[] = {
        {2, YOKE_E_OOM, 3, YOKE_E_OOM, 4003, YOKE_E_OOM},
        {700, YOKE_E_DEVICE_LOST, 14, YOKE_E_INTERNAL, 4000, YOKE_E_INTERNAL}};
    const std::map<std::string, int> calls = detail::count_calls(part);
    for (const char *name : needed) EXPECT_TRUE(calls.count(name)) << name << " is not called";
    std::string wrong;  // gathered: a child begins with its parent's failures
    const auto fail = [&](const std::string &call, int n) {
        for (const detail::Fault &fault : kFaults)
            if (!passes_in_child([&] { detail::play_with(part, call, n, fault); }))
                wrong += " " + call + "@" + std::to_string(n) + "=" + std::to_string(fault.of_cuda);
    };
    for (const auto &[name, count] : calls) {
        const int tried = std::min(count, most);
        for (int i = 0; i < tried; ++i)
            fail(name,
                 tried == 1 ? count : 1 + static_cast<int>(int64_t{i} * (count - 1) / (tried - 1)));
    }
    EXPECT_EQ(wrong, "");
}

// Each call needs a process, and processes are slow under sanitizers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMostOfMany = 6;
#else
constexpr int kMostOfMany = 40;
#endif

}  // namespace yoke::test
