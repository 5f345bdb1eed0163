// choice.h: chooses the best devices for a spec from known facts.
//
// This code reads no file and opens no device: a snapshot of the machine and a spec go in, and a verdict for every
// device comes out. Equal input gives equal output. With at most kExactCards fitting devices, all sets are searched.
// With more, a set is grown from each device in turn, each time by the best fit.
#pragma once

#include "core/machine/inventory.h"
#include "core/select/card_state.h"
#include "core/select/spec.h"

#include <optional>
#include <string>
#include <vector>

namespace yoke {

inline constexpr size_t kExactCards = 16;

struct Situation {
    std::vector<CardState> states;  // state of each card of the machine
    // Reasons why CUDA cannot be used, if known, and why the CPU may not be used.
    std::optional<std::string> gpu_problem, cpu_problem;
    int64_t cpu_free = -1, cpu_total = -1;  // bytes, -1: not known
    bool cpu_first = false;                 // YOKE_PLATFORMS names the CPU before any other kind
    // Number of this process among the ranks of this machine, if there are several. No other fact may depend on this
    // number.
    std::optional<int32_t> local_rank;
};

inline constexpr int kCpuCandidate = -1;

struct Verdict {
    int card = kCpuCandidate;  // index into Machine::cards
    bool accepted = false;
    int place = -1;         // place among the chosen devices; -1: not chosen
    int broken = 0;         // number of broken constraints
    bool may_pass = false;  // all obstacles may pass during a wait
    std::string device;
    std::string reason;  // reason of the rejection, or the device's merits
};

struct Choice {
    std::vector<Verdict>
        verdicts;  // the chosen first, then other fitting devices, then by broken constraints
    std::vector<int> chosen;   // cards in order, kCpuCandidate for the CPU
    std::string problem;       // why too few devices fit, if no device is chosen
    bool is_fallback = false;  // the CPU was chosen in the place of a GPU
    std::string passed_over;   // why no GPU fits then
    bool may_change = false;   // enough may fit later: memory, load, leases, exclusive users
    size_t for_ranks =
        0;  // devices shared out in turn among this machine's ranks; 0: not chosen this way
};

// Returns the best `count` devices. A count of 0 is unspecified: then one device, and for one of several ranks the
// rank's own device. Raises YOKE_E_VALUE if a UUID or an address fits several cards, or if `count` is above 1 for a
// spec of one device.
Choice choose(const Machine &machine, const Situation &situation, const Spec &spec, int count);

// Returns the kind serving the card, "cuda"; "" if no backend serves the card.
std::string kind_of(const Card &card, const CardState &state);

// Returns numbers in any order as ranges, "0–3,5".
std::string ranges_text(std::vector<int> numbers);

namespace detail {

// Fitting device, in the form for the search.
struct Contender {
    int card = 0;
    bool leased = false;      // by another process
    double link = 0;          // to the host, bytes per second, 0: not known
    int64_t free_memory = 0;  // in large steps, so a driver's own page does not decide
    int load = 0;             // percent
    int64_t memory = 0;       // in all, in the same steps; 0: not known
    int number = 0;           // number among the kind
};

// Returns the bytes per second between card and host, from the link at its best; 0 if unknown.
double link_rate(const yoke_card_info &info);

// Returns whether `a` is the better device: without another process's lease, then with faster link, more free memory
// and less load.
bool is_before(const Contender &a, const Contender &b);

// Returns whether `a` comes first for ranks. Each rank looks at another time, so facts changed by the ranks' work do
// not count.
bool is_before_for_ranks(const Contender &a, const Contender &b);

// Returns how well two cards are joined; greater is better, 0 if unknown.
int join_quality(const Machine &machine, int a, int b);

// Returns whether two cards may be in the same set.
bool go_together(const Machine &machine, const Spec &spec, int a, int b);

// Returns the best set of `count` compatible devices, in order; empty if there is none. `fitting` is sorted.
std::vector<Contender> best_set(const Machine &machine, const Spec &spec,
                                const std::vector<Contender> &fitting, size_t count);

std::string lower_case(std::string_view text);

// Returns the number at the end of a device's name, 7 for "cuda:7"; -1 for a name without a number.
int number_of_device(const std::string &device);

// Returns whether the spec means the card by number, UUID or address; true if the spec has none of these.
bool is_named(const Card &card, const CardState &state, const Spec &spec);

// Raises YOKE_E_VALUE if the spec names one device, but fits several, or `count` is above 1.
void check_one(const Machine &machine, const Situation &situation, const Spec &spec, int count);

// Returns a card's name for messages: "NVIDIA H200 (cuda:1)", or "NVIDIA H200 (GPU-8932…)" if the spec goes by UUIDs.
std::string name_of(const Machine &machine, const Situation &situation, const Spec &spec, int card);

// Returns why no `count` fitting devices make a set, with the largest possible set.
std::string no_set(const Machine &machine, const Situation &situation, const Spec &spec,
                   const std::vector<Contender> &fitting, int count);

// Returns why fewer than `count` devices fit: every rejected device, with each reason once.
std::string too_few(const Machine &machine, const Situation &situation, const Spec &spec,
                    const std::vector<Verdict> &verdicts, size_t fitting, int count);

// Returns "; did you mean 'uuid:GPU-8932…'?" for an unknown UUID or address; "" if no card is near.
std::string nearest_card(const Machine &machine, const Situation &situation, const Spec &spec);

}  // namespace detail

}  // namespace yoke
