#include "core/base/library.h"

#include "core/base/fork.h"

#include <dlfcn.h>
#include <climits>
#include <cstdlib>

namespace yoke {

Library Library::open(const std::string &path)
{
    Library library;
    library.path_ = path;
    if (is_loader_lost()) {
        library.problem_ =
            "cannot load " + path +
            ": this process was forked while a library was being loaded, so its loader may be broken; fork before the load, or start the process with spawn or exec";
        return library;
    }
    const Loading loading;
    library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library.handle_) {
        const char *reason = dlerror();
        library.problem_ = "cannot load " + path + ": " + (reason ? reason : "no reason given");
    }
    return library;
}

void *Library::find(const char *symbol) const noexcept
{
    return handle_ ? dlsym(handle_, symbol) : nullptr;
}

std::string file_of_code(const void *address)
{
    Dl_info info{};
    if (!dladdr(address, &info) || !info.dli_fname) return "";
    char real[PATH_MAX];
    return realpath(info.dli_fname, real) ? real : info.dli_fname;
}

std::string folder_of_code(const void *address)
{
    const std::string file = file_of_code(address);
    const size_t slash = file.rfind('/');
    return slash != file.npos ? file.substr(0, slash) : file.empty() ? "" : ".";
}

}  // namespace yoke
