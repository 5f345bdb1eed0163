// Folder for the counts of lines. Objects cannot name the folder, because the compiler cache shares objects between
// clones.
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
