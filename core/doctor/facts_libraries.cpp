// The CUDA libraries loaded or found, the build of the CUDA module, and the installer of the driver.
#include "core/base/config.h"
#include "core/base/library.h"
#include "core/doctor/facts.h"
#include "core/machine/files.h"

#include <algorithm>
#include <cstring>

namespace yoke::doctor {

namespace {

constexpr const char *kLibraryNames[] = {"cuda",
                                         "cudart",
                                         "cublas",
                                         "cublasLt",
                                         "cudnn",
                                         "cudnn_graph",
                                         "cudnn_heuristic",
                                         "cudnn_engines_precompiled",
                                         "cudnn_engines_runtime_compiled",
                                         "nvrtc",
                                         "nccl"};

// Splits the file name of a CUDA library: "libcublasLt.so.13.0.0.19" has the name "cublasLt" and the version
// "13.0.0.19". Returns false for any other file.
bool split_name(const std::string &file, LibraryCopy &copy)
{
    const size_t dot = file.find(".so");
    if (file.compare(0, 3, "lib") != 0 || dot == file.npos) return false;
    const std::string name = file.substr(3, dot - 3);
    for (const char *known : kLibraryNames)
        if (name == known) {
            copy.name = name;
            copy.version = file.size() > dot + 4 ? file.substr(dot + 4) : "";
            return true;
        }
    return false;
}

std::vector<std::string> split_folders(const std::string &text)
{
    std::vector<std::string> folders;
    size_t at = 0;
    while (at < text.size()) {
        const size_t end = std::min(text.find(':', at), text.size());
        if (end > at) folders.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return folders;
}

// Returns whether the file is for linking alone, as "libcublas.so": a loader asks for "libcublas.so.13".
bool is_for_linking(const LibraryCopy &copy)
{
    return copy.version.empty();
}

// Adds the libraries of a folder. A library may have several names, "libcublas.so.13" and "libcublas.so.13.0.0.19":
// the name with the longest version counts. Other major versions are other libraries. The driver's own library has a
// single major version, and its release as another name.
void add_copies(RecordedRoot &root, const std::string &folder, Facts &facts)
{
    std::map<std::pair<std::string, int>, LibraryCopy> best;
    for (const std::string &file : root.list(folder)) {
        LibraryCopy copy;
        if (!split_name(file, copy) || is_for_linking(copy)) continue;
        copy.path = folder + "/" + file;
        root.exists(copy.path);
        LibraryCopy &known = best[{copy.name, copy.name == "cuda" ? 1 : copy.major()}];
        if (known.path.empty() || copy.version.size() > known.version.size()) known = copy;
    }
    for (const auto &[key, copy] : best) facts.libraries.push_back(copy);
}

void read_mapped(RecordedRoot &root, Facts &facts)
{
    std::set<std::string> seen;
    std::string kept;
    for (const std::string &line :
         lines_of(root.text("/proc/self/maps", 4 * 1024 * 1024).value_or(""))) {
        const size_t slash = line.find('/');
        if (slash == line.npos || !seen.insert(line.substr(slash)).second) continue;
        LibraryCopy copy;
        copy.path = line.substr(slash);
        copy.mapped = true;
        if (!split_name(copy.path.substr(copy.path.rfind('/') + 1), copy)) continue;
        facts.libraries.push_back(copy);
        kept += line + "\n";
    }
    root.note("/proc/self/maps", kept);
}

// Returns the folders where the loader looks, in its order. Between them are pip's folders beside this library, where
// the CUDA module looks.
std::vector<std::string> search_folders(RecordedRoot &root, const Facts &facts)
{
    std::vector<std::string> folders = split_folders(facts.variable("YOKE_CUDA_LIB_PATH"));
    for (const std::string &folder : split_folders(facts.variable("LD_LIBRARY_PATH")))
        folders.push_back(folder);
    const std::string own = folder_of_code(kLibraryNames);
    const size_t site = own.find("-packages");
    for (const char *part : {"cublas", "cudnn", "nccl", "cuda_nvrtc", "cuda_runtime", "cu13"})
        if (site != own.npos && !RecordedRoot::is_foreign())
            folders.push_back(own.substr(0, site + 9) + "/nvidia/" + part + "/lib");
    for (const std::string &file : root.list("/etc/ld.so.conf.d"))
        for (const std::string &line :
             lines_of(root.text("/etc/ld.so.conf.d/" + file).value_or("")))
            if (!line.empty() && line[0] == '/') folders.push_back(trimmed(line));
    for (const char *usual :
         {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
          "/lib/x86_64-linux-gnu", "/usr/local/cuda/lib64", "/usr/local/nvidia/lib64"})
        folders.push_back(usual);
    return folders;
}

void read_found(RecordedRoot &root, Facts &facts)
{
    std::set<std::string> seen;
    for (const std::string &folder : search_folders(root, facts))
        if (seen.insert(folder).second) add_copies(root, folder, facts);
}

void read_build(RecordedRoot &root, Facts &facts)
{
    const std::string folder = RecordedRoot::is_foreign() ? "/yoke" : folder_of_code(kLibraryNames);
    const std::string mark = root.text_behind(folder + "/libyoke_cuda.so", kBuildMark, 256);
    facts.build = build_of_mark(mark);
    if (!facts.build.present) return;
    // A recording, like any other root, has the mark at this path.
    root.note("/yoke/libyoke_cuda.so", kBuildMark + mark + "\n");
}

// Finds the traces of NVIDIA's own installer, and the driver's packages by the traces of dpkg, rpm or pacman.
void read_packages(RecordedRoot &root, Facts &facts)
{
    for (const char *trace : {"/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer",
                              "/var/log/nvidia-installer.log"})
        if (facts.runfile.empty() && root.exists(trace)) facts.runfile = trace;
    const auto is_driver = [](const std::string &name) {
        for (const char *start :
             {"nvidia-driver", "nvidia-kernel-dkms", "nvidia-dkms", "libnvidia-compute", "libcuda1",
              "xorg-x11-drv-nvidia", "akmod-nvidia", "kmod-nvidia", "nvidia-open", "nvidia-utils"})
            if (name.compare(0, strlen(start), start) == 0) return true;
        return false;
    };
    for (const std::string &file : root.list("/var/lib/dpkg/info")) {
        const size_t end = file.rfind(".list");
        if (end != file.npos && is_driver(file))
            if (root.exists("/var/lib/dpkg/info/" + file))
                facts.packages[file.substr(0, std::min(end, file.find(':')))] = "dpkg";
    }
    for (const std::string &entry : root.list("/usr/share/licenses"))
        if (is_driver(entry) && root.exists("/usr/share/licenses/" + entry))
            facts.packages[entry] = "rpm or pacman";
}

// Finds the versions of cuDNN and of its CUDA. A wheel's library name says only 9, but the wheel's own folder gives
// version and CUDA. A system package has the CUDA version in its name.
void read_cudnn(RecordedRoot &root, Facts &facts)
{
    const LibraryCopy *found = facts.library("cudnn_graph", 9);
    if (!found) return;
    const LibraryCopy copy = *found;
    if (copy.mapped) add_copies(root, copy.folder(), facts);  // cuDNN opens its parts on demand
    facts.cudnn_version = copy.version;
    constexpr std::string_view kSite = "-packages/";
    const size_t site = copy.path.find(kSite);
    const std::string folder =
        site != copy.path.npos ? copy.path.substr(0, site + kSite.size()) : "/var/lib/dpkg/info/";
    if (site == copy.path.npos && copy.path.compare(0, 8, "/usr/lib") != 0) return;
    for (const std::string &file : root.list(folder)) {
        int cuda = 0;
        char version[64] = "";
        const bool is_wheel =
            sscanf(file.c_str(), "nvidia_cudnn_cu%d-%63[0-9.]", &cuda, version) == 2;
        if (!is_wheel && sscanf(file.c_str(), "libcudnn9-cuda-%d", &cuda) != 1) continue;
        root.exists(folder + file);
        facts.cudnn_cuda = cuda;
        if (is_wheel) facts.cudnn_version = std::string(version, strlen(version) - 1);
    }
}

void read_nccl(RecordedRoot &root, Facts &facts)
{
    const LibraryCopy *nccl = facts.nccl();
    if (!nccl) return;
    facts.nccl_version = nccl->version;
    // "NCCL version 2.27.7+cuda12.9"; the text of a message, "NCCL version %d.%d.%d%s", may stand before it.
    const std::string version = root.text_behind(nccl->path, "NCCL version ", 64, "+cuda");
    const size_t cuda = version.find("+cuda");
    if (cuda == version.npos) return;
    facts.nccl_version = version.substr(0, cuda);
    facts.nccl_cuda = version.substr(cuda + 5);
}

}  // namespace

void read_libraries(RecordedRoot &root, Facts &facts)
{
    read_mapped(root, facts);
    read_found(root, facts);
    read_build(root, facts);
    read_packages(root, facts);
    read_cudnn(root, facts);
    read_nccl(root, facts);
}

}  // namespace yoke::doctor
