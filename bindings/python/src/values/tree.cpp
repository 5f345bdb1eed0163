#include "bindings/python/src/values/tree.h"

#include "bindings/python/src/values/need.h"

#include <algorithm>
#include <cstring>
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

// Walk through a value. Found objects are held until the end of the walk, so that no address is reused.
class TreeReader {
public:
    TreeReader(const char *call, const char *argument) : call_(call), path_(argument) {}

    StateRef read(py::handle value);

private:
    [[noreturn]] void refuse(yoke_status status, const char *what, py::handle value) const
    {
        const char *type = Py_TYPE(value.ptr())->tp_name;
        const bool has_vowel = std::strchr("AEIOaeio", *type) != nullptr;
        const char *article = status != YOKE_E_TYPE ? "" : has_vowel ? "an " : "a ";
        raise_error(status, call_, "%s is %s%.100s; %s", path_.c_str(), article, type, what);
        throw py::error_already_set();
    }
    // Scope in which a key stands behind the path: "state['net'][0]".
    class Below {
    public:
        Below(TreeReader &reader, py::handle key) : path_(reader.path_), length_(path_.size())
        {
            path_ += '[';
            const py::object shown = taken(PyObject_Repr(key.ptr()));
            const char *text = PyUnicode_AsUTF8(shown.ptr());
            if (!text) PyErr_Clear();
            std::string key_text = text ? text : "?";
            size_t length = std::min<size_t>(key_text.size(), 100);
            while (length < key_text.size() && (key_text[length] & 0xC0) == 0x80) --length;
            path_ += key_text.substr(0, length) + ']';
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

    static constexpr const char *kDeepest = "lists and dicts must be nested at most 64 deep";

    const char *const call_;
    std::string path_;
    // Lists and dicts. The tree may release a node: if two keys of a dict are the same key of a tree, the last stays.
    std::unordered_map<PyObject *, StateRef> met_;
    std::unordered_set<PyObject *> open_;
    std::vector<py::object> held_;
};

bool is_container(py::handle value)
{
    return PyDict_Check(value.ptr()) || PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
}

StateRef TreeReader::read(py::handle value)
{
    if (is_container(value)) {
        if (const auto known = met_.find(value.ptr()); known != met_.end())
            return StateRef(yoke_state_retain(known->second.get()));
        if (open_.size() >= 64) refuse(YOKE_E_VALUE, kDeepest, value);
        if (!open_.insert(value.ptr()).second)
            refuse(YOKE_E_VALUE, "the value contains itself; a state must be a tree", value);
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
            "a state has only None, bools, ints, floats, strings, tensors, lists, tuples, dicts and objects with state_dict()",
            value);
    held_.push_back(value.attr("state_dict")());
    const py::object state = held_.back();
    if (!PyDict_Check(state.ptr()) && !is_tensor(state.ptr()))
        refuse(YOKE_E_TYPE, "state_dict() must return a dict or a tensor", state);
    return read(state);
}

void TreeReader::read_int(yoke_state *node, py::handle value)
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

void TreeReader::read_text(yoke_state *node, py::handle value)
{
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
    if (!text) {
        PyErr_Clear();
        refuse(YOKE_E_VALUE, "the string has surrogates, which UTF-8 does not allow", value);
    }
    check(yoke_state_set_string(node, "", text, length));
}

// Returns the node of a plain value; null for any other value.
StateRef TreeReader::read_plain(py::handle value)
{
    PyObject *object = value.ptr();
    StateRef node = make_node();
    if (value.is_none()) return node;
    if (is_bool(object))
        check(yoke_state_set_bool(node.get(), "", need_bool(value, call_, path_.c_str())));
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

StateRef TreeReader::read_list(py::handle value, bool is_tuple)
{
    StateRef node = make_node();
    check(yoke_state_set_list(node.get(), "", is_tuple));
    const py::object items = taken(PySequence_Tuple(value.ptr()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
        const Below below(*this, py::int_(i));
        const StateRef child = read(PyTuple_GET_ITEM(items.ptr(), i));
        if (yoke_state_append(node.get(), child.get()) != YOKE_OK)
            refuse(YOKE_E_VALUE, kDeepest,
                   value);  // child placed higher up as well
    }
    return node;
}

yoke_state_key TreeReader::key_of(py::handle key)
{
    yoke_state_key found{};
    found.struct_size = sizeof found;
    if (PyUnicode_Check(key.ptr())) {
        Py_ssize_t length = 0;
        found.text = PyUnicode_AsUTF8AndSize(key.ptr(), &length);
        found.length = length;
        if (!found.text) {
            PyErr_Clear();
            refuse(YOKE_E_VALUE, "a key that has surrogates, which UTF-8 does not allow", key);
        }
        return found;
    }
    if (is_bool(key.ptr()) || !PyIndex_Check(key.ptr()))
        refuse(YOKE_E_TYPE, "keys of a state must be strings or ints", key);
    found.is_int = 1;
    found.number = need_int(key, call_, path_.c_str());
    return found;
}

StateRef TreeReader::read_dict(py::handle value)
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
        if (yoke_state_put(node.get(), &name, child.get()) != YOKE_OK)
            refuse(YOKE_E_VALUE, kDeepest, value);
    }
    return node;
}

// Maker of Python's values from a tree.
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
            // A path need not be UTF-8: as os.fsdecode has it.
            return taken(
                PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(length), "surrogateescape"));
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

}  // namespace

StateRef state_of(py::handle value, const char *call, const char *argument)
{
    return TreeReader(call, argument).read(value);
}

py::object value_of(yoke_state *state)
{
    return Maker().make(state);
}

}  // namespace yoke_python
