/* Where the parts of fetched records lie, for many records in one call.

   The twins are `record_starts` and `read_fields` in spark/columns, to which bytes that are not
   whole records are left, from the beginning, so that errors and their words exist once. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef struct {
    const uint8_t *first, *at, *end; /* Of all bytes; where we are; of what may be read. */
} Reader;

/* False: it does not end here, or is longer than so many bytes. */
static int take_number(Reader *reader, int bytes_max, int64_t *value) {
    uint64_t bits = 0;
    for (int taken = 0; taken < bytes_max && reader->at < reader->end; taken++) {
        uint8_t byte = *reader->at++;
        bits |= (uint64_t)(byte & 127) << 7 * taken;
        if (byte < 128) {
            *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return 1;
        }
    }
    return 0;
}

/* Of a key or value: its place and size, -1 for null. False: it reaches beyond its record. */
static int take_part(Reader *reader, int64_t *at, int64_t *size) {
    if (!take_number(reader, 5, size) || *size < -1) return 0;
    *at = reader->at - reader->first;
    if (*size <= 0) return 1;
    if (*size > reader->end - reader->at) return 0;
    reader->at += *size;
    return 1;
}

/* The rows of the table, each with one number for each record. */
enum {
    OFFSET_DELTA, TIMESTAMP_DELTA, KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADER_COUNT,
    HEADERS_AT, END, ROWS
};
/* What is told of each batch. */
enum { BATCH_START, BATCH_END, BATCH_COUNT, BATCH_LAST_DELTA, BATCH_NUMBERS };

static int read_record(Reader *batch, int64_t last_delta, int64_t *column, Py_ssize_t stride) {
    int64_t length;
    if (!take_number(batch, 5, &length)) return 0;
    if (length < 1 || length > batch->end - batch->at) return 0;
    Reader record = {batch->first, batch->at + 1, batch->at + length}; /* Attributes: unused. */
    batch->at = record.end;
    if (!take_number(&record, 9, &column[TIMESTAMP_DELTA * stride])
        || !take_number(&record, 5, &column[OFFSET_DELTA * stride])
        || !take_part(&record, &column[KEY_AT * stride], &column[KEY_SIZE * stride])
        || !take_part(&record, &column[VALUE_AT * stride], &column[VALUE_SIZE * stride])
        || !take_number(&record, 5, &column[HEADER_COUNT * stride]))
        return 0;
    int64_t delta = column[OFFSET_DELTA * stride], headers = column[HEADER_COUNT * stride];
    column[HEADERS_AT * stride] = record.at - record.first;
    column[END * stride] = record.end - record.first;
    return delta >= 0 && delta <= last_delta && headers >= 0
           && (headers > 0 || record.at == record.end);
}

static int read_batches(const Py_buffer *data, const Py_buffer *batches, int64_t *table,
                        Py_ssize_t stride) {
    const int64_t *batch = batches->buf;
    Py_ssize_t count = batches->len / (Py_ssize_t)sizeof(int64_t) / BATCH_NUMBERS, done = 0;
    for (; count--; batch += BATCH_NUMBERS) {
        int64_t start = batch[BATCH_START], end = batch[BATCH_END], records = batch[BATCH_COUNT];
        if (start < 0 || end < start || end > data->len) return 0;
        if (records < 0 || records > stride - done) return 0;
        const uint8_t *first = data->buf;
        Reader reader = {first, first + start, first + end};
        for (; records--; done++)
            if (!read_record(&reader, batch[BATCH_LAST_DELTA], table + done, stride)) return 0;
        if (reader.at != reader.end) return 0;
    }
    return done == stride;
}

/* read_records(data, batches, table): whether all of it was read; if not, ask the twins. */
static PyObject *read_records(PyObject *module, PyObject *args) {
    Py_buffer data, batches, table;
    int is_read = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*w*", &data, &batches, &table)) return NULL;
    Py_ssize_t stride = table.len / (Py_ssize_t)sizeof(int64_t) / ROWS;
    Py_BEGIN_ALLOW_THREADS /* The buffers are held: nobody else writes to them. */
    is_read = read_batches(&data, &batches, table.buf, stride);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    PyBuffer_Release(&batches);
    PyBuffer_Release(&table);
    return PyBool_FromLong(is_read);
}

PyMethodDef RECORD_FUNCTIONS[] = {
    {"read_records", read_records, METH_VARARGS, "where the parts of records lie, or False"},
    {NULL, NULL, 0, NULL},
};
