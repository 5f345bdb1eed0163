/* An unusable libnccl.so.2: with a version, and no other function. */
int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}
