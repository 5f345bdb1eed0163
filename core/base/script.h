// script.h: place of a call in a script, as reported by the host program's binding.
//
// The provider is asked in the calling thread, with no lock held. Each place's texts are kept once, so a caller notes
// a line as a pointer.
#pragma once

#include "yoke/types.h"

#include <string>

namespace yoke {

// Line of a script, which lives as long as the library.
struct ScriptLine {
    std::string file, function;  // "" if the host program gives none
    int32_t line = 0;            // from 1; 0: not known
};

using StackFn = int32_t (*)(void *user, const char **file, int32_t *line, const char **function);

// Sets the provider. The drop of the former provider runs once, after its last call has returned. fn may be null.
void set_stack_provider(StackFn fn, void *user, yoke_drop_fn drop);

// Returns the line of the calling thread's script; null if the provider gives none, or if no more lines can be kept.
const ScriptLine *script_line() noexcept;

// Returns a line as text: "train.py:17 (step)"; "" for null.
std::string describe(const ScriptLine *line);
std::string describe_line(const std::string &file, int32_t line, const std::string &function);

}  // namespace yoke
