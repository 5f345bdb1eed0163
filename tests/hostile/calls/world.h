// world.h: the objects of random calls.
//
// Every kind of handle has a fixed number of places. A call takes arguments from places and puts the result into a
// place. The choice depends only on the call's own number, so a run without some calls draws equal arguments in the
// rest.
#pragma once

#include <yoke/yoke.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace hostile {

#define HOSTILE_HANDLES(X)   \
    X(tensor, 48)            \
    X(device, 3)             \
    X(stream, 4)             \
    X(event, 4)              \
    X(graph, 3)              \
    X(optimizer, 4)          \
    X(grad_scaler, 3)        \
    X(ema, 3)                \
    X(autocast, 4)           \
    X(checkpoint, 4)         \
    X(memory_budget, 2)      \
    X(state, 8)              \
    X(work, 2)               \
    X(checkpoint_manager, 2) \
    X(reducer, 2)            \
    X(sampler, 2)            \
    X(hook, 3)               \
    X(group, 2)              \
    X(inventory, 2)          \
    X(explanation, 2)        \
    X(report, 2)

template <class T>
struct Places;
#define HOSTILE_PLACES(kind, count)                \
    template <>                                    \
    struct Places<yoke_##kind> {                   \
        static constexpr const char *name = #kind; \
        static constexpr int size = count;         \
        std::array<yoke_##kind *, count> items{};  \
    };
HOSTILE_HANDLES(HOSTILE_PLACES)
#undef HOSTILE_PLACES

#define HOSTILE_RELEASE(kind, count)         \
    inline void release(yoke_##kind *handle) \
    {                                        \
        yoke_##kind##_release(handle);       \
    }
HOSTILE_HANDLES(HOSTILE_RELEASE)
#undef HOSTILE_RELEASE

// A sanitizer's shadow is beyond all limits of memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Number of places that start with a tensor. Calls' results go to any place; the first tensors are restored there.
inline constexpr int kPalette = 26;
// Results with more elements are released at once, and no call takes long.
inline constexpr int64_t kMostElements = 1024;

class World {
public:
    World() = default;
    World(const World &) = delete;
    ~World() { clear(); }

    template <class T>
    Places<T> &places();

    // Puts a handle into a place, and releases the place's former handle. A large tensor is not kept.
    template <class T>
    void put(int place, T *handle);

    // Restores the first tensors in the first places, and the thread's modes as at the start.
    void begin_again(uint64_t seed);
    // Releases all there is.
    void clear();

    std::array<void *, 4> blocks{};       // from yoke_alloc
    std::array<int64_t, 4> hearers{};     // from yoke_log_add_callback
    int64_t callback = 0, collector = 0;  // from yoke_on_out_of_memory, yoke_add_garbage_collector
    std::array<int64_t, 4> watches{};     // from yoke_preempt_add
    std::array<void *, 2> exported{};     // from yoke_tensor_to_dlpack, versioned
    int64_t succeeded = 0;                // calls that gave YOKE_OK
    std::atomic<int64_t> borrowed{
        0};  // tensors over this program's memory that are not dropped yet

    // Memory of the program that tensors borrow, larger than any kept tensor; aligned for every dtype.
    alignas(64) std::array<unsigned char, 16384> memory{};

    // With freed handles among the arguments: some that were released.
    bool keeps_freed = false;
    std::array<void *, 16> freed{};
    unsigned freed_count = 0;

    // Describes the first tensor of a place, for readers of a report.
    static std::string describe(int place);

private:
#define HOSTILE_MEMBER(kind, count) Places<yoke_##kind> kind##_;
    HOSTILE_HANDLES(HOSTILE_MEMBER)
#undef HOSTILE_MEMBER
};

#define HOSTILE_GET(kind, count)                \
    template <>                                 \
    inline Places<yoke_##kind> &World::places() \
    {                                           \
        return kind##_;                         \
    }
HOSTILE_HANDLES(HOSTILE_GET)
#undef HOSTILE_GET

void leave_modes();

template <class T>
void World::put(int place, T *handle)
{
    if constexpr (std::is_same_v<T, yoke_tensor>)
        if (handle && yoke_tensor_numel(handle) > kMostElements) {
            release(handle);
            handle = nullptr;
        }
    T *&there = places<T>().items[static_cast<size_t>(place)];
    if (there) {
        release(there);
        if (keeps_freed) freed[freed_count++ % freed.size()] = there;
    }
    there = handle;
}

// Calls the deleter of what yoke_tensor_to_dlpack gave.
void delete_exported(void *managed);

}  // namespace hostile
