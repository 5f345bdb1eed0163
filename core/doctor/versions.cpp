// Checks 9 to 12 and 44: containers, and the driver's version against the build.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/doctor/checks.h"

#include <cstdlib>

namespace yoke::doctor {

namespace {

std::string newer_driver(const Facts &facts, const std::string &release)
{
    const std::string branch = release.substr(0, release.find('.'));
    if (facts.in_container())
        return "on the host, not in the container, install driver release " + release + " or newer";
    if (is_wsl(facts)) return "in Windows, install driver release " + release + " or newer";
    const std::string ubuntu = "nvidia-driver-" + branch + "-server-open";
    return install(facts, {"nvidia-driver # from NVIDIA's repository if Debian's is older",
                           ubuntu.c_str(), "nvidia-driver", "nvidia-open nvidia-utils"}) +
           "\nsudo reboot";
}

// Returns a GeForce or TITAN, which does not accept a user-mode library newer than its kernel module. Returns "" if
// all cards are made for data centres and accept it.
std::string barred_from_newer(const Facts &facts)
{
    for (const int i : gpus(facts))
        if (is_consumer(facts, i)) return label(facts, i);
    return "";
}

// Returns the compatibility library that replaces the driver's own, so the driver need not be new. Returns nullptr if
// there is no such library, or it does not count.
const LibraryCopy *stand_in(const Facts &facts, const std::string &floor)
{
    const LibraryCopy *cuda = facts.library("cuda");
    const bool counts = cuda && cuda->folder().find("/compat") != std::string::npos &&
                        compare_versions(cuda->version, floor) >= 0;
    return counts && barred_from_newer(facts).empty() ? cuda : nullptr;
}

}  // namespace

const char *const kNewContainer =
    "docker rm -f CONTAINER && docker run --gpus all … # the container must be created again\n"
    "on the host, so that the error does not return: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, and start with --device nvidia.com/gpu=all";

Finding check_container_devices(const Facts &facts)
{
    if (!facts.in_container()) return skip("this is not a container");
    constexpr int kRefusedByKernel = 17, kUnknownError = 999;
    const int code = nvml_code(facts);
    const bool taken = code == kRefusedByKernel || code == kUnknownError;
    if (taken)
        return found(
            kFail,
            "the driver's library reports: " + nvml_failure_text(facts.machine) +
                "; the host's systemd has taken the device files from this container's cgroup",
            kNewContainer);
    const std::vector<std::string> missing = missing_nodes(facts);
    if (!missing.empty() && !facts.nodes.empty())
        return found(
            kFail,
            join(missing) +
                " of this container's GPUs is gone: it was removed, or the card's number changed on the host",
            kNewContainer);
    if (const auto none = no_gpus(facts)) return skip(*none);
    return ok("the driver answers");
}

Finding check_container_gpus(const Facts &facts)
{
    if (!facts.in_container()) return skip("this is not a container");
    for (const auto &[path, node] : facts.nodes)
        if (path.find("/dev/nvidia") == 0) return ok("it has " + path);
    const bool host_driver = !facts.machine.driver.empty();
    if (!host_driver && gpus(facts).empty()) return skip("the host shows no NVIDIA GPU either");
    const std::string asked = facts.variable("NVIDIA_VISIBLE_DEVICES");
    const bool asked_for_none = asked == "none" || asked == "void";
    return found(
        kFail,
        "the host has " +
            (host_driver ? "NVIDIA's driver " + facts.machine.driver
                         : label(facts, gpus(facts)[0])) +
            ", but the container has no /dev/nvidia*" +
            (asked_for_none ? "; NVIDIA_VISIBLE_DEVICES is '" + asked + "'" : ""),
        "on the host: " +
            install(facts, {"nvidia-container-toolkit", "nvidia-container-toolkit",
                            "nvidia-container-toolkit", "nvidia-container-toolkit"}) +
            " && sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker\ndocker run --gpus all …\n"
            "docker run --gpus '\"device=0,1\"' … # for some GPUs: both pairs of quotes are needed");
}

Finding check_driver_floor(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    if (!facts.build.present) return skip("this Yoke was built without its CUDA module");
    const std::string &driver = facts.machine.driver;
    if (driver.empty()) return skip("no driver is loaded (check 3)");
    const int major = facts.build.cuda / 1000;
    const std::string floor = first_driver_of_module(major);
    if (floor.empty())
        return skip(format("the driver that CUDA %d needs is not known here", major));
    if (compare_versions(driver, floor) >= 0)
        return ok(format("driver %s serves CUDA %d, which needs %s", driver.c_str(), major,
                         floor.c_str()));
    if (const LibraryCopy *compat = stand_in(facts, floor))
        return ok(format("%s serves CUDA %d in place of driver %s", compat->path.c_str(), major,
                         driver.c_str()));
    const int served = newest_cuda_of(driver);
    std::string remedy = newer_driver(facts, floor);
    if (served) remedy += format("\nor install a Yoke that was built with CUDA %d", served);
    return found(kFail,
                 format("the driver is %s, but this build's CUDA %d needs %s or newer",
                        driver.c_str(), major, floor.c_str()),
                 remedy);
}

Finding check_forward_compatibility(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    const LibraryCopy *cuda = facts.library("cuda");
    if (!cuda) return skip("there is no libcuda.so.1 (check 5)");
    const std::string &driver = facts.machine.driver;
    if (cuda->folder().find("/compat") == std::string::npos) return ok("it is " + cuda->path);
    const std::string barred = barred_from_newer(facts);
    const bool older = !driver.empty() && compare_versions(cuda->version, driver) < 0;
    if (barred.empty() && !older)
        return ok(cuda->path + " takes the place of driver " + driver + ", which this GPU allows");
    const std::string remedy =
        "export LD_LIBRARY_PATH=$(printf %s \"$LD_LIBRARY_PATH\" | tr : '\\n' | grep -v /compat | paste -sd:)\n" +
        (family_of(facts) == Family::kFedora ? std::string("sudo dnf remove 'cuda-compat-*'")
                                             : "sudo apt-get remove 'cuda-compat-*'") +
        "\nsudo reboot # if the driver was updated since the machine started";
    return found(kFail,
                 cuda->path + " is found before the library of driver " + driver +
                     (older ? ", which is newer"
                            : "; " + barred + " does not support this: CUDA fails with error 804"),
                 remedy);
}

Finding check_nccl_floor(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    if (const auto alone = why_alone(facts)) return skip(*alone);
    const LibraryCopy *nccl = facts.nccl();
    if (!nccl) return skip("there is no NCCL (check 53)");
    const std::string &driver = facts.machine.driver;
    const int major = atoi(facts.nccl_cuda.c_str());
    const std::string floor = first_driver_of_libraries(major);
    if (driver.empty()) return skip("no driver is loaded (check 3)");
    if (floor.empty()) return skip(nccl->path + " does not say for which CUDA it was built");
    if (compare_versions(driver, floor) >= 0)
        return ok(nccl->path + " is for CUDA " + facts.nccl_cuda + ", which driver " + driver +
                  " serves");
    if (const LibraryCopy *compat = stand_in(facts, floor))
        return ok(compat->path + " serves CUDA " + facts.nccl_cuda + ", for which " + nccl->path +
                  " was built, in place of driver " + driver);
    return found(
        kFail,
        nccl->path + " is for CUDA " + facts.nccl_cuda + ", which needs driver " + floor +
            " or newer; the driver is " + driver,
        newer_driver(facts, floor) + format("\nor: pip install nvidia-nccl-cu%d", major - 1));
}

}  // namespace yoke::doctor
