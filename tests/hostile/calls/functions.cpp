// functions.cpp: every function of the public headers, as generate.py writes them.
#include "draw.h"
#include "special.h"

namespace hostile {

const Function kFunctions[] = {
#include <calls.inc>
};
const size_t kFunctionCount = std::size(kFunctions);

}  // namespace hostile
