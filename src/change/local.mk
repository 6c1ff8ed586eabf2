libh5fs_a_SOURCES += \
	src/change/btree2_edit.c \
	src/change/btree2_edit.h \
	src/change/btree2_write.c \
	src/change/btree2_write.h \
	src/change/journal.c \
	src/change/journal.h \
	src/change/journal_file.c \
	src/change/journal_private.h \
	src/change/object_header_change.c \
	src/change/object_header_change.h \
	src/change/object_header_create.c \
	src/change/object_header_create.h \
	src/change/object_header_edit.c \
	src/change/object_header_edit.h \
	src/change/object_header_insert.c \
	src/change/object_header_insert.h \
	src/change/object_header_layout.c \
	src/change/object_header_layout.h \
	src/change/open.c \
	src/change/open.h \
	src/change/pending.c \
	src/change/private.h \
	src/change/recovery.c \
	src/change/space.c \
	src/change/space.h \
	src/change/transaction.c \
	src/change/transaction.h
