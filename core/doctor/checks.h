// checks.h: the common parts of all families of checks: a finding, and a sum of findings about several cards.
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

// Sum of several findings: the worst status, all evidence, each line of the remedies once.
class Findings {
public:
    void add(int status, const std::string &evidence, const std::string &remedy, int card = -1);
    bool empty() const { return sum_.evidence.empty(); }
    // Returns the sum of the findings, or kOk with this evidence if there are none.
    Finding or_ok(const std::string &evidence) const;

private:
    Finding sum_{kOk, "", "", -1};
};

// Returns NVIDIA's cards, without the instances of partitioned cards.
std::vector<int> gpus(const Facts &facts);
// Returns NVIDIA's cards held by its driver, open to this process and still answering.
std::vector<int> working_gpus(const Facts &facts);
const yoke_card_info &card(const Facts &facts, int index);

// Returns the label of a card in messages: "GPU 0 (NVIDIA H200, 0000:65:00.0)".
std::string label(const Facts &facts, int index);
// Return why checks of GPUs do not apply, else nullopt. no_working_gpus() is for checks that need a working driver.
std::optional<std::string> no_gpus(const Facts &facts);
std::optional<std::string> no_working_gpus(const Facts &facts);
// Returns why no group of ranks needs a path between GPUs: there is a single GPU, and no fast network is up.
std::optional<std::string> why_alone(const Facts &facts);
// Returns the name of the first active InfiniBand or RoCE port, "" for none.
std::string active_port(const Facts &facts);
// Returns whether the card is a GeForce or TITAN, without some abilities of data-centre GPUs.
bool is_consumer(const Facts &facts, int index);

// Returns whether this is Linux within Windows, where Windows has the driver.
bool is_wsl(const Facts &facts);
// Returns the missing device files of working GPUs.
std::vector<std::string> missing_nodes(const Facts &facts);
// Commands by which a container gets back device files taken away by its host.
extern const char *const kNewContainer;

// Packages for the package tool of each distribution.
struct Packages {
    const char *debian, *ubuntu, *fedora, *arch;
};
std::string install(const Facts &facts, const Packages &packages);
enum class Family { kDebian, kUbuntu, kFedora, kArch };
Family family_of(const Facts &facts);
std::string rebuild_initramfs(const Facts &facts);
// Returns the command that has the IOMMU pass addresses through from the next start on.
std::string pass_through(const Facts &facts);

// Returns whether an IOMMU translates the addresses of a device.
bool is_translated(const Facts &facts, const std::string &pci);

// Returns the error number of the management library; 0: no error, or an error without a number.
int nvml_code(const Facts &facts);

// Returns the command that authorizes a Thunderbolt dock.
std::string authorize(const Dock &dock);

std::string mebibytes(double bytes);
std::string gigabytes_a_second(double rate);

#define YOKE_CHECK(number, name, id, title, url) Finding check_##name(const Facts &facts);
#include "core/doctor/checks.def"
#undef YOKE_CHECK

}  // namespace yoke::doctor
