// Checks 13 to 17, 52 and 53: the targets of the CUDA module's build, and the copies of CUDA's libraries in use.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace yoke::doctor {

namespace {

std::optional<std::string> why_no_build(const Facts &facts)
{
    if (auto none = no_working_gpus(facts)) return none;
    if (facts.build.present) return std::nullopt;
    return "this Yoke was built without its CUDA module";
}

enum class Origin { kPip, kConda, kToolkit, kSystem, kOther };

Origin origin_of(const Facts &facts, const std::string &path)
{
    const std::string conda = facts.variable("CONDA_PREFIX");
    const auto holds = [&](const char *part) { return path.find(part) != path.npos; };
    if (holds("-packages/")) return Origin::kPip;
    if ((!conda.empty() && path.compare(0, conda.size(), conda) == 0) || holds("conda"))
        return Origin::kConda;
    if (holds("/usr/local/cuda") || holds("/opt/cuda")) return Origin::kToolkit;
    return holds("/usr/lib") || path.compare(0, 4, "/lib") == 0 ? Origin::kSystem : Origin::kOther;
}

const char *name_of(Origin origin)
{
    constexpr const char *kNames[] = {"pip", "conda", "the CUDA toolkit", "the system",
                                      "elsewhere"};
    return kNames[static_cast<int>(origin)];
}

}  // namespace

Finding check_ptx_version(const Facts &facts)
{
    if (const auto none = why_no_build(facts)) return skip(*none);
    const int driver = facts.machine.cuda_driver;
    if (driver == 0) return skip("the driver's CUDA version is not known");
    Findings all;
    bool compiles = false;
    for (const int i : working_gpus(facts)) {
        const int cc = card(facts, i).cc_major * 10 + card(facts, i).cc_minor;
        if (served(facts.build, card(facts, i)) != Served::kCompiled) continue;
        compiles = true;
        if (facts.build.cuda > driver)
            all.add(
                kFail,
                format(
                    "%s has no machine code in this build, and the driver's compiler, of CUDA %d.%d, cannot read the PTX of CUDA %d.%d (error 222)",
                    label(facts, i).c_str(), driver / 1000, driver % 1000 / 10,
                    facts.build.cuda / 1000, facts.build.cuda % 1000 / 10),
                rebuild_for(facts.build, cc), i);
    }
    return all.or_ok(compiles ? "the driver compiles this build's PTX at first use"
                              : "the build has machine code, so the driver compiles nothing");
}

Finding check_compute_capability(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    // On a board, a CUDA module runs only if it was built on or for the board.
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        if (info.kind == YOKE_CARD_INTEGRATED && !facts.build.present && info.cc_major > 0)
            all.add(
                kFail,
                format(
                    "%s has compute capability %d.%d, and this Yoke was built without its CUDA module",
                    label(facts, i).c_str(), info.cc_major, info.cc_minor),
                rebuild_for(facts.build, 10 * info.cc_major + info.cc_minor), i);
    }
    if (!all.empty()) return all.or_ok("");
    if (const auto none = why_no_build(facts)) return skip(*none);
    const std::string built = joined(facts.build.archs);
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        const int cc = info.cc_major * 10 + info.cc_minor;
        if (info.cc_major < 0 || served(facts.build, info) != Served::kNo) continue;
        all.add(kFail,
                format("%s has compute capability %d.%d, but this build serves %s",
                       label(facts, i).c_str(), info.cc_major, info.cc_minor, built.c_str()),
                rebuild_for(facts.build, cc), i);
    }
    return all.or_ok("this build serves compute capabilities " + built);
}

Finding check_cuda_libraries(const Facts &facts)
{
    if (const auto none = why_no_build(facts)) return skip(*none);
    const int major = facts.build.cuda / 1000;
    Findings all;
    std::string present;
    for (const char *name : {"cublasLt", "cublas"}) {
        if (const LibraryCopy *right = facts.library(name, major)) {
            add_part(present, right->path);
            continue;
        }
        const LibraryCopy *copy = facts.library(name);
        // The CUDA module opens cuBLASLt alone.
        const bool needed = name == std::string_view("cublasLt");
        const std::string package = format("libcublas-%d-0", major);
        const std::string fedora = format("libcublas-%d-0", major);
        all.add(needed && copy ? kFail : kWarn,
                copy ? format("%s has version %s, but this build needs %d", copy->path.c_str(),
                              copy->version.c_str(), major)
                     : format("no folder of the loader has lib%s.so.%d", name, major),
                (major == 13 ? std::string("pip install nvidia-cublas")
                             : format("pip install nvidia-cublas-cu%d", major)) +
                    "\nor: " +
                    install(facts, {package.c_str(), package.c_str(), fedora.c_str(), "cuda"}));
    }
    if (const LibraryCopy *copy = facts.library("cudart", major)) add_part(present, copy->path);
    const LibraryCopy *cudnn = facts.library("cudnn");
    if (cudnn && cudnn->major() != 0 && cudnn->major() < 9)
        all.add(kWarn, cudnn->path + " has version " + cudnn->version + ", not 9",
                format("pip install nvidia-cudnn-cu%d", major));
    return all.or_ok("found " + present);
}

Finding check_cublas_pair(const Facts &facts)
{
    if (const auto none = why_no_build(facts)) return skip(*none);
    const int major = facts.build.cuda / 1000;
    const LibraryCopy *cublas = facts.library("cublas", major),
                      *lt = facts.library("cublasLt", major);
    if (!cublas || !lt) return skip("libcublas or libcublasLt is missing (check 15)");
    if (cublas->folder() == lt->folder()) return ok("both are in " + lt->folder());
    return found(cublas->mapped && lt->mapped ? kFail : kWarn,
                 cublas->path + " and " + lt->path + " may be of different releases",
                 facts.is_set("LD_LIBRARY_PATH")
                     ? "unset LD_LIBRARY_PATH # it is '" + facts.variable("LD_LIBRARY_PATH") + "'"
                     : "export YOKE_CUDA_LIB_PATH=" + lt->folder());
}

Finding check_mixed_copies(const Facts &facts)
{
    std::map<std::string, std::vector<const LibraryCopy *>> by_name;
    std::map<Origin, std::string> origins;
    std::string all_paths;
    for (const LibraryCopy &copy : facts.libraries) {
        if (!copy.mapped || copy.name == "cuda" || copy.name == "nvrtc") continue;
        by_name[copy.name].push_back(&copy);
        origins.emplace(origin_of(facts, copy.path), copy.path);
        add_part(all_paths, copy.path);
    }
    if (by_name.empty()) return skip("no CUDA library is loaded in this process");
    const std::string remedy =
        "unset LD_LIBRARY_PATH # and start in an environment that has only one of them\n"
        "pip list | grep nvidia- ; conda list | grep -i -e cuda -e cublas -e cudnn";
    for (const auto &[name, copies] : by_name)
        if (copies.size() > 1)
            return found(kFail,
                         "lib" + name + " is loaded " + std::to_string(copies.size()) +
                             " times: " + copies[0]->path + " and " + copies[1]->path,
                         remedy);
    if (origins.size() < 2) return ok("loaded: " + all_paths);
    return found(kWarn,
                 joined(origins, "; ",
                        [](const auto &each) {
                            return std::string("of ") + name_of(each.first) + ": " + each.second;
                        }),
                 remedy);
}

// ---- cuDNN for the CUDA module -------------------------------------------------------------------------------------

namespace {

// Checks the copy's own version, at least 9.8, and the CUDA of its build. `wheel`: the remedy.
void check_cudnn_release(const Facts &facts, const LibraryCopy &graph, const std::string &wheel,
                         Findings &all)
{
    const int needed = facts.build.cuda / 1000;
    int major = 0, minor = -1;
    sscanf(facts.cudnn_version.c_str(), "%d.%d", &major, &minor);
    if (minor >= 0 && minor < 8)
        all.add(kWarn, graph.path + " has version " + facts.cudnn_version + ", not 9.8 or later",
                wheel);
    if (facts.cudnn_cuda && facts.cudnn_cuda != needed)
        all.add(kWarn,
                graph.path + format(" is for CUDA %d, but this build is for CUDA %d",
                                    facts.cudnn_cuda, needed),
                wheel);
}

// Checks cuDNN's parts. They must be in the copy's own folder, where the CUDA module opens them, and have the same
// version.
void check_cudnn_parts(const Facts &facts, const LibraryCopy &graph, const std::string &reinstall,
                       Findings &all)
{
    for (const LibraryCopy &copy : facts.libraries)
        if (copy.mapped && copy.name.compare(0, 5, "cudnn") == 0 && copy.folder() != graph.folder())
            return all.add(
                kWarn,
                "parts of two copies are loaded, " + graph.path + " and " + copy.path +
                    ", which do not work together",
                graph.mapped
                    ? "unset LD_LIBRARY_PATH # and start in an environment that has only one of them"
                    : "export YOKE_CUDA_LIB_PATH=" + copy.folder());
    for (const char *name :
         {"cudnn_heuristic", "cudnn_engines_precompiled", "cudnn_engines_runtime_compiled"}) {
        const auto is_part = [&](const LibraryCopy &copy) {
            return copy.name == name && copy.folder() == graph.folder();
        };
        const auto part = std::find_if(facts.libraries.begin(), facts.libraries.end(), is_part);
        if (part == facts.libraries.end())
            all.add(kWarn,
                    graph.path + " does not have its part lib" + name + ".so.9 in the same folder",
                    reinstall);
        else if (part->version.find('.') != part->version.npos &&
                 graph.version.find('.') != graph.version.npos && part->version != graph.version)
            all.add(kWarn,
                    graph.path + " and " + part->path +
                        " are of different releases, which do not work together",
                    reinstall);
    }
}

// Returns the path of NVRTC, with which cuDNN compiles kernels. If NVRTC is missing, adds a finding and returns "".
std::string check_nvrtc(const Facts &facts, Findings &all)
{
    const int major = facts.build.cuda / 1000;
    if (const LibraryCopy *copy = facts.library("nvrtc", major)) return copy->path;
    all.add(kWarn,
            format("no folder of the loader has libnvrtc.so.%d, with which cuDNN compiles kernels",
                   major),
            major == 13 ? std::string("pip install nvidia-cuda-nvrtc")
                        : format("pip install nvidia-cuda-nvrtc-cu%d", major));
    return "";
}

}  // namespace

Finding check_cudnn(const Facts &facts)
{
    if (const auto none = why_no_build(facts)) return skip(*none);
    if (facts.variable("YOKE_CUDNN_ENABLED") == "0")
        return skip(
            "YOKE_CUDNN_ENABLED=0 switches cuDNN off; unset the variable to use cuDNN for convolutions");
    const int major = facts.build.cuda / 1000;
    const std::string wheel = format("pip install --upgrade nvidia-cudnn-cu%d", major);
    const LibraryCopy *graph = facts.library("cudnn_graph", 9);
    if (!graph)
        return found(
            kWarn,
            "no folder of the loader has libcudnn_graph.so.9, of cuDNN 9.8 or later; Yoke uses its own kernels",
            wheel + "\nor: export YOKE_CUDA_LIB_PATH=FOLDER # the library's folder");
    Findings all;
    check_cudnn_release(facts, *graph, wheel, all);
    check_cudnn_parts(facts, *graph,
                      format("pip install --force-reinstall nvidia-cudnn-cu%d", major), all);
    const std::string nvrtc = check_nvrtc(facts, all);
    Finding sum =
        all.or_ok("cuDNN " + facts.cudnn_version + ": " + graph->path + ", with " + nvrtc);
    if (sum.status != kOk) sum.evidence += "; Yoke uses its own kernels";
    return sum;
}

// ---- NCCL, for groups of GPUs --------------------------------------------------------------------------------------

Finding check_nccl(const Facts &facts)
{
    if (const auto none = why_no_build(facts)) return skip(*none);
    if (const auto alone = why_alone(facts)) return skip(*alone);
    const std::string wheel =
        format("pip install --upgrade nvidia-nccl-cu%d", facts.build.cuda / 1000);
    const std::string package = install(facts, {"libnccl2", "libnccl2", "libnccl", "nccl"});
    const LibraryCopy *nccl = facts.library("nccl", 2);
    if (!nccl) {
        const LibraryCopy *other = facts.nccl();
        return found(kWarn,
                     (other ? other->path + " has version " + other->version + ", not 2"
                            : std::string("no folder of the loader has libnccl.so.2")) +
                         "; groups of GPUs copy through the host's memory",
                     wheel + "\nor: " + package +
                         "\nor: export YOKE_CUDA_LIB_PATH=FOLDER # the library's folder");
    }
    int major = 0, minor = -1;
    sscanf(facts.nccl_version.c_str(), "%d.%d", &major, &minor);
    if (minor >= 0 && minor < 19)
        return found(kWarn,
                     nccl->path + " has version " + facts.nccl_version +
                         ", not 2.19 or later; groups of GPUs copy through the host's memory",
                     wheel + "\nor: " + package);
    return ok("NCCL " + facts.nccl_version +
              (facts.nccl_cuda.empty() ? "" : " for CUDA " + facts.nccl_cuda) + ": " + nccl->path);
}

}  // namespace yoke::doctor
