/* Changes of symbol tables: the links of old-style groups, in the transaction (change/transaction.h).
 * Specification III.A.1, III.B, III.C, III.D.
 *
 * Each function is a unit of change. *table is what the group's Symbol Table message says; if the root of the
 * B-tree moves, table->btree changes, and the caller updates the message in the same unit. (The root moves
 * only if it lies across the edge of a page.) If the unit fails, or one around it, *table is as it was; so it
 * outlives the outermost one.
 *
 * A name is added or changed at H5_STAGE_NAME, and removed at H5_STAGE_UNNAME. The caches in entries
 * about groups, here or in the superblock, needs no update: it may be stale. */
#ifndef H5_OBJECT_SYMBOL_TABLE_WRITE_H
#define H5_OBJECT_SYMBOL_TABLE_WRITE_H

#include "format/named_message.h"
#include "format/symbol_table.h"
#include "store/file.h"

/* Bytes of a name, and of the target of a soft link, at most. */
enum { H5_SYMBOL_TEXT_MAX = UINT16_MAX };

/* Gives up the space of a table. The objects that its entries name are the caller's to unlink. */
int h5_symbol_table_free(struct h5_file *file, const struct h5_symbol_table *table);

/* Adds an entry of that name: of `link`, type, address and target are used. -EEXIST: the name is taken.
 * -ENOTSUP: a symbol table has only hard and soft links. -EINVAL: an empty text, or a NUL in it;
 * -ENAMETOOLONG. None of these fails a unit around it. */
int h5_symbol_table_insert(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			   const struct h5_link *link);
/* Makes the entry of that name stand for another link. In the commit it changes from one to the other at
 * once. -ENOENT: there is no entry of that name; else as h5_symbol_table_insert(). */
int h5_symbol_table_change(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			   const struct h5_link *link);
/* Puts the link `as`, under its own name, in the place of the entry of that name. In the commit it does so at
 * once, together with all other calls of this since the last one: they are one cell. Errors, each of which
 * fails a unit around it: -ENOENT; else as h5_symbol_table_insert(). */
int h5_symbol_table_rename(struct h5_file *file, struct h5_symbol_table *table, const char *name, size_t size,
			   const struct h5_link *as);
/* Removes the entry. -ENOENT, which fails no unit around it. */
int h5_symbol_table_remove(struct h5_file *file, struct h5_symbol_table *table, const char *name,
			   size_t size);

#endif
