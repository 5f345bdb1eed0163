// library.h: shared libraries that are looked up at run time: backend modules, driver libraries.
//
// Libraries are never unloaded: threads and other libraries may hold pointers into them to the end.
#pragma once

#include <string>

namespace yoke {

class Library {
public:
    // Loads a library with all symbols bound and none shared. On failure the result is not loaded(), and problem()
    // names the file and the loader's reason.
    static Library open(const std::string &path);

    bool loaded() const noexcept { return handle_ != nullptr; }
    const std::string &path() const noexcept { return path_; }
    const std::string &problem() const noexcept { return problem_; }

    // Returns the address of a symbol, or nullptr.
    void *find(const char *symbol) const noexcept;

private:
    std::string path_;
    std::string problem_;
    void *handle_ = nullptr;
};

// Returns the file with the code at `address`, without symbolic links. folder_of_code() returns the file's folder.
// Both return "" if the file is unknown.
std::string file_of_code(const void *address);
std::string folder_of_code(const void *address);

}  // namespace yoke
