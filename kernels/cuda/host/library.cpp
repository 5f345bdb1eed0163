#include "kernels/cuda/host/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace yoke::cuda {

void Text::add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int more = vsnprintf(data + length, capacity - length, format, args);
    va_end(args);
    if (more > 0) length += static_cast<size_t>(more);
    if (length >= capacity) length = capacity - 1;
}

namespace {

struct Search {
    const LibraryName &name;
    Text &tried;
    void *found = nullptr;
    bool decided = false;  // by a library that is there and does not serve

    bool done() const { return found || decided; }
    void refuse(const char *place, const char *why)
    {
        tried.add("%s%s (%s)", tried.length ? ", " : "", place, why);
    }
    void open(const char *place);
};

void Search::open(const char *place)
{
    void *library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *problem = dlerror();
        return refuse(place, problem ? problem : "the loader gave no reason");
    }
    char why[1536] = "";
    if (name.accepts(library, why, sizeof why)) {
        found = library;
        return;
    }
    refuse(place, why);
    dlclose(library);
}

// Notes that a folder is without the file, and which other version it has.
void refuse_absent(Search &search, const char *path)
{
    char why[320] = "no such file", pattern[PATH_MAX + 8];
    const int stem = static_cast<int>(strrchr(path, '.') - path);
    snprintf(pattern, sizeof pattern, "%.*s.*", stem < PATH_MAX ? stem : 0, path);
    glob_t others{};
    if (glob(pattern, 0, nullptr, &others) == 0) {
        const char *slash = strrchr(others.gl_pathv[0], '/');
        snprintf(why, sizeof why, "there is %.256s, of another version", slash + 1);
    }
    globfree(&others);
    search.refuse(path, why);
}

// Opens the library in a folder. Returns whether the file is there, even if the library does not work.
bool try_folder(Search &search, const char *folder, int length)
{
    char path[PATH_MAX];
    const int written = snprintf(path, sizeof path, "%.*s/%s", length < PATH_MAX ? length : 0,
                                 folder, search.name.file);
    if (written >= static_cast<int>(sizeof path)) return false;
    if (access(path, F_OK) != 0) {
        refuse_absent(search, path);
        return false;
    }
    search.open(path);
    return true;
}

void try_path(Search &search, const char *folders)
{
    while (folders && *folders && !search.done()) {
        const int length = static_cast<int>(strcspn(folders, ":"));
        if (length && try_folder(search, folders, length)) search.decided = true;
        folders += length;
        folders += *folders == ':';
    }
}

// ---- site-packages --------------------------------------------------------------------------------------------------

void try_packages(Search &search, const char *packages)
{
    for (const char *wheel : search.name.wheel_folders) {
        if (!*wheel || search.done()) continue;
        char folder[PATH_MAX];
        const int length =
            snprintf(folder, sizeof folder, "%.3000s/nvidia/%.500s", packages, wheel);
        // Only existing folders of wheels count: most machines have no such folders.
        if (access(folder, F_OK) == 0) try_folder(search, folder, length);
    }
}

void try_prefix(Search &search, const char *prefix)
{
    char pattern[PATH_MAX];
    snprintf(pattern, sizeof pattern, "%.3000s/lib/python3*/*-packages", prefix);
    glob_t packages{};
    if (glob(pattern, 0, nullptr, &packages) == 0)
        for (size_t i = 0; i < packages.gl_pathc && !search.done(); ++i)
            try_packages(search, packages.gl_pathv[i]);
    globfree(&packages);
}

// Tries the site-packages that contain this module, if it came in a wheel.
void try_own_packages(Search &search)
{
    Dl_info info{};
    char path[PATH_MAX];
    if (!dladdr(reinterpret_cast<const void *>(&find_library), &info) ||
        !realpath(info.dli_fname, path))
        return;
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        if (!strcmp(slash, "/site-packages") || !strcmp(slash, "/dist-packages"))
            return try_packages(search, path);
        *slash = '\0';
    }
}

// Tries the prefix of the running Python: its program is in <prefix>/bin. The called name finds a virtual
// environment, because its program is a link to another Python's program.
void try_program(Search &search)
{
    char path[PATH_MAX] = "";
    if (strchr(program_invocation_name, '/')) {
        snprintf(path, sizeof path, "%s", program_invocation_name);
    } else {
        const char *folders = getenv("PATH");
        while (folders && *folders) {
            const int length = static_cast<int>(strcspn(folders, ":"));
            snprintf(path, sizeof path, "%.*s/%.512s", length < PATH_MAX - 600 ? length : 0,
                     folders, program_invocation_name);
            if (access(path, X_OK) == 0) break;
            path[0] = '\0';
            folders += length;
            folders += *folders == ':';
        }
    }
    for (int up = 0; up < 2; ++up)
        if (char *slash = strrchr(path, '/')) *slash = '\0';
    if (path[0]) try_prefix(search, path);
}

void try_wheels(Search &search)
{
    try_own_packages(search);
    if (!search.done()) try_program(search);
    for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const char *prefix = search.done() ? nullptr : getenv(variable))
            try_prefix(search, prefix);
}

// ---- the toolkit ----------------------------------------------------------------------------------------------------

void try_toolkit(Search &search)
{
    const char *home = getenv("CUDA_HOME");
    if (!home || !*home) home = "/usr/local/cuda";
    char folder[PATH_MAX];
    const int length = snprintf(folder, sizeof folder, "%.3000s/lib64", home);
    try_folder(search, folder, length);
}

}  // namespace

void *find_library(const LibraryName &name, const char *folders, Text &tried)
{
    tried.data[0] = '\0';
    Search search{name, tried};
    try_path(search, folders);
    if (!search.done()) try_wheels(search);
    if (!search.done()) search.open(name.file);
    if (!search.done()) try_toolkit(search);
    return search.found;
}

const char *find_functions(void *library, const char *const *names, size_t count, void *table)
{
    for (size_t i = 0; i < count; ++i) {
        void *function = dlsym(library, names[i]);
        if (!function) return names[i];
        memcpy(static_cast<char *>(table) + i * sizeof function, &function, sizeof function);
    }
    return nullptr;
}

}  // namespace yoke::cuda
