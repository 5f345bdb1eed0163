// script.h: where in a script a call was made, as the host's binding tells it.
//
// Asked in the thread that makes the call, with no lock held. Texts are kept once for each place, so that whoever notes
// a line notes a pointer.
#pragma once

#include "yoke/types.h"

#include <string>

namespace yoke {

// It lives as long as the library does.
struct ScriptLine {
    std::string file, function;  // "" where the host does not name it
    int32_t line = 0;            // from 1; 0: not known
};

using StackFn = int32_t (*)(void *user, const char **file, int32_t *line, const char **function);

// Takes the place of the former one, whose drop runs once, after its last call has returned. fn may be null.
void set_stack_provider(StackFn fn, void *user, yoke_drop_fn drop);

// Where the calling thread's script is; null where nobody tells.
const ScriptLine *script_line() noexcept;

// "train.py:17 (step)"; "" for null.
std::string describe(const ScriptLine *line);
std::string describe_line(const std::string &file, int32_t line, const std::string &function);

}  // namespace yoke
