// checks.h: what the families of checks share: a finding, and how several cards make one.
#pragma once

#include "core/doctor/facts.h"

#include <optional>
#include <string>
#include <vector>

namespace yoke::doctor {

struct Finding {
    int status = 3;  // YOKE_CHECK_*
    std::string evidence, remedy;
    int card = -1;
};

constexpr int kOk = 0, kWarn = 1, kFail = 2, kSkip = 3;

Finding found(int status, std::string evidence, std::string remedy, int card = -1);
inline Finding ok(std::string evidence)
{
    return found(kOk, std::move(evidence), "");
}
inline Finding skip(std::string reason)
{
    return found(kSkip, std::move(reason), "");
}

// One finding out of several: the worst status, all evidence, each line of the remedies once.
class Findings {
public:
    void add(int status, const std::string &evidence, const std::string &remedy, int card = -1);
    bool empty() const { return sum_.evidence.empty(); }
    // What was added, else that all is well.
    Finding or_ok(const std::string &evidence) const;

private:
    Finding sum_{kOk, "", "", -1};
};

// NVIDIA's cards, without the instances of partitioned ones.
std::vector<int> gpus(const Facts &facts);
// Of these, the ones that a driver of NVIDIA's holds and that answer.
std::vector<int> working_gpus(const Facts &facts);
const yoke_card_info &card(const Facts &facts, int index);

// "GPU 0 (NVIDIA H200, 0000:65:00.0)".
std::string label(const Facts &facts, int index);
// Why checks of GPUs do not apply, where they do not. For those that ask the driver, it must work.
std::optional<std::string> no_gpus(const Facts &facts);
std::optional<std::string> no_working_gpus(const Facts &facts);
// Returns why no group of ranks needs a GPU to reach another one: it is the only one, and no fast network is up.
std::optional<std::string> why_alone(const Facts &facts);
// Returns the name of the first InfiniBand or RoCE port that is up, "" for none.
std::string active_port(const Facts &facts);
// Tells whether it is a GeForce or TITAN, which lacks some of what GPUs of data centres can do.
bool is_consumer(const Facts &facts, int index);

// Whether this is Linux within Windows, which has the driver.
bool is_wsl(const Facts &facts);
// Device files that working GPUs should have and that are not there.
std::vector<std::string> missing_nodes(const Facts &facts);
// How a container gets back what its host has taken from it.
extern const char *const kNewContainer;

// One command by the distribution's package tool.
struct Packages {
    const char *debian, *ubuntu, *fedora, *arch;
};
std::string install(const Facts &facts, const Packages &packages);
enum class Family { kDebian, kUbuntu, kFedora, kArch };
Family family_of(const Facts &facts);
std::string rebuild_initramfs(const Facts &facts);
// Returns the command that has the IOMMU pass addresses through from the next start on.
std::string pass_through(const Facts &facts);

// Tells whether an IOMMU translates the addresses that a device asks for.
bool is_translated(const Facts &facts, const std::string &pci);

// The number with which the management library failed; 0: it did not, or with none.
int nvml_code(const Facts &facts);

// The command that lets a Thunderbolt dock in.
std::string authorize(const Dock &dock);

std::string mebibytes(double bytes);
std::string gigabytes_a_second(double rate);

#define YOKE_CHECK(number, name, id, title, url) Finding check_##name(const Facts &facts);
#include "core/doctor/checks.def"
#undef YOKE_CHECK

}  // namespace yoke::doctor
