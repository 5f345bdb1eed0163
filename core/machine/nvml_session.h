// nvml_session.h: the library's table of functions, and calls under watch. For the files that fill a snapshot.
#pragma once

#include "core/machine/inventory.h"
#include "core/machine/nvml_abi.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace yoke::nvml {

template <class... Arguments>
struct Symbol {
    int (*call)(Arguments...) = nullptr;
    const char *name = "";
};
template <class>
struct SymbolOf;
template <class... Arguments>
struct SymbolOf<int(Arguments...)> {
    using type = Symbol<Arguments...>;
};

// Functions of the library; NULL if the driver does not have them.
struct Api {
#define NVML_SYMBOL(member, arguments, ...) SymbolOf<int arguments>::type member;
#include "core/machine/nvml_symbols.def"
};

// Facts about a card besides its Card.
struct Known {
    Handle handle = nullptr;      // nullptr: unknown to NVML
    uint64_t active_nvlinks = 0;  // bit n: link n is up
};

// Exception that ends the worker once no thread waits for the result.
struct Abandoned {};

// State written by a snapshot's worker and read by its watcher. The worker holds `mutex` except within a call of the
// library. So if a call does not return, the watcher can take over the facts so far.
struct Session {
    using Clock = std::chrono::steady_clock;

    std::mutex mutex;
    std::condition_variable changed;
    Api api;
    Machine machine;
    std::vector<Known> known;  // a place for each of machine.cards
    bool links = true;         // between cards are asked for
    bool finished = false, abandoned = false;

    // Current call, and the address of its card ("" for the library itself).
    const char *call_name = nullptr;
    std::string call_card;
    Clock::time_point call_start;

    // Makes a call with the lock released, and returns its code; kNoFunction if the driver does not have the
    // function. Raises Abandoned if the watcher has meanwhile given up the session.
    template <class... Arguments, class... Given>
    int call(const Symbol<Arguments...> &symbol, Given... given)
    {
        if (!symbol.call) return kNoFunction;
        begin(symbol.name);
        const int code = symbol.call(given...);
        end();
        return code;
    }
    void begin(const char *name)
    {
        call_name = name;
        call_start = Clock::now();
        mutex.unlock();
    }
    void end()
    {
        mutex.lock();
        if (abandoned) throw Abandoned{};
        call_name = nullptr;
    }
};

// Questions about a card. After the loss of the card, there are no more questions.
class Asker {
public:
    Asker(Session &session, size_t card)
        : session_(session), card_(card), handle_(session.known[card].handle)
    {
    }

    // Returns whether the card answered.
    template <class... Arguments, class... Given>
    bool ask(const Symbol<Arguments...> &symbol, Given... given)
    {
        return code(symbol, given...) == kSuccess;
    }

    template <class... Arguments, class... Given>
    int code(const Symbol<Arguments...> &symbol, Given... given)
    {
        if (info().present == 0) return kLost;
        const int code = session_.call(symbol, handle_, given...);
        if (code == kLost) info().present = 0;
        if (code == kResetRequired) needs_reset_ = true;
        return code;
    }

    Card &card() { return session_.machine.cards[card_]; }
    yoke_card_info &info() { return card().info; }
    const Api &api() const { return session_.api; }
    Session &session() { return session_; }
    size_t index() const { return card_; }
    bool needs_reset() const { return needs_reset_; }

private:
    Session &session_;
    size_t card_;
    Handle handle_;
    bool needs_reset_ = false;
};

// Gets handles for the machine's cards by PCI address, and adds cards that NVML alone shows.
void find_cards(Session &session);

// Asks for all facts about a card (nvml_card.cpp).
void ask_card(Session &session, size_t card);

// Adds the instances of a partitioned card behind it (nvml_mig.cpp). Returns how many.
size_t ask_instances(Session &session, size_t card);

// Asks for the processes that compute and draw on a card (nvml_mig.cpp).
void ask_processes(Asker &asker);

// Ask for total, free, used and reserved memory, and for the multiprocessors, of a card or an instance
// (nvml_card.cpp).
void ask_memory(Asker &asker);
void ask_multiprocessors(Asker &asker);

// Asks how the cards are joined (nvml_links.cpp); fills machine.links.
void ask_links(Session &session);

// Returns the address in `info` as in sysfs.
std::string address_of(const PciInfo &info);

}  // namespace yoke::nvml
