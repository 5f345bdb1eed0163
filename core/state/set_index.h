// set_index.h: the index of a set, a state in several safetensors files. The index gives the file of each tensor.
//
// The format is JSON beside the files, as in HuggingFace's libraries:
//
//   {"metadata": {"total_size": 16, "KEY": "STRING", …}, "weight_map": {"NAME": "FILE", …}}
//
// Strings of the metadata are kept, although no reader needs them.
#pragma once

#include "core/state/read_file.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// Content of an index, in a few large blocks: an index of many short names takes less than eight times its length.
class SetIndex {
public:
    struct Entry {
        uint32_t name, name_length;  // in texts
        uint32_t file;
    };

    // Returns whether a file that begins so may be an index: JSON, and no safetensors file.
    static bool may_begin(std::string_view bytes);
    // Reads an index from its text. Raises YOKE_E_CHECKPOINT, with the path, if a rule is broken.
    static SetIndex read(std::string_view json, const char *path);

    // Returns the entry of each tensor, sorted by the tensor's name.
    const std::vector<Entry> &entries() const { return entries_; }
    std::string_view name(const Entry &entry) const { return text(entry.name, entry.name_length); }
    // Returns the number of files. file() returns the name of a file; files are sorted by name.
    size_t file_count() const { return files_.size(); }
    std::string_view file(size_t i) const { return text(files_[i].begin, files_[i].length); }
    // Returns the number of metadata strings. metadata() returns a key and its string, in the order of the index.
    size_t metadata_count() const { return metadata_.size(); }
    std::pair<std::string_view, std::string_view> metadata(size_t i) const;

    static constexpr uint64_t kMostBytes = 100'000'000;  // as of a header

private:
    struct Text {
        uint32_t begin, length;
    };
    class Reader;

    std::string_view text(uint32_t begin, uint32_t length) const
    {
        return std::string_view(texts_).substr(begin, length);
    }
    std::string_view text(Text place) const { return text(place.begin, place.length); }
    void number_files();
    void check(const char *path);

    std::string texts_;
    std::vector<Entry> entries_;
    std::vector<Text> files_;  // file of each entry, until the files are numbered
    std::vector<std::pair<Text, Text>> metadata_;
};

// Returns the whole text of an index. Raises YOKE_E_CHECKPOINT if the file is too large for an index.
std::string read_index_text(const ReadFile &file, const char *path);

// File of a set, with the names of its tensors.
struct FileOfSet {
    std::string name;
    std::vector<std::string> tensors;
};
// Returns the text of an index, which gives the file of each tensor. `tensor_bytes` is the size of all tensors.
std::string make_set_index(const std::vector<FileOfSet> &files,
                           const std::vector<std::pair<std::string, std::string>> &metadata,
                           uint64_t tensor_bytes);

}  // namespace yoke
