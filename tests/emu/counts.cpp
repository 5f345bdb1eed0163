// Where the counts of lines go: objects that the compiler cache shares between clones cannot know it.
#include <cstdlib>

namespace yoke::emu {

#ifdef YOKE_COUNTS
// Before the first object of this module can be asked for its counts, at the end of the program.
__attribute__((constructor)) static void name_folder()
{
    setenv("GCOV_PREFIX", YOKE_COUNTS, 0);
}
#endif

}  // namespace yoke::emu
