// Runtime calls for the CUDA module, linked into a copy of the module in place of cudart: errors, devices, memory,
// copies. See fake.h.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/cuda/runtime.h"

using namespace yoke::fake;

namespace {

bool is_in_use(const void *block)
{
    for (const WorkRef &work : state().waiting)
        if (std::count(work->uses.begin(), work->uses.end(), block)) return true;
    return false;
}

// Pages of a device, 2 MiB each. Small blocks share a page, and larger blocks do not.
constexpr size_t kPage = (size_t)2 << 20, kShares = (size_t)1 << 20, kUnit = 512;

size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

size_t used_by(int device)
{
    size_t used = device == kHost ? 0 : describe(device).chunks, shared = 0;
    for (const auto &[place, block] : state().blocks) {
        if (block.device != device) continue;
        if (device == kHost)
            used += block.bytes;
        else if (block.bytes > kShares || block.of_library)
            used += round_up(block.bytes, kPage);
        else
            shared += round_up(block.bytes, kUnit);
    }
    return used + round_up(shared, kPage);
}

// Returns the memory that is left of a device. However large the device is, the fake gives at most fake_memory().
size_t left_of(int device)
{
    const size_t used = used_by(device), mine = fake_memory() - std::min(fake_memory(), used);
    if (device == kHost) return mine;
    const fake_device found = describe(device);
    return std::min(mine, found.total - std::min(found.total, found.used + used));
}

cudaError_t take(void **place, size_t bytes, int device, bool of_library = false)
{
    const bool whole = of_library || (device != kHost && bytes > kShares);
    const size_t wanted = whole ? round_up(bytes, kPage) : bytes;
    if (!bytes || wanted < bytes || wanted > left_of(device)) return end(cudaErrorMemoryAllocation);
    // The block has exactly this size, so that AddressSanitizer reports a use of the first byte behind the block.
    constexpr size_t kWatched = 4096;
    const bool watched = getenv("YOKE_EMU_RACES") != nullptr;
    void *block = nullptr;
    if (posix_memalign(&block, watched || of_library ? kWatched : 256,
                       watched ? round_up(bytes, kWatched) : bytes))
        return end(cudaErrorMemoryAllocation);
    memset(block, 0xff, bytes);  // NaN
    state().blocks[static_cast<const char *>(block)] = {bytes, device, of_library};
    hold(device == kHost ? FAKE_PINNED : FAKE_BLOCKS, 1);
    *place = block;
    return cudaSuccess;
}

cudaError_t give(const char *call, void *place, bool pinned, bool of_library = false)
{
    auto &blocks = state().blocks;
    const auto found = blocks.find(static_cast<const char *>(place));
    if (found == blocks.end() || (found->second.device == kHost) != pinned ||
        found->second.of_library != of_library)
        return end(cudaErrorInvalidValue);
    if (is_in_use(place)) {
        complain(call, "work that was not waited for uses the block");
        return end(cudaErrorInvalidValue);
    }
    blocks.erase(found);
    free(place);
    hold(pinned ? FAKE_PINNED : FAKE_BLOCKS, -1);
    return cudaSuccess;
}

// Returns the device of the chunk mapped at the place, or -1. `open` gets a bit for each device with access to the
// chunk.
int chunk_at(const void *place, uint64_t *open)
{
    static const auto ask = [] {
        void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return reinterpret_cast<decltype(&fake_chunk_at)>(driver ? dlsym(driver, "fake_chunk_at")
                                                                 : nullptr);
    }();
    return ask ? ask(place, open) : -1;
}

// Tells whether [place, place + bytes) lies in a single block, if in any; adds the block to `uses`.
bool is_inside(const void *place, size_t bytes, std::vector<const void *> &uses, int &device)
{
    uint64_t open = 0;
    if (const int owner = chunk_at(place, &open); owner >= 0) {
        device = owner;
        return true;
    }
    const auto block = find_block(place);
    if (block == state().blocks.end()) return true;
    uses.push_back(block->first);
    device = block->second.device;
    return static_cast<const char *>(place) + bytes <= block->first + block->second.bytes;
}

bool can_reach(int device, int peer)
{
    const char *setting = getenv("FAKE_CUDA_PEERS");
    return device != peer && !(setting && *setting == '0');
}

}  // namespace

namespace yoke::fake {

int find_memory(const void *place, size_t *left)
{
    *left = SIZE_MAX;
    uint64_t open = 0;
    if (const int owner = chunk_at(place, &open); owner >= 0) return owner;
    const std::lock_guard lock(state().mutex);
    const auto block = find_block(place);
    if (block == state().blocks.end()) return FAKE_UNKNOWN;
    *left =
        static_cast<size_t>(block->first + block->second.bytes - static_cast<const char *>(place));
    return block->second.device;
}

cudaError_t give_to_library(int device, void **place, size_t bytes)
{
    const std::lock_guard lock(state().mutex);
    return take(place, bytes, device, true);
}

cudaError_t take_from_library(void *place)
{
    const std::lock_guard lock(state().mutex);
    return give("release", place, false, true);
}

}  // namespace yoke::fake

size_t yoke::fake::left_for_chunks(int device)
{
    const std::lock_guard lock(state().mutex);
    return left_of(device) / kPage * kPage;
}

extern "C" {

void fake_blocks(void (*visit)(void *, void *, size_t), void *list)
{
    for (const auto &[place, block] : state().blocks)
        visit(list, const_cast<char *>(place), block.bytes);
}

const void *fake_end_of_block(const void *place)
{
    const std::lock_guard lock(state().mutex);
    const auto block = find_block(place);
    return block == state().blocks.end() ? nullptr : block->first + block->second.bytes;
}

// ---- errors and devices ---------------------------------------------------------------------------------------------

const char *cudaGetErrorName(cudaError_t error)
{
    static thread_local char text[32];
    snprintf(text, sizeof text, "cudaErrorFake%d", static_cast<int>(error));
    return text;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "a failure that the test asked for";
}

cudaError_t cudaGetLastError()
{
    return last_error();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    if (const int why = fault_of(__func__)) return end(why);  // the call makes and needs no context
    *prop = {};
    const fake_device found = describe(device);
    memcpy(prop->name, found.name, sizeof found.name);
    memcpy(prop->uuid.bytes, found.uuid, sizeof prop->uuid.bytes);
    prop->pciDomainID = found.domain;
    prop->pciBusID = found.bus;
    prop->pciDeviceID = found.slot;
    prop->totalGlobalMem = found.total;
    prop->multiProcessorCount = found.multiprocessors;
    prop->major = found.major;
    prop->minor = found.minor;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    ENTER_UNSAFE();
    const int device = current_device();
    if (spoil_captures_of(device)) return end(cudaErrorStreamCaptureUnsupported);
    for (;;) {
        const auto &waiting = state().waiting;
        const auto found = std::find_if(waiting.begin(), waiting.end(),
                                        [=](const WorkRef &w) { return w->device == device; });
        if (found == waiting.end()) break;
        finish(WorkRef(*found));
    }
    wait_for(nullptr);
    return take_error(device);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (const int why = fault_of(__func__)) return end(why);
    *can = can_reach(device, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    ENTER_UNSAFE();
    const int device = current_device();
    if (flags) return end(cudaErrorInvalidValue);
    if (!can_reach(device, peer)) return end(cudaErrorInvalidDevice);
    const bool is_new = state().peers.emplace(device, peer).second;
    return is_new ? cudaSuccess : end(cudaErrorPeerAccessAlreadyEnabled);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER();
    const fake_device found = describe(current_device());
    *free_bytes = found.total - std::min(found.total, found.used + used_by(current_device()));
    *total = found.total;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **place, size_t bytes)
{
    ENTER_UNSAFE();
    return take(place, bytes, current_device());
}

// CUDA's cudaFree() waits for the device. The backend's contract promises that no work is left to wait for.
cudaError_t cudaFree(void *place)
{
    ENTER_UNSAFE();
    return give("cudaFree", place, false);
}

cudaError_t cudaHostAlloc(void **place, size_t bytes, unsigned flags)
{
    ENTER_UNSAFE();
    return flags == cudaHostAllocPortable ? take(place, bytes, kHost) : end(cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *place)
{
    ENTER_UNSAFE();
    return give("cudaFreeHost", place, true);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *told, const void *place)
{
    ENTER();
    *told = {};
    told->type = cudaMemoryTypeUnregistered;
    told->device = -1;
    uint64_t open = 0;
    if (const int device = chunk_at(place, &open); device >= 0) {
        told->type = cudaMemoryTypeDevice;
        told->device = device;
        told->devicePointer = const_cast<void *>(place);
        return cudaSuccess;
    }
    const auto block = find_block(place);
    if (block == state().blocks.end()) return cudaSuccess;
    const bool pinned = block->second.device == kHost;
    told->type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    told->device = pinned ? 0 : block->second.device;
    told->devicePointer = const_cast<void *>(place);
    return cudaSuccess;
}

}  // extern "C"

// Copies on a stream. Pageable memory of the host is read at the call, and written before it returns; pinned memory
// when its turn comes. Chunks must be open to the stream's device, unless the copy goes through the host (`is_staged`).
static cudaError_t copy_on(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream, bool is_staged)
{
    constexpr int kUnknown = -2;
    if (kind == cudaMemcpyHostToHost) return end(cudaErrorInvalidMemcpyDirection);
    CUstream_st *const on = find_stream(stream);
    if (const cudaError_t problem = problem_of(on)) return end(problem);
    std::vector<const void *> uses;
    int to = kUnknown, from = kUnknown;
    if (!is_inside(dst, bytes, uses, to) || !is_inside(src, bytes, uses, from)) {
        complain("cudaMemcpyAsync", "the range reaches beyond its block");
        return end(cudaErrorInvalidValue);
    }
    if ((kind == cudaMemcpyHostToDevice && from >= 0) ||
        (kind == cudaMemcpyDeviceToHost && to >= 0))
        return end(cudaErrorInvalidMemcpyDirection);
    uint64_t open = 0;
    for (const void *place : {static_cast<const void *>(dst), src})
        if (!is_staged && chunk_at(place, &open) >= 0 && !(open >> on->device & 1)) {
            complain("cudaMemcpyAsync", "a chunk was not opened to the device that copies");
            return end(cudaErrorInvalidValue);
        }
    std::vector<char> staged;
    if (kind == cudaMemcpyHostToDevice && from == kUnknown && !on->capture)
        staged.assign(static_cast<const char *>(src), static_cast<const char *>(src) + bytes);
    const auto work = [=, staged = std::move(staged)] {
        memmove(dst, staged.empty() ? src : staged.data(), bytes);
        return 0;
    };
    fake_note("cudaMemcpyAsync");
    const WorkRef made = enqueue(*on, work, uses);
    if (kind != cudaMemcpyDeviceToHost || to == kHost || on->capture) return cudaSuccess;
    const int device = on->device;
    finish(made);
    return take_error(device);
}

extern "C" {

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    ENTER();
    return copy_on(dst, src, bytes, kind, stream, false);
}

// Copies through host memory if a device cannot reach the other.
cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t bytes,
                                cudaStream_t stream)
{
    ENTER();
    const bool is_staged = state().peers.count({to, from}) == 0;
    return copy_on(dst, src, bytes, cudaMemcpyDefault, stream, is_staged);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (const cudaError_t problem = problem_of(on)) return end(problem);
    std::vector<const void *> uses;
    int device = 0;
    if (!is_inside(dst, bytes, uses, device)) {
        complain("cudaMemsetAsync", "the range reaches beyond its block");
        return end(cudaErrorInvalidValue);
    }
    fake_note("cudaMemsetAsync");
    enqueue(
        *on, [=] { return memset(dst, value, bytes) ? 0 : 1; }, uses);
    return cudaSuccess;
}

}  // extern "C"
