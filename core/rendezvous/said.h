// said.h: values given by a source of the environment, and the choice between sources.
#pragma once

#include "core/rendezvous/environment.h"

namespace yoke {

// Value, with the name of the variable or argument.
template <class T>
struct Said {
    std::string by;  // "RANK"; "" if not given
    T value{};
    explicit operator bool() const noexcept { return !by.empty(); }
};

// Values given by a launcher. Each may be missing.
struct LauncherSource {
    std::string name;  // text for messages
    Said<int32_t> rank, size, local_rank, local_size;
    Said<std::vector<std::string>> hosts;
    Said<uint16_t> port;
    std::string job;
    int64_t epoch = 0;
    bool agent_store = false;
    bool is_inner = false;  // started by the later sources: this process is not a rank of theirs
    Said<std::string> run = {};  // name unique to each start of the launcher
    bool is_outer =
        false;  // has started the launcher with a `run`: this process is not a rank of it
};

// Returns a variable's whole number from 0 on, or an empty value if the variable is not set. Raises YOKE_E_VALUE for
// other texts.
Said<int32_t> said_number(const Lookup &variable, const char *name);
// Returns a variable's text, with the variable's name. An empty text counts as not given.
Said<std::string> said_text(const Lookup &variable, const char *name);
Said<std::vector<std::string>> said_host(const Lookup &variable, const char *name);
Said<uint16_t> said_port(const Lookup &variable, const char *name);

// Returns the field's value from the first source with a value, or an empty value.
template <class T>
Said<T> first_said(const std::vector<LauncherSource> &sources, Said<T> LauncherSource::*field)
{
    for (const LauncherSource &source : sources)
        if (source.*field) return source.*field;
    return {};
}

// Returns the values that each known launcher gave, in order of precedence. Raises YOKE_E_VALUE for values that
// cannot be read. An outer torchrun or yoke run comes last.
std::vector<LauncherSource> launchers(const Lookup &variable, const LauncherLookup &launcher);

}  // namespace yoke
