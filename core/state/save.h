// save.h: states into safetensors files.
#pragma once

#include "core/base/work.h"
#include "core/state/tree.h"

#include <cstdint>
#include <memory>
#include <string>

namespace yoke {

struct SaveOptions {
    const State *metadata = nullptr;  // a dict of strings; keys with "yoke." in front are reserved
    bool is_blocking = true;          // false: write in the background
    uint64_t max_shard = 0;           // bytes of tensors in a file; 0: as many as there are
};

// Returns the bytes in a text such as "5GiB" or "500000000". Raises YOKE_E_VALUE for other texts, and below 1 byte.
uint64_t read_max_shard(std::string_view text, const char *call);

// Prefix and names of Yoke's own metadata keys in every file.
inline constexpr std::string_view kOwnKeys = "yoke.";
inline constexpr std::string_view kTreeKey = "yoke.tree", kFormatKey = "yoke.format";

using StoredMetadata = std::vector<std::pair<std::string, std::string>>;

// Contents of the files, a single file or a set: for each, a header and the tensors whose elements follow.
struct StateToSave {
    struct File {
        std::string header;
        std::vector<std::string> names;  // names of the file's tensors, in order
    };
    std::vector<File> files;
    std::vector<Tensor> tensors;  // tensors of all files, in order
    StoredMetadata metadata;      // metadata for a set's index
    uint64_t bytes = 0;           // bytes of all files

    // Returns the contents of the files for a tree: a single file, or files of at most `max_shard` bytes of tensors.
    // Raises YOKE_E_VALUE or YOKE_E_TYPE, with the path, if a value cannot be saved.
    static StateToSave of(const State &root, const SaveOptions &options, const char *call);
};

// Target of a save: bytes from first to last, then a single commit that makes them visible. An exception from write
// or commit is the failure of the save. Without a commit, no file has changed. A target may be made and used in
// different threads.
class SaveTarget {
public:
    virtual ~SaveTarget() = default;
    // Directs later writes to the file of this number, from 0.
    virtual void begin_file(size_t) {}
    virtual void write(const void *from, uint64_t bytes) = 0;
    virtual void commit() = 0;
};

// Writes the state as of now, after the current save ends. The target is a safetensors file. If the tensors take more
// than max_shard, the target is a set: files beside `path`, named by core/state/set_names.h, and their index. If the
// save before failed without a report, this call raises that failure and writes no file. Whenever the machine stops,
// the new state is there whole or not at all. A dict of tensors becomes a plain file; for any other tree, the plain
// values go into the metadata. Memory beside the tensors: kMostChunk, and for a device tensor that is not row-major,
// a copy of one chunk. A save in the background takes copies of all tensors. Raises also YOKE_E_IO for an error of
// the system, and YOKE_E_VALUE for the path of an index.
Ref<Work> save_state(const std::string &path, const State &root, const SaveOptions &options,
                     const char *call);

}  // namespace yoke
