// choice.h: which devices serve a spec best, decided from what is known of them.
//
// Nothing is read and nothing is opened here: a snapshot of the machine and a spec go in, a verdict for every device
// comes out. Equal input gives equal output. Sets of at most kExactCards fitting devices are searched in full; of more,
// a set is grown from each device in turn, each time by the one that fits best.
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
    std::vector<CardState> states;  // of each card of the machine
    // Why CUDA cannot be used, as far as it is known, and why the CPU may not be.
    std::optional<std::string> gpu_problem, cpu_problem;
    int64_t cpu_free = -1, cpu_total = -1;  // bytes, -1: not known
    bool cpu_first = false;                 // YOKE_PLATFORMS names it before any other kind
    // This process is one of several ranks of this machine: which one. Nothing else that is known may depend on it.
    std::optional<int32_t> local_rank;
};

inline constexpr int kCpuCandidate = -1;

struct Verdict {
    int card = kCpuCandidate;  // index into Machine::cards
    bool accepted = false;
    int place = -1;         // among the chosen; -1: not one of them
    int broken = 0;         // constraints that it does not meet
    bool may_pass = false;  // all that is in its way may pass while one waits
    std::string device;
    std::string reason;  // why it was rejected, or what it has
};

struct Choice {
    std::vector<Verdict>
        verdicts;              // the chosen first, then what else fits, then by broken constraints
    std::vector<int> chosen;   // cards in order, kCpuCandidate for the CPU
    std::string problem;       // why nothing, or not enough, fits: where nothing is chosen
    bool is_fallback = false;  // the CPU was chosen in the place of a GPU
    std::string passed_over;   // why no GPU fits then
    bool may_change = false;   // enough may fit later: memory, load, leases, who has it alone
    size_t for_ranks =
        0;  // devices that the ranks of this machine share out, in turn; 0: it was not chosen so
};

// Returns the best `count` devices. 0 says that nobody has named a count: then it is one device, for one of several
// ranks its own. Raises YOKE_E_VALUE for a UUID or an address that more than one card begins with, and for more than
// one device where the spec names one.
Choice choose(const Machine &machine, const Situation &situation, const Spec &spec, int count);

// "cuda", or "" for a card that no backend serves.
std::string kind_of(const Card &card, const CardState &state);

// "0–3,5" of numbers in any order.
std::string ranges_text(std::vector<int> numbers);

namespace detail {

// A device that fits, as the search sees it.
struct Contender {
    int card = 0;
    bool leased = false;      // by another process
    double link = 0;          // to the host, bytes per second, 0: not known
    int64_t free_memory = 0;  // in steps, so that a driver's own page decides nothing
    int load = 0;             // percent
    int64_t memory = 0;       // in all, in the same steps; 0: not known
    int number = 0;           // of its kind
};

// Bytes per second between the card and the host, from its link at its best; 0 where it is not known.
double link_rate(const yoke_card_info &info);

// Better ones first.
bool is_before(const Contender &a, const Contender &b);

// Tells whether `a` comes first for ranks. Each rank looks at another time, so nothing counts that they change by work.
bool is_before_for_ranks(const Contender &a, const Contender &b);

// How well two cards are joined; greater is better, 0 where nothing is known.
int join_quality(const Machine &machine, int a, int b);

// Whether two cards may be in one set.
bool go_together(const Machine &machine, const Spec &spec, int a, int b);

// The best set of `count` that go together, in order; empty if there is none. `fitting` stands in order.
std::vector<Contender> best_set(const Machine &machine, const Spec &spec,
                                const std::vector<Contender> &fitting, size_t count);

std::string lower_case(std::string_view text);

// Returns 7 for "cuda:7"; -1 where a name ends in no number.
int number_of_device(const std::string &device);

// Whether a card is one that the spec means by number, UUID or address; true for a spec that names none.
bool is_named(const Card &card, const CardState &state, const Spec &spec);

// Raises YOKE_E_VALUE for a spec that names one device and means several, or of which `count` were asked for.
void check_one(const Machine &machine, const Situation &situation, const Spec &spec, int count);

// "NVIDIA H200 (cuda:1)", "NVIDIA H200 (GPU-8932…)" where the spec goes by UUIDs.
std::string name_of(const Machine &machine, const Situation &situation, const Spec &spec, int card);

// Why no `count` of the fitting ones make a set, and the largest that do.
std::string no_set(const Machine &machine, const Situation &situation, const Spec &spec,
                   const std::vector<Contender> &fitting, int count);

// Why fewer than `count` fit: every rejected device with its reason, of several equal ones once.
std::string too_few(const Machine &machine, const Situation &situation, const Spec &spec,
                    const std::vector<Verdict> &verdicts, size_t fitting, int count);

// "; did you mean 'uuid:GPU-8932…'?" for a UUID or an address that no card has; "" where none is near.
std::string nearest_card(const Machine &machine, const Situation &situation, const Spec &spec);

}  // namespace detail

}  // namespace yoke
