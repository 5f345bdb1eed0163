// scene.h: a scene is a few objects that all threads use at once, and the calls on these objects.
//
// A piece of a scene is a call or a few calls, drawn at random; threads draw pieces of a common scene, or of several
// scenes. Every call gives YOKE_OK, or the YOKE_E_STATE that its comment promises if another thread is inside. After
// the end of the threads, results are checked where they are determined, as a number of steps determines a parameter.
#pragma once

#include <yoke/yoke.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace hostile {

// Random numbers of a thread; `thread` is the thread's number.
struct Dice {
    std::mt19937_64 engine;
    int thread;
    uint64_t below(uint64_t n) { return engine() % n; }
};

class Scene {
public:
    virtual ~Scene() = default;
    virtual void piece(Dice &dice) = 0;
    // Called when no thread is inside any more.
    virtual void check() {}
};

struct SceneKind {
    const char *name;
    std::unique_ptr<Scene> (*make)();
    int share;  // hundredths of a round's pieces; queries of the machine are slow
};

// Return the scenes of each file.
std::span<const SceneKind> step_scenes();     // optimizers, scalers, averages
std::span<const SceneKind> record_scenes();   // gradients, casts, graphs
std::span<const SceneKind> scope_scenes();    // checkpoint scopes
std::span<const SceneKind> machine_scenes();  // inventories, explanations, reports, devices
std::span<const SceneKind> setting_scenes();  // logs, configuration
std::span<const SceneKind>
memory_scenes();  // tensors, events, blocks, numbers of threads, random numbers

// Makes first calls in several threads at once, each thread with another call; for a process without earlier calls.
void first_calls(uint64_t seed, int threads);

// ---- results of calls -----------------------------------------------------------------------------------------------

// Counts a failure and prints it, with the place; the first few are enough.
__attribute__((format(printf, 3, 4))) void wrong(const char *file, int line, const char *format,
                                                 ...);
extern std::atomic<int64_t> wrongs, calls_made, calls_refused;

bool expect_ok(yoke_status status, const char *file, int line);
// False where the call was refused as STATE; `why` is in the message (nullptr: any).
bool expect_order(yoke_status status, const char *why, const char *file, int line);

#define OK(call) ::hostile::expect_ok((call), __FILE__, __LINE__)
// Checks a call on an object that serves a single thread at a time.
#define IN_TURN(call) \
    ::hostile::expect_order((call), "another thread is inside", __FILE__, __LINE__)
// Checks a call whose success depends on the order of calls.
#define IN_ORDER(call) ::hostile::expect_order((call), nullptr, __FILE__, __LINE__)
#define TRUE(condition) \
    ((condition) ? true : (::hostile::wrong(__FILE__, __LINE__, "not true: %s", #condition), false))

// ---- handles --------------------------------------------------------------------------------------------------------

template <class Handle, void (*kRelease)(Handle *)>
class Held {
public:
    Held() = default;
    Held(Held &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Held &operator=(Held &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Held() { kRelease(handle_); }
    operator Handle *() const { return handle_; }
    Handle **out()
    {
        kRelease(std::exchange(handle_, nullptr));
        return &handle_;
    }

private:
    Handle *handle_ = nullptr;
};
using TensorHeld = Held<yoke_tensor, yoke_tensor_release>;
using OptimizerHeld = Held<yoke_optimizer, yoke_optimizer_release>;
using ScalerHeld = Held<yoke_grad_scaler, yoke_grad_scaler_release>;
using EmaHeld = Held<yoke_ema, yoke_ema_release>;
using RegionHeld = Held<yoke_autocast, yoke_autocast_release>;
using GraphHeld = Held<yoke_graph, yoke_graph_release>;
using EventHeld = Held<yoke_event, yoke_event_release>;
using StreamHeld = Held<yoke_stream, yoke_stream_release>;
using DeviceHeld = Held<yoke_device, yoke_device_release>;
using InventoryHeld = Held<yoke_inventory, yoke_inventory_release>;
using ExplanationHeld = Held<yoke_explanation, yoke_explanation_release>;
using ReportHeld = Held<yoke_report, yoke_report_release>;

// A float32 tensor of the CPU, all elements the same.
TensorHeld full(int64_t rows, int64_t columns, double value);
// Returns a leaf that requires grad, with a gradient of the given value unless the value is 0.
TensorHeld parameter(int64_t rows, int64_t columns, double value, double gradient);
std::vector<float> values_of(yoke_tensor *tensor);
// Checks that all elements are equal, and returns an element; 0 for an empty tensor.
float only_value(yoke_tensor *tensor, const char *file, int line);
#define ONLY_VALUE(tensor) ::hostile::only_value((tensor), __FILE__, __LINE__)

}  // namespace hostile
