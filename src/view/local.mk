libh5fs_a_SOURCES += \
	src/view/attrs.c \
	src/view/csv.c \
	src/view/csv_intake.c \
	src/view/csv_read.c \
	src/view/csv_read.h \
	src/view/ddl.c \
	src/view/input.c \
	src/view/intake.c \
	src/view/intake.h \
	src/view/json.c \
	src/view/jsonl.c \
	src/view/lines.c \
	src/view/npy.c \
	src/view/npy_header.c \
	src/view/npy_header.h \
	src/view/npy_intake.c \
	src/view/png.c \
	src/view/raw.c \
	src/view/text.c \
	src/view/text.h \
	src/view/text_view.c \
	src/view/text_write.c \
	src/view/values.c \
	src/view/view.c \
	src/view/view.h \
	src/view/views.h
