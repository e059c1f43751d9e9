/* Bytes of proxy dialogues: from JSON, in pieces, and what an error says about them. */
#ifndef DIALOGUES_H
#define DIALOGUES_H

#include "conform.h"

struct bytes {
    unsigned char *data;
    size_t len;
};

void append(struct bytes *to, const void *data, size_t len);
void append_hex(struct bytes *to, const char *hex);

/* JSON text as latin-1: cJSON gives UTF-8, of which only the first 256 characters may occur, and NUL_MARK. */
void append_latin1(struct bytes *to, const char *text);

/* JSON text as its UTF-8, NUL_MARK as NUL. */
void unmark(const char *text, struct bytes *to);

/* Allocated. */
char *hex_of(const unsigned char *data, size_t len);

/* The fault an error stands for, `NAME` or `NAME:number`; frees the error. */
void fault_of(byway_error *err, char *out, size_t size);

/* Calls `each` with every way to cut `len` bytes in two, whole, and byte by byte: the length of the first piece and of
 * each further one. */
enum outcome each_cut(size_t len, enum outcome (*each)(size_t first, size_t rest, void *data), void *data);

/* How long the piece is that begins behind `done`. */
size_t piece(size_t done, size_t len, size_t first, size_t rest);

/* Takes what the dialogue wants to have written. */
void write_all(byway_handshake *dialogue);

#endif
