libh5fs_a_SOURCES += \
	src/change/btree2_edit.c \
	src/change/btree2_edit.h \
	src/change/btree2_write.c \
	src/change/btree2_write.h \
	src/change/commit.c \
	src/change/journal.c \
	src/change/journal.h \
	src/change/journal_find.c \
	src/change/journal_place.c \
	src/change/journal_private.h \
	src/change/object_header_edit.c \
	src/change/object_header_edit.h \
	src/change/object_header_span.c \
	src/change/object_header_span.h \
	src/change/open.c \
	src/change/open.h \
	src/change/participants.c \
	src/change/patches.c \
	src/change/private.h \
	src/change/record.c \
	src/change/recovery.c \
	src/change/space.c \
	src/change/space.h \
	src/change/transaction.c \
	src/change/transaction.h \
	src/change/unit.c
