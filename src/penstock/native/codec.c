/* What Python cannot be made to do for less: reading request headers, reading and writing messages
   by their declaration, and checking and building small batches.

   Each function here has a twin in Python, which is the truth about what the bytes mean. This code
   knows the usual shapes only. Whatever is unusual (a tagged field, a value of another type, bytes
   that end too early, more than NATIVE_ELEMENTS_MAX elements) it leaves to the twin, from the
   beginning: so errors, their words and the rare shapes exist once. No more is read than the bytes
   given, nothing is kept between two calls, and the interpreter's lock is held for microseconds. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

enum { FORM = 5 }; /* The Python side asks for the form it was written for. */
enum { NATIVE_ELEMENTS_MAX = 1024, CHECKED_BYTES_MAX = 32768, BUILT_BYTES_MAX = 16384 };
enum { WRITTEN_RECORDS_MAX = 65536 }; /* The twin copies records once, and here they are twice. */
enum {
    BOOLEAN, INT8, INT16, UINT16, INT32, INT64, FLOAT64, UUID,
    STRING, BLOB, RECORD_SET, LIST, STRUCT, KINDS
};
static const int WIDTHS[] = {1, 1, 2, 2, 4, 8, 8, 16};

/* Numbers as they travel: the highest byte first. */

static uint64_t unsigned_at(const uint8_t *at, int width) {
    uint64_t value = 0;
    for (int i = 0; i < width; i++) value = value << 8 | at[i];
    return value;
}

static int64_t signed_at(const uint8_t *at, int width) {
    uint64_t value = unsigned_at(at, width);
    int unused = 64 - 8 * width;
    return (int64_t)(value << unused) >> unused;
}

static void put_number(uint8_t *at, uint64_t value, int width) {
    for (int i = width - 1; i >= 0; i--, value >>= 8) at[i] = (uint8_t)value;
}

/* A declaration: the fields of one struct in one version, in their order. */

typedef struct Codec Codec;
typedef struct {
    Py_ssize_t slot;    /* Where an instance has the value. */
    int kind, of;       /* `of`: what a list holds. */
    int is_nullable;
    Py_ssize_t size_min; /* The fewest bytes that one element of a list takes. */
    Codec *codec;       /* Of a struct, or of the structs of a list. */
    PyObject *preset;   /* What a field that does not travel has; NULL: a new, empty list. */
    int is_checked;     /* Whether such a field must have it when it is written. */
} Field;

struct Codec {
    PyObject_HEAD
    PyTypeObject *type;
    int is_flexible;
    Py_ssize_t body_count, still_count;
    Field *body;  /* What travels. */
    Field *still; /* What does not: fields of other versions, and tagged ones at their defaults. */
};

static PyTypeObject CodecType;

static void free_fields(Field *fields, Py_ssize_t count) {
    for (Py_ssize_t i = 0; fields && i < count; i++) {
        Py_XDECREF((PyObject *)fields[i].codec);
        Py_XDECREF(fields[i].preset);
    }
    PyMem_Free(fields);
}

static void Codec_dealloc(Codec *self) {
    free_fields(self->body, self->body_count);
    free_fields(self->still, self->still_count);
    Py_XDECREF((PyObject *)self->type);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Where instances of a class with __slots__ have an attribute; -1: nowhere we know. */
static Py_ssize_t slot_of(PyTypeObject *type, PyObject *name) {
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    Py_ssize_t slot = -1;
    if (found && Py_TYPE(found) == &PyMemberDescr_Type) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX && PyType_IsSubtype(type, ((PyDescrObject *)found)->d_type))
            slot = member->offset;
    }
    Py_XDECREF(found);
    if (slot < 0) PyErr_Format(PyExc_TypeError, "%U is no slot of %s", name, type->tp_name);
    return slot;
}

static int take_body(Codec *self, PyObject *list) {
    self->body_count = PyList_GET_SIZE(list);
    if (!(self->body = PyMem_Calloc(self->body_count + 1, sizeof(Field)))) return -1;
    for (Py_ssize_t i = 0; i < self->body_count; i++) {
        Field *f = &self->body[i];
        PyObject *name, *codec;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "UiipOn", &name, &f->kind, &f->of,
                              &f->is_nullable, &codec, &f->size_min))
            return -1;
        if (codec != Py_None) {
            if (!PyObject_TypeCheck(codec, &CodecType)) {
                PyErr_SetString(PyExc_TypeError, "a Codec is needed");
                return -1;
            }
            f->codec = (Codec *)Py_NewRef(codec);
        }
        int is_of_structs = f->kind == STRUCT || (f->kind == LIST && f->of == STRUCT);
        if (f->kind < 0 || f->kind >= KINDS || f->of < 0 || f->of >= KINDS || f->size_min < 1
            || is_of_structs != (f->codec != NULL)
            || (f->kind == LIST && (f->of == LIST || f->of == RECORD_SET))) {
            PyErr_Format(PyExc_ValueError, "a field that cannot be: %U", name);
            return -1;
        }
        if ((f->slot = slot_of(self->type, name)) < 0) return -1;
    }
    return 0;
}

static int take_still(Codec *self, PyObject *list) {
    self->still_count = PyList_GET_SIZE(list);
    if (!(self->still = PyMem_Calloc(self->still_count + 1, sizeof(Field)))) return -1;
    for (Py_ssize_t i = 0; i < self->still_count; i++) {
        Field *f = &self->still[i];
        PyObject *name, *preset;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "UOp", &name, &preset, &f->is_checked))
            return -1;
        int is_list = PyList_CheckExact(preset) && PyList_GET_SIZE(preset) == 0;
        f->preset = is_list ? NULL : Py_NewRef(preset);
        if ((f->slot = slot_of(self->type, name)) < 0) return -1;
    }
    return 0;
}

static PyObject *Codec_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *kind, *body, *still;
    int is_flexible;
    if (keywords && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!pO!O!", &PyType_Type, &kind, &is_flexible, &PyList_Type, &body,
                          &PyList_Type, &still))
        return NULL;
    Codec *self = (Codec *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->type = (PyTypeObject *)Py_NewRef(kind);
    self->is_flexible = is_flexible;
    if (take_body(self, body) < 0 || take_still(self, still) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Reading. NULL, whether with an error or not, means: let the twin read it. */

typedef struct {
    PyObject *data;
    const uint8_t *bytes;
    Py_ssize_t at, end, left; /* `left`: how many elements lists may still have. */
} In;

static int has(const In *in, Py_ssize_t count) { return count <= in->end - in->at; }

static int read_uvarint(In *in, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift <= 28; shift += 7) {
        if (!has(in, 1)) return -1;
        uint8_t byte = in->bytes[in->at++];
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 128) return *value <= UINT32_MAX ? 0 : -1;
    }
    return -1;
}

/* A length or count; -1 is null. */
static int read_prefix(In *in, int is_flexible, int kind, int64_t *value) {
    if (is_flexible) {
        uint64_t found;
        if (read_uvarint(in, &found) < 0) return -1;
        *value = (int64_t)found - 1;
        return 0;
    }
    int width = kind == STRING ? 2 : 4;
    if (!has(in, width)) return -1;
    *value = signed_at(in->bytes + in->at, width);
    in->at += width;
    return 0;
}

static PyObject *read_struct(In *in, const Codec *codec);

static PyObject *read_fixed(In *in, int kind) {
    int width = WIDTHS[kind];
    if (!has(in, width)) return NULL;
    const uint8_t *at = in->bytes + in->at;
    in->at += width;
    switch (kind) {
    case BOOLEAN: return PyBool_FromLong(*at != 0);
    case UINT16: return PyLong_FromLong((long)unsigned_at(at, 2));
    case FLOAT64: return PyFloat_FromDouble(PyFloat_Unpack8((const char *)at, 0));
    case UUID: return PyBytes_FromStringAndSize((const char *)at, 16);
    case INT64: return PyLong_FromLongLong(signed_at(at, 8));
    default: return PyLong_FromLong((long)signed_at(at, width));
    }
}

static PyObject *view_of(const In *in, Py_ssize_t start, Py_ssize_t stop) {
    PyObject *from = PyLong_FromSsize_t(start), *to = PyLong_FromSsize_t(stop), *view = NULL;
    if (from && to) {
        PyObject *slice = PySlice_New(from, to, NULL);
        if (slice) view = PyObject_GetItem(in->data, slice);
        Py_XDECREF(slice);
    }
    Py_XDECREF(from);
    Py_XDECREF(to);
    return view;
}

static PyObject *read_value(In *in, int is_flexible, int kind, int is_nullable) {
    if (kind <= UUID) return read_fixed(in, kind);
    int64_t size;
    if (read_prefix(in, is_flexible, kind, &size) < 0) return NULL;
    if (size < 0) return is_nullable ? Py_NewRef(Py_None) : NULL;
    if (size > in->end - in->at) return NULL;
    Py_ssize_t start = in->at;
    in->at += (Py_ssize_t)size;
    const char *text = (const char *)in->bytes + start;
    if (kind == STRING) return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, NULL);
    if (kind == BLOB) return PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
    return view_of(in, start, in->at);
}

static PyObject *read_list(In *in, int is_flexible, const Field *f) {
    int64_t count;
    if (read_prefix(in, is_flexible, LIST, &count) < 0) return NULL;
    if (count < 0) return f->is_nullable ? Py_NewRef(Py_None) : NULL;
    if (count > in->left || count * f->size_min > in->end - in->at) return NULL;
    in->left -= (Py_ssize_t)count;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)count; i++) {
        PyObject *one = f->of == STRUCT ? read_struct(in, f->codec)
                                        : read_value(in, is_flexible, f->of, 0);
        if (one) PyList_SET_ITEM(list, i, one);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *read_field(In *in, int is_flexible, const Field *f) {
    if (f->kind == LIST) return read_list(in, is_flexible, f);
    if (f->kind != STRUCT) return read_value(in, is_flexible, f->kind, f->is_nullable);
    if (f->is_nullable) {
        if (!has(in, 1)) return NULL;
        if ((int8_t)in->bytes[in->at++] < 0) return Py_NewRef(Py_None);
    }
    return read_struct(in, f->codec);
}

static PyObject *read_struct(In *in, const Codec *codec) {
    PyObject *made = codec->type->tp_alloc(codec->type, 0);
    if (!made) return NULL;
    for (Py_ssize_t i = 0; i < codec->still_count; i++) {
        const Field *f = &codec->still[i];
        PyObject *value = f->preset ? Py_NewRef(f->preset) : PyList_New(0);
        if (!value) goto odd;
        *(PyObject **)((char *)made + f->slot) = value;
    }
    for (Py_ssize_t i = 0; i < codec->body_count; i++) {
        const Field *f = &codec->body[i];
        PyObject *value = read_field(in, codec->is_flexible, f);
        if (!value) goto odd;
        *(PyObject **)((char *)made + f->slot) = value;
    }
    if (codec->is_flexible && (!has(in, 1) || in->bytes[in->at++] != 0)) goto odd; /* Tags. */
    return made;
odd:
    Py_DECREF(made);
    return NULL;
}

/* `self` is (codec, the twin, how many elements all lists may have). */
static PyObject *decode(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *twin = PyTuple_GET_ITEM(self, 1);
    Py_buffer buffer;
    if (count != 3 || PyObject_GetBuffer(args[0], &buffer, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return PyObject_Vectorcall(twin, args, (size_t)count, NULL);
    }
    In in = {args[0], buffer.buf, PyLong_AsSsize_t(args[1]), PyLong_AsSsize_t(args[2]),
             PyLong_AsSsize_t(PyTuple_GET_ITEM(self, 2))};
    PyObject *made = NULL, *result = NULL;
    if (PyMemoryView_Check(args[0]) && PyMemoryView_GET_BUFFER(args[0])->itemsize == 1
        && !PyErr_Occurred() && 0 <= in.at && in.at <= in.end && in.end <= buffer.len)
        made = read_struct(&in, (Codec *)PyTuple_GET_ITEM(self, 0));
    PyBuffer_Release(&buffer);
    if (made) result = Py_BuildValue("(Nn)", made, in.at);
    if (result) return result;
    PyErr_Clear();
    return PyObject_Vectorcall(twin, args, (size_t)count, NULL);
}

/* Writing. -1, whether with an error or not, means: let the twin write it. */

typedef struct {
    uint8_t *bytes;
    size_t size, room;
    Py_ssize_t left;
    PyObject *parts; /* Of a message whose records may lie in a file; NULL: all goes into `bytes`. */
    uint8_t first[512];
} Out;

static uint8_t *grown(Out *out, size_t count) {
    if (count > out->room - out->size) {
        size_t room = 2 * (out->size + count);
        uint8_t *bytes = out->bytes == out->first ? PyMem_Malloc(room)
                                                  : PyMem_Realloc(out->bytes, room);
        if (!bytes) return NULL;
        if (out->bytes == out->first) memcpy(bytes, out->first, out->size);
        out->bytes = bytes;
        out->room = room;
    }
    out->size += count;
    return out->bytes + out->size - count;
}

static int write_bytes(Out *out, const void *data, size_t count) {
    uint8_t *to = grown(out, count);
    if (to && count) memcpy(to, data, count);
    return to ? 0 : -1;
}

static int write_prefix(Out *out, int is_flexible, int kind, Py_ssize_t size) {
    if (!is_flexible) {
        int width = kind == STRING ? 2 : 4;
        if (size > (kind == STRING ? INT16_MAX : INT32_MAX)) return -1;
        uint8_t *to = grown(out, (size_t)width);
        if (to) put_number(to, (uint64_t)size, width);
        return to ? 0 : -1;
    }
    if (size >= INT32_MAX) return -1;
    uint8_t spelled[5];
    size_t used = 0;
    for (uint32_t rest = (uint32_t)(size + 1);; rest >>= 7) {
        spelled[used++] = (uint8_t)(rest < 128 ? rest : (rest & 0x7F) | 0x80);
        if (rest < 128) return write_bytes(out, spelled, used);
    }
}

static int write_struct(Out *out, const Codec *codec, PyObject *value);

static int write_fixed(Out *out, int kind, PyObject *value) {
    int width = WIDTHS[kind];
    uint8_t *to = grown(out, (size_t)width);
    if (!to) return -1;
    if (kind == UUID) {
        if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) != 16) return -1;
        memcpy(to, PyBytes_AS_STRING(value), 16);
        return 0;
    }
    if (kind == FLOAT64)
        return PyFloat_Check(value) ? PyFloat_Pack8(PyFloat_AS_DOUBLE(value), (char *)to, 0) : -1;
    if (kind == BOOLEAN) {
        if (value != Py_True && value != Py_False) return -1;
        *to = value == Py_True;
        return 0;
    }
    int beyond = 0;
    if (!PyLong_Check(value)) return -1;
    long long number = PyLong_AsLongLongAndOverflow(value, &beyond);
    if (beyond) return -1;
    if (kind == UINT16) {
        if (number < 0 || number > UINT16_MAX) return -1;
    } else if (width < 8 && (number < -(1LL << (8 * width - 1)) || number >= 1LL << (8 * width - 1)))
        return -1;
    put_number(to, (uint64_t)number, width);
    return 0;
}

/* What was written since the last part becomes one. */
static int end_part(Out *out) {
    if (!out->size) return 0;
    PyObject *part = PyBytes_FromStringAndSize((const char *)out->bytes, (Py_ssize_t)out->size);
    out->size = 0;
    int done = part ? PyList_Append(out->parts, part) : -1;
    Py_XDECREF(part);
    return done;
}

/* Records that are no bytes, such as a slice of a file: a part of their own. */
static int hand_over(Out *out, int is_flexible, PyObject *value) {
    if (!out->parts || PyObject_CheckBuffer(value)) return -1;
    Py_ssize_t size = PyObject_Size(value);
    if (size < 0 || write_prefix(out, is_flexible, RECORD_SET, size) < 0) return -1;
    if (!size) return 0;
    return end_part(out) < 0 ? -1 : PyList_Append(out->parts, value);
}

static int write_value(Out *out, int is_flexible, int kind, int is_nullable, PyObject *value) {
    if (kind <= UUID) return write_fixed(out, kind, value);
    if (value == Py_None) return is_nullable ? write_prefix(out, is_flexible, kind, -1) : -1;
    Py_ssize_t size;
    const char *data;
    if (kind == STRING) {
        if (!PyUnicode_Check(value) || !(data = PyUnicode_AsUTF8AndSize(value, &size))) return -1;
    } else {
        if (!PyBytes_Check(value))
            return kind == RECORD_SET ? hand_over(out, is_flexible, value) : -1;
        data = PyBytes_AS_STRING(value);
        size = PyBytes_GET_SIZE(value);
        if (kind == RECORD_SET && size > WRITTEN_RECORDS_MAX) return -1;
    }
    if (write_prefix(out, is_flexible, kind, size) < 0) return -1;
    return write_bytes(out, data, (size_t)size);
}

static int write_list(Out *out, int is_flexible, const Field *f, PyObject *value) {
    if (value == Py_None) return f->is_nullable ? write_prefix(out, is_flexible, LIST, -1) : -1;
    if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) > out->left) return -1;
    out->left -= PyList_GET_SIZE(value);
    if (write_prefix(out, is_flexible, LIST, PyList_GET_SIZE(value)) < 0) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) {
        PyObject *one = PyList_GET_ITEM(value, i);
        if ((f->of == STRUCT ? write_struct(out, f->codec, one)
                             : write_value(out, is_flexible, f->of, 0, one)) < 0)
            return -1;
    }
    return 0;
}

static int write_field(Out *out, int is_flexible, const Field *f, PyObject *value) {
    if (f->kind == LIST) return write_list(out, is_flexible, f, value);
    if (f->kind != STRUCT) return write_value(out, is_flexible, f->kind, f->is_nullable, value);
    if (f->is_nullable) {
        const uint8_t marker = value == Py_None ? 0xFF : 1;
        if (write_bytes(out, &marker, 1) < 0) return -1;
        if (value == Py_None) return 0;
    }
    return write_struct(out, f->codec, value);
}

/* Whether a field that does not travel is as it is when nobody sets it. */
static int is_preset(const Field *f, PyObject *value) {
    if (!f->preset) return PyList_CheckExact(value) && PyList_GET_SIZE(value) == 0;
    if (value == f->preset) return 1;
    int is_plain = Py_TYPE(value) == Py_TYPE(f->preset)
        && (PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value));
    return is_plain && PyObject_RichCompareBool(value, f->preset, Py_EQ) == 1;
}

static int write_struct(Out *out, const Codec *codec, PyObject *value) {
    if (!PyObject_TypeCheck(value, codec->type)) return -1;
    for (Py_ssize_t i = 0; i < codec->still_count; i++) {
        const Field *f = &codec->still[i];
        PyObject *found = *(PyObject **)((char *)value + f->slot);
        if (f->is_checked && (!found || !is_preset(f, found))) return -1;
    }
    for (Py_ssize_t i = 0; i < codec->body_count; i++) {
        const Field *f = &codec->body[i];
        PyObject *found = *(PyObject **)((char *)value + f->slot);
        if (!found || write_field(out, codec->is_flexible, f, found) < 0) return -1;
    }
    return codec->is_flexible ? write_bytes(out, "", 1) : 0;
}

/* `self` is (codec, the twin). */
static PyObject *encode(PyObject *self, PyObject *message) {
    Out out = {.bytes = out.first, .room = sizeof out.first, .left = NATIVE_ELEMENTS_MAX};
    PyObject *made = NULL;
    if (write_struct(&out, (Codec *)PyTuple_GET_ITEM(self, 0), message) == 0)
        made = PyBytes_FromStringAndSize((const char *)out.bytes, (Py_ssize_t)out.size);
    if (out.bytes != out.first) PyMem_Free(out.bytes);
    if (made) return made;
    PyErr_Clear();
    return PyObject_CallOneArg(PyTuple_GET_ITEM(self, 1), message);
}

/* The same as a list of parts: bytes, and between them what `hand_over` left as it is. */
static PyObject *encode_parts(PyObject *self, PyObject *message) {
    Out out = {.bytes = out.first, .room = sizeof out.first, .left = NATIVE_ELEMENTS_MAX,
               .parts = PyList_New(0)};
    int is_made = out.parts && write_struct(&out, (Codec *)PyTuple_GET_ITEM(self, 0), message) == 0
        && end_part(&out) == 0;
    if (out.bytes != out.first) PyMem_Free(out.bytes);
    if (is_made) return out.parts;
    Py_XDECREF(out.parts);
    PyErr_Clear();
    return PyObject_CallOneArg(PyTuple_GET_ITEM(self, 1), message);
}

static PyMethodDef DECODE = {"decode", (PyCFunction)(void (*)(void))decode, METH_FASTCALL, NULL};
static PyMethodDef ENCODE = {"encode", encode, METH_O, NULL};
static PyMethodDef ENCODE_PARTS = {"encode_parts", encode_parts, METH_O, NULL};

static PyObject *bound(PyMethodDef *method, PyObject *self) {
    PyObject *made = self ? PyCFunction_New(method, self) : NULL;
    Py_XDECREF(self);
    return made;
}

static PyObject *Codec_decoder(PyObject *self, PyObject *args) {
    PyObject *twin;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "On", &twin, &most)) return NULL;
    if (most > NATIVE_ELEMENTS_MAX) most = NATIVE_ELEMENTS_MAX;
    return bound(&DECODE, Py_BuildValue("(OOn)", self, twin, most));
}

static PyObject *Codec_encoder(PyObject *self, PyObject *twin) {
    return bound(&ENCODE, Py_BuildValue("(OO)", self, twin));
}

static PyObject *Codec_part_encoder(PyObject *self, PyObject *twin) {
    return bound(&ENCODE_PARTS, Py_BuildValue("(OO)", self, twin));
}

static PyMethodDef CODEC_METHODS[] = {
    {"decoder", Codec_decoder, METH_VARARGS, "decode(data, at, end), given its twin and a bound"},
    {"encoder", Codec_encoder, METH_O, "encode(message), given its twin"},
    {"part_encoder", Codec_part_encoder, METH_O, "encode_parts(message), given its twin"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject CodecType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "_penstock_native.Codec",
    .tp_doc = "One struct in one version: Codec(class, is_flexible, body, still)",
    .tp_basicsize = sizeof(Codec),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = Codec_new,
    .tp_dealloc = (destructor)Codec_dealloc,
    .tp_methods = CODEC_METHODS,
};

/* Request headers. `self` is (the class, the first flexible version of each key, the twin). */

static PyObject *made_tuple(PyTypeObject *type, Py_ssize_t count) {
    return type->tp_alloc(type, count); /* As tuple.__new__ does for a class of named tuples. */
}

static PyObject *read_header(PyObject *self, In *in) {
    if (!has(in, 8)) return NULL;
    int64_t key = signed_at(in->bytes, 2), version = signed_at(in->bytes + 2, 2);
    PyObject *flexible_from = PyTuple_GET_ITEM(self, 1);
    if (key < 0 || key >= PyTuple_GET_SIZE(flexible_from) || version < 0) return NULL;
    in->at = 8;
    PyObject *client_id = read_value(in, 0, STRING, 1);
    if (!client_id) return NULL;
    long flexible = PyLong_AsLong(PyTuple_GET_ITEM(flexible_from, (Py_ssize_t)key));
    int is_odd = version >= flexible && (!has(in, 1) || in->bytes[in->at++] != 0); /* Tags. */
    PyObject *header = is_odd ? NULL : made_tuple((PyTypeObject *)PyTuple_GET_ITEM(self, 0), 4);
    if (!header) {
        Py_DECREF(client_id);
        return NULL;
    }
    PyTuple_SET_ITEM(header, 0, PyLong_FromLong((long)key));
    PyTuple_SET_ITEM(header, 1, PyLong_FromLong((long)version));
    PyTuple_SET_ITEM(header, 2, PyLong_FromLong((long)signed_at(in->bytes + 4, 4)));
    PyTuple_SET_ITEM(header, 3, client_id);
    if (PyErr_Occurred()) Py_CLEAR(header);
    return header ? Py_BuildValue("(Nn)", header, in->at) : NULL;
}

static PyObject *decode_header(PyObject *self, PyObject *data) {
    Py_buffer buffer;
    PyObject *result = NULL;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) == 0) {
        In in = {data, buffer.buf, 0, buffer.len, 0};
        result = read_header(self, &in);
        PyBuffer_Release(&buffer);
    }
    if (result) return result;
    PyErr_Clear();
    return PyObject_CallOneArg(PyTuple_GET_ITEM(self, 2), data);
}

static PyMethodDef DECODE_HEADER = {"decode_request_header", decode_header, METH_O, NULL};

static PyObject *header_decoder(PyObject *module, PyObject *args) {
    PyObject *type, *flexible_from, *twin;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyType_Type, &type, &PyTuple_Type, &flexible_from, &twin))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a class of tuples is needed");
        return NULL;
    }
    return bound(&DECODE_HEADER, Py_BuildValue("(OOO)", type, flexible_from, twin));
}

/* Small batches. `self` is (the class, the twin). */

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_CRC 1
__attribute__((target("sse4.2"))) static uint32_t crc32c(const uint8_t *at, Py_ssize_t size) {
    uint64_t crc = 0xFFFFFFFFu;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; size > 0; at++, size--) crc = __builtin_ia32_crc32qi((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}
static int can_crc(void) { return __builtin_cpu_supports("sse4.2"); }
#else
#define HAS_CRC 0
static uint32_t crc32c(const uint8_t *at, Py_ssize_t size) { (void)at, (void)size; return 0; }
static int can_crc(void) { return 0; }
#endif

enum { BATCH_HEADER_BYTES = 61, LOG_OVERHEAD = 12, CRC_AT = 17, CRC_FROM = 21,
       HEADER_FIELDS = 13 };
static const int BATCH_WIDTHS[HEADER_FIELDS] = {8, 4, 4, 1, 4, 2, 4, 8, 8, 8, 2, 4, 4};
enum { LENGTH = 1, MAGIC = 3, CRC = 4, ATTRIBUTES = 5, LAST_DELTA = 6, PRODUCER_ID = 9,
       PRODUCER_EPOCH = 10, BASE_SEQUENCE = 11, RECORD_COUNT = 12 };

static PyObject *made_header(PyTypeObject *type, const int64_t *fields) {
    PyObject *header = made_tuple(type, HEADER_FIELDS);
    for (int i = 0; header && i < HEADER_FIELDS; i++) {
        PyObject *number = PyLong_FromLongLong(fields[i]);
        if (number) PyTuple_SET_ITEM(header, i, number);
        else Py_CLEAR(header);
    }
    return header;
}

/* Whether length, magic and CRC are right. */
static int read_batch(const uint8_t *bytes, Py_ssize_t size, int64_t *fields) {
    if (size < BATCH_HEADER_BYTES) return 0;
    const uint8_t *at = bytes;
    for (int i = 0; i < HEADER_FIELDS; at += BATCH_WIDTHS[i++])
        fields[i] = i == CRC ? (int64_t)unsigned_at(at, 4) : signed_at(at, BATCH_WIDTHS[i]);
    int64_t end = LOG_OVERHEAD + fields[LENGTH];
    return fields[MAGIC] == 2 && end >= BATCH_HEADER_BYTES && end <= size
        && end <= CHECKED_BYTES_MAX && fields[RECORD_COUNT] >= 0 && fields[LAST_DELTA] >= 0
        && crc32c(bytes + CRC_FROM, (Py_ssize_t)end - CRC_FROM) == (uint32_t)fields[CRC];
}

/* Whether a producer may send it, and nothing but it. */
static int is_produced(const int64_t *fields, Py_ssize_t size) {
    enum { CODECS = 7, CODEC_LAST = 4, APPEND_TIME = 8, TRANSACTION = 16, CONTROLS = 32,
           RECORD_BYTES_MIN = 7 };
    int64_t attributes = fields[ATTRIBUTES], count = fields[RECORD_COUNT];
    if (fields[LENGTH] != size - LOG_OVERHEAD || count <= 0 || count != fields[LAST_DELTA] + 1
        || (attributes & CODECS) > CODEC_LAST || attributes & (APPEND_TIME | CONTROLS))
        return 0;
    if (!(attributes & CODECS) && count * RECORD_BYTES_MIN > size - BATCH_HEADER_BYTES) return 0;
    if (fields[PRODUCER_ID] < 0) return !(attributes & TRANSACTION);
    return fields[BASE_SEQUENCE] >= 0 && fields[PRODUCER_EPOCH] >= 0;
}

static PyObject *checked(PyObject *self, PyObject *const *args, Py_ssize_t count, int of_producer) {
    PyObject *header = NULL;
    Py_buffer buffer;
    if (count == 1 && PyObject_GetBuffer(args[0], &buffer, PyBUF_SIMPLE) == 0) {
        int64_t fields[HEADER_FIELDS];
        if (read_batch(buffer.buf, buffer.len, fields)
            && (!of_producer || is_produced(fields, buffer.len)))
            header = made_header((PyTypeObject *)PyTuple_GET_ITEM(self, 0), fields);
        PyBuffer_Release(&buffer);
    }
    if (header) return header;
    PyErr_Clear();
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, (size_t)count, NULL);
}

static PyObject *check_batch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    return checked(self, args, count, 0);
}

static PyObject *check_produced(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    return checked(self, args, count, 1);
}

static PyMethodDef CHECK_BATCH = {"check_batch", (PyCFunction)(void (*)(void))check_batch,
                                  METH_FASTCALL, NULL};
static PyMethodDef CHECK_PRODUCED = {"check_produced",
                                     (PyCFunction)(void (*)(void))check_produced, METH_FASTCALL,
                                     NULL};

/* A function of batches that knows the class of their headers and its twin. */
static PyObject *batch_leaf(PyMethodDef *method, PyObject *args) {
    PyObject *type, *twin;
    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &type, &twin)) return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a class of tuples is needed");
        return NULL;
    }
    if (!HAS_CRC || !can_crc()) return Py_NewRef(twin);
    return bound(method, Py_BuildValue("(OO)", type, twin));
}

static PyObject *batch_checker(PyObject *module, PyObject *args) {
    (void)module;
    return batch_leaf(&CHECK_BATCH, args);
}

static PyObject *produced_checker(PyObject *module, PyObject *args) {
    (void)module;
    return batch_leaf(&CHECK_PRODUCED, args);
}

/* Building what a state machine writes: records of one moment. `self` is (the class, the twin). */

static Py_ssize_t varint_size(int64_t number) {
    uint64_t bits = (uint64_t)number << 1; /* Lengths and places are never negative here. */
    Py_ssize_t size = 1;
    for (; bits > 127; bits >>= 7) size++;
    return size;
}

static uint8_t *put_varint(uint8_t *at, int64_t number) {
    uint64_t bits = (uint64_t)number << 1;
    for (; bits > 127; bits >>= 7) *at++ = (uint8_t)(bits | 128);
    *at++ = (uint8_t)bits;
    return at;
}

static const uint8_t NO_BYTES = 1; /* The varint of -1. */

static Py_ssize_t sized_bytes(PyObject *value) {
    if (value == Py_None) return 1;
    return varint_size(PyBytes_GET_SIZE(value)) + PyBytes_GET_SIZE(value);
}

static uint8_t *put_bytes(uint8_t *at, PyObject *value) {
    if (value == Py_None) {
        *at++ = NO_BYTES;
        return at;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(value);
    at = put_varint(at, size);
    memcpy(at, PyBytes_AS_STRING(value), (size_t)size);
    return at + size;
}

enum { FIXED_BODY_BYTES = 3 }; /* Attributes, the distance in time, the number of headers. */

static Py_ssize_t body_size(PyObject *record, Py_ssize_t place) {
    return FIXED_BODY_BYTES + varint_size(place) + sized_bytes(PyTuple_GET_ITEM(record, 0))
        + sized_bytes(PyTuple_GET_ITEM(record, 1));
}

/* Whether it is a pair of bytes, the second of which may be None, that fits. */
static int is_usual_record(PyObject *record) {
    if (!PyTuple_CheckExact(record) || PyTuple_GET_SIZE(record) != 2) return 0;
    PyObject *key = PyTuple_GET_ITEM(record, 0), *value = PyTuple_GET_ITEM(record, 1);
    return PyBytes_CheckExact(key) && PyBytes_GET_SIZE(key) <= BUILT_BYTES_MAX
        && (value == Py_None
            || (PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) <= BUILT_BYTES_MAX));
}

/* The size of their batch; 0: they are left to the twin. */
static Py_ssize_t built_size(PyObject *records) {
    Py_ssize_t count = PyList_GET_SIZE(records), size = BATCH_HEADER_BYTES;
    if (count < 1 || count > NATIVE_ELEMENTS_MAX) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *record = PyList_GET_ITEM(records, i);
        if (!is_usual_record(record)) return 0;
        Py_ssize_t body = body_size(record, i);
        size += varint_size(body) + body;
        if (size > BUILT_BYTES_MAX) return 0;
    }
    return size;
}

static void put_records(uint8_t *at, PyObject *records) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(records); i++) {
        PyObject *record = PyList_GET_ITEM(records, i);
        at = put_varint(at, body_size(record, i));
        *at++ = 0;
        *at++ = 0;
        at = put_varint(at, i);
        at = put_bytes(at, PyTuple_GET_ITEM(record, 0));
        at = put_bytes(at, PyTuple_GET_ITEM(record, 1));
        *at++ = 0;
    }
}

static void put_header(uint8_t *bytes, const int64_t *fields) {
    uint8_t *at = bytes;
    for (int i = 0; i < HEADER_FIELDS; at += BATCH_WIDTHS[i++])
        put_number(at, (uint64_t)fields[i], BATCH_WIDTHS[i]);
}

/* Of (records, moment, codec, producer id, producer epoch): (header, batch). */
static PyObject *made_batch(PyTypeObject *type, PyObject *const *args) {
    enum { MOMENT = 1, CODEC, PRODUCER, EPOCH, IS_TRANSACTIONAL = 16 };
    if (!PyList_CheckExact(args[0])) return NULL;
    int64_t numbers[EPOCH + 1];
    for (int i = MOMENT; i <= EPOCH; i++) {
        numbers[i] = PyLong_Check(args[i]) ? PyLong_AsLongLong(args[i]) : 0;
        if (!PyLong_Check(args[i]) || PyErr_Occurred()) return NULL;
    }
    int64_t producer = numbers[PRODUCER], epoch = numbers[EPOCH];
    Py_ssize_t size = built_size(args[0]), count = PyList_GET_SIZE(args[0]);
    if (!size || numbers[CODEC] || epoch < INT16_MIN || epoch > INT16_MAX) return NULL;
    PyObject *batch = PyByteArray_FromStringAndSize(NULL, size);
    if (!batch) return NULL;
    uint8_t *bytes = (uint8_t *)PyByteArray_AS_STRING(batch);
    int64_t fields[HEADER_FIELDS] = {
        0, size - LOG_OVERHEAD, -1, 2, 0, producer >= 0 ? IS_TRANSACTIONAL : 0, count - 1,
        numbers[MOMENT], numbers[MOMENT], producer, epoch, -1, count,
    };
    put_header(bytes, fields);
    put_records(bytes + BATCH_HEADER_BYTES, args[0]);
    fields[CRC] = crc32c(bytes + CRC_FROM, size - CRC_FROM);
    put_number(bytes + CRC_AT, (uint64_t)fields[CRC], 4);
    PyObject *header = made_header(type, fields);
    return header ? Py_BuildValue("(NN)", header, batch) : (Py_DECREF(batch), NULL);
}

static PyObject *build_batch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *made = count == 5 ? made_batch((PyTypeObject *)PyTuple_GET_ITEM(self, 0), args) : NULL;
    if (made) return made;
    PyErr_Clear();
    return PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, (size_t)count, NULL);
}

static PyMethodDef BUILD_BATCH = {"build_key_values", (PyCFunction)(void (*)(void))build_batch,
                                  METH_FASTCALL, NULL};

static PyObject *batch_builder(PyObject *module, PyObject *args) {
    (void)module;
    return batch_leaf(&BUILD_BATCH, args);
}

static PyMethodDef FUNCTIONS[] = {
    {"header_decoder", header_decoder, METH_VARARGS, "decode_request_header, given its twin"},
    {"batch_checker", batch_checker, METH_VARARGS, "check_batch, given its twin"},
    {"produced_checker", produced_checker, METH_VARARGS, "check_only, given its twin"},
    {"batch_builder", batch_builder, METH_VARARGS, "build_key_values, given its twin"},
    {NULL, NULL, 0, NULL},
};

extern PyMethodDef COMPACTION_FUNCTIONS[]; /* compaction.c */
extern PyMethodDef RECORD_FUNCTIONS[];     /* records.c */

static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, .m_name = "_penstock_native", .m_size = -1,
                             .m_methods = FUNCTIONS};

PyMODINIT_FUNC PyInit__penstock_native(void) {
    if (PyType_Ready(&CodecType) < 0) return NULL;
    PyObject *module = PyModule_Create(&MODULE);
    if (module && (PyModule_AddFunctions(module, COMPACTION_FUNCTIONS) < 0
                   || PyModule_AddFunctions(module, RECORD_FUNCTIONS) < 0
                   || PyModule_AddObjectRef(module, "Codec", (PyObject *)&CodecType) < 0
                   || PyModule_AddIntConstant(module, "FORM", FORM) < 0))
        Py_CLEAR(module);
    return module;
}
