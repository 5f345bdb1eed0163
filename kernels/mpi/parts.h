// MPI type for a run of bytes in each of several parts in sequence. Mostly the run is the whole part; then plain
// bytes suffice.
#pragma once

#include "kernels/mpi/flow.h"

namespace yoke::mpi {

class Parts {
public:
    // Makes the type for `run` bytes of each part; a part has `part` bytes. The flow notes failures of MPI.
    Parts(Flow &flow, int64_t run, int64_t part)
    {
        if (run == part) {
            count_ = static_cast<int>(run);
            return;
        }
        MPI_Datatype plain = MPI_DATATYPE_NULL;
        flow.note(MPI_Type_contiguous(static_cast<int>(run), MPI_BYTE, &plain),
                  "MPI_Type_contiguous");
        flow.note(MPI_Type_create_resized(plain, 0, static_cast<MPI_Aint>(part), &type_),
                  "MPI_Type_create_resized");
        flow.note(MPI_Type_commit(&type_), "MPI_Type_commit");
        MPI_Type_free(&plain);
    }
    // Frees the type. MPI itself keeps the type while an operation needs it.
    ~Parts()
    {
        if (type_ != MPI_BYTE) MPI_Type_free(&type_);
    }
    Parts(const Parts &) = delete;
    Parts &operator=(const Parts &) = delete;

    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }

private:
    MPI_Datatype type_ = MPI_BYTE;
    int count_ = 1;
};

}  // namespace yoke::mpi
