// save.h: states into safetensors files.
#pragma once

#include "core/base/work.h"
#include "core/state/tree.h"

#include <cstdint>
#include <memory>
#include <string>

namespace yoke {

struct SaveOptions {
    const State *metadata = nullptr;  // a dict of strings; keys that begin with "yoke." are ours
    bool is_blocking = true;          // false: it is written while work goes on
    uint64_t max_shard = 0;           // bytes of tensors in a file; 0: as many as there are
};

// "5GiB", "500000000". Raises YOKE_E_VALUE.
uint64_t read_max_shard(std::string_view text, const char *call);

// What every file of ours begins its own keys of the metadata with, and what they are.
inline constexpr std::string_view kOwnKeys = "yoke.";
inline constexpr std::string_view kTreeKey = "yoke.tree", kFormatKey = "yoke.format";

using StoredMetadata = std::vector<std::pair<std::string, std::string>>;

// What files will hold, one or the several of a set: a header each, and the tensors whose elements follow it.
struct StateToSave {
    struct File {
        std::string header;
        std::vector<std::string> names;  // of its tensors, in their order
    };
    std::vector<File> files;
    std::vector<Tensor> tensors;  // of all files, in their order
    StoredMetadata metadata;      // of the index of a set
    uint64_t bytes = 0;           // of all files

    // Raises YOKE_E_VALUE and YOKE_E_TYPE for what cannot be saved, with its path.
    static StateToSave of(const State &root, const SaveOptions &options, const char *call);
};

// Where it goes: bytes from the first to the last, and then, once, the step by which they are found. An exception from
// either is what the save failed with; without commit nothing has changed. It is made and used in different threads.
class SaveTarget {
public:
    virtual ~SaveTarget() = default;
    // What is written from now on goes to the file of that number, from 0.
    virtual void begin_file(size_t) {}
    virtual void write(const void *from, uint64_t bytes) = 0;
    virtual void commit() = 0;
};

// Writes the state as it is at this moment, after the save that goes on, to a safetensors file, or, where its tensors
// take more than max_shard, to a set: files beside `path`, which core/state/set_names.h names, and their index. If the
// save before failed and nobody was told, the failure is raised here, and nothing written. The new state is there whole
// or not at all, whenever the machine stops: a dict of tensors is a plain file of them, of another tree the plain
// values stand in the metadata. Memory beside the tensors: kMostChunk, and of a device's tensor that does not lie
// row-major a copy of one chunk; beside the script copies of all tensors. Raises also YOKE_E_IO for what the system
// refuses, and YOKE_E_VALUE for the path of an index.
Ref<Work> save_state(const std::string &path, const State &root, const SaveOptions &options,
                     const char *call);

}  // namespace yoke
