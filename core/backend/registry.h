// registry.h: finds, checks and opens backends by kind, and keeps the reason if a backend cannot be used.
//
// A kind is "known" if it is embedded in the library (register_backend) or has a module beside the library (cuda:
// libyoke_cuda.so). Each kind is opened at first use, once; a failure is kept with its reason. The registry does not
// know the implementation behind a table.
#pragma once

#include "core/backend/backend.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Kind whose memory is host memory. In a forked child, only this kind goes on.
inline constexpr const char *kHostKind = "cpu";

// Result of opening a kind; never changes afterwards.
struct Backend {
    const yoke_backend *table = nullptr;  // null: it cannot be used
    std::string reason;                   // then the reason, a sentence with the remedy
    bool defect = false;                  // then: it is there but broken, not simply absent
};

// Adds an embedded backend. Called before first use: capi/src adds the CPU's while the library is
// loaded. `kind` stays the caller's. A kind that is known already is left as it is.
void register_backend(const char *kind, yoke_backend_get_fn get);

// Result of opening a module that is purely an engine of collectives (mpi: libyoke_mpi.so).
struct CommModule {
    const yoke_backend_comm *table = nullptr;  // null: it cannot be used
    std::string reason;                        // then the reason, a sentence with the remedy
};

// Returns a module by its name, opened at first use; null if no such module has the name. If the module cannot be
// used, its table is null and the reason is set.
const CommModule *comm_module_of(std::string_view name);

// Returns the backend of a kind, opened at first use; if the backend cannot be used, its table is null. Raises
// YOKE_E_VALUE for an unknown kind.
const Backend &backend_of(std::string_view kind);

// Returns all kinds that a caller may ask for, in the search order of `auto`.
std::vector<std::string> known_kinds();
bool is_known_kind(std::string_view kind);

// Kinds that may be used, in order: YOKE_PLATFORMS, else all. `named` is true if the user chose the kinds. Raises
// YOKE_E_VALUE for an unknown kind.
struct Platforms {
    std::vector<std::string> kinds;
    bool named = false;
    bool allow(std::string_view kind) const;
};
Platforms platforms();

// Joins words to a text for messages: "cuda, cpu".
std::string join(const std::vector<std::string> &words, const char *between = ", ");

namespace detail {
// Returns the table of the core's services, given to every backend.
const yoke_host &host_table() noexcept;

// Calls `get` and checks the table: ABI, kind, op table, entries. If a check fails, returns only the reason, which
// names the table by `source`.
Backend open_table(const char *kind, yoke_backend_get_fn get, const std::string &source);

// Returns the reason why a table is refused, or "".
std::string refusal(const char *kind, const yoke_backend &table, const std::string &source);

// Loads a module from `folder` and opens its table.
Backend open_module(const char *kind, const std::string &folder);

// Returns the reason why an engine's table of collectives is refused, or "". open_comm_module() loads an engine from
// `folder`.
std::string comm_refusal(const char *name, const yoke_backend_comm &table,
                         const std::string &source);
CommModule open_comm_module(const char *name, const std::string &folder);
}  // namespace detail

}  // namespace yoke
