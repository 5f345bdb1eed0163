// save.h: states into safetensors files.
#pragma once

#include "core/base/work.h"
#include "core/state/tree.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace yoke {

struct SaveOptions {
    const State *metadata = nullptr;  // a dict of strings; keys that begin with "yoke." are ours
    bool blocking = true;             // the work has ended when the call returns
};

// What every file of ours begins its own keys of the metadata with, and what they are.
inline constexpr std::string_view kOwnKeys = "yoke.";
inline constexpr std::string_view kTreeKey = "yoke.tree", kFormatKey = "yoke.format";

// What a file will hold: its header, and the tensors whose elements follow it, in their order.
struct StateToSave {
    std::string header;
    std::vector<Tensor> tensors;
    uint64_t bytes = 0;  // of the file

    // Raises YOKE_E_VALUE and YOKE_E_TYPE for what cannot be saved, with its path.
    static StateToSave of(const State &root, const SaveOptions &options, const char *call);
};

// Where it goes: bytes from the first to the last, and then, once, the step by which they are found. An exception from
// either is what the save failed with; without commit nothing has changed.
class SaveTarget {
public:
    virtual ~SaveTarget() = default;
    virtual void write(const void *from, uint64_t bytes) = 0;
    virtual void commit() = 0;
};

// Writes the state as it is at this moment. The work has ended.
Ref<Work> save_to(std::unique_ptr<SaveTarget> target, StateToSave state, const char *call);

// The same to a safetensors file, which is there whole or not at all, whenever the machine stops: a dict of tensors is
// a plain file of them, of another tree the plain values stand in the metadata. Memory beside the tensors: kMostChunk,
// and of a device's tensor that does not lie row-major a copy of one chunk. Raises also YOKE_E_IO for what the system
// refuses.
Ref<Work> save_state(const std::string &path, const State &root, const SaveOptions &options,
                     const char *call);

// The elements of a tensor in row-major order, a chunk at a time, in memory of the host.
inline constexpr uint64_t kMostChunk = uint64_t{16} << 20;
void for_each_chunk(const yoke_tensor &x, const std::function<void(const void *, uint64_t)> &take,
                    const char *call);

}  // namespace yoke
