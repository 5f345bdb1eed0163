// read_file.h: files of state that are read, or mapped.
#pragma once

#include "core/state/file_calls.h"

#include <memory>
#include <string>

namespace yoke {

// A file as memory: pages are read when they are touched, and private when they are written.
class MappedFile {
public:
    MappedFile(void *data, size_t bytes) : data_(data), bytes_(bytes) {}
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;

    char *data() const { return static_cast<char *>(data_); }  // null where it has no bytes
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
    // Null, and errno, where the system does not map it: its file system cannot (ENODEV), or there is no address space
    // or no room for one more map (ENOMEM). It can be read all the same.
    std::shared_ptr<MappedFile> map() const;
    // Closes it while it is not used: a process may have few files open. Of a file at a whole path; where another one
    // has taken its place meanwhile, its next use raises YOKE_E_IO.
    void rest();

private:
    struct Status {
        uint64_t bytes = 0, device = 0, number = 0;
        bool operator==(const Status &) const = default;
    };

    ReadFile(const char *call, int folder, std::string path);
    Descriptor opened(int folder) const;
    Status status_of(const Descriptor &file) const;
    // Open, itself or in `again`.
    const Descriptor &awake(Descriptor &again) const;

    const char *call_;
    std::string path_;
    Descriptor file_;
    Status status_;
};

}  // namespace yoke
