/* What compaction does with every record of a log: reading its key, and looking the key up.

   The twins are `scan_keys` and `splice` in storage/compaction/scan.py, to which bytes that are not
   whole records are left, from the beginning, so that errors and their words exist once; and the
   map of offset_map.py, whose meaning these functions keep in a table of their own. Only cleaning
   processes come here, so nobody waits for the interpreter's lock. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Varints. */

typedef struct {
    const uint8_t *at, *end;
} Cursor;

/* False: it does not end, or is longer than ten bytes or 64 bits. */
static int take_varint(Cursor *cursor, uint64_t *value) {
    uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (cursor->at >= cursor->end) return 0;
        uint8_t byte = *cursor->at++;
        if (shift == 63 && byte > 1) return 0;
        bits |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = bits;
            return 1;
        }
    }
    return 0;
}

/* One record: where it begins and ends, and what of it compaction needs. */

typedef struct {
    const uint8_t *start, *end;
    uint64_t timestamp_bits, offset_delta;
} Head;

/* The cursor stands behind the offset then, before the key. */
static int take_head(Cursor *cursor, Head *head) {
    uint64_t bits;
    head->start = cursor->at;
    if (!take_varint(cursor, &bits)) return 0;
    if (bits >> 1 > (uint64_t)(cursor->end - cursor->at) || bits & 1) return 0;
    head->end = cursor->at + (bits >> 1);
    if (cursor->at >= head->end) return 0;
    cursor->at++; /* Attributes: unused. */
    if (!take_varint(cursor, &head->timestamp_bits) || !take_varint(cursor, &bits)) return 0;
    if (bits & 1 || cursor->at > head->end) return 0;
    head->offset_delta = bits >> 1;
    return head->offset_delta <= INT32_MAX;
}

static int append_new(PyObject *list, PyObject *item) {
    if (!item) return 0;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return !failed;
}

enum { READ, UNUSUAL, FAILED };
static const long long BASE_OFFSET_MAX = INT64_MAX - INT32_MAX; /* Sums stay within 64 bits. */

static int collect_keys(const Py_buffer *data, long long count, long long base_offset,
                        PyObject *keys, PyObject *offsets, PyObject *tombstones) {
    const uint8_t *bytes = data->buf;
    Cursor cursor = {bytes, bytes + data->len};
    Head head;
    if (base_offset < 0 || base_offset > BASE_OFFSET_MAX) return UNUSUAL;
    for (long long i = 0; i < count; i++) {
        uint64_t bits;
        if (!take_head(&cursor, &head) || !take_varint(&cursor, &bits)) return UNUSUAL;
        if (bits != 1) { /* A length of -1: no key. */
            if (bits & 1 || cursor.at >= head.end
                || bits >> 1 >= (uint64_t)(head.end - cursor.at))
                return UNUSUAL;
            const uint8_t *key = cursor.at;
            cursor.at += bits >> 1;
            PyObject *offset = PyLong_FromLongLong(base_offset + (long long)head.offset_delta);
            int is_tombstone = *cursor.at == 1;
            int is_added = offset && PyList_Append(offsets, offset) == 0
                           && (!is_tombstone || PyList_Append(tombstones, offset) == 0);
            Py_XDECREF(offset);
            if (!is_added || !append_new(keys, PyBytes_FromStringAndSize(
                                                   (const char *)key, (Py_ssize_t)(bits >> 1))))
                return FAILED;
        }
        cursor.at = head.end;
    }
    return cursor.at == cursor.end ? READ : UNUSUAL;
}

/* scan_keys(data, record_count, base_offset): three lists; None: ask the twin. */
static PyObject *scan_keys(PyObject *module, PyObject *args) {
    Py_buffer data;
    long long count, base_offset;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*LL", &data, &count, &base_offset)) return NULL;
    PyObject *found = NULL;
    PyObject *keys = PyList_New(0), *offsets = PyList_New(0), *tombstones = PyList_New(0);
    int how = FAILED;
    if (keys && offsets && tombstones)
        how = collect_keys(&data, count, base_offset, keys, offsets, tombstones);
    if (how == READ) found = PyTuple_Pack(3, keys, offsets, tombstones);
    if (how == UNUSUAL) found = Py_NewRef(Py_None);
    Py_XDECREF(keys);
    Py_XDECREF(offsets);
    Py_XDECREF(tombstones);
    PyBuffer_Release(&data);
    return found;
}

static int is_kept(PyObject *kept, long long offset) {
    PyObject *number = PyLong_FromLongLong(offset);
    if (!number) return -1;
    int answer = PySet_Contains(kept, number);
    Py_DECREF(number);
    return answer;
}

static int copy_kept(const Py_buffer *data, PyObject *kept, long long count,
                     long long base_offset, uint8_t *target, Py_ssize_t *size,
                     long long *kept_count, long long *newest) {
    const uint8_t *bytes = data->buf;
    Cursor cursor = {bytes, bytes + data->len};
    Head head;
    if (base_offset < 0 || base_offset > BASE_OFFSET_MAX) return UNUSUAL;
    for (long long i = 0; i < count; i++) {
        if (!take_head(&cursor, &head)) return UNUSUAL;
        int stays = is_kept(kept, base_offset + (long long)head.offset_delta);
        if (stays < 0) return FAILED;
        if (stays) {
            uint64_t bits = head.timestamp_bits;
            long long delta = (long long)(bits >> 1) ^ -(long long)(bits & 1);
            if (!*kept_count || delta > *newest) *newest = delta;
            memcpy(target + *size, head.start, (size_t)(head.end - head.start));
            *size += head.end - head.start;
            ++*kept_count;
        }
        cursor.at = head.end;
    }
    return cursor.at == cursor.end ? READ : UNUSUAL;
}

/* splice(data, kept, record_count, base_offset): payload, count, newest delta; None: the twin. */
static PyObject *splice(PyObject *module, PyObject *args) {
    Py_buffer data;
    PyObject *kept, *found = NULL;
    long long count, base_offset, kept_count = 0, newest = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*O!LL", &data, &PySet_Type, &kept, &count, &base_offset))
        return NULL;
    PyObject *payload = PyBytes_FromStringAndSize(NULL, data.len);
    if (payload) {
        Py_ssize_t size = 0;
        int how = copy_kept(&data, kept, count, base_offset, (uint8_t *)PyBytes_AS_STRING(payload),
                            &size, &kept_count, &newest);
        if (how == UNUSUAL) found = Py_NewRef(Py_None);
        if (how == READ && _PyBytes_Resize(&payload, size) == 0)
            found = Py_BuildValue("(OLL)", payload, kept_count, newest);
        Py_XDECREF(payload);
    }
    PyBuffer_Release(&data);
    return found;
}

/* SipHash-2-4 with 128 bits: keys may come from whoever wants two of them taken for one. */

typedef struct {
    uint64_t low, high;
} Digest;

static uint64_t rotated(uint64_t value, int by) { return value << by | value >> (64 - by); }

static void sip_rounds(uint64_t v[4], int count) {
    while (count--) {
        v[0] += v[1]; v[1] = rotated(v[1], 13) ^ v[0]; v[0] = rotated(v[0], 32);
        v[2] += v[3]; v[3] = rotated(v[3], 16) ^ v[2];
        v[0] += v[3]; v[3] = rotated(v[3], 21) ^ v[0];
        v[2] += v[1]; v[1] = rotated(v[1], 17) ^ v[2]; v[2] = rotated(v[2], 32);
    }
}

static Digest digest_of(const uint64_t seed[2], const uint8_t *bytes, size_t size) {
    uint64_t v[4] = {
        seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d ^ 0xee,
        seed[0] ^ 0x6c7967656e657261, seed[1] ^ 0x7465646279746573,
    };
    size_t left = size;
    for (; left >= 8; bytes += 8, left -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    uint64_t last = 0;
    memcpy(&last, bytes, left);
    last ^= (uint64_t)size << 56;
    v[3] ^= last;
    sip_rounds(v, 2);
    v[0] ^= last;
    Digest digest;
    v[2] ^= 0xee;
    sip_rounds(v, 4);
    digest.low = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    sip_rounds(v, 4);
    digest.high = v[0] ^ v[1] ^ v[2] ^ v[3];
    return digest;
}

/* The table: slots of a digest and the offset plus one; zero: the slot is free. */

typedef struct {
    Digest digest;
    uint64_t after;
} Slot;

enum { AT_ONCE = 16 }; /* Slots fetched from memory while others are looked at. */

typedef struct {
    Py_buffer memory;
    Slot *slots;
    size_t slot_count;
    uint64_t seed[2];
    PyObject *keys; /* A fast sequence. */
    Py_ssize_t key_count;
} Table;

static void leave_table(Table *table) {
    PyBuffer_Release(&table->memory);
    Py_XDECREF(table->keys);
}

static int enter_table(Table *table, PyObject *memory, PyObject *seed, PyObject *keys) {
    char *seed_bytes;
    Py_ssize_t seed_size;
    if (PyBytes_AsStringAndSize(seed, &seed_bytes, &seed_size) < 0) return 0;
    if (PyObject_GetBuffer(memory, &table->memory, PyBUF_WRITABLE) < 0) return 0;
    table->slots = table->memory.buf;
    table->slot_count = (size_t)table->memory.len / sizeof(Slot);
    table->keys = PySequence_Fast(keys, "keys come as a sequence");
    if (!table->keys || seed_size != sizeof(table->seed) || table->slot_count < 2
        || (uintptr_t)table->slots % sizeof(uint64_t)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a seed of 16 bytes and two slots are needed");
        leave_table(table);
        return 0;
    }
    memcpy(table->seed, seed_bytes, sizeof(table->seed));
    table->key_count = PySequence_Fast_GET_SIZE(table->keys);
    return 1;
}

/* The digests of the next keys, and how many; their slots are on the way from memory then. */
static int digest_some(const Table *table, Py_ssize_t from, Digest digests[AT_ONCE]) {
    int count = 0;
    for (; count < AT_ONCE && from + count < table->key_count; count++) {
        PyObject *key = PySequence_Fast_GET_ITEM(table->keys, from + count);
        if (!PyBytes_Check(key)) {
            PyErr_SetString(PyExc_TypeError, "a key is bytes");
            return -1;
        }
        digests[count] = digest_of(table->seed, (const uint8_t *)PyBytes_AS_STRING(key),
                                   (size_t)PyBytes_GET_SIZE(key));
        __builtin_prefetch(&table->slots[digests[count].low % table->slot_count]);
    }
    return count;
}

/* The slot of a digest, or the free one where it belongs; NULL: the table is full. */
static Slot *slot_of(const Table *table, Digest digest) {
    size_t at = (size_t)(digest.low % table->slot_count);
    for (size_t tried = 0; tried < table->slot_count; tried++) {
        Slot *slot = &table->slots[at];
        if (!slot->after
            || (slot->digest.low == digest.low && slot->digest.high == digest.high))
            return slot;
        if (++at == table->slot_count) at = 0;
    }
    return NULL;
}

static int put_one(const Table *table, Digest digest, PyObject *number, PyObject *replaced) {
    long long offset = PyLong_AsLongLong(number);
    if (offset < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an offset is never negative");
        return 0;
    }
    Slot *slot = slot_of(table, digest);
    if (!slot) {
        PyErr_SetString(PyExc_ValueError, "the table of keys is full");
        return 0;
    }
    if (slot->after && !append_new(replaced, PyLong_FromLongLong((long long)slot->after - 1)))
        return 0;
    slot->digest = digest;
    slot->after = (uint64_t)offset + 1;
    return 1;
}

/* map_put(memory, seed, keys, offsets): the offsets that were replaced. */
static PyObject *map_put(PyObject *module, PyObject *args) {
    PyObject *memory, *seed, *keys, *numbers;
    Table table;
    (void)module;
    if (!PyArg_ParseTuple(args, "OSOO", &memory, &seed, &keys, &numbers)) return NULL;
    if (!enter_table(&table, memory, seed, keys)) return NULL;
    PyObject *offsets = PySequence_Fast(numbers, "offsets come as a sequence");
    PyObject *replaced = offsets ? PyList_New(0) : NULL;
    if (replaced && PySequence_Fast_GET_SIZE(offsets) != table.key_count) {
        PyErr_SetString(PyExc_ValueError, "each key has one offset");
        Py_CLEAR(replaced);
    }
    Digest digests[AT_ONCE];
    for (Py_ssize_t from = 0; replaced && from < table.key_count; from += AT_ONCE) {
        int count = digest_some(&table, from, digests);
        if (count < 0) Py_CLEAR(replaced);
        for (int i = 0; replaced && i < count; i++)
            if (!put_one(&table, digests[i], PySequence_Fast_GET_ITEM(offsets, from + i), replaced))
                Py_CLEAR(replaced);
    }
    Py_XDECREF(offsets);
    leave_table(&table);
    return replaced;
}

/* map_newest(memory, seed, keys): the newest offset of each; -1: there is none. */
static PyObject *map_newest(PyObject *module, PyObject *args) {
    PyObject *memory, *seed, *keys;
    Table table;
    (void)module;
    if (!PyArg_ParseTuple(args, "OSO", &memory, &seed, &keys)) return NULL;
    if (!enter_table(&table, memory, seed, keys)) return NULL;
    PyObject *found = PyList_New(0);
    Digest digests[AT_ONCE];
    for (Py_ssize_t from = 0; found && from < table.key_count; from += AT_ONCE) {
        int count = digest_some(&table, from, digests);
        if (count < 0) Py_CLEAR(found);
        for (int i = 0; found && i < count; i++) {
            const Slot *slot = slot_of(&table, digests[i]);
            long long offset = slot ? (long long)slot->after - 1 : -1;
            if (!append_new(found, PyLong_FromLongLong(offset))) Py_CLEAR(found);
        }
    }
    leave_table(&table);
    return found;
}

PyMethodDef COMPACTION_FUNCTIONS[] = {
    {"scan_keys", scan_keys, METH_VARARGS, "keys, offsets and tombstones of a payload, or None"},
    {"splice", splice, METH_VARARGS, "the records of a payload that stay, or None"},
    {"map_put", map_put, METH_VARARGS, "note the offsets of keys in a table"},
    {"map_newest", map_newest, METH_VARARGS, "look keys up in a table"},
    {NULL, NULL, 0, NULL},
};
