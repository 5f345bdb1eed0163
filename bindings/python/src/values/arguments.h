// arguments.h: the arguments of one op call, from Python objects to yoke_arg values.
//
// Converting may run Python code (a number's __index__), so every tensor met is held until the call
// is over: neither a close() nor a change of a list can take it away meanwhile.
#pragma once

#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/op_spec.h"

#include <vector>

namespace yoke_python {

class Arguments {
public:
    explicit Arguments(OpSpec &spec) : spec_(spec) {}
    ~Arguments();
    Arguments(const Arguments &) = delete;
    Arguments &operator=(const Arguments &) = delete;

    // Sorts positional and keyword arguments into their places and converts them. Returns false with a Python error
    // set. Call it only once.
    bool read(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords);

    const OpSpec &spec() const { return spec_; }
    const yoke_arg *values() const { return values_; }
    PyObject *object(int i) const { return objects_[i]; }
    // Returns whether a call with these arguments may take long, or wait for a device and so for other ranks.
    bool may_wait() const { return may_wait_; }
    bool requires_grad() const { return requires_grad_ != 0; }

private:
    bool place(PyObject *self, PyObject *const *args, Py_ssize_t count);
    bool gather(PyObject *const *args, Py_ssize_t *count, Py_ssize_t own);
    void fill_low();
    void find_spread(PyObject *const *args, Py_ssize_t count, Py_ssize_t own);
    bool place_keyword(PyObject *name, PyObject *value);
    bool place_other(PyObject *name, const SeenName &seen, PyObject *value);
    bool raise_twice(int i, PyObject *name) const;
    bool convert(int i);
    bool convert_tensor(const Place &place, PyObject *value, yoke_arg *to);
    bool lift_number(const Place &place, PyObject *value, yoke_arg *to);
    bool convert_tensors(const Place &place, PyObject *value, yoke_arg *to);
    bool convert_ints(const Place &place, PyObject *value, bool spread, yoke_arg *to);
    bool convert_floats(const Place &place, PyObject *value, yoke_arg *to);
    void hold(yoke_tensor *tensor);

    OpSpec &spec_;
    PyObject *objects_[kMaxOpArgs] = {};  // borrowed from the caller
    PyObject *keywords_ = nullptr;        // the call's keywords; borrowed
    PyObject *const *spread_ = nullptr;   // the spread ints
    Py_ssize_t spread_count_ = 1;         // number of spread ints
    PyObject *gathered_ = nullptr;        // tuple of the tensors one by one
    yoke_arg values_[kMaxOpArgs] = {};
    std::vector<yoke_tensor *> lists_[kMaxOpLists];
    std::vector<int64_t> ints_[kMaxOpLists];
    std::vector<double> floats_;  // an op has a single list of floats at most
    int list_count_ = 0;
    int ints_count_ = 0;
    std::vector<yoke_tensor *> held_more_;
    yoke_tensor *held_[4] = {};
    int held_count_ = 0;
    int64_t bytes_ = 0;  // size of all tensors
    bool may_wait_ = false;
    int32_t requires_grad_ = 0;
};

}  // namespace yoke_python
