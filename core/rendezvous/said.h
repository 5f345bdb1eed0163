// said.h: what one source of the environment has said, and which of several counts.
#pragma once

#include "core/rendezvous/environment.h"

namespace yoke {

// A value and the variable, or the argument, that it came from.
template <class T>
struct Said {
    std::string by;  // "RANK"; "" where nobody said it
    T value{};
    explicit operator bool() const noexcept { return !by.empty(); }
};

// What a launcher has said. Everything may be missing.
struct LauncherSource {
    std::string name;  // for people
    Said<int32_t> rank, size, local_rank, local_size;
    Said<std::vector<std::string>> hosts;
    Said<uint16_t> port;
    std::string job;
    int64_t epoch = 0;
    bool agent_store = false;
    bool is_inner =
        false;  // was itself started by the ones behind it, whose ranks are none of this process's
    Said<std::string> run = {};  // a name that each start of the launcher has for itself
    bool is_outer = false;       // has started the one that has such a name: likewise
};

// A whole number from 0 on, of a variable. Raises YOKE_E_VALUE for what is none.
Said<int32_t> said_number(const Lookup &variable, const char *name);
// "" counts as not said.
Said<std::string> said_text(const Lookup &variable, const char *name);
Said<std::vector<std::string>> said_host(const Lookup &variable, const char *name);
Said<uint16_t> said_port(const Lookup &variable, const char *name);

// Returns what the first source that knows a field says of it.
template <class T>
Said<T> first_said(const std::vector<LauncherSource> &sources, Said<T> LauncherSource::*field)
{
    for (const LauncherSource &source : sources)
        if (source.*field) return source.*field;
    return {};
}

// Those that speak, the one that counts most first.
std::vector<LauncherSource> launchers(const Lookup &variable, const LauncherLookup &launcher);

}  // namespace yoke
