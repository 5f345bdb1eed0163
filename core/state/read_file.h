// read_file.h: files of a state, read or mapped.
#pragma once

#include "core/state/file_calls.h"

#include <memory>
#include <string>

namespace yoke {

// File as memory: pages are read at the first touch, and become private at the first write.
class MappedFile {
public:
    MappedFile(void *data, size_t bytes) : data_(data), bytes_(bytes) {}
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;

    char *data() const { return static_cast<char *>(data_); }  // null if the file is empty
    size_t size() const { return bytes_; }

private:
    void *data_;
    size_t bytes_;
};

class ReadFile {
public:
    ReadFile(const char *call, std::string path);
    ReadFile(const char *call, const Descriptor &folder, std::string name);

    uint64_t size() const { return status_.bytes; }
    void read(uint64_t from, void *to, size_t bytes) const;
    // Maps the whole file and returns the map. Returns null, with errno, if the system does not map the file. ENODEV:
    // the file system cannot. ENOMEM: address space or free maps are missing. The file can still be read.
    std::shared_ptr<MappedFile> map() const;
    // Closes the file while unused, because a process may have few files open. Needs an absolute path. If another
    // file has replaced the file meanwhile, the next use raises YOKE_E_IO.
    void rest();

private:
    struct Status {
        uint64_t bytes = 0, device = 0, number = 0;
        bool operator==(const Status &) const = default;
    };

    ReadFile(const char *call, int folder, std::string path);
    Descriptor opened(int folder) const;
    Status status_of(const Descriptor &file) const;
    // Returns the open file: `file_`, or the file opened again in `again`. Raises YOKE_E_IO if another file has
    // replaced it.
    const Descriptor &awake(Descriptor &again) const;

    const char *call_;
    std::string path_;
    Descriptor file_;
    Status status_;
};

}  // namespace yoke
