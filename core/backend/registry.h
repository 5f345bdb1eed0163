// registry.h: finds, checks and opens backends by kind, and remembers why one cannot be used.
//
// A kind is "known" if it is embedded in the library (register_backend) or has a module beside it
// (cuda: libyoke_cuda.so). Each is opened at first use, once; a failure is kept with its reason.
// Nothing here knows what stands behind a table.
#pragma once

#include "core/backend/backend.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// The kind whose memory is the host's own; it alone goes on in a forked child.
inline constexpr const char *kHostKind = "cpu";

// What came of opening a kind; never changes afterwards.
struct Backend {
    const yoke_backend *table = nullptr;  // null: it cannot be used
    std::string reason;                   // then why, in one sentence with its remedy
    bool defect = false;                  // then: it is there but broken, not simply absent
};

// Adds an embedded backend. Called before first use: capi/src adds the CPU's while the library is
// loaded. `kind` stays the caller's. A kind that is known already is left as it is.
void register_backend(const char *kind, yoke_backend_get_fn get);

// What came of opening a module that is an engine of collectives and nothing else (mpi: libyoke_mpi.so).
struct CommModule {
    const yoke_backend_comm *table = nullptr;  // null: it cannot be used
    std::string reason;                        // then why, in one sentence with its remedy
};

// Opened at its first use; null for a name that no such module has.
const CommModule *comm_module_of(std::string_view name);

// Opens a kind at its first use. Raises YOKE_E_VALUE for a kind that is not known.
const Backend &backend_of(std::string_view kind);

// All kinds that could be asked for, in the order in which `auto` looks at them.
std::vector<std::string> known_kinds();
bool is_known_kind(std::string_view kind);

// The kinds that may be used, in order: YOKE_PLATFORMS, else all. `named` says that the user chose
// them. Raises YOKE_E_VALUE for a kind that is not known.
struct Platforms {
    std::vector<std::string> kinds;
    bool named = false;
    bool allow(std::string_view kind) const;
};
Platforms platforms();

// "cuda, cpu", for messages.
std::string join(const std::vector<std::string> &words, const char *between = ", ");

namespace detail {
// The table that every backend is given.
const yoke_host &host_table() noexcept;

// Calls `get` and checks what it gives: ABI, kind, op table, entries. `source` names it in reasons.
Backend open_table(const char *kind, yoke_backend_get_fn get, const std::string &source);

// The reason why a table is refused, or "".
std::string refusal(const char *kind, const yoke_backend &table, const std::string &source);

// Loads a module from `folder` and opens its table.
Backend open_module(const char *kind, const std::string &folder);

// The same of engines of collectives.
std::string comm_refusal(const char *name, const yoke_backend_comm &table,
                         const std::string &source);
CommModule open_comm_module(const char *name, const std::string &folder);
}  // namespace detail

}  // namespace yoke
