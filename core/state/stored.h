// stored.h: the stored state at a path: a safetensors file, or a set of safetensors files with an index.
//
// A path may name a file of either kind, told apart by content; a file replaced by a set; or a folder with one of
// these. All headers are read at once, and files stay open, so a save at the same path meanwhile has no effect. If a
// set has very many files, some files are opened again on demand.
#pragma once

#include "core/state/find_state.h"
#include "core/state/read_file.h"
#include "core/state/set_index.h"
#include "core/state/stored_tensors.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Open safetensors file with its header.
class StoredFile {
public:
    // Reads the header of an open file. `name`: the file's name in the set; `shown`: the name in messages. Raises
    // YOKE_E_CHECKPOINT if the file is no safetensors file or breaks a rule.
    StoredFile(ReadFile file, std::string name, std::string shown);

    const StoredTensors &stored() const { return stored_; }
    const ReadFile &file() const { return file_; }
    void rest() { file_.rest(); }
    const std::string &name() const { return name_; }
    const char *path() const { return path_.c_str(); }
    uint64_t header_bytes() const { return header_bytes_; }
    uint64_t data_begin() const { return kLengthBytes + header_bytes_; }

private:
    static constexpr uint64_t kLengthBytes = 8;

    uint64_t read_length() const;
    // Raises YOKE_E_CHECKPOINT if the bytes belong to another known format. The error says how to make a state of
    // the file.
    void check_no_other(std::string_view first_bytes) const;
    StoredTensors read_header() const;

    std::string name_, path_;
    ReadFile file_;
    uint64_t header_bytes_;
    StoredTensors stored_;
};

class Stored {
public:
    struct Place {
        uint32_t file;
        const StoredTensors::Tensor *tensor;
    };

    // Opens the state at a path and reads all headers. `check`, if there is one, sees the file or index first. Raises
    // YOKE_E_CHECKPOINT with file, tensor and rule, and YOKE_E_IO if the system refuses a file.
    static Stored open(const std::string &path, const std::function<void(const ReadFile &)> &check,
                       const char *call);

    // Returns the path of the file, or of the set's index.
    const char *path() const { return path_.c_str(); }
    bool is_set() const { return index_.has_value(); }
    uint64_t index_bytes() const { return index_bytes_; }
    const std::vector<StoredFile> &files() const { return files_; }
    const StoredFile &file(const Place &place) const { return files_[place.file]; }
    std::string_view name(const Place &place) const
    {
        return file(place).stored().name(*place.tensor);
    }
    // Returns the tensors of the state: file by file, in data order.
    const std::vector<Place> &tensors() const { return tensors_; }
    size_t metadata_count() const;
    std::pair<std::string_view, std::string_view> metadata(size_t i) const;
    // Returns the metadata string of a key, or "" if the key is missing.
    std::string_view metadata(std::string_view key) const;

private:
    static Stored of_file(FoundState found);
    static Stored of_set(const FoundState &found, const char *call);
    void place_by_index();

    std::string path_;
    uint64_t index_bytes_ = 0;
    std::optional<SetIndex> index_;
    std::vector<StoredFile> files_;
    std::vector<Place> tensors_;
};

}  // namespace yoke
