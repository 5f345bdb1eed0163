#include "state.h"

#include "tensor.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace yoke_python {

namespace {

StateRef make_node()
{
    yoke_state *node = nullptr;
    check(yoke_state_create(&node));
    return StateRef(node);
}

// Goes through a value. What it has met is held until it ends, so that no address comes twice.
class Reader {
public:
    Reader(const char *call, const char *argument) : call_(call), path_(argument) {}

    StateRef read(py::handle value);

private:
    [[noreturn]] void refuse(yoke_status status, const char *what, py::handle value) const
    {
        raise_error(status, call_, "%s is %s%.100s; %s", path_.c_str(),
                    status == YOKE_E_TYPE ? "a " : "", Py_TYPE(value.ptr())->tp_name, what);
        throw py::error_already_set();
    }
    // "state['net'][0]": puts a key behind the path for as long as it lives.
    class Below {
    public:
        Below(Reader &reader, py::handle key) : path_(reader.path_), length_(path_.size())
        {
            path_ += '[';
            const py::object shown = taken(PyObject_Repr(key.ptr()));
            const char *text = PyUnicode_AsUTF8(shown.ptr());
            if (!text) PyErr_Clear();
            path_ += std::string(text ? text : "?").substr(0, 100) + ']';
        }
        ~Below() { path_.resize(length_); }
        Below(const Below &) = delete;
        Below &operator=(const Below &) = delete;

    private:
        std::string &path_;
        const size_t length_;
    };

    StateRef read_known(py::handle value);
    StateRef read_plain(py::handle value);
    StateRef read_list(py::handle value, bool is_tuple);
    StateRef read_dict(py::handle value);
    void read_int(yoke_state *node, py::handle value);
    void read_text(yoke_state *node, py::handle value);
    yoke_state_key key_of(py::handle key);

    const char *const call_;
    std::string path_;
    std::unordered_map<PyObject *, StateRef> met_;  // lists and dicts
    std::unordered_set<PyObject *> open_;
    std::vector<py::object> held_;
};

bool is_container(py::handle value)
{
    return PyDict_Check(value.ptr()) || PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
}

StateRef Reader::read(py::handle value)
{
    if (is_container(value)) {
        if (const auto known = met_.find(value.ptr()); known != met_.end())
            return StateRef(yoke_state_retain(known->second.get()));
        if (open_.size() > 64)
            refuse(YOKE_E_VALUE, "lists and dicts may lie in each other 64 deep", value);
        if (!open_.insert(value.ptr()).second)
            refuse(YOKE_E_VALUE, "it lies within itself; a tree has no cycles", value);
        held_.push_back(py::reinterpret_borrow<py::object>(value));
        StateRef node = PyDict_Check(value.ptr()) ? read_dict(value)
                                                  : read_list(value, PyTuple_Check(value.ptr()));
        open_.erase(value.ptr());
        met_.emplace(value.ptr(), StateRef(yoke_state_retain(node.get())));
        return node;
    }
    if (StateRef node = read_plain(value)) return node;
    if (!py::hasattr(value, "state_dict"))
        refuse(
            YOKE_E_TYPE,
            "a state is made of None, bools, ints, floats, strings, tensors, lists, tuples, dicts and what has a state_dict()",
            value);
    held_.push_back(value.attr("state_dict")());
    const py::object state = held_.back();
    if (!is_container(state)) refuse(YOKE_E_TYPE, "a state_dict() gives a dict", state);
    return read(state);
}

void Reader::read_int(yoke_state *node, py::handle value)
{
    const py::object number = taken(PyNumber_Index(value.ptr()));
    int overflow = 0;
    const long long found = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow) {
        raise_error(YOKE_E_VALUE, call_, "%s is %R, which does not fit in 64 bits", path_.c_str(),
                    number.ptr());
        throw py::error_already_set();
    }
    require(found != -1 || !PyErr_Occurred());
    check(yoke_state_set_int(node, "", found));
}

void Reader::read_text(yoke_state *node, py::handle value)
{
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
    if (!text) {
        PyErr_Clear();
        refuse(YOKE_E_VALUE, "it has surrogates, which no UTF-8 has", value);
    }
    check(yoke_state_set_string(node, "", text, length));
}

// Null for what is no plain value.
StateRef Reader::read_plain(py::handle value)
{
    PyObject *object = value.ptr();
    StateRef node = make_node();
    if (value.is_none()) return node;
    if (PyBool_Check(object))
        check(yoke_state_set_bool(node.get(), "", object == Py_True));
    else if (is_tensor(object))
        check(yoke_state_set_tensor(node.get(), "", need_tensor(value, call_, path_.c_str())));
    else if (PyUnicode_Check(object))
        read_text(node.get(), value);
    else if (PyFloat_Check(object))
        check(yoke_state_set_float(node.get(), "", PyFloat_AS_DOUBLE(object)));
    else if (!is_number(object))
        return nullptr;
    else if (PyIndex_Check(object))
        read_int(node.get(), value);
    else
        check(yoke_state_set_float(node.get(), "", need_float(value, call_, path_.c_str())));
    return node;
}

StateRef Reader::read_list(py::handle value, bool is_tuple)
{
    StateRef node = make_node();
    check(yoke_state_set_list(node.get(), "", is_tuple));
    const py::object items = taken(PySequence_Tuple(value.ptr()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
        const Below below(*this, py::int_(i));
        const StateRef child = read(PyTuple_GET_ITEM(items.ptr(), i));
        check(yoke_state_append(node.get(), child.get()));
    }
    return node;
}

yoke_state_key Reader::key_of(py::handle key)
{
    yoke_state_key found{};
    found.struct_size = sizeof found;
    if (PyUnicode_Check(key.ptr())) {
        Py_ssize_t length = 0;
        found.text = PyUnicode_AsUTF8AndSize(key.ptr(), &length);
        found.length = length;
        if (!found.text) {
            PyErr_Clear();
            refuse(YOKE_E_VALUE, "a key that has surrogates, which no UTF-8 has", key);
        }
        return found;
    }
    if (PyBool_Check(key.ptr()) || !PyIndex_Check(key.ptr()))
        refuse(YOKE_E_TYPE, "keys of a state are strings and ints", key);
    found.is_int = 1;
    found.number = need_int(key, call_, path_.c_str());
    return found;
}

StateRef Reader::read_dict(py::handle value)
{
    StateRef node = make_node();
    check(yoke_state_set_dict(node.get(), ""));
    const py::object items = taken(PyDict_Items(value.ptr()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i) {
        const py::handle pair = PyList_GET_ITEM(items.ptr(), i);
        const py::handle key = PyTuple_GET_ITEM(pair.ptr(), 0);
        const Below below(*this, key);
        const yoke_state_key name = key_of(key);
        const StateRef child = read(PyTuple_GET_ITEM(pair.ptr(), 1));
        check(yoke_state_put(node.get(), &name, child.get()));
    }
    return node;
}

// Makes values of a tree.
class Maker {
public:
    py::object make(yoke_state *node);

private:
    py::object make_list(yoke_state *node);
    py::object make_dict(yoke_state *node);
    py::object make_tensor(yoke_state *node);

    std::unordered_map<yoke_tensor *, py::object> tensors_;
};

StateRef entry_of(yoke_state *node, int64_t index, yoke_state_key *key)
{
    yoke_state *child = nullptr;
    check(yoke_state_entry(node, index, key, &child));
    return StateRef(child);
}

py::object Maker::make_list(yoke_state *node)
{
    py::list list;
    for (int64_t i = 0; i < yoke_state_count(node); ++i)
        list.append(make(entry_of(node, i, nullptr).get()));
    if (yoke_state_is_tuple(node)) return py::tuple(list);
    return list;
}

py::object Maker::make_dict(yoke_state *node)
{
    py::dict dict;
    for (int64_t i = 0; i < yoke_state_count(node); ++i) {
        yoke_state_key key{};
        key.struct_size = sizeof key;
        const StateRef child = entry_of(node, i, &key);
        const py::object name =
            key.is_int
                ? taken(PyLong_FromLongLong(key.number))
                : taken(PyUnicode_FromStringAndSize(key.text, static_cast<Py_ssize_t>(key.length)));
        dict[name] = make(child.get());
    }
    return dict;
}

py::object Maker::make_tensor(yoke_state *node)
{
    yoke_tensor *tensor = nullptr;
    check(yoke_state_get_tensor(node, "", &tensor));
    const auto known = tensors_.find(tensor);
    if (known != tensors_.end()) {
        yoke_tensor_release(tensor);
        return known->second;
    }
    return tensors_[tensor] = taken(wrap_tensor(tensor));
}

py::object Maker::make(yoke_state *node)
{
    int32_t truth = 0;
    int64_t whole = 0, length = 0;
    double number = 0;
    const char *text = nullptr;
    switch (yoke_state_kind(node, "")) {
        case YOKE_STATE_BOOL:
            check(yoke_state_get_bool(node, "", &truth));
            return py::bool_(truth != 0);
        case YOKE_STATE_INT:
            check(yoke_state_get_int(node, "", &whole));
            return taken(PyLong_FromLongLong(whole));
        case YOKE_STATE_FLOAT:
            check(yoke_state_get_float(node, "", &number));
            return taken(PyFloat_FromDouble(number));
        case YOKE_STATE_STRING:
            check(yoke_state_get_string(node, "", &text, &length));
            return taken(PyUnicode_FromStringAndSize(text, static_cast<Py_ssize_t>(length)));
        case YOKE_STATE_TENSOR:
            return make_tensor(node);
        case YOKE_STATE_LIST:
            return make_list(node);
        case YOKE_STATE_DICT:
            return make_dict(node);
        default:
            return py::none();
    }
}

// What a script's `names` says, called without the GIL.
struct Wanted {
    py::object function;
    std::unique_ptr<py::error_already_set> error;
};

int32_t ask_wanted(void *user, const char *name)
{
    auto &wanted = *static_cast<Wanted *>(user);
    const py::gil_scoped_acquire gil;
    if (wanted.error) return 0;
    try {
        const int truth = PyObject_IsTrue(wanted.function(text_of(name)).ptr());
        require(truth >= 0);
        return truth;
    } catch (py::error_already_set &error) {
        wanted.error = std::make_unique<py::error_already_set>(std::move(error));
        return 0;
    }
}

py::object load(const py::object &path, const py::object &device, bool mmap,
                const py::object &dtype, const py::object &names)
{
    constexpr const char *call = "load";
    const py::bytes file = need_path(path, call, "path");
    yoke_load_options options{};
    options.struct_size = sizeof options;
    options.copy = !mmap;
    require(to_dtype(dtype.ptr(), {call, "dtype"}, &options.dtype) &&
            to_device(device.ptr(), {call, "device"}, &options.device));
    Wanted wanted;
    if (PyUnicode_Check(names.ptr())) {
        options.prefix = need_text(names, call, "names");
    } else if (PyCallable_Check(names.ptr())) {
        wanted.function = names;
        options.wanted = ask_wanted;
        options.user = &wanted;
    } else if (!names.is_none()) {
        require(raise_type({call, "names"}, "a prefix or a function", names.ptr()) != nullptr);
    }
    const char *text = PyBytes_AS_STRING(file.ptr());
    yoke_state *found = nullptr;
    const yoke_status status = with_retry([&] {
        const ReleaseGil release;
        return yoke_load(text, &options, &found);
    });
    const StateRef state(found);
    if (wanted.error) throw py::error_already_set(std::move(*wanted.error));
    check(status);
    return value_of(state.get());
}

py::object load_info(const py::object &path)
{
    const py::bytes file = need_path(path, "load_info", "path");
    yoke_state *found = nullptr;
    yoke_status status = YOKE_OK;
    {
        const char *text = PyBytes_AS_STRING(file.ptr());
        const ReleaseGil release;
        status = yoke_load_info(text, &found);
    }
    const StateRef state(found);
    check(status);
    return value_of(state.get());
}

void check_schedule(const py::object &state, int64_t groups)
{
    check(yoke_schedule_check(state_of(state, "load_state_dict", "state_dict").get(), groups));
}

std::unique_ptr<Work> save(const py::object &path, const py::object &state,
                           const py::object &metadata)
{
    const py::bytes file = need_path(path, "save", "path");
    const StateRef tree = state_of(state, "save", "state");
    const StateRef about = metadata.is_none() ? nullptr : state_of(metadata, "save", "metadata");
    yoke_save_options options{};
    options.struct_size = sizeof options;
    options.metadata = about.get();
    yoke_work *work = nullptr;
    yoke_status status = YOKE_OK;
    {
        const char *text = PyBytes_AS_STRING(file.ptr());
        const ReleaseGil release;
        status = yoke_save(text, tree.get(), &options, &work);
    }
    check(status);
    return std::make_unique<Work>(work);
}

}  // namespace

StateRef state_of(py::handle value, const char *call, const char *argument)
{
    return Reader(call, argument).read(value);
}

py::object value_of(yoke_state *state)
{
    return Maker().make(state);
}

void Work::wait(const py::object &timeout)
{
    constexpr double kSlice = 0.1;  // seconds between two looks at Ctrl-C
    double left = timeout.is_none() ? -1 : need_float(timeout, "wait", "timeout");
    if (!timeout.is_none() && !(left >= 0))
        require(raise_error(YOKE_E_VALUE, "wait",
                            "argument 'timeout' is %R; it takes seconds, of at least 0, or None",
                            timeout.ptr()) != nullptr);
    for (;;) {
        const bool is_last = left >= 0 && left <= kSlice;
        const double slice = is_last ? left : kSlice;
        yoke_status status = YOKE_OK;
        {
            const ReleaseGil release;
            status = yoke_work_wait(handle_, slice);
        }
        if (status != YOKE_E_TIMEOUT || done() || is_last) return check(status);
        require(PyErr_CheckSignals() == 0);
        if (left >= 0) left -= slice;
    }
}

py::tuple Work::progress() const
{
    int64_t bytes = 0, of = 0;
    check(yoke_work_progress(handle_, &bytes, &of));
    return py::make_tuple(bytes, of);
}

void bind_state(py::module_ &module)
{
    bound_class<Work>(module, "Work",
                      "What goes on after the call that began it has returned, such as a save.")
        .def(
            "wait", &Work::wait, py::arg("timeout") = py::none(),
            "Waits for the end, at most `timeout` seconds: TimeoutError if it goes on. Raises what it failed with.")
        .def("done", &Work::done, "Whether it has ended, well or not.")
        .def("progress", &Work::progress, "(bytes that are done, bytes in all)");
    module.def("_save", save, py::arg("path"), py::arg("state"), py::arg("metadata"));
    module.def("_load", load, py::arg("path"), py::arg("device"), py::arg("mmap"), py::arg("dtype"),
               py::arg("names"));
    module.def("_load_info", load_info, py::arg("path"));
    module.def("_check_schedule", check_schedule, py::arg("state"), py::arg("groups"));
}

}  // namespace yoke_python
