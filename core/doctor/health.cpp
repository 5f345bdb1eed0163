// Checks 31 to 34 and 48: heat, memory errors, faults in the kernel's log, a hanging driver, a vanished card.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"

#include <cmath>
#include <cstdlib>

namespace yoke::doctor {

namespace {

// Remedy of a fault, from the mildest, and the Xids for each remedy.
enum class Bucket { kIgnore, kApplication, kLook, kReset, kRestart };

constexpr struct {
    int xid;
    Bucket bucket;
    const char *meaning;
} kXids[] = {
    {13, Bucket::kApplication, "a program made an invalid access"},
    {31, Bucket::kApplication, "a program touched memory that is not its own"},
    {94, Bucket::kApplication, "a contained memory error"},
    {43, Bucket::kIgnore, "a program was stopped after its own fault"},
    {63, Bucket::kIgnore, "a memory row will be remapped"},
    {92, Bucket::kIgnore, "many corrected memory errors"},
    {45, Bucket::kLook, "a program was ended; the cause is another fault"},
    {48, Bucket::kLook, "an uncorrectable memory error"},
    {74, Bucket::kLook, "an NVLink error"},
    {154, Bucket::kLook, "the driver recommends a recovery action"},
    {62, Bucket::kReset, "the GPU's own controller halted"},
    {64, Bucket::kReset, "a memory row could not be remapped"},
    {95, Bucket::kReset, "an uncontained memory error"},
    {109, Bucket::kReset, "a context switch did not end"},
    {119, Bucket::kReset, "the GPU's system processor does not answer"},
    {120, Bucket::kReset, "the GPU's system processor failed"},
    {140, Bucket::kReset, "an unrecovered memory error"},
    {143, Bucket::kReset, "the GPU could not start"},
    {79, Bucket::kRestart, "the GPU has fallen off the bus"},
};

struct Fault {
    int xid;
    std::string pci;  // "0000:65:00"
    int times;
};

// Returns the faults in the kernel's log, each once with its number of times, from lines such as "NVRM: Xid
// (PCI:0000:65:00): 79, pid=…".
std::vector<Fault> faults_of(const std::string &log)
{
    std::vector<Fault> faults;
    for (const std::string &line : lines_of(log)) {
        const size_t start = line.find("Xid (PCI:"), end = line.find("): ", start);
        if (start == line.npos || end == line.npos) continue;
        const std::string pci = line.substr(start + 9, end - start - 9);
        const Fault fault{atoi(line.c_str() + end + 3), pci.substr(0, pci.find(' ')), 1};
        bool known = false;
        for (Fault &other : faults)
            if (other.xid == fault.xid && other.pci == fault.pci) known = ++other.times > 0;
        if (!known) faults.push_back(fault);
    }
    return faults;
}

std::string remedy_of(Bucket bucket, const std::string &pci)
{
    switch (bucket) {
        case Bucket::kIgnore:
            return "";
        case Bucket::kApplication:
            return "compute-sanitizer PROGRAM # finds the invalid access; then start the program again";
        case Bucket::kLook:
            return "sudo dmesg | grep -e NVRM -e nvidia # the lines before it name the cause\n"
                   "dcgmi diag -r 3";
        case Bucket::kReset:
            return "sudo nvidia-smi -i " + pci + ".0 --gpu-reset # no process may use it";
        case Bucket::kRestart:
            return "sudo reboot # if the error returns: reseat the card, check its power and cooling";
    }
    return "";
}

int status_of(Bucket bucket)
{
    return bucket == Bucket::kIgnore ? kOk : bucket >= Bucket::kReset ? kFail : kWarn;
}

int card_at(const Facts &facts, const std::string &pci)
{
    for (const int i : gpus(facts))
        if (std::string(card(facts, i).pci).compare(0, pci.size(), pci) == 0) return i;
    return -1;
}

// Returns the card's clock and its maximum in words, " at 345 of 1980 MHz"; "" if the driver does not know them.
std::string clocks_of(const yoke_card_info &info)
{
    if (std::isnan(info.sm_clock) || std::isnan(info.sm_clock_max)) return "";
    return format(" at %.0f of %.0f MHz", info.sm_clock / 1e6, info.sm_clock_max / 1e6);
}

std::string heat_of(const yoke_card_info &info)
{
    std::string text;
    if (!std::isnan(info.temperature)) text += format(", at %.0f °C", info.temperature);
    if (!std::isnan(info.power) && !std::isnan(info.power_limit))
        text += format("%s %.0f of %.0f W", text.empty() ? ", at" : " and", info.power,
                       info.power_limit);
    return text;
}

// Returns commands for a lower power limit. The driver refuses a limit below the card's least limit, and only the
// driver's own tool shows the least limit.
std::string less_power(const yoke_card_info &info)
{
    const std::string look = format("nvidia-smi -i %s -q -d POWER # its limits", info.pci);
    if (std::isnan(info.power_limit) || info.power_limit <= 0) return look;
    return look + format("\nsudo nvidia-smi -i %s -pl %.0f # not below its Min Power Limit",
                         info.pci, info.power_limit * 0.8);
}

// Returns whether the power limit is far below the card's maximum. Such a card is slow, and while idle, the driver's
// clock reasons do not show why.
bool is_power_limited(const yoke_card_info &info)
{
    // A quarter less costs some percent of speed, and is what many set on purpose to save watts.
    return info.power_limit > 0 && info.power_limit < 0.7 * info.power_limit_max;
}

}  // namespace

Finding check_throttle(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    constexpr struct {
        uint64_t bit;
        const char *reason;
    } kReasons[] = {{YOKE_THROTTLE_HW_THERMAL, "the hardware, because of heat"},
                    {YOKE_THROTTLE_SW_THERMAL, "the driver, because of heat"},
                    {YOKE_THROTTLE_POWER_BRAKE, "the power brake of the power supply"},
                    {YOKE_THROTTLE_HW_SLOWDOWN, "a slowdown of the hardware"}};
    Findings all;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        if (is_power_limited(info))
            all.add(kWarn,
                    format("%s has a power limit of %.0f W, but may draw %.0f W",
                           label(facts, i).c_str(), info.power_limit, info.power_limit_max),
                    format("sudo nvidia-smi -i %s -pl %.0f", info.pci, info.power_limit_max), i);
        for (const auto &each : kReasons)
            if (info.throttle & each.bit) {
                const bool brake = each.bit == YOKE_THROTTLE_POWER_BRAKE;
                all.add(kWarn,
                        label(facts, i) + " is limited" + clocks_of(info) + " by " + each.reason +
                            heat_of(info),
                        (brake ? "check the power cables and supply; until then:\n"
                               : "clean fans and filters, check the airflow; until then:\n") +
                            less_power(info),
                        i);
                break;
            }
    }
    return all.or_ok("heat and power limit no GPU");
}

Finding check_memory_errors(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        const std::string reset =
            format("sudo nvidia-smi -i %s --gpu-reset # no process may use it", info.pci);
        if (info.remap_failed == 1)
            all.add(
                kFail, label(facts, i) + " has no spare memory rows left: a remapping failed",
                format(
                    "nvidia-smi -i %s -q -d ROW_REMAPPER > rma.txt # send this file and the card to the manufacturer",
                    info.pci),
                i);
        else if (info.remap_pending == 1)
            all.add(kFail,
                    label(facts, i) + (info.cc_major > 0 && info.cc_major < 8
                                           ? " waits for a reset to retire faulty memory pages"
                                           : " waits for a reset to remap faulty memory rows"),
                    reset, i);
        else if (info.ecc_uncorrected > 0)
            all.add(kWarn,
                    format("%s had %lld uncorrectable memory errors since the driver was loaded",
                           label(facts, i).c_str(), static_cast<long long>(info.ecc_uncorrected)),
                    reset, i);
    }
    return all.or_ok("no errors, and no repair is due");
}

Finding check_xid(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    if (!facts.log)
        return skip(
            "this user may not read the kernel log; run as root, or after sudo sysctl kernel.dmesg_restrict=0");
    Findings all;
    for (const Fault &fault : faults_of(*facts.log)) {
        Bucket bucket = Bucket::kLook;
        const char *meaning = "see the catalog of Xids";
        for (const auto &known : kXids)
            if (known.xid == fault.xid) {
                bucket = known.bucket;
                meaning = known.meaning;
            }
        all.add(
            status_of(bucket),
            format("Xid %d on %s, %s: %s", fault.xid, fault.pci.c_str(),
                   fault.times == 1 ? "once" : format("%d times", fault.times).c_str(), meaning),
            remedy_of(bucket, fault.pci), card_at(facts, fault.pci));
    }
    if (all.empty() && facts.log->find("fallen off the bus") != std::string::npos)
        all.add(kFail, "the kernel log says that a GPU has fallen off the bus",
                remedy_of(Bucket::kRestart, ""));
    return all.or_ok("the kernel log has no Xid");
}

Finding check_driver_answers(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    const NvmlFailure &failure = facts.machine.nvml.failure;
    if (failure.kind != NvmlFailure::Kind::kHung)
        return ok("the management library answered in time");
    const std::string stuck = joined(facts.stuck, ", ", [](const StuckProcess &process) {
        return format("%d (%s)", process.pid, process.name.c_str());
    });
    return found(
        kFail,
        nvml_failure_text(facts.machine) +
            (stuck.empty() ? "" : "; processes that wait in the kernel (state D): " + stuck),
        "sudo dmesg | tail -n 50 # what the driver waits for\n"
        "sudo reboot # processes in state D cannot be killed");
}

Finding check_card_lost(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : gpus(facts))
        if (card(facts, i).present == 0)
            all.add(kFail,
                    label(facts, i) + " was present and no longer answers" +
                        (*card(facts, i).reason ? std::string(": ") + card(facts, i).reason : ""),
                    card(facts, i).is_egpu == 1
                        ? "plug the cable in again, wait for the dock, then start the program again"
                        : remedy_of(Bucket::kRestart, ""),
                    i);
    return all.or_ok("every GPU that was present still answers");
}

}  // namespace yoke::doctor
